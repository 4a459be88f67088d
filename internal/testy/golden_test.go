package testy_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// golden is a transcript with its placeholders filled in, byte for byte as it
// must be on the wire.
func golden(t *testing.T, name, scratch string) []string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "golden", name+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range bytes.Lines(raw) {
		s := compact(t, line)
		s = strings.ReplaceAll(s, "<scratch>", scratch)
		s = strings.ReplaceAll(s, "<terminal-id-from-client>", "term-1")
		for i := 20; i > 0; i-- {
			s = strings.ReplaceAll(s, fmt.Sprintf("<agent-request-%d>", i), fmt.Sprintf("testy-req-%d", i))
		}
		lines = append(lines, s)
	}
	return lines
}

func TestGoldenV1(t *testing.T) {
	for _, name := range []string{"greet", "content", "session_updates", "tool_calls", "callbacks", "elicitations", "full"} {
		for _, protocol := range []string{"auto", "v1"} {
			c := start(t, "--protocol="+protocol, "--scratch=/scr")
			session := c.open1()
			c.seen = nil
			if stop := c.turn(session, name); stop != "end_turn" {
				t.Errorf("%s ends with %s", name, stop)
			}
			compareGolden(t, golden(t, "v1_"+name, "/scr"), c.seen)
		}
	}
}

// compareGolden compares whole lines; of the last one the omitted report lines
// may be any.
func compareGolden(t *testing.T, want, got []string) {
	t.Helper()
	last := len(want) - 1
	for _, gap := range []string{`...`, `<one report line per callback>`} {
		if before, after, ok := strings.Cut(want[last], `\n`+gap+`\n`); ok && last < len(got) {
			if strings.HasPrefix(got[last], before) && strings.HasSuffix(got[last], after) {
				want[last] = got[last]
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestFinalTextOfFull(t *testing.T) {
	c := start(t)
	c.turn(c.open1(), "full")
	want := strings.TrimPrefix(`
scenario: full
session_updates: sent
content_blocks: 1
terminal/create_for_tool_call: ok {"terminalId":"term-1"}
tool_calls: sent
terminal/release_for_tool_call: ok {}
session/request_permission: ok {"outcome":{"outcome":"selected","optionId":"allow_once"}}
fs/write_text_file: ok {}
fs/read_text_file: ok {"content":"written by testy\n"}
terminal/create: ok {"terminalId":"term-1"}
terminal/output: ok {"output":"testy terminal\n","truncated":false}
terminal/wait_for_exit: ok {"exitCode":0}
terminal/kill: ok {}
terminal/release: ok {}
elicitation/form_session_accept: ok accept content_fields=2
elicitation/form_session_decline: ok decline
elicitation/form_request_cancel: ok cancel
elicitation/url_session_accept: ok accept content_fields=2
elicitation/complete_session_url: sent
elicitation/url_request_decline: ok decline
elicitations: completed
cancel_status: not_cancelled`, "\n")
	if diff := cmp.Diff(want, c.lastText()); diff != "" {
		t.Error(diff)
	}
}

func TestGoldenV2(t *testing.T) {
	for _, draft := range []string{"alpha.3", "next"} {
		c := start(t, "--protocol=v2", "--draft="+draft)
		session := c.open2()
		c.seen = nil
		c.idle(session, "echo hi")
		compareGolden(t, golden(t, "v2_prompt_echo", "/scr"), c.seen)
		c.seen = nil
		c.ok("session/resume", obj{"sessionId": session, "cwd": "/x", "replayFrom": obj{"type": "start"}})
		want := golden(t, "v2_replay", "/scr")
		if draft == "next" {
			want = append(want, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"testy-v2-session-1","update":{"sessionUpdate":"state_update","state":"idle"}}}`)
		}
		compareGolden(t, want, c.seen)
	}
}

// TestTwoRunsAreEqual: the same input, the same bytes.
func TestTwoRunsAreEqual(t *testing.T) {
	run := func(name string) []string {
		c := start(t)
		session := c.open1()
		c.turn(session, name)
		c.turn(session, "help")
		return c.seen
	}
	for _, name := range []string{"session_updates", "content", "tool_calls", "callbacks", "elicitations", "cancel_status", "full", "greet"} {
		if diff := cmp.Diff(run(name), run(name)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
