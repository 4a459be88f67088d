package testy_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"roundtable/internal/testy"
)

// TestTransport is the table of the JSON-RPC layer, row by row, in every mode.
func TestTransport(t *testing.T) {
	const invalid = `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}}`
	batches := `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request","data":"JSON-RPC batches are not supported"}}`
	parse := func(line string) string {
		raw, err := json.Marshal(line)
		if err != nil {
			t.Fatal(err)
		}
		return `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error","data":{"line":` + string(raw) + `}}}`
	}
	unknown := func(id, method string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found","data":%q}}`, id, method)
	}
	for _, draft := range []string{"alpha.3", "next"} {
		for _, protocol := range []string{"auto", "v1", "v2"} {
			c := start(t, "--protocol="+protocol, "--draft="+draft)
			if protocol == "v2" {
				c.open2()
			} else {
				c.open1()
			}
			alpha := draft == "alpha.3"
			pick := func(yes bool, a, b string) string {
				if yes {
					return a
				}
				return b
			}
			for _, x := range []struct{ in, out string }{
				{"not json", parse("not json")},
				{"", parse("")},
				{"  ", parse("")},
				{`{"foo":"bar"}`, invalid},
				{`{"foo":"bar","id":7}`, strings.Replace(invalid, "null", "7", 1)},
				{`5`, invalid},
				{`"x"`, invalid},
				{`null`, invalid},
				{`{"jsonrpc":"2.0","id":1,"result":1,"error":2}`, ""},
				{`{"id":1,"result":{}}`, ""},
				{`{"jsonrpc":"2.0","id":999,"result":{}}`, ""},
				{`{"jsonrpc":"2.0","id":"testy-req-1","error":{"code":1,"message":"x"}}`, ""},
				{`{"jsonrpc":"2.0","id":1,"method":"nope"}`, unknown("1", "nope")},
				{`{"jsonrpc":"2.0","id":"1","method":"_custom","params":{}}`, unknown(`"1"`, "_custom")},
				{`{"jsonrpc":"2.0","id":-9223372036854775808,"method":"_c"}`, unknown("-9223372036854775808", "_c")},
				{`{"jsonrpc":"2.0","method":"nope"}`, ""},
				{`{"jsonrpc":"2.0","method":"_x"}`, ""},
				{`{"jsonrpc":"2.0","method":"$/x","params":{}}`, ""},
				{`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":5}}`, ""},
				{`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`, ""},
				{`{"jsonrpc":"2.0","method":"$/cancel_request","params":[]}`, ""},
				{`{"jsonrpc":"2.0","id":1.5,"method":"nope"}`, invalid},
				{`{"jsonrpc":"2.0","id":true,"method":"nope"}`, invalid},
				{`{"jsonrpc":"2.0","id":{},"method":"nope"}`, invalid},
				{`{"jsonrpc":"2.0","id":null,"method":"nope"}`, pick(alpha, unknown("null", "nope"), invalid)},
				{`{"jsonrpc":"2.0","id":3,"method":5}`, strings.Replace(invalid, "null", "3", 1)},
				{`{"jsonrpc":"2.0","id":3,"method":"nope","params":5}`, strings.Replace(invalid, "null", "3", 1)},
				{"\"bad \xff byte\"", parse("\"bad \uFFFD byte\"")},
				{`[]`, pick(alpha, invalid, batches)},
				{`[{"jsonrpc":"2.0","method":"_x"},{"jsonrpc":"2.0","id":5,"result":{}}]`, pick(alpha, "", batches)},
				{
					`[{"jsonrpc":"2.0","id":1,"method":"a"},5,{"jsonrpc":"2.0","id":"2","method":"b"}]`,
					pick(alpha, "["+unknown("1", "a")+","+invalid+","+unknown(`"2"`, "b")+"]", batches),
				},
				{`{"jsonrpc":"2.0","id":4,"method":"session/list"}`, "list"},
			} {
				c.send(x.in)
				want := x.out
				if want == "" {
					continue // the answer to the next line shows that there was none
				}
				got := c.line()
				if want == "list" {
					if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":4,"result":{"sessions":[{`) {
						t.Errorf("the connection is not usable: %s", got)
					}
				} else if got != want {
					t.Errorf("%s %s: %s\ngot  %s\nwant %s", protocol, draft, x.in, got, want)
				}
			}
		}
	}
}

func TestLongLine(t *testing.T) {
	o, err := testy.ParseArgs(nil)
	if err != nil {
		t.Fatal(err)
	}
	o.MaxLine = 1000
	c := startWith(t, o)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"` + strings.Repeat("x", 100_000) + `"}`)
	if got := c.line(); got != `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request","data":"message exceeds 1000 bytes"}}` {
		t.Error(got)
	}
	c.open1()
}

func TestRouter(t *testing.T) {
	for _, draft := range []string{"alpha.3", "next"} {
		zero := `"error":{"code":-32600,"message":"Invalid request","data":"unsupported ACP protocol version 0; this endpoint supports ACP protocol versions 1 and 2"}}`
		if draft == "next" {
			zero = `"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":0,"supported":[1,2]}}}`
		}
		badVersion := `"error":{"code":-32602,"message":"Invalid params","data":"initialize.protocolVersion must be a valid ACP protocol version"}}`
		c := start(t, "--draft="+draft)
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"x"}}`)
		c.send(`{"jsonrpc":"2.0","id":"x","result":{}}`)
		for _, x := range []struct{ method, params, want string }{
			{"session/new", `{"cwd":"/x","mcpServers":[]}`, `"error":{"code":-32600,"message":"Invalid request","data":"first ACP request must be initialize"}}`},
			{"initialize", `{}`, badVersion},
			{"initialize", `[]`, badVersion},
			{"initialize", `null`, badVersion},
			{"initialize", `{"protocolVersion":"1"}`, badVersion},
			{"initialize", `{"protocolVersion":-1}`, badVersion},
			{"initialize", `{"protocolVersion":65536}`, badVersion},
			{"initialize", `{"protocolVersion":0}`, zero},
			{"initialize", `{"protocolVersion":2}`, "\"error\":{\"code\":-32602,\"message\":\"Invalid params\",\"data\":\"invalid initialize params: missing field `info`\"}}"},
		} {
			c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`, x.method, x.params))
			if got := c.line(); got != `{"jsonrpc":"2.0","id":1,`+x.want {
				t.Errorf("%s: %s", x.params, got)
			}
		}
		c.use(2, draft == "next")
		if got := c.ok("initialize", obj{"protocolVersion": 3, "info": obj{"name": "x", "version": "1"}}); !strings.HasPrefix(got, `{"protocolVersion":2,`) {
			t.Error(got)
		}
		if got := c.refused(-32600, "initialize", obj{"protocolVersion": 2}); !strings.HasPrefix(got, "ACP connections may only be initialized once") {
			t.Error(got)
		}
	}
	c := start(t)
	c.open1()
	c.ok("initialize", obj{"protocolVersion": 2}) // behind the router, v1 has no state machine
}

func TestRouterTakesABatch(t *testing.T) {
	c := start(t)
	c.send(`[{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}},{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/x","mcpServers":[]}}]`)
	if got := c.line(); !strings.HasPrefix(got, `[{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,`) || !strings.Contains(got, `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"testy-session-1"`) {
		t.Error(got)
	}
}

func TestV2Handshake(t *testing.T) {
	for _, x := range []struct {
		draft   string
		version int
		want    string
	}{
		{"alpha.3", 1, `"result":{"protocolVersion":2,"info":{"name":"testy","title":"Testy","version":"1.2.3"},"capabilities":{"session":{}}}}`},
		{"alpha.3", 7, `"result":{"protocolVersion":2,`},
		{"alpha.3", 0, `"error":{"code":-32600,"message":"Invalid request","data":"unsupported ACP protocol version 0; this endpoint supports ACP protocol version 2"}}`},
		{"next", 0, `"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":0,"supported":[2]}}}`},
		{"next", 1, `"error":{"code":-32022,"message":"Unsupported protocol version","data":{"requested":1,"supported":[2]}}}`},
	} {
		c := start(t, "--protocol=v2", "--draft="+x.draft)
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{}}`)
		if got := c.refused(-32600, "session/list", nil); got != "ACP initialization must complete before `session/list` can be used" {
			t.Error(got)
		}
		c.call("initialize", obj{"protocolVersion": x.version}) // no info: may be tried again
		c.send(fmt.Sprintf(`{"jsonrpc":"2.0","id":9,"method":"initialize","params":{"protocolVersion":%d,"info":{"name":"a","version":"b"}}}`, x.version))
		if got := c.line(); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":9,`+x.want) {
			t.Errorf("%s %d: %s", x.draft, x.version, got)
		}
	}
}

func TestEOF(t *testing.T) {
	for _, prompt := range []string{"wait_for_cancel", "callbacks"} {
		c := start(t)
		s := c.open1()
		c.request("session/prompt", say(s, prompt))
		c.in.Close()
		select {
		case err := <-c.done:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Second):
			t.Error("the agent does not end with its input")
		}
	}
}

func TestArguments(t *testing.T) {
	for _, args := range [][]string{
		{"--protocol=v3"}, {"--draft", "beta"}, {"--scratch=relative"}, {"--fault=nope"}, {"--fault=noise=1"},
		{"--fault=exit=x"}, {"--fault=exit=-1"}, {"x"}, {"--strict=1"}, {"--protocol"}, {"-h"}, {"--fault="},
	} {
		if _, err := testy.ParseArgs(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
	o, err := testy.ParseArgs([]string{"--protocol", "v2", "--draft=next", "--strict", "--scratch=/a", "--fault=noise,exit=3,flood"})
	if err != nil || o.Protocol != "v2" || o.Draft != "next" || !o.Strict || o.Scratch != "/a" || !o.HasFault("exit") || !o.HasFault("flood") {
		t.Error(o, err)
	}
}
