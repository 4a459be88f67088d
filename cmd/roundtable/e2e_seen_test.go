package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"roundtable/internal/op"
)

// A seen holds every answer to the schema of its operation, and remembers of
// which operations a success was seen.
type seen struct {
	routes  []route
	problem *jsonschema.Schema

	mu   sync.Mutex
	done map[string]int
}

type route struct {
	op.Op
	method string
	path   *regexp.Regexp
	out    *jsonschema.Schema
}

// problemShape is what every refusal looks like.
const problemShape = `{
	"type": "object",
	"required": ["type", "title", "status", "kind", "code", "detail", "errors", "next", "request_id"],
	"properties": {
		"type": {"type": "string", "pattern": "^urn:roundtable:problem:[a-z0-9_.]+$"},
		"title": {"type": "string", "minLength": 1},
		"status": {"type": "integer", "minimum": 400, "maximum": 599},
		"kind": {"type": "string", "minLength": 1},
		"code": {"type": "string", "pattern": "^[a-z0-9_]+([.][a-z0-9_]+)?$"},
		"detail": {"type": "string", "minLength": 1},
		"request_id": {"type": "string", "minLength": 26},
		"errors": {"type": "array", "items": {"type": "object", "required": ["pointer", "message"], "additionalProperties": false,
			"properties": {"pointer": {"type": "string"}, "message": {"type": "string", "minLength": 1}}}},
		"next": {"type": "array", "items": {"type": "object", "required": ["op", "args"], "additionalProperties": false,
			"properties": {"op": {"type": "string"}, "args": {"type": "object"}, "who": {"type": "string"}, "why": {"type": "string"}}}}
	}
}`

// compiled makes a schema ready for use by another library than the one that
// wrote it.
func compiled(raw []byte) *jsonschema.Schema {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		panic(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("urn:test", doc); err != nil {
		panic(err)
	}
	return c.MustCompile("urn:test")
}

// closed is a schema whose objects take nothing that is not named.
func closed(raw []byte) []byte {
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		panic(err)
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if _, ok := v["properties"].(map[string]any); ok && v["additionalProperties"] == nil {
				v["additionalProperties"] = false
			}
			for _, sub := range v {
				walk(sub)
			}
		case []any:
			for _, sub := range v {
				walk(sub)
			}
		}
	}
	walk(doc)
	b, err := json.Marshal(doc)
	if err != nil {
		panic(err)
	}
	return b
}

var outs = sync.OnceValue(func() (rs []route) {
	for _, o := range allOps() {
		raw, err := json.Marshal(o.Out)
		if err != nil {
			panic(err)
		}
		method, path, _ := strings.Cut(o.Route, " ")
		pattern := regexp.MustCompile(`\\\{[a-z_]+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), `[^/]+`)
		rs = append(rs, route{o, method, regexp.MustCompile("^" + pattern + "$"), compiled(closed(raw))})
	}
	return rs
})

func newSeen() *seen {
	return &seen{routes: outs(), problem: compiled([]byte(problemShape)), done: map[string]int{}}
}

// check holds an answer to what its operation declares.
func (s *seen) check(t *testing.T, method, path string, a answer) {
	t.Helper()
	i := slices.IndexFunc(s.routes, func(r route) bool { return r.method == method && r.path.MatchString(path) })
	schema := s.problem
	if a.status < 400 && i >= 0 {
		schema = s.routes[i].out
	} else if a.status < 400 {
		return // the document of the interface, and health
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.raw))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s %s: %v\n%s", method, path, err, a)
	}
	if a.status >= 400 {
		s.refusal(t, a)
		return
	}
	want := s.routes[i].Status
	if want == 0 {
		want = http.StatusOK
	}
	if a.status != want && !(s.routes[i].Later && a.status == http.StatusAccepted) {
		t.Errorf("%s %s: %d, declared %d", method, path, a.status, want)
	}
	s.mu.Lock()
	s.done[s.routes[i].Name]++
	s.mu.Unlock()
}

// refusal checks what no schema can: the status that is said is the one that
// was sent, and a next step is a call that there is.
func (s *seen) refusal(t *testing.T, a answer) {
	t.Helper()
	if a.body["status"] != float64(a.status) || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("%s, as %s", a, a.header.Get("Content-Type"))
	}
	if a.status >= 500 && a.status != http.StatusServiceUnavailable {
		t.Errorf("a fault of the service: %s", a)
	}
	for _, n := range list(a.body, "next") {
		i := slices.IndexFunc(s.routes, func(r route) bool { return r.Name == text(n, "op") })
		if i < 0 {
			t.Errorf("next names %s, which there is not: %s", text(n, "op"), a)
			continue
		}
		given, _ := n["args"].(map[string]any)
		for name := range given {
			if s.routes[i].In.Properties[name] == nil && name != op.WorkspaceParam {
				t.Errorf("next: %s has no %s: %s", text(n, "op"), name, a)
			}
		}
	}
}
