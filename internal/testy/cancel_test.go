package testy_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var callbackOrder = []string{
	"session/request_permission", "fs/write_text_file", "fs/read_text_file", "terminal/create",
	"terminal/output", "terminal/wait_for_exit", "terminal/kill", "terminal/release",
}

// requests are the agent's requests among the kinds that were seen.
func requests(t *testing.T, c *client) []string {
	t.Helper()
	all := []string{}
	for _, kind := range kinds(t, c.seen) {
		if strings.Contains(kind, "/") && kind != "elicitation/complete" && kind != "$/cancel_request" {
			all = append(all, kind)
		}
	}
	return all
}

func TestCallbackOrderOfFull(t *testing.T) {
	c := start(t)
	c.turn(c.open1(), "full")
	want := append([]string{"terminal/create", "terminal/release"}, callbackOrder...)
	for range 5 {
		want = append(want, "elicitation/create")
	}
	if diff := cmp.Diff(want, requests(t, c)); diff != "" {
		t.Error(diff)
	}
}

func TestIdleCancel(t *testing.T) {
	c := start(t)
	s := c.open1()
	c.notify("session/cancel", obj{"sessionId": s})
	if stop := c.turn(s, "greet"); stop != "end_turn" {
		t.Error(stop)
	}
	c.seen = nil
	if stop := c.turn(s, "cancel_status"); stop != "cancelled" || len(c.seen) > 0 {
		t.Error(stop, c.seen)
	}
	if stop := c.turn(s, "cancel_status"); stop != "end_turn" || c.lastText() != "scenario: cancel_status\ncancel_status: not_cancelled" {
		t.Error(stop, c.seen)
	}
}

// TestCancelAtEachCallback cancels while the client answers the nth request:
// exactly the requests up to it are seen, the one that waits is given up, and
// its late answer changes nothing.
func TestCancelAtEachCallback(t *testing.T) {
	full := append([]string{"terminal/create", "terminal/release"}, callbackOrder...)
	for range 5 {
		full = append(full, "elicitation/create")
	}
	for scenario, all := range map[string][]string{"callbacks": append(append([]string{}, callbackOrder...), full[10:]...), "full": full} {
		for n := range all {
			t.Run(fmt.Sprint(scenario, n), func(t *testing.T) {
				c := start(t)
				s := c.open1()
				count := 0
				c.answer = func(m message) (any, error) {
					count++
					if count == n+1 {
						c.notify("session/cancel", obj{"sessionId": s})
						return nil, errWait{}
					}
					return friendly(m)
				}
				if stop := c.turn(s, scenario); stop != "cancelled" {
					t.Errorf("stops with %s", stop)
				}
				if diff := cmp.Diff(all[:n+1], requests(t, c)); diff != "" {
					t.Error(diff)
				}
				if got := kinds(t, c.seen); got[len(got)-1] != "$/cancel_request" {
					t.Errorf("the last message is %s", got[len(got)-1])
				}
				c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"testy-req-%d","result":{"outcome":{"outcome":"cancelled"}}}`, n+1))
				c.answer = friendly
				if stop := c.turn(s, "cancel_status"); stop != "end_turn" {
					t.Errorf("the flag is not reset: %s", stop)
				}
			})
		}
	}
}

func TestFullStopsAtTerminalCreate(t *testing.T) {
	c := start(t)
	s := c.open1()
	c.answer = func(m message) (any, error) {
		c.notify("session/cancel", obj{"sessionId": s})
		return friendly(m)
	}
	if stop := c.turn(s, "full"); stop != "cancelled" {
		t.Error(stop)
	}
	for _, kind := range kinds(t, c.seen) {
		if kind == "tool_call" || kind == "tool_call_update" || kind == "plan" || strings.HasPrefix(kind, "fs/") {
			t.Errorf("%s is sent after the cancel", kind)
		}
	}
}

func TestTerminalCreateFails(t *testing.T) {
	c := start(t)
	s := c.open1()
	c.answer = func(m message) (any, error) {
		if m.Method == "terminal/create" {
			return nil, fmt.Errorf("no\nterminal")
		}
		return friendly(m)
	}
	c.turn(s, "full")
	for _, want := range []string{
		"terminal/create_for_tool_call: error -32603 Internal error\ntool_calls: sent\nsession/request_permission",
		"terminal/output: skipped\nterminal/wait_for_exit: skipped\nterminal/kill: skipped\nterminal/release: skipped\nelicitation",
	} {
		if !strings.Contains(c.lastText(), want) {
			t.Errorf("%s is not in %s", want, c.lastText())
		}
	}
}

func TestElicitationGates(t *testing.T) {
	for _, x := range []struct {
		offered obj
		prompt  string
		data    string
		asked   int
	}{
		{obj{}, "elicit", "client does not support form elicitation", 0},
		{obj{"elicitation": obj{}}, "elicit", "client does not support form elicitation", 0},
		{obj{"elicitation": obj{"url": obj{}}}, "elicit", "client does not support form elicitation", 0},
		{obj{"elicitation": obj{"form": nil}}, "elicit", "client does not support form elicitation", 0},
		{obj{"elicitation": obj{"form": obj{}}}, "elicit", "client does not support URL elicitation", 3},
		{obj{"elicitation": obj{"url": obj{}}}, "callbacks", "client does not support form elicitation", 8},
		{obj{"elicitation": obj{"form": obj{}}}, "callbacks", "client does not support URL elicitation", 11},
		{obj{}, "full", "client does not support form elicitation", 10},
	} {
		c := start(t)
		c.ok("initialize", obj{"protocolVersion": 1, "clientCapabilities": x.offered})
		s := c.newSession()
		if got := c.refused(-32602, "session/prompt", say(s, x.prompt)); got != x.data {
			t.Error(got)
		}
		if got := requests(t, c); len(got) != x.asked {
			t.Errorf("%v %s: asked %v", x.offered, x.prompt, got)
		}
		for _, line := range c.seen {
			if strings.Contains(line, "testy-message-end-turn") {
				t.Errorf("an error has a chunk: %s", line)
			}
		}
	}
}

func TestConcurrentPrompts(t *testing.T) {
	c := start(t)
	s := c.open1()
	one := c.request("session/prompt", say(s, "wait_for_cancel"))
	two := c.request("session/prompt", say(s, "wait_for_cancel"))
	c.notify("session/cancel", obj{"sessionId": s})
	for range 2 {
		if m := c.next(); (string(m.ID) != one && string(m.ID) != two) || string(m.Result) != `{"stopReason":"cancelled"}` {
			t.Error(m.line)
		}
	}
	if stop := c.turn(s, "cancel_status"); stop != "end_turn" {
		t.Errorf("the flag is not reset: %s", stop)
	}
}

// TestCancelRace: prompt and cancel in one write, a thousand times; none is
// lost.
func TestCancelRace(t *testing.T) {
	for _, protocol := range []string{"v1", "v2"} {
		c := start(t, "--protocol="+protocol)
		s := ""
		if protocol == "v1" {
			s = c.open1()
		} else {
			s = c.open2()
		}
		for i := range 1000 {
			prompt := fmt.Sprintf(`{"jsonrpc":"2.0","id":"p%d","method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":"wait_for_cancel"}]}}`, i, s)
			if _, err := io.WriteString(c.in, prompt+"\n"+fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, s)+"\n"); err != nil {
				t.Fatal(err)
			}
			if protocol == "v2" {
				c.untilIdle()
				continue
			}
			if m := c.next(); string(m.Result) != `{"stopReason":"cancelled"}` {
				t.Fatal(m.line)
			}
		}
	}
}

func TestStrict(t *testing.T) {
	c := start(t, "--strict")
	c.ok("initialize", obj{"protocolVersion": 1, "clientCapabilities": obj{"elicitation": obj{"form": obj{}, "url": obj{}}}})
	s := c.newSession()
	c.turn(s, "full")
	want := []string{"session/request_permission"}
	if got := requests(t, c); !cmp.Equal(got[:1], want) || strings.Contains(strings.Join(got, " "), "terminal/") || strings.Contains(strings.Join(got, " "), "fs/") {
		t.Error(got)
	}
	for _, label := range append([]string{"terminal/create_for_tool_call"}, callbackOrder[1:]...) {
		if !strings.Contains(c.lastText(), "\n"+label+": skipped (not advertised)\n") {
			t.Errorf("%s is not reported as skipped in %s", label, c.lastText())
		}
	}
	for _, method := range []string{"session/close", "session/delete"} {
		prompt := c.request("session/prompt", say(s, "wait_for_cancel"))
		closing := c.request(method, obj{"sessionId": s})
		if m := c.next(); string(m.ID) != prompt || string(m.Result) != `{"stopReason":"cancelled"}` {
			t.Errorf("the prompt is answered first, not %s", m.line)
		}
		if m := c.next(); string(m.ID) != closing {
			t.Errorf("then %s, not %s", method, m.line)
		}
		s = c.newSession()
	}
}

// TestHistoryOfACancelledTurn keeps what was sent.
func TestHistoryOfACancelledTurn(t *testing.T) {
	c := start(t)
	s := c.open1()
	c.answer = func(message) (any, error) {
		c.notify("session/cancel", obj{"sessionId": s})
		return nil, errWait{}
	}
	c.turn(s, "full")
	c.seen = nil
	c.ok("session/load", obj{"sessionId": s, "cwd": "/x", "mcpServers": []any{}})
	if got := len(c.seen); got != 8 {
		var all []json.RawMessage
		for _, line := range c.seen {
			all = append(all, json.RawMessage(line))
		}
		t.Errorf("%d updates: %s", got, all)
	}
}
