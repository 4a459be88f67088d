package api_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/api"
	"roundtable/internal/op"
)

// TestOpenAPI: the document has every route with its parameters, and answers
// are what it says.
func TestOpenAPI(t *testing.T) {
	r := newRig(t, nil)
	r.log.add(3, nil)
	all, extras := append(ops(), r.feed.Ops()...), r.feed.Extras()
	doc, err := api.OpenAPI(all, extras)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := api.OpenAPI(append(ops(), r.feed.Ops()...), r.feed.Extras()); err != nil || !bytes.Equal(doc, again) {
		t.Error("the same ops give two documents")
	}
	if served := r.do("GET", "/api/v1/openapi.json", "", nil); served.raw != string(doc) {
		t.Error("another document is served")
	}
	var d struct {
		Paths map[string]map[string]struct {
			OperationID string
			Parameters  []struct {
				Name, In string
				Required bool
			}
			RequestBody struct{ Content map[string]any }
			Responses   map[string]struct {
				Content map[string]struct{ Schema jsonschema.Schema }
			}
		}
		Components struct {
			Schemas struct{ Problem jsonschema.Schema }
		}
	}
	if err := json.Unmarshal(doc, &d); err != nil {
		t.Fatal(err)
	}
	for _, e := range extras {
		all = append(all, e.Op)
	}
	for _, o := range all {
		method, path, _ := strings.Cut(o.Route, " ")
		what, ok := d.Paths[path][strings.ToLower(method)]
		if !ok || what.OperationID != o.Name {
			t.Errorf("%s is not in the document", o.Name)
			continue
		}
		var inPath []string
		for _, p := range what.Parameters {
			if p.In == "path" && p.Required {
				inPath = append(inPath, p.Name)
			}
		}
		if !slices.Equal(inPath, o.Params()) {
			t.Errorf("%s: path parameters %v", o.Name, inPath)
		}
	}
	post := d.Paths["/api/v1/workspaces/{workspace_id}/proposals/{proposal_id}/revisions"]["post"]
	if post.RequestBody.Content["text/x-patch"] == nil || post.Responses["201"].Content == nil {
		t.Errorf("the patch alternative or the status is missing: %+v", post)
	}
	conforms(t, &d.Components.Schemas.Problem, r.post(edit, "agent", `{"titel":1}`))
	conforms(t, &d.Components.Schemas.Problem, r.post(edit, "agent", `{"expected_revision":9}`))
	events := d.Paths["/api/v1/workspaces/{workspace_id}/events"]["get"].Responses["200"].Content["application/json"].Schema
	conforms(t, &events, r.do("GET", "/api/v1/workspaces/WS-1/events", "agent", nil))
}

// conforms checks an answer against its schema.
func conforms(t *testing.T, s *jsonschema.Schema, a answer) {
	t.Helper()
	rs, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := rs.Validate(a.body); err != nil {
		t.Errorf("%s: %v", a.raw, err)
	}
}

// TestNewRefuses: a list that transports cannot rely on is no service.
func TestNewRefuses(t *testing.T) {
	r := newRig(t, nil)
	for name, change := range map[string]func(*api.Config){
		"no authentication": func(c *api.Config) { c.Authenticate = nil },
		"name twice":        func(c *api.Config) { c.Ops = append(ops(), ops()[0]) },
		"extra unserved": func(c *api.Config) {
			c.Extras = []api.Extra{{Op: op.Op{Name: "a.b", Route: "GET /api/v1/a", Doc: "A."}}}
		},
		"metrics twice": func(c *api.Config) {},
	} {
		cfg := api.Config{Ops: ops(), Authenticate: r.users.authenticate, Metrics: r.reg,
			Ready: r.config.Ready, Logger: r.config.Logger, Now: r.config.Now}
		change(&cfg)
		if _, err := api.New(cfg); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
