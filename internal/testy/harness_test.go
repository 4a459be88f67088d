package testy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"roundtable/internal/acp"
	"roundtable/internal/acp/schema"
	"roundtable/internal/testy"
)

// patience is how long a test waits for what must come.
const patience = 10 * time.Second

// client is a bare ACP client: it sends lines, sees lines, and holds each one
// against the schema.
type client struct {
	t      *testing.T
	in     *io.PipeWriter
	lines  chan string
	done   chan error
	set    *schema.Set
	id     int
	seen   []string                     // every line of the agent but responses
	open   map[string]string            // method by id of an own request
	answer func(m message) (any, error) // to the agent's requests; an errWait answers nothing
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *acp.Error      `json:"error"`
	line   string
}

type errWait struct{}

func (errWait) Error() string { return "not answered" }

func start(t *testing.T, args ...string) *client {
	t.Helper()
	o, err := testy.ParseArgs(args)
	if err != nil {
		t.Fatal(err)
	}
	o.Version = "1.2.3"
	return startWith(t, o)
}

func startWith(t *testing.T, o testy.Options) *client {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	agent, err := testy.New(o, testy.Streams{In: inR, Out: outW, Err: t.Output(), Exit: func(int, os.Signal) {}})
	if err != nil {
		t.Fatal(err)
	}
	version := 1
	if o.Protocol == "v2" {
		version = 2
	}
	c := &client{t: t, in: inW, lines: make(chan string, 1<<16), done: make(chan error, 1), open: map[string]string{}, answer: friendly}
	c.use(version, o.Draft == "next")
	var work sync.WaitGroup
	work.Go(func() {
		c.done <- agent.Serve(context.Background())
		outW.Close()
	})
	work.Go(func() {
		defer close(c.lines)
		for r := acp.NewLineReader(outR, 0); ; {
			line, err := r.Next()
			if err != nil {
				return
			}
			c.lines <- string(line)
		}
	})
	t.Cleanup(func() {
		inW.Close()
		work.Wait()
	})
	return c
}

// sets are the schemas, each loaded once.
var sets sync.Map

// use sets the schema that messages are held against.
func (c *client) use(version int, next bool) {
	key := fmt.Sprint(version, next)
	set, ok := sets.Load(key)
	if !ok {
		loaded, err := schema.Load(version, next)
		if err != nil {
			c.t.Fatal(err)
		}
		set, _ = sets.LoadOrStore(key, loaded)
	}
	c.set = set.(*schema.Set)
}

// friendly answers everything a client may be asked.
func friendly(m message) (any, error) {
	switch m.Method {
	case "session/request_permission":
		return json.RawMessage(`{"outcome":{"outcome":"selected","optionId":"allow_once"}}`), nil
	case "fs/read_text_file":
		return json.RawMessage(`{"content":"written by testy\n"}`), nil
	case "terminal/create":
		return json.RawMessage(`{"terminalId":"term-1"}`), nil
	case "terminal/output":
		return json.RawMessage(`{"output":"testy terminal\n","truncated":false}`), nil
	case "terminal/wait_for_exit":
		return json.RawMessage(`{"exitCode":0}`), nil
	case "elicitation/create":
		var p struct{ Message string }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			return nil, err
		}
		switch word, _, _ := strings.Cut(p.Message, " "); word {
		case "Accept":
			return json.RawMessage(`{"action":"accept","content":{"name":"a","age":3}}`), nil
		case "Decline":
			return json.RawMessage(`{"action":"decline"}`), nil
		}
		return json.RawMessage(`{"action":"cancel"}`), nil
	}
	return json.RawMessage(`{}`), nil
}

func (c *client) send(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// request sends a request and returns its id as JSON.
func (c *client) request(method string, params any) string {
	c.t.Helper()
	c.id++
	line, err := acp.EncodeCall(acp.IntID(int64(c.id)), method, params)
	if err != nil {
		c.t.Fatal(err)
	}
	id := fmt.Sprint(c.id)
	c.open[id] = method
	c.send(string(line))
	return id
}

func (c *client) notify(method string, params any) {
	c.t.Helper()
	line, err := acp.EncodeCall(acp.ID{}, method, params)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(line))
}

// line is the next line of the agent as it is.
func (c *client) line() string {
	c.t.Helper()
	select {
	case line, ok := <-c.lines:
		if !ok {
			c.t.Fatal("the agent is gone")
		}
		return line
	case <-time.After(patience):
		c.t.Fatal("the agent says nothing")
	}
	return ""
}

// next is the next message; it is valid.
func (c *client) next() message {
	c.t.Helper()
	m := message{line: c.line()}
	if err := json.Unmarshal([]byte(m.line), &m); err != nil {
		c.t.Fatalf("%s: %v", m.line, err)
	}
	c.validate(m)
	if m.Method != "" {
		c.seen = append(c.seen, m.line)
	}
	return m
}

func (c *client) validate(m message) {
	c.t.Helper()
	var err error
	switch {
	case m.Method != "":
		method, ok := c.set.Method("client", m.Method)
		if !ok {
			c.t.Fatalf("the agent called %s, which is no method of this version", m.Method)
		}
		err = method.Params.Validate(m.Params)
	case m.Error == nil:
		method, ok := c.set.Method("agent", c.open[string(m.ID)])
		if !ok {
			return
		}
		err = method.Result.Validate(m.Result)
	}
	if err != nil {
		c.t.Errorf("%s does not fit the schema: %v", m.line, err)
	}
}

// until reads, and answers what the agent asks, up to the response to id.
func (c *client) until(id string) message {
	c.t.Helper()
	for {
		m := c.next()
		if m.Method == "" {
			if string(m.ID) != id {
				c.t.Fatalf("a response that nobody waits for: %s", m.line)
			}
			return m
		}
		c.reply(m)
	}
}

// reply answers a request of the agent.
func (c *client) reply(m message) {
	c.t.Helper()
	if m.ID == nil {
		return
	}
	result, err := c.answer(m)
	if _, wait := err.(errWait); wait {
		return
	}
	id, _ := acp.ParseID(m.ID)
	line, err := acp.EncodeAnswer(id, result, err)
	if err != nil {
		c.t.Fatal(err)
	}
	c.send(string(line))
}

func (c *client) call(method string, params any) message {
	c.t.Helper()
	return c.until(c.request(method, params))
}

// ok is call with a result that fits.
func (c *client) ok(method string, params any) string {
	c.t.Helper()
	m := c.call(method, params)
	if m.Error != nil {
		c.t.Fatalf("%s: %v", method, m.Error)
	}
	return string(m.Result)
}

// refused is call with an error of a code, whose data as text is returned.
func (c *client) refused(code int, method string, params any) string {
	c.t.Helper()
	m := c.call(method, params)
	if m.Error == nil || m.Error.Code != code {
		c.t.Fatalf("%s: want error %d, got %s", method, code, m.line)
	}
	var text string
	if json.Unmarshal(m.Error.Data, &text) != nil {
		text = string(m.Error.Data)
	}
	return text
}

type obj = map[string]any

// open1 makes a v1 session for a client that offers everything.
func (c *client) open1() string {
	c.t.Helper()
	c.ok("initialize", obj{"protocolVersion": 1, "clientCapabilities": obj{
		"fs": obj{"readTextFile": true, "writeTextFile": true}, "terminal": true, "elicitation": obj{"form": obj{}, "url": obj{}},
	}})
	return c.newSession()
}

func (c *client) newSession() string {
	c.t.Helper()
	var r struct{ SessionID string }
	if err := json.Unmarshal([]byte(c.ok("session/new", obj{"cwd": "/x", "mcpServers": []any{}})), &r); err != nil {
		c.t.Fatal(err)
	}
	return r.SessionID
}

func (c *client) open2() string {
	c.t.Helper()
	c.ok("initialize", obj{"protocolVersion": 2, "info": obj{"name": "test", "version": "1"}})
	return c.newSession()
}

func say(session, text string) obj {
	block, err := acp.MarshalTagged("type", "text", map[string]string{"text": text})
	if err != nil {
		panic(err)
	}
	return obj{"sessionId": session, "prompt": []json.RawMessage{block}}
}

// turn runs a v1 prompt and returns its stop reason, or the data of its error.
func (c *client) turn(session, text string) string {
	c.t.Helper()
	m := c.call("session/prompt", say(session, text))
	if m.Error != nil {
		return m.Error.Error()
	}
	var r struct{ StopReason string }
	if err := json.Unmarshal(m.Result, &r); err != nil {
		c.t.Fatal(err)
	}
	return r.StopReason
}

// lastText is the text of the last update that was seen.
func (c *client) lastText() string {
	c.t.Helper()
	return textOf(c.t, c.seen[len(c.seen)-1])
}

func textOf(t *testing.T, line string) string {
	t.Helper()
	var m struct {
		Params struct {
			Update struct{ Content struct{ Text string } }
		}
	}
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		t.Fatal(err)
	}
	return m.Params.Update.Content.Text
}

// kinds are the update kinds and methods of lines, in order.
func kinds(t *testing.T, lines []string) []string {
	t.Helper()
	all := []string{}
	for _, line := range lines {
		var m struct {
			Method string
			Params struct {
				Update struct{ SessionUpdate, State, StopReason string }
			}
		}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		kind := m.Params.Update.SessionUpdate
		switch {
		case kind == "":
			kind = m.Method
		case kind == "state_update":
			kind = strings.Trim(m.Params.Update.State+" "+m.Params.Update.StopReason, " ")
		}
		all = append(all, kind)
	}
	return all
}

func compact(t *testing.T, raw []byte) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, raw); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return b.String()
}
