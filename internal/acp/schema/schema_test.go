package schema_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"roundtable/internal/acp/schema"
	"roundtable/internal/acp/schema/sample"
)

var copies = []struct {
	version int
	next    bool
}{{1, false}, {1, true}, {2, false}, {2, true}}

func oracle(t *testing.T, version int, next bool) func(name string) *jsonschema.Schema {
	t.Helper()
	raw, err := schema.File(version, next)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("acp.json", doc); err != nil {
		t.Fatal(err)
	}
	return func(name string) *jsonschema.Schema {
		s, err := c.Compile("acp.json#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// TestVerdicts compares with a full validator, on values that fit and on values
// that were damaged at a random place.
func TestVerdicts(t *testing.T) {
	rnd, rounds := rand.New(rand.NewPCG(3, 4)), 8
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		rounds = 200
	}
	for _, c := range copies {
		set, err := schema.Load(c.version, c.next)
		if err != nil {
			t.Fatal(err)
		}
		compile := oracle(t, c.version, c.next)
		maker, err := sample.New(set, rnd.IntN)
		if err != nil {
			t.Fatal(err)
		}
		bad := 0
		for _, name := range names(t, set) {
			def, want := set.Def(name), compile(name)
			for i := range rounds {
				value, err := maker.Value(name)
				if err != nil {
					t.Fatal(err)
				}
				if i > 2 {
					value = damage(rnd, value)
				}
				raw, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				valid := want.Validate(value) == nil
				if !valid {
					bad++
				}
				if err := def.Validate(raw); (err == nil) != valid {
					t.Errorf("v%d next=%t %s: %s: %v, but the oracle says valid=%t", c.version, c.next, name, raw, err, valid)
				}
				cleaned, err := def.Clean(raw)
				switch {
				case valid && (err != nil || !bytes.Equal(cleaned, raw)):
					t.Errorf("%s: Clean changed the valid %s to %s, %v", name, raw, cleaned, err)
				case !valid && err == nil && bytes.Equal(cleaned, raw):
					t.Errorf("%s: Clean left the invalid %s alone", name, raw)
				}
			}
		}
		if bad < 100 {
			t.Errorf("only %d values were invalid", bad)
		}
	}
}

func names(t *testing.T, set *schema.Set) []string {
	t.Helper()
	defs, err := set.Names()
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for name := range defs {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// damage replaces or removes something inside v.
func damage(rnd *rand.Rand, v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) == 0 || rnd.IntN(8) == 0 {
			break
		}
		keys := []string{}
		for k := range v {
			keys = append(keys, k)
		}
		slices.Sort(keys)
		k := keys[rnd.IntN(len(keys))]
		if rnd.IntN(4) == 0 {
			delete(v, k)
			return v
		}
		v[k] = damage(rnd, v[k])
		return v
	case []any:
		if len(v) == 0 || rnd.IntN(8) == 0 {
			break
		}
		i := rnd.IntN(len(v))
		v[i] = damage(rnd, v[i])
		return v
	}
	return []any{nil, 5.0, -3.5, "zzz", true, []any{}, map[string]any{}, 70000.0}[rnd.IntN(8)]
}

func TestMethods(t *testing.T) {
	for _, c := range copies {
		set, err := schema.Load(c.version, c.next)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range set.Methods() {
			if m.Params == nil || m.Notification != (m.Result == nil) {
				t.Errorf("v%d: %s is incomplete", c.version, m.Name)
			}
		}
		for side, list := range map[string][]string{
			"agent":  {"initialize", "session/new", "session/prompt", "session/cancel", "$/cancel_request"},
			"client": {"session/update", "session/request_permission", "$/cancel_request"},
		} {
			for _, name := range list {
				if _, ok := set.Method(side, name); !ok {
					t.Errorf("v%d: %s has no method %s", c.version, side, name)
				}
			}
		}
	}
}

func TestLeniency(t *testing.T) {
	for i, c := range []struct {
		version        int
		next           bool
		def, in, want  string // want "" means refused
		problemMessage string
	}{
		{1, false, "NewSessionRequest", `{"cwd":"/x"}`, "", "missing field `mcpServers`"},
		{1, false, "NewSessionRequest", `{"cwd":5,"mcpServers":[]}`, "", "cwd: must be string"},
		{1, false, "NewSessionRequest", `{"cwd":"/x","mcpServers":null}`, `{"cwd":"/x"}`, ""},
		{1, false, "NewSessionRequest", `{"cwd":"/x","mcpServers":[{"name":"a"},{"name":"b","command":"c","args":[],"env":[]}]}`,
			`{"cwd":"/x","mcpServers":[{"args":[],"command":"c","env":[],"name":"b"}]}`, ""},
		{1, false, "SessionInfo", `{"sessionId":"a","cwd":"/","updatedAt":5}`, `{"cwd":"/","sessionId":"a"}`, ""},
		{1, false, "SessionNotification", `{"sessionId":"a","update":{"sessionUpdate":"testy_future"}}`, "", "update.sessionUpdate: is no known variant"},
		{1, false, "SessionNotification", `{"sessionId":"a","update":{"sessionUpdate":"tool_call_update","toolCallId":"t","locations":{},"status":"odd"}}`,
			`{"sessionId":"a","update":{"sessionUpdate":"tool_call_update","toolCallId":"t"}}`, ""},
		{1, true, "NewSessionRequest", `{"cwd":"/x","mcpServers":null}`, `{"cwd":"/x"}`, ""},
		{1, true, "NewSessionRequest", `{"cwd":"/x","mcpServers":7}`, "", "mcpServers: must be array"},
		{2, false, "InitializeRequest", `{"protocolVersion":2}`, "", "missing field `info`"},
		{2, false, "InitializeRequest", `{"protocolVersion":70000,"info":{"name":"a","version":"b"}}`, "", "protocolVersion: 70000 is out of range"},
		{2, true, "PromptRequest", `{"sessionId":"s","prompt":[]}`, "", "prompt: must have at least 1 item(s)"},
		{2, false, "SessionUpdate", `{"sessionUpdate":"testy_future","x":1}`, `{"sessionUpdate":"testy_future","x":1}`, ""},
	} {
		set, err := schema.Load(c.version, c.next)
		if err != nil {
			t.Fatal(err)
		}
		got, err := set.Def(c.def).Clean([]byte(c.in))
		if string(got) != c.want || fmt.Sprint(err) != c.problemMessage && c.want == "" {
			t.Errorf("%d: %s: got %s, %v", i, c.in, got, err)
		}
	}
}

func BenchmarkValidateUpdate(b *testing.B) {
	set, err := schema.Load(1, false)
	if err != nil {
		b.Fatal(err)
	}
	def := set.Def("SessionNotification")
	line := []byte(`{"sessionId":"testy-session-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"text content block"},"messageId":"testy-content-text-3"}}`)
	for b.Loop() {
		if err := def.Validate(line); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkLoad(b *testing.B) {
	for b.Loop() {
		if _, err := schema.Load(2, true); err != nil {
			b.Fatal(err)
		}
	}
}
