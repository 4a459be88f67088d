package cli_test

import (
	"encoding/json"
	"testing"

	"roundtable/internal/cli"
	"roundtable/internal/op"
)

// What a person sees, as files to be read by one.
func TestShow(t *testing.T) {
	for name, c := range map[string]struct {
		args   []string
		answer string
	}{
		"proposal.txt": {[]string{"proposal", "get", "P-1"}, `{"position":9,"proposal":{"proposal_id":"P-1","workspace_id":"WS-1","title":"Say \u001b[31mhello\u202e","summary_md":"One line.\nAnother\tline.","expected_tests":["go test ./...","true"],"revision":2,"revisions":[{"number":1,"patch_digest":"aa","patch_bytes":10,"files":[],"attached_by":"PR-1","attached_at":"2026-11-30T10:00:00Z"},{"number":2,"patch_digest":"bb","patch_bytes":12,"files":[{"path":"a"}],"attached_by":"PR-1","attached_at":"2026-11-30T11:00:00.123456789Z"}],"votes":[],"base":{"commit":"c0ffee","paths_digest":""},"appliable":false,"nothing":null},"gates":[{"gate":"patch","status":"passed","because":["it applies"],"needs":[],"next":[]},{"gate":"votes","status":"waiting","because":["0 of 1 votes"],"needs":["a reviewer must vote","another must too"],"next":[{"op":"vote.cast","args":{}}]}],"appliable":false}`},
		"claims.txt":   {[]string{"proposal", "get", "P-1"}, `{"claims":[{"claim_id":"C-1","workspace_id":"WS-1","resource_id":"file:a.go","claim_type":"write","holder":"PR-1","state":"active","expires_at":"2026-11-30T10:00:00Z"},{"claim_id":"C-2","resource_id":"directory:a very long name of a directory that would not fit into any table of a terminal","claim_type":"read","holder":"PR-2","state":"expired","expires_at":"2026-11-30T10:00:00Z"}],"next_cursor":"abc","position":4}`},
		"odd.txt":      {[]string{"proposal", "get", "P-1"}, `{"things":[{"b":1,"a":"x\ny","c_md":"long","workspace_id":"WS-1","d":[1,2]},{"e":true}],"next_cursor":null,"position":4}`},
		"empty.txt":    {[]string{"proposal", "get", "P-1"}, `{"claims":[],"next_cursor":null,"position":4}`},
		"plain.txt":    {[]string{"proposal", "get", "P-1"}, `{"token":"rt_x","token_id":"TK-1","expires_at":"2026-11-30T10:00:00Z","position":3}`},
		"diff.txt":     {[]string{"proposal", "get", "P-1"}, `{"files":[{"operation":"modify","path":"a.go","old_path":"a.go","new_path":"a.go","binary":false,"added_lines":2,"removed_lines":1,"line":1,"hunks":[{"line":3,"old_start":1,"old_lines":2,"new_start":1,"new_lines":3,"section":"func main()","lines":[{"op":"context","text":"a\tb","old_line":1,"new_line":1},{"op":"remove","text":"x","old_line":2,"end":"none"},{"op":"add","text":"\\x1b[31m","new_line":2,"escaped":true},{"op":"add","text":"long","cut":true,"end":"crlf"}]},{"old_start":9,"old_lines":1,"new_start":10,"new_lines":1,"continued":true,"lines":[{"op":"context","text":"z\u202e"}]}]},{"operation":"create","path":"b","binary":true,"added_lines":0,"removed_lines":0}],"next_cursor":null,"position":4,"proposal_id":"P-1","revision":1}`},
		"help.txt":     {[]string{"proposal", "create", "--help"}, `{}`},
		"nouns.txt":    {[]string{"--help"}, `{}`},
		"noun.txt":     {[]string{"proposal", "--help"}, `{}`},
	} {
		d := &desk{answer: json.RawMessage(c.answer)}
		if code := d.run(c.args...); code != cli.Done || d.err.Len() > 0 {
			t.Errorf("%s: %d %s", name, code, d.err.String())
		}
		golden(t, name, d.out.String())
		if c.answer == "{}" {
			continue
		}
		if code := d.run(append(c.args, "--json")...); code != cli.Done || d.out.String() != c.answer+"\n" {
			t.Errorf("%s as JSON: %d %s", name, code, d.out.String())
		}
	}
}

// Whatever an op answers is shown without a panic.
func FuzzShow(f *testing.F) {
	f.Add(`{"proposals":[{"a":{}}],"next_cursor":"x"}`)
	f.Add(`{"a":[[1],{"b":[null]}]}`)
	f.Add(`[]`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, s string) {
		if !json.Valid([]byte(s)) {
			return
		}
		d := &desk{answer: json.RawMessage(s)}
		if code := d.run("proposal", "get", "P-1"); code != cli.Done {
			t.Errorf("%d %s", code, d.err.String())
		}
		for _, r := range d.out.String() {
			if r < ' ' && r != '\n' || r == 0x7f {
				t.Errorf("%q steers the terminal", d.out.String())
			}
		}
	})
}

// TestFile: what is no JSON is passed on byte for byte, and shown to a person so
// that it steers no terminal.
func TestFile(t *testing.T) {
	d := &desk{answer: op.File("a\x1b[31m\r\n\xff")}
	for _, args := range [][]string{{"proposal", "get", "P-1"}, {"proposal", "get", "P-1", "--json"}} {
		if code := d.run(args...); code != cli.Done || d.out.String() != "a\x1b[31m\r\n\xff" {
			t.Errorf("%d %q", code, d.out.String())
		}
	}
	d.terminal = true
	if code := d.run("proposal", "get", "P-1"); code != cli.Done || d.out.String() != "a\\u001b[31m\n\uFFFD" {
		t.Errorf("%d %q", code, d.out.String())
	}
}
