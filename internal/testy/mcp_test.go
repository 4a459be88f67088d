package testy_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// asServer makes this test binary an MCP server of a kind.
const asServer = "RUN_AS_MCP_SERVER"

func TestMain(m *testing.M) {
	switch os.Getenv(asServer) {
	case "good":
		if err := server.ServeStdio(goodServer()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	case "silent": // reads and never answers, not even an end of input
		fmt.Fprintln(os.Stderr, "reading")
		for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		}
		select {}
	}
	os.Exit(m.Run())
}

func goodServer() *server.MCPServer {
	s := server.NewMCPServer("good", "1")
	s.AddTool(mcpgo.NewTool("add", mcpgo.WithDescription("Adds"), mcpgo.WithString("to")), func(_ context.Context, r mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText("hello " + r.GetString("to", "nobody")), nil
	})
	s.AddTool(mcpgo.NewTool("bare"), func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
		return mcpgo.NewToolResultText(os.Getenv("GREETING")), nil
	})
	return s
}

func stdioServer(t *testing.T, name, kind string) obj {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return obj{"name": name, "command": self, "args": []string{}, "env": []obj{{"name": asServer, "value": kind}, {"name": "GREETING", "value": "set"}}}
}

func (c *client) withServers(servers ...any) string {
	c.t.Helper()
	c.ok("initialize", obj{"protocolVersion": 1})
	c.ok("session/new", obj{"cwd": "/x", "mcpServers": servers})
	return "testy-session-1"
}

func TestMCP(t *testing.T) {
	web := httptest.NewServer(server.NewStreamableHTTPServer(goodServer()))
	defer web.Close()
	c := start(t)
	s := c.withServers(
		stdioServer(t, "local", "good"),
		obj{"type": "http", "name": "web", "url": web.URL, "headers": []obj{{"name": "X-Test", "value": "1"}}},
		obj{"type": "sse", "name": "old", "url": "http://127.0.0.1:1", "headers": []obj{}},
		obj{"type": "http", "name": "badname", "url": web.URL, "headers": []obj{{"name": "a b", "value": "1"}}},
		obj{"type": "http", "name": "badvalue", "url": web.URL, "headers": []obj{{"name": "X", "value": "a\nb"}}},
		obj{"name": "gone", "command": "/nonexistent", "args": []string{}, "env": []obj{}},
	)
	hello := `OK: "content":[{"type":"text","text":"hello you"}]` // the server adds more properties
	tools := "Available tools:\n  - add: Adds\n  - bare: No description"
	for prompt, want := range map[string]string{
		`{"command":"call_tool","server":"local","tool":"add","params":{"to":"you"}}`: hello,
		`{"command":"call_tool","server":"web","tool":"add","params":{"to":"you"}}`:   hello,
		`{"command":"call_tool","server":"local","tool":"add","params":[1]}`:          `OK: "content":[{"type":"text","text":"hello nobody"}]`,
		`{"command":"call_tool","server":"local","tool":"bare"}`:                      `OK: "content":[{"type":"text","text":"set"}]`,
		`{"command":"list_tools","server":"local"}`:                                   tools,
		`{"command":"list_tools","server":"web"}`:                                     tools,
		`{"command":"list_tools","server":"nope"}`:                                    "ERROR: MCP server 'nope' not found",
		`{"command":"list_tools","server":"old"}`:                                     "ERROR: SSE MCP servers not yet supported",
		`{"command":"list_tools","server":"badname"}`:                                 "ERROR: invalid HTTP header name `a b`: ",
		`{"command":"list_tools","server":"badvalue"}`:                                "ERROR: invalid HTTP header value for `X`: ",
		`{"command":"call_tool","server":"gone","tool":"x"}`:                          "ERROR: ",
	} {
		if stop := c.turn(s, prompt); stop != "end_turn" {
			t.Errorf("%s stops with %s", prompt, stop)
		}
		got := c.lastText()
		if content, ok := strings.CutPrefix(want, "OK: "); ok && strings.HasPrefix(got, "OK: {") && strings.Contains(got, content) {
			continue
		}
		if got != want && !(strings.HasPrefix(want, "ERROR: ") && strings.HasPrefix(got, want)) || strings.HasPrefix(got, "ERROR") && strings.Contains(got, "\n") {
			t.Errorf("%s: %s", prompt, got)
		}
	}
}

// TestMCPIsCancelled: a server that never answers holds nothing up.
func TestMCPIsCancelled(t *testing.T) {
	for _, end := range []string{"session/cancel", "session/close", "session/delete"} {
		for _, prompt := range []string{`{"command":"call_tool","server":"silent","tool":"x"}`, `{"command":"list_tools","server":"silent"}`} {
			c := start(t)
			s := c.withServers(stdioServer(t, "silent", "silent"))
			turn := c.request("session/prompt", say(s, prompt))
			begin := time.Now()
			if end == "session/cancel" {
				c.notify(end, obj{"sessionId": s})
			} else {
				c.request(end, obj{"sessionId": s})
			}
			for {
				m := c.next()
				if string(m.ID) != turn {
					continue
				}
				if string(m.Result) != `{"stopReason":"cancelled"}` {
					t.Error(m.line)
				}
				break
			}
			if took := time.Since(begin); took > time.Second {
				t.Errorf("%s takes %s", end, took)
			}
			if len(c.seen) > 0 {
				t.Errorf("a cancelled turn says %v", c.seen)
			}
		}
	}
}
