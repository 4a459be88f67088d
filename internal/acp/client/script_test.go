package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/acp"
	"roundtable/internal/acp/client"
	"roundtable/internal/acp/proc"
)

// asScript makes this test binary an agent that sends what its prompt lists:
// [["method", params], ...]. Its reply is the list of the answers.
const asScript = "RUN_AS_SCRIPT"

func scriptAgent() {
	var conn *acp.Conn
	type object = map[string]any
	conn = acp.New(os.Stdin, os.Stdout, acp.Config{Handle: func(c *acp.Call) {
		switch c.Method {
		case "initialize":
			c.Reply(object{"protocolVersion": 1, "agentInfo": object{"name": "script", "version": "1"}}, nil)
		case "session/new":
			c.Reply(object{"sessionId": "s"}, nil)
		case "session/prompt":
			conn.Go(func(ctx context.Context) {
				var p struct{ Prompt []struct{ Text string } }
				var steps [][2]json.RawMessage
				if json.Unmarshal(c.Params, &p) != nil || json.Unmarshal([]byte(p.Prompt[0].Text), &steps) != nil {
					c.Reply(nil, acp.InvalidParams("no script"))
					return
				}
				var answers []json.RawMessage
				for _, step := range steps {
					var method string
					if err := json.Unmarshal(step[0], &method); err != nil {
						continue
					}
					raw, err := conn.Call(ctx, method, step[1])
					if err != nil {
						raw, _ = json.Marshal(err.Error())
					}
					answers = append(answers, raw)
				}
				text, _ := json.Marshal(answers)
				conn.Notify("session/update", object{"sessionId": "s", "update": object{
					"sessionUpdate": "agent_message_chunk", "content": object{"type": "text", "text": string(text)},
				}})
				c.Reply(object{"stopReason": "end_turn"}, nil)
			})
		}
	}})
	if err := conn.Serve(context.Background()); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

type step struct {
	method string
	params map[string]any
	want   string // prefix of the answer as JSON
}

// script runs steps in one turn and compares the answers.
func script(t *testing.T, cfg client.Config, rec *recorder, steps []step) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cfg.Command = proc.Command{Argv: []string{self}, Env: append(os.Environ(), asScript+"=1"), Stderr: t.Output()}
	r := launchWith(t, cfg, rec)
	var list []any
	for _, s := range steps {
		if s.params == nil {
			s.params = map[string]any{}
		}
		s.params["sessionId"] = "s"
		list = append(list, []any{s.method, s.params})
	}
	r.prompt(r.session(), jsonOf(t, list))
	var answers []json.RawMessage
	if err := json.Unmarshal([]byte(lastText(t, rec)), &answers); err != nil {
		t.Fatal(err)
	}
	for i, s := range steps {
		if got := string(answers[i]); !strings.HasPrefix(got, s.want) {
			t.Errorf("%s %v: %s, want %s", s.method, s.params, got, s.want)
		}
	}
	r.Stop(context.Background())
}

type p = map[string]any

func TestFilesStayInside(t *testing.T) {
	cfg, rec := config(t)
	root := cfg.Root
	outside := filepath.Join(t.TempDir(), "secret")
	for name, content := range map[string]string{outside: "secret", root + "/a": "one\ntwo\nthree", root + "/bin": "x\xffy"} {
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, root+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Dir(outside), root+"/dir"); err != nil {
		t.Fatal(err)
	}
	read, write := "fs/read_text_file", "fs/write_text_file"
	script(t, cfg, rec, []step{
		{read, p{"path": root + "/a"}, `{"content":"one\ntwo\nthree"}`},
		{read, p{"path": root + "/a", "line": 2, "limit": 1}, `{"content":"two\n"}`},
		{read, p{"path": root + "/a", "line": 9}, `{"content":""}`},
		{read, p{"path": root + "/a", "line": "x", "limit": -1}, `{"content":"one\ntwo\nthree"}`},
		{read, p{"path": root + "/bin"}, "{\"content\":\"x\uFFFDy\"}"},
		{read, p{"path": root + "/none"}, `"Resource not found (-32002)`},
		{read, p{"path": root}, `"Invalid params (-32602)`},
		{read, p{"path": "a"}, `"Invalid params (-32602): the path`},
		{read, p{"path": root + "/../secret"}, `"Invalid params (-32602): the path`},
		{read, p{"path": outside}, `"Invalid params (-32602): the path`},
		{read, p{"path": root + "/link"}, `"Internal error (-32603)`},
		{read, p{"path": root + "/dir/secret"}, `"Internal error (-32603)`},
		{read, p{}, "\"Invalid params (-32602): missing field `path`"},
		{write, p{"path": root + "/new/deep/file", "content": "x"}, `{}`},
		{write, p{"path": root + "/link", "content": "x"}, `"Internal error (-32603)`},
		{write, p{"path": root + "/dir/file", "content": "x"}, `"Internal error (-32603)`},
		{write, p{"path": root + "/a"}, "\"Invalid params (-32602): missing field `content`"},
		{"_custom/thing", nil, `"Method not found (-32601)`},
		{"terminal/nonsense", p{"terminalId": "x"}, `"Resource not found (-32002)`},
	})
	if got, err := os.ReadFile(root + "/new/deep/file"); err != nil || string(got) != "x" {
		t.Error(string(got), err)
	}
	if got, err := os.ReadFile(outside); err != nil || string(got) != "secret" {
		t.Errorf("a file outside was changed: %s, %v", got, err)
	}
}

func TestTerminalOutput(t *testing.T) {
	cfg, rec := config(t)
	create, output, wait := "terminal/create", "terminal/output", "terminal/wait_for_exit"
	sh := func(script string, more p) p {
		more["command"], more["args"] = "sh", []string{"-c", script}
		return more
	}
	one := p{"terminalId": "terminal-1"}
	two := p{"terminalId": "terminal-2"}
	three := p{"terminalId": "terminal-3"}
	script(t, cfg, rec, []step{
		{create, sh("printf 'aääää'", p{"outputByteLimit": 6}), `{"terminalId":"terminal-1"}`},
		{wait, one, `{"exitCode":0,"signal":null}`},
		{output, one, `{"output":"äää","truncated":true,"exitStatus":{"exitCode":0`},
		{create, sh("pwd; printf $X; kill -9 $$", p{"env": []p{{"name": "X", "value": "set"}}, "cwd": cfg.Root}), `{"terminalId":"terminal-2"}`},
		{wait, two, `{"exitCode":null,"signal":"SIGKILL"}`},
		{output, two, `{"output":"` + cfg.Root + `\nset","truncated":false`},
		{create, sh("exec sleep 600", p{}), `{"terminalId":"terminal-3"}`},
		{"terminal/kill", three, `{}`},
		{wait, three, `{"exitCode":null,"signal":"SIGKILL"}`},
		{"terminal/release", three, `{}`},
		{output, three, `"Resource not found (-32002)`},
		{create, p{"command": "/nonexistent"}, `"Internal error (-32603)`},
		{create, sh("true", p{"cwd": "/"}), `"Invalid params (-32602)`},
		{create, sh("true", p{"cwd": cfg.Root + "/none"}), `"Resource not found (-32002)`},
	})
}

// TestNoWithoutARejectOption: a no where nothing rejects cancels the turn.
func TestNoWithoutARejectOption(t *testing.T) {
	cfg, rec := config(t)
	cfg.Permission = client.Deny
	script(t, cfg, rec, []step{{"session/request_permission", p{
		"toolCall": p{"toolCallId": "t", "title": "x"}, "options": []p{{"optionId": "y", "name": "Yes", "kind": "allow_once"}},
	}, `{"outcome":{"outcome":"cancelled"}}`}})
}

func TestElicitation(t *testing.T) {
	cfg, rec := config(t)
	schema := p{"type": "object", "required": []string{"s", "e", "n", "i", "b", "l", "c", "d"}, "properties": p{
		"s": p{"type": "string", "minLength": 6}, "e": p{"type": "string", "format": "email"}, "n": p{"type": "number", "minimum": 0.5},
		"i": p{"type": "integer", "minimum": 3}, "b": p{"type": "boolean"}, "l": p{"type": "array", "minItems": 2, "items": p{"type": "string", "enum": []string{"x", "y", "z"}}},
		"c": p{"type": "string", "oneOf": []p{{"const": "k", "title": "K"}}}, "d": p{"type": "string", "default": "dd"}, "o": p{"type": "string"},
	}}
	ask := "elicitation/create"
	script(t, cfg, rec, []step{
		{ask, p{"mode": "form", "message": "Accept it", "requestedSchema": schema}, `{"action":"accept","content":{"s":"xxxxxx","e":"someone@example.com","n":0.5,"i":3,"b":true,"l":["x","y"],"c":"k","d":"dd"}}`},
		{ask, p{"mode": "url", "message": "Accept it", "url": "https://x/", "elicitationId": "e"}, `{"action":"accept"}`},
		{ask, p{"mode": "form", "message": "Decline it", "requestedSchema": schema}, `{"action":"decline"}`},
		{ask, p{"mode": "form", "message": "whatever", "requestedSchema": schema}, `{"action":"cancel"}`},
		{ask, p{"mode": "telepathy", "message": "x"}, `"Invalid params (-32602): elicitation mode`},
		{ask, p{"mode": "form"}, "\"Invalid params (-32602): missing field `message`"},
	})
}

// TestTerminalsEnd: what an agent has left running ends with it.
func TestTerminalsEnd(t *testing.T) {
	leaks(t)
	cfg, rec := config(t)
	script(t, cfg, rec, []step{
		{"terminal/create", p{"command": "sh", "args": []string{"-c", "setsid sleep 600 & echo $! > pid; sleep 600"}}, `{"terminalId":"terminal-1"}`},
		{"terminal/create", p{"command": "sh", "args": []string{"-c", "while ! test -s pid; do :; done"}}, `{"terminalId":"terminal-2"}`},
		{"terminal/wait_for_exit", p{"terminalId": "terminal-2"}, `{"exitCode":0`},
	})
	pid, err := os.ReadFile(cfg.Root + "/pid")
	if err != nil {
		t.Fatal(err)
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%s/stat", strings.TrimSpace(string(pid))))
	if err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("%s survives", pid)
	}
}
