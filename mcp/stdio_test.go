package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"roundtable/internal/auth"
	"roundtable/mcp"
)

// TestMain makes the test binary a server on stdio when it is asked to be one.
func TestMain(m *testing.M) {
	if os.Getenv("MCP_TEST_STDIO") == "" {
		os.Exit(m.Run())
	}
	w := newWorld()
	s := w.server(&testing.T{}, nil)
	if err := mcp.ServeStdio(context.Background(), s, w.stdio("a"), os.Stdin, os.Stdout); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

func TestSubprocess(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "MCP_TEST_STDIO=1")
	cs, p := goSDK(t, &sdk.CommandTransport{Command: cmd})
	if names := p.list(t); len(names) != 8 {
		t.Errorf("listed %q", names)
	}
	r, err := p.call(t, "note.create", map[string]any{"title": "x"})
	if err != nil {
		t.Fatal(err)
	}
	checkDone(t, r)
	if err := cs.Close(); err != nil {
		t.Errorf("it did not end well: %v", err)
	}
}

// talk serves lines to a server until they end, and returns its answers by id.
func talk(t *testing.T, w *world, cfg mcp.StdioConfig, lines ...string) (map[string]map[string]any, error) {
	t.Helper()
	var out strings.Builder
	err := mcp.ServeStdio(t.Context(), w.server(t, nil), cfg, strings.NewReader(strings.Join(lines, "\n")), &out)
	answers := map[string]map[string]any{}
	for l := range strings.Lines(out.String()) {
		var m map[string]any
		if json.Unmarshal([]byte(l), &m) != nil || m["jsonrpc"] != "2.0" {
			t.Errorf("no protocol: %q", l)
		}
		answers[toJSON(t, m["id"])] = m
	}
	return answers, err
}

const hello = initialize + "\n" + `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func call(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}

// What runs when the input ends is still answered, be there a last newline or
// not.
func TestStdioEndOfInput(t *testing.T) {
	w := newWorld()
	got, err := talk(t, w, w.stdio("a"), hello, "", "  ", call(`"x"`, "note_create", `{"title":"x"}`), call("2", "note.list", `{}`))
	if err != nil || len(got) != 3 || !strings.Contains(toJSON(t, got[`"x"`]), "N-1") || !strings.Contains(toJSON(t, got["2"]), "N-2") {
		t.Errorf("%v: %v", err, got)
	}
}

func TestStdioGraceEnds(t *testing.T) {
	w := newWorld()
	cfg := w.stdio("a")
	cfg.Grace = time.Millisecond
	got, err := talk(t, w, cfg, hello, call("1", "note_wait", `{"title":"x"}`))
	if err != nil || !strings.Contains(toJSON(t, got["1"]), `"cancelled`) {
		t.Errorf("%v: %v", err, got)
	}
	if err := <-w.ended; err == nil {
		t.Error("the call was not cancelled")
	}
}

func TestStdioBadLines(t *testing.T) {
	w := newWorld()
	cfg := w.stdio("a")
	cfg.MaxLine = 1000
	long := `{"jsonrpc":"2.0","id":7,"method":"ping","x":"` + strings.Repeat("y", 5000) + `"}`
	exact := `{"jsonrpc":"2.0","id":8,"method":"ping"}`
	exact += strings.Repeat(" ", 1000-len(exact))
	for _, bad := range []struct{ line, code string }{
		{long, "-32600"}, {"no json", "-32700"}, {"[1]", "-32700"}, {`{"jsonrpc":"1.0","id":null,"method":"x"}`, "-32600"}, {"\xff\xfe{", "-32700"},
		{strings.Repeat("[", 900), "-32700"},
	} {
		got, err := talk(t, w, cfg, hello, bad.line, exact, call("9", "note_create", `{"title":"x"}`))
		if err != nil || !strings.Contains(toJSON(t, got["null"]), bad.code) || got["8"]["result"] == nil || got["9"]["result"] == nil {
			t.Errorf("%.20q: %v: %v", bad.line, err, got)
		}
	}
	if got, err := talk(t, w, cfg, hello, long); err != nil || !strings.Contains(toJSON(t, got), "body_too_large") {
		t.Errorf("a long line at the end: %v: %v", err, got)
	}
	if got, err := talk(t, w, cfg, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{"jsonrpc":"2.0","id":3,"error":{"code":1,"message":"x"}}`); err != nil || len(got) != 0 {
		t.Errorf("answers to nothing: %v: %v", err, got)
	}
}

// endless is one line of n bytes, which it makes as it is read.
type endless struct{ n int }

func (e *endless) Read(b []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n := min(len(b), e.n)
	for i := range b[:n] {
		b[i] = 'x'
	}
	e.n -= n
	return n, nil
}

func TestStdioHugeLine(t *testing.T) {
	w := newWorld()
	cfg := w.stdio("a")
	cfg.MaxLine = 1 << 20
	in := io.MultiReader(strings.NewReader(hello+"\n"), &endless{64 << 20}, strings.NewReader("\n"+call("9", "note_create", `{"title":"x"}`)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var out strings.Builder
	if err := mcp.ServeStdio(t.Context(), w.server(t, nil), cfg, in, &out); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if !strings.Contains(out.String(), "body_too_large") || !strings.Contains(out.String(), "N-1") {
		t.Errorf("%s", out.String())
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("64 MiB of one line allocated %d MiB", grown>>20)
	}
}

func TestStdioCancel(t *testing.T) {
	w := newWorld()
	in, from := overPipes(t, w, "a")
	lines := bufio.NewScanner(from)
	send := func(s string) {
		if _, err := io.WriteString(in, s+"\n"); err != nil {
			t.Error(err)
		}
	}
	go send(initialize)
	lines.Scan()
	send(call("5", "note_wait", `{"title":"x"}`))
	<-w.started
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`)
	if err := <-w.ended; err == nil {
		t.Error("not cancelled")
	}
	lines.Scan() // the call's answer
	go send(call("6", "note_get", `{"note_id":"N-1"}`))
	if !lines.Scan() || !strings.Contains(lines.Text(), `"id":6`) {
		t.Errorf("afterwards: %s", lines.Text())
	}
}

// The principal is looked up for each request.
func TestStdioRevoked(t *testing.T) {
	w := newWorld()
	w.revoke("a")
	got, err := talk(t, w, w.stdio("a"), hello, call("1", "note_create", `{"title":"x"}`))
	if err != nil || !strings.Contains(toJSON(t, got["1"]), `"token_invalid"`) || len(w.calls) != 0 {
		t.Errorf("%v: %v", err, got)
	}
}

func TestStdioContextEnds(t *testing.T) {
	w := newWorld()
	in, hold := io.Pipe()
	defer hold.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	s := w.server(t, nil)
	go func() { done <- mcp.ServeStdio(ctx, s, w.stdio("a"), in, io.Discard) }()
	io.WriteString(hold, hello+"\n"+call("1", "note_wait", `{"title":"x"}`)+"\n")
	<-w.started
	cancel()
	within(t, 5*time.Second, "ending", func() {
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
	})
	if err := <-w.ended; err == nil {
		t.Error("the call went on")
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestStdioClientGone(t *testing.T) {
	w := newWorld()
	in, hold := io.Pipe()
	defer hold.Close()
	go io.WriteString(hold, hello+"\n")
	within(t, 5*time.Second, "ending", func() {
		if err := mcp.ServeStdio(t.Context(), w.server(t, nil), w.stdio("a"), in, broken{}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("%v", err)
		}
	})
}

func TestStdioWhoFails(t *testing.T) {
	w := newWorld()
	cfg := mcp.StdioConfig{Who: func(context.Context) (auth.Principal, error) {
		return auth.Principal{}, errors.New("secret reason")
	}}
	got, err := talk(t, w, cfg, hello)
	if err != nil || strings.Contains(toJSON(t, got), "secret") || !strings.Contains(toJSON(t, got["0"]), "request_id") {
		t.Errorf("%v: %v", err, got)
	}
}
