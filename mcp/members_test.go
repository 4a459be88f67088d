package mcp

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzMembers(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1}`, ` { "a" : [1, {"b":2}] , "a":null} `, `{"\ud800":"x\ud800"}`, "{\"\xff\":1}", `[1]`, `{"a":1}x`, `{"a":1,}`, `{"a" 1}`, `{`, ``, `{1:2}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		ms, err := members(raw)
		var want map[string]json.RawMessage
		wantErr := json.Unmarshal(raw, &want)
		if err == nil && wantErr != nil {
			t.Fatalf("took %q: %v", raw, wantErr)
		}
		if err != nil {
			if wantErr == nil && want != nil {
				t.Fatalf("refused %q: %v", raw, err)
			}
			return
		}
		var squeezed bytes.Buffer
		if err := json.Compact(&squeezed, raw); err != nil {
			t.Fatal(err)
		}
		var again bytes.Buffer
		if err := json.Compact(&again, object(ms)); err != nil || again.String() != squeezed.String() {
			t.Errorf("%q became %q (%v)", squeezed.String(), again.String(), err)
		}
		if s := outline(raw); len(s) > outlineBytes+100 || utf8.Valid(raw) && !utf8.ValidString(s) {
			t.Errorf("outline of %d bytes: %q", len(s), s)
		}
	})
}

// An outline is bounded whatever the answer, and says that it was cut.
func TestOutlineBounds(t *testing.T) {
	long := strings.Repeat("long ", 200)
	var deep any = long
	for range 100 {
		deep = map[string]any{"in": deep, "list": []any{1, 2, deep}[:2]}
	}
	many := make([]any, 500)
	for i := range many {
		many[i] = map[string]any{"note_id": "N", "title": long}
	}
	for name, v := range map[string]any{"deep": map[string]any{"x": deep}, "many": map[string]any{"notes": many, "position": 1}, "long": map[string]any{"x": long}} {
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		s := outline(b)
		if len(s) > outlineBytes+100 {
			t.Errorf("%s: %d bytes", name, len(s))
		}
		if !strings.Contains(s, "…") {
			t.Errorf("%s: not said to be cut: %q", name, s)
		}
	}
	if s := outline(json.RawMessage(`{"position":3}`)); s != "done" {
		t.Errorf("%q", s)
	}
}
