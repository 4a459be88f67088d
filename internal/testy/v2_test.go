package testy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// idle sends a v2 prompt and reads up to its idle update; it returns the
// message id of the response.
func (c *client) idle(session, text string) string {
	c.t.Helper()
	var r struct{ MessageID string }
	if err := json.Unmarshal([]byte(c.ok("session/prompt", say(session, text))), &r); err != nil {
		c.t.Fatal(err)
	}
	c.untilIdle()
	return r.MessageID
}

func (c *client) untilIdle() {
	c.t.Helper()
	for {
		if m := c.next(); strings.Contains(m.line, `"state":"idle"`) {
			return
		}
	}
}

func each(t *testing.T, run func(t *testing.T, draft string)) {
	for _, draft := range []string{"alpha.3", "next"} {
		t.Run(draft, func(t *testing.T) { run(t, draft) })
	}
}

// v2 is a client in a session of draft v2.
func v2(t *testing.T, draft string) (*client, string) {
	t.Helper()
	c := start(t, "--draft="+draft)
	c.use(2, draft == "next")
	return c, c.open2()
}

func TestV2Lifecycle(t *testing.T) {
	each(t, func(t *testing.T, draft string) {
		c, s := v2(t, draft)
		if id := c.idle(s, "greet"); id != "testy-v2-user-message-0" || !strings.Contains(c.seen[0], `"messageId":"`+id+`"`) {
			t.Errorf("the response has the id %s, the echo is %s", id, c.seen[0])
		}
		want := []string{"user_message", "running", "agent_message_chunk", "idle end_turn"}
		if diff := cmp.Diff(want, kinds(t, c.seen)); diff != "" {
			t.Error(diff)
		}
		for text, reply := range map[string]string{
			"help":                                  "Testy v2 commands: help, greet, echo <message>, wait_for_cancel, cancel_status. JSON command form: {\"command\":\"run_scenario\",\"scenario\":\"wait_for_cancel\"}",
			"cancel_status":                         "cancel_status: not_cancelled",
			"full":                                  "Testy v2 scenario `full` is not implemented yet",
			`{"command":"list_tools","server":"x"}`: "Testy v2 does not advertise MCP support yet",
		} {
			c.seen = nil
			c.idle(s, text)
			if got := textOf(t, c.seen[2]); got != reply {
				t.Errorf("%s: %s", text, got)
			}
			if refused := strings.Contains(reply, "yet"); refused != strings.Contains(c.seen[3], "refusal") {
				t.Errorf("%s: %s", text, c.seen[3])
			}
		}
	})
}

func TestV2CloseAndErrors(t *testing.T) {
	each(t, func(t *testing.T, draft string) {
		c, s := v2(t, draft)
		code := map[string]int{"alpha.3": -32602, "next": -32002}[draft]
		want := func(what string) string {
			if draft == "next" {
				return `{"sessionId":"` + map[string]string{"unknown": "nope", "closed": s}[what] + `"}`
			}
			return what + " session `" + map[string]string{"unknown": "nope", "closed": s}[what] + "`"
		}
		if got := c.refused(code, "session/prompt", say("nope", "x")); got != want("unknown") {
			t.Error(got)
		}
		if got := c.refused(code, "session/resume", obj{"sessionId": "nope", "cwd": "/x"}); got != want("unknown") {
			t.Error(got)
		}
		c.ok("session/close", obj{"sessionId": s})
		c.ok("session/close", obj{"sessionId": s})
		if got := c.refused(code, "session/prompt", say(s, "x")); got != want("closed") {
			t.Error(got)
		}
		m := c.call("session/close", obj{"sessionId": "nope"})
		if (m.Error == nil) != (draft == "next") {
			t.Error(m.line)
		}
		if list := c.ok("session/list", nil); !strings.Contains(list, `"sessionId":"`+s+`"`) {
			t.Errorf("a closed session is not listed: %s", list)
		}
		for _, bad := range []struct {
			params obj
			data   string
		}{
			{obj{"sessionId": s, "cwd": "/y"}, "session `" + s + "` has a different working directory"},
			{obj{"sessionId": s, "cwd": "/x", "replayFrom": obj{"type": "middle"}}, "unsupported session replay cursor"},
		} {
			if got := c.refused(-32602, "session/resume", bad.params); got != bad.data {
				t.Error(got)
			}
		}
		for _, method := range []string{"session/delete", "session/set_config_option", "auth/login", "auth/logout", "tool_call/cancel", "_x"} {
			if got := c.refused(-32601, method, obj{"sessionId": s}); got != method {
				t.Error(got)
			}
		}
		m = c.call("session/prompt", obj{"sessionId": s, "prompt": []any{}})
		if next := m.Error != nil && strings.Contains(m.line, "prompt must contain at least one content block"); next != (draft == "next") {
			t.Error(m.line)
		}
	})
}

func TestV2Replay(t *testing.T) {
	each(t, func(t *testing.T, draft string) {
		c, s := v2(t, draft)
		c.idle(s, "echo one")
		c.seen = nil
		c.ok("session/resume", obj{"sessionId": s, "cwd": "/x", "additionalDirectories": []string{"/z"}})
		want := []string{}
		if draft == "next" {
			want = []string{"idle"}
		}
		if diff := cmp.Diff(want, kinds(t, c.seen)); diff != "" {
			t.Error(diff)
		}
		c.seen = nil
		c.ok("session/resume", obj{"sessionId": s, "cwd": "/x", "replayFrom": obj{"type": "start"}})
		if got := kinds(t, c.seen)[:2]; !cmp.Equal(got, []string{"user_message", "agent_message"}) {
			t.Error(got)
		}
	})
}

func TestV2Cancel(t *testing.T) {
	each(t, func(t *testing.T, draft string) {
		c, s := v2(t, draft)
		c.notify("session/cancel", obj{"sessionId": s})
		for range 100 {
			c.seen = nil
			c.ok("session/prompt", say(s, "wait_for_cancel"))
			c.notify("session/cancel", obj{"sessionId": s})
			c.untilIdle()
			c.idle(s, "greet")
			want := []string{"user_message", "running", "idle cancelled", "user_message", "running", "agent_message_chunk", "idle end_turn"}
			if diff := cmp.Diff(want, kinds(t, c.seen)); diff != "" {
				t.Fatal(diff)
			}
		}
	})
}

func TestV2CloseDuringWork(t *testing.T) {
	each(t, func(t *testing.T, draft string) {
		c, s := v2(t, draft)
		c.ok("session/prompt", say(s, "wait_for_cancel"))
		c.ok("session/close", obj{"sessionId": s})
		if got := kinds(t, c.seen); got[len(got)-1] != "idle cancelled" {
			t.Errorf("before the response to close: %v", got)
		}
		c.seen = nil
		c.ok("session/resume", obj{"sessionId": s, "cwd": "/x"})
		c.idle(s, "echo again")
		if got := kinds(t, c.seen); got[len(got)-1] != "idle end_turn" {
			t.Errorf("after the revival: %v", got)
		}
	})
}

func TestV2Busy(t *testing.T) {
	c, s := v2(t, "alpha.3")
	c.ok("session/prompt", say(s, "wait_for_cancel"))
	if got := c.refused(-32602, "session/prompt", say(s, "greet")); got != "session `"+s+"` already has foreground work" {
		t.Error(got)
	}
	if got := c.refused(-32602, "session/resume", obj{"sessionId": s, "cwd": "/x"}); got != "session `"+s+"` still has foreground work" {
		t.Error(got)
	}
	c.notify("session/cancel", obj{"sessionId": s})
	c.untilIdle()

	c, s = v2(t, "next")
	c.ok("session/prompt", say(s, "wait_for_cancel"))
	held := c.request("session/prompt", say(s, "echo held"))
	c.notify("session/cancel", obj{"sessionId": s})
	if m := c.until(held); m.Error == nil || m.Error.Code != -32800 {
		t.Errorf("the held prompt: %s", m.line)
	}
	if got := kinds(t, c.seen); got[len(got)-1] != "idle cancelled" {
		t.Errorf("before the answer to the held prompt: %v", got)
	}
}

// TestV2HeldPromptRuns: in next a prompt behind a busy one starts when it can.
func TestV2HeldPromptRuns(t *testing.T) {
	c, s := v2(t, "next")
	c.ok("session/prompt", say(s, "echo 1"))
	second := c.request("session/prompt", say(s, "echo 2"))
	c.until(second)
	if got := kinds(t, c.seen); got[len(got)-1] != "idle end_turn" {
		t.Errorf("the held prompt was accepted before the session was idle: %v", got)
	}
	c.untilIdle()
}
