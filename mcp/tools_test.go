package mcp_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mark3labs/mcp-go/client"
	lib "github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"net/http"

	"roundtable/internal/op"
	"roundtable/mcp"
)

// listed are the tools as the wire has them.
func listed(t *testing.T, url, token string) (tools []struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	In          map[string]any `json:"inputSchema"`
	Out         map[string]any `json:"outputSchema"`
	Annotations map[string]any `json:"annotations"`
}) {
	t.Helper()
	_, body := raw{t: t, url: url, token: token}.open().rpc(1, "tools/list", nil)
	var r struct {
		Result struct {
			Tools json.RawMessage `json:"tools"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(body), &r); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if err := json.Unmarshal(r.Result.Tools, &tools); err != nil || r.Result.Tools == nil {
		t.Fatalf("%v: %s", err, body)
	}
	return tools
}

func TestTools(t *testing.T) {
	w := newWorld()
	for _, tool := range listed(t, w.serve(t, mcp.HTTPConfig{}, nil), "person") {
		props := tool.In["properties"].(map[string]any)
		names := slices.Sorted(maps.Keys(props))
		switch tool.Name {
		case "note_create":
			checkEqual(t, tool.Name, names, []string{"idempotency_key", "size", "title", "workspace_id"})
			checkEqual(t, "required", tool.In["required"], []any{"title"})
			checkEqual(t, "output", slices.Sorted(maps.Keys(tool.Out["properties"].(map[string]any))), []string{"note", "position"})
			checkEqual(t, "top level only", tool.Out["properties"].(map[string]any)["note"], map[string]any{"type": "object"})
		case "note_list":
			checkEqual(t, tool.Name, names, []string{"after", "limit", "workspace_id"})
		case "server_state":
			checkEqual(t, tool.Name, names, []string{"after"})
		}
		if tool.In["additionalProperties"] != false {
			t.Errorf("%s takes fields that it does not name", tool.Name)
		}
		if tool.Description == "" {
			t.Errorf("%s has no description", tool.Name)
		}
		reads := slices.Contains([]string{"note_get", "note_list", "server_state"}, tool.Name)
		checkEqual(t, tool.Name+" annotations", tool.Annotations, map[string]any{
			"readOnlyHint": reads, "destructiveHint": tool.Name == "note_apply", "idempotentHint": true, "openWorldHint": false})
	}
}

func checkEqual(t *testing.T, what string, got, want any) {
	t.Helper()
	if a, b := toJSON(t, got), toJSON(t, want); a != b {
		t.Errorf("%s: %s, not %s", what, a, b)
	}
}

// Answers are what the output schemas say, nested parts included.
func TestAnswersMatchSchemas(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	_, p := goSDK(t, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{"a"}}})
	schemas := map[string]map[string]any{}
	for _, tool := range listed(t, url, "a") {
		schemas[tool.Name] = tool.Out
	}
	for tool, args := range map[string]map[string]any{
		"note_create": {"title": "x"}, "note_get": {"note_id": "N-1"}, "note_list": {}, "server_state": nil,
	} {
		r, err := p.call(t, tool, args)
		if err != nil || r.isError {
			t.Fatalf("%s: %v %+v", tool, err, r)
		}
		var s jsonschema.Schema
		if err := json.Unmarshal([]byte(toJSON(t, schemas[tool])), &s); err != nil {
			t.Fatal(err)
		}
		resolved, err := s.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal([]byte(r.structured), &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%s: %v: %s", tool, err, r.structured)
		}
		for _, fact := range map[string][]string{
			"note_list":    {"notes: 2", "note_id=N-2", "size=2", "more with cursor=\"c2\""},
			"server_state": {"up: true"},
		}[tool] {
			if !strings.Contains(r.text, fact) {
				t.Errorf("%s: %q is not in the text %q", tool, fact, r.text)
			}
		}
	}
}

func TestDottedNames(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, func(c *mcp.Config) { c.DottedNames = true })
	for _, tool := range listed(t, url, "a") {
		if !strings.Contains(tool.Name, ".") {
			t.Errorf("listed %s", tool.Name)
		}
	}
	for _, modern := range []bool{false, true} {
		c := raw{t: t, url: url, token: "a", modern: modern}
		if !modern {
			c = c.open()
		}
		for _, name := range []string{"note.create", "note_create"} {
			if _, body := c.rpc(1, "tools/call", callArgs(name, map[string]any{"title": "x"})); !strings.Contains(body, "N-1") {
				t.Errorf("%s: %s", name, body)
			}
		}
	}
}

func TestNewRefuses(t *testing.T) {
	w := newWorld()
	good := w.ops()[0]
	for name, change := range map[string]func(o *op.Op){
		"no name":     func(o *op.Op) { o.Name = "note" },
		"capitals":    func(o *op.Op) { o.Name = "note.Create" },
		"long":        func(o *op.Op) { o.Name = "note." + strings.Repeat("x", 30) },
		"no doc":      func(o *op.Op) { o.Doc = "" },
		"no input":    func(o *op.Op) { o.In = nil },
		"bad input":   func(o *op.Op) { o.In = &jsonschema.Schema{Type: "array"} },
		"there twice": func(o *op.Op) {},
	} {
		o := good
		change(&o)
		if _, err := mcp.New(mcp.Config{Ops: []op.Op{good, o}}); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

func TestArguments(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	for _, c := range []struct {
		token, tool, args string
		code              string // of the refusal, or ""
		check             func(op.Call) bool
	}{
		{"a", "note_create", `{"title":"x","idempotency_key":"k1"}`, "", func(c op.Call) bool { return c.Key == "k1" && c.Workspace == "WS-1" && c.After == 0 }},
		{"a", "note_create", `{"title":"x","idempotency_key":""}`, "", func(c op.Call) bool { return len(c.Key) == 26 }},
		{"a", "note_create", `{"title":"x","idempotency_key":null}`, "", func(c op.Call) bool { return len(c.Key) == 26 }},
		{"a", "note_create", `{"title":"x","idempotency_key":"a\nb"}`, "invalid_idempotency_key", nil},
		{"a", "note_create", `{"title":"x","idempotency_key":"` + strings.Repeat("k", 256) + `"}`, "invalid_idempotency_key", nil},
		{"a", "note_create", `{"title":"x","idempotency_key":7}`, "invalid_field", nil},
		{"a", "note_create", `{"title":"x","idempotency_key":"k","idempotency_key":"l"}`, "malformed_json", nil},
		{"a", "note_create", `{"title":"x","workspace_id":"WS-9"}`, "workspace_not_found", nil},
		{"a", "note_create", `{"title":"x","actor":"PR-B"}`, "unknown_field", nil},
		{"a", "note_create", `{"title":"x","title":"y"}`, "malformed_json", nil},
		{"a", "note_create", "{\"title\":\"x\xff\"}", "malformed_json", nil},
		{"a", "note_create", `{"title":"\ud800"}`, "malformed_json", nil},
		{"a", "note_create", `{"Title":"x"}`, "unknown_field", nil},
		{"a", "note_create", `{"title":7}`, "invalid_field", nil},
		{"a", "note_create", `["title"]`, "invalid_field", nil},
		{"a", "note_create", `{"title":"x","after":3}`, "unknown_field", nil},
		{"a", "note_get", `{"note_id":"N","idempotency_key":"k"}`, "unknown_field", nil},
		{"a", "note_list", `null`, "", func(c op.Call) bool { return c.Key == "" }},
		{"a", "note_list", `{"after":1000000}`, "", func(c op.Call) bool { return c.After == 1000000 }},
		{"a", "note_list", `{"after":-1}`, "invalid_field", nil},
		{"a", "note_list", `{"after":"x"}`, "invalid_field", nil},
		{"two", "note_list", `{"workspace_id":"WS-2"}`, "", func(c op.Call) bool { return c.Workspace == "WS-2" }},
		{"two", "note_list", `{}`, "workspace_required", nil},
		{"two", "note_create", `{"title":"x","workspace_id":"WS-2"}`, "forbidden", nil},
		{"two", "server_state", ``, "", func(c op.Call) bool { return c.Workspace == "" }},
		{"narrow", "note_get", `{"note_id":"N"}`, "", func(c op.Call) bool { return c.Workspace == "WS-1" }},
	} {
		if c.args == "" {
			c.args = "null"
		}
		_, body := raw{t: t, url: url, token: c.token}.open().rpc(1, "tools/call", map[string]any{"name": c.tool, "arguments": json.RawMessage(c.args)})
		switch {
		case c.code != "" && !strings.Contains(body, `"code":"`+c.code+`"`):
			t.Errorf("%s %s %s: %s", c.token, c.tool, c.args, body)
		case c.code == "" && (strings.Contains(body, "isError") || !c.check(w.last(t))):
			t.Errorf("%s %s %s: %+v: %s", c.token, c.tool, c.args, w.last(t), body)
		}
	}
}

// A read waits for the newest write of the same principal by itself, in
// whatever session or era, and for nobody else's.
func TestReadsSeeOwnWrites(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	raw{t: t, url: url, token: "a"}.open().rpc(1, "tools/call", callArgs("note_create", map[string]any{"title": "x"}))
	for token, want := range map[string]int64{"a": 10, "b": 0} {
		raw{t: t, url: url, token: token, modern: true}.rpc(1, "tools/call", callArgs("note_list", nil))
		if got := w.last(t).After; got != want {
			t.Errorf("%s waits for %d", token, got)
		}
	}
}

// A client within the process, which goes by no transport, is nobody.
func TestNobody(t *testing.T) {
	w := newWorld()
	cl, err := client.NewInProcessClient(mcp.Lib(w.server(t, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := cl.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := cl.Initialize(t.Context(), lib.InitializeRequest{}); err != nil {
		t.Fatal(err)
	}
	r, err := cl.ListTools(t.Context(), lib.ListToolsRequest{})
	if err != nil || len(r.Tools) != 0 {
		t.Errorf("%v: %d tools", err, len(r.Tools))
	}
}

func wireName(o op.Op) string { return strings.ReplaceAll(o.Name, ".", "_") }
