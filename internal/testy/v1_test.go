package testy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestV1Initialize(t *testing.T) {
	want := `{"protocolVersion":1,"agentCapabilities":{"loadSession":true,` +
		`"promptCapabilities":{"image":true,"audio":true,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":false},` +
		`"sessionCapabilities":{"list":{},"delete":{},"additionalDirectories":{},"resume":{},"close":{}},"auth":{"logout":{}}},` +
		`"authMethods":[{"id":"testy-agent-auth","name":"Testy agent auth","description":"Deterministic no-op authentication for ACP client testing"}],` +
		`"agentInfo":{"name":"testy","title":"Testy","version":"1.2.3"}}`
	c := start(t, "--protocol=v1")
	c.newSession() // there is no state machine
	for _, version := range []int{1, 2, 65535, 0} {
		if got := c.ok("initialize", obj{"protocolVersion": version}); got != want {
			t.Errorf("%d: %s", version, got)
		}
	}
	for _, version := range []any{"1", -1, 65536, 1.5, nil} {
		c.refused(-32602, "initialize", obj{"protocolVersion": version})
	}
}

func TestV1Auth(t *testing.T) {
	c := start(t)
	c.open1()
	if got := c.refused(-32602, "authenticate", obj{"methodId": "x"}); got != "unsupported auth method `x`; supported methods: testy-agent-auth" {
		t.Error(got)
	}
	c.ok("authenticate", obj{"methodId": "testy-agent-auth"})
	c.ok("logout", nil)
}

func TestV1NewSession(t *testing.T) {
	c := start(t)
	c.open1()
	want := `{"sessionId":"testy-session-2","modes":{"currentModeId":"chat","availableModes":[` +
		`{"id":"chat","name":"Chat","description":"Default deterministic chat mode"},{"id":"plan","name":"Plan","description":"Planning-focused test mode"}]},` +
		`"configOptions":[{"id":"verbosity","name":"Verbosity","description":"Controls how much text Testy includes in summaries","type":"select",` +
		`"currentValue":"normal","options":[{"value":"brief","name":"Brief"},{"value":"normal","name":"Normal"},{"value":"verbose","name":"Verbose"}]}]}`
	if got := c.ok("session/new", obj{"cwd": "not absolute", "mcpServers": []any{}}); got != want {
		t.Error(got)
	}
	m := c.call("session/new", obj{"cwd": "/x"})
	if m.Error == nil || string(m.Error.Data) != "{\"error\":\"missing field `mcpServers`\",\"json\":{\"cwd\":\"/x\"},\"phase\":\"deserialization\"}" {
		t.Error(m.line)
	}
}

func TestV1ModesAndConfig(t *testing.T) {
	c := start(t)
	s := c.open1()
	for _, x := range []struct {
		method string
		params obj
		want   string
	}{
		{"session/set_mode", obj{"sessionId": "nope", "modeId": "odd"}, "unsupported mode `odd`; supported modes: chat, plan"},
		{"session/set_mode", obj{"sessionId": "nope", "modeId": "plan"}, "unknown session `nope`"},
		{"session/set_config_option", obj{"sessionId": "nope", "configId": "x", "value": 5}, "unsupported config option `x`; supported config options: verbosity"},
		{"session/set_config_option", obj{"sessionId": "nope", "configId": "verbosity", "value": 5}, "session config value must be a string or object"},
		{"session/set_config_option", obj{"sessionId": "nope", "configId": "verbosity", "value": obj{}}, "session config value must include a string value"},
		{"session/set_config_option", obj{"sessionId": "nope", "configId": "verbosity", "value": true, "type": "boolean"}, "unsupported verbosity value `true`; supported values: brief, normal, verbose"},
		{"session/set_config_option", obj{"sessionId": "nope", "configId": "verbosity", "value": "loud"}, "unsupported verbosity value `loud`; supported values: brief, normal, verbose"},
		{"session/set_config_option", obj{"sessionId": "nope", "configId": "verbosity", "value": "brief"}, "unknown session `nope`"},
	} {
		if got := c.refused(-32602, x.method, x.params); got != x.want {
			t.Errorf("%v: %s", x.params, got)
		}
	}
	c.ok("session/set_mode", obj{"sessionId": s, "modeId": "plan"})
	for _, value := range []any{"brief", obj{"value": "verbose"}} {
		c.ok("session/set_config_option", obj{"sessionId": s, "configId": "verbosity", "value": value})
	}
	if len(c.seen) > 0 {
		t.Errorf("changes are not announced: %v", c.seen)
	}
	c.turn(s, "updates")
	if !strings.Contains(c.seen[1], `"currentModeId":"plan"`) || !strings.Contains(c.seen[2], `"currentValue":"verbose"`) {
		t.Error(c.seen[1:3])
	}
	if got := c.ok("session/resume", obj{"sessionId": s, "cwd": "/y"}); !strings.Contains(got, `"currentModeId":"plan"`) || !strings.Contains(got, `"currentValue":"verbose"`) {
		t.Errorf("resume forgets: %s", got)
	}
}

func TestV1List(t *testing.T) {
	c := start(t)
	c.open1()
	for range 9 {
		c.newSession()
	}
	c.ok("session/new", obj{"cwd": "/other", "mcpServers": []any{}, "additionalDirectories": []string{"/more"}})
	var r struct{ Sessions []struct{ SessionID string } }
	if err := json.Unmarshal([]byte(c.ok("session/list", nil)), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Sessions) != 11 || r.Sessions[1].SessionID != "testy-session-10" || r.Sessions[3].SessionID != "testy-session-2" {
		t.Error(r)
	}
	want := `{"sessions":[{"sessionId":"testy-session-11","cwd":"/other","additionalDirectories":["/more"],"title":"Testy session","updatedAt":"2026-01-01T00:00:00Z"}]}`
	if got := c.ok("session/list", obj{"cwd": "/other", "cursor": "x"}); got != want {
		t.Error(got)
	}
	if got := c.ok("session/list", obj{"cwd": "/nothing"}); got != `{"sessions":[]}` {
		t.Error(got)
	}
}

func TestV1ReservedIDs(t *testing.T) {
	c := start(t, "--protocol=v1")
	c.ok("session/load", obj{"sessionId": "testy-session-1", "cwd": "/x", "mcpServers": []any{}})
	c.ok("session/resume", obj{"sessionId": "testy-session-2", "cwd": "/x"})
	if got := c.newSession(); got != "testy-session-3" {
		t.Error(got)
	}
}

func TestV1CloseAndDelete(t *testing.T) {
	c := start(t)
	s := c.open1()
	for _, method := range []string{"session/close", "session/delete"} {
		c.ok(method, obj{"sessionId": "nope"})
		c.ok(method, obj{"sessionId": s})
		for _, p := range []struct {
			method string
			params obj
		}{
			{"session/prompt", say(s, "x")},
			{"session/set_mode", obj{"sessionId": s, "modeId": "plan"}},
			{"session/set_config_option", obj{"sessionId": s, "configId": "verbosity", "value": "brief"}},
		} {
			if got := c.refused(-32602, p.method, p.params); got != "unknown session `"+s+"`" {
				t.Error(got)
			}
		}
		if got := c.ok("session/list", nil); got != `{"sessions":[]}` {
			t.Error(got)
		}
		s = c.newSession()
	}
}

// TestV1Draining: a closed session whose prompt still runs is closed, not
// unknown, and gone when the prompt ends.
func TestV1Draining(t *testing.T) {
	c := start(t)
	s := c.open1()
	c.answer = func(m message) (any, error) { return nil, errWait{} }
	prompt := c.request("session/prompt", say(s, "wait_for_cancel"))
	closing := c.request("session/close", obj{"sessionId": s})
	for _, id := range []string{"", ""} {
		m := c.next()
		if string(m.ID) != prompt && string(m.ID) != closing {
			t.Error(id, m.line)
		}
	}
	if got := c.refused(-32602, "session/prompt", say(s, "x")); got != "unknown session `"+s+"`" && got != "closed session `"+s+"`" {
		t.Error(got)
	}
}

func TestV1Replay(t *testing.T) {
	c := start(t)
	s := c.open1()
	c.turn(s, "session_updates")
	c.turn(s, "tool_calls")
	want := []string{`{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"session_updates"},"messageId":"testy-history-user-1"}`}
	var lines []string
	for _, line := range c.seen {
		for _, kind := range []string{"_message_chunk", "_thought_chunk", "tool_call", `"plan"`} {
			if strings.Contains(line, kind) {
				lines = append(lines, line)
				break
			}
		}
	}
	c.seen = nil
	load := obj{"sessionId": s, "cwd": "/x", "mcpServers": []any{}}
	c.ok("session/load", load)
	if len(c.seen) != len(lines)+2 || !strings.Contains(c.seen[0], want[0]) {
		t.Fatalf("%d updates of %d: %s", len(c.seen), len(lines)+2, c.seen)
	}
	got := append([]string{}, c.seen[1:]...)
	for i, line := range got {
		if strings.Contains(line, "testy-history-user-2") {
			got = append(got[:i], got[i+1:]...)
			break
		}
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Error(diff)
	}
	c.seen = nil
	c.ok("session/resume", load)
	if len(c.seen) > 0 {
		t.Errorf("resume replays %v", c.seen)
	}
	c.ok("session/close", obj{"sessionId": s})
	c.ok("session/load", load)
	if len(c.seen) != len(lines)+2 {
		t.Errorf("after close %d updates", len(c.seen))
	}
	c.seen = nil
	c.ok("session/delete", obj{"sessionId": s})
	c.ok("session/load", load)
	if len(c.seen) > 0 {
		t.Errorf("after delete %v", c.seen)
	}
}

func TestV1Commands(t *testing.T) {
	c := start(t)
	s := c.open1()
	help := "Testy commands: help, greet, echo <message>, session_updates, content, tool_calls, callbacks, elicitations, cancel_status, wait_for_cancel, full. JSON command form: {\"command\":\"run_scenario\",\"scenario\":\"full\"}"
	for text, want := range map[string]string{
		"": "Hello, world!", "  \n": "Hello, world!", "anything": "Hello, world!", "HELP": help, " help ": help,
		"echo  a b ": " a b", "Echo a": "Hello, world!", "echo": "Hello, world!",
		`{"command":"echo","message":"m","extra":1}`: "m", `{"command":"echo"}`: "Hello, world!", `{"command":"help"}`: help,
		`{"command":"greet"}`: "Hello, world!", `{"command":"run_scenario","scenario":"nope"}`: "Hello, world!",
		`{"command":"run_scenario","scenario":"cancel_status"}`: "scenario: cancel_status\ncancel_status: not_cancelled",
		"Cancel Status":    "scenario: cancel_status\ncancel_status: not_cancelled",
		"client callbacks": "", "ALL": "", "elicit": "", "tools": "", "session updates": "",
		"echo <b>&\u2028.": "<b>&\u2028.",
		`{"command":"call_tool","server":"s","tool":"t"}`: "ERROR: MCP server 's' not found",
	} {
		if stop := c.turn(s, text); stop != "end_turn" {
			t.Errorf("%q stops with %s", text, stop)
		}
		if got := c.lastText(); got != want && want != "" || want == "" && !strings.HasPrefix(got, "scenario: ") {
			t.Errorf("%q says %q", text, got)
		}
	}
	c.ok("session/prompt", obj{"sessionId": s, "prompt": []any{
		obj{"type": "text", "text": "echo a"}, obj{"type": "resource_link", "uri": "file:///x", "name": "x"}, obj{"type": "text", "text": "b"},
	}})
	if got := c.lastText(); got != "a b" {
		t.Errorf("text blocks are joined to %q", got)
	}
}

func TestV1IDsAreUnique(t *testing.T) {
	c := start(t)
	s := c.open1()
	c.turn(s, "tool_calls")
	c.turn(s, "full")
	c.turn(s, "tool_calls")
	announced, status, messages := map[string]bool{}, map[string]string{}, map[string]bool{}
	for _, line := range c.seen {
		var m struct {
			Params struct {
				Update struct{ SessionUpdate, ToolCallID, Status, MessageID string }
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		u := m.Params.Update
		switch u.SessionUpdate {
		case "tool_call":
			if announced[u.ToolCallID] {
				t.Errorf("%s is announced twice", u.ToolCallID)
			}
			announced[u.ToolCallID] = true
		case "tool_call_update":
			if !announced[u.ToolCallID] {
				t.Errorf("%s was never announced", u.ToolCallID)
			}
			status[u.ToolCallID] = u.Status
		}
		if u.MessageID != "" && messages[u.MessageID] {
			t.Errorf("message %s comes twice", u.MessageID)
		}
		messages[u.MessageID] = true
	}
	for id := range announced {
		if status[id] != "completed" {
			t.Errorf("%s ends as %q", id, status[id])
		}
	}
	if len(announced) != 7 {
		t.Errorf("%d tool calls", len(announced))
	}
}
