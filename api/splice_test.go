package api

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzSplice: adding a member never makes JSON of what was none, nor the
// reverse, and changes nothing else.
func FuzzSplice(f *testing.F) {
	for _, s := range []string{`{}`, ` { } `, `{"a":1}`, `{"a":"}`, `{"a":{"b":1}`, `{"`, `{"}`, `{"a":"\}`, `[]`, ``, ` `, `}`, `{`, `{"a":1,}`, `{"a":1}}`, "{\"a\":\"x\\\"}", `{}{}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		blank := len(bytes.TrimSpace(in)) == 0 // stands for {}
		var before, after map[string]any
		was := json.Unmarshal(in, &before) == nil && before != nil
		out := splice(in, []byte(`,"added key":1`))
		is := json.Unmarshal(out, &after) == nil && after["added key"] != nil
		if json.Valid(in) != json.Valid(out) && !blank {
			t.Fatalf("%q is JSON: %v, %q: %v", in, json.Valid(in), out, json.Valid(out))
		}
		if was != is && !blank && before["added key"] == nil {
			t.Fatalf("%q became %q", in, out)
		}
		if was && before["added key"] == nil && len(after) != len(before)+1 {
			t.Fatalf("%q became %q", in, out)
		}
	})
}
