package acp_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"roundtable/internal/acp"
)

const patience = 10 * time.Second

// end is one end of a connection that is held by hand.
type end struct {
	t     *testing.T
	in    *io.PipeWriter
	lines chan string
	conn  *acp.Conn
	done  chan error
}

func connect(t *testing.T, cfg acp.Config) *end {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	e := &end{t: t, in: inW, lines: make(chan string, 1<<14), conn: acp.New(inR, outW, cfg), done: make(chan error, 1)}
	var work sync.WaitGroup
	work.Go(func() {
		e.done <- e.conn.Serve(context.Background())
		outW.Close()
	})
	work.Go(func() {
		defer close(e.lines)
		for r := acp.NewLineReader(outR, 0); ; {
			line, err := r.Next()
			if err != nil {
				return
			}
			e.lines <- string(line)
		}
	})
	t.Cleanup(func() {
		inW.Close()
		work.Wait()
	})
	return e
}

func (e *end) send(line string) {
	e.t.Helper()
	if _, err := io.WriteString(e.in, line+"\n"); err != nil {
		e.t.Fatal(err)
	}
}

func (e *end) line() string {
	e.t.Helper()
	select {
	case line := <-e.lines:
		return line
	case <-time.After(patience):
		e.t.Fatal("nothing comes")
		return ""
	}
}

// TestDispatchOrder: calls are handled in order, and a response completes its
// request after all that came before it was handled.
func TestDispatchOrder(t *testing.T) {
	var seen []string
	e := connect(t, acp.Config{Handle: func(c *acp.Call) { seen = append(seen, c.Method) }})
	p, err := e.conn.Send("ask", nil, func(json.RawMessage, error) { seen = append(seen, "answer") })
	if err != nil {
		t.Fatal(err)
	}
	e.line()
	want := []string{}
	for i := range 100 {
		method := fmt.Sprintf("n%d", i)
		e.send(`{"jsonrpc":"2.0","method":"` + method + `"}`)
		want = append(want, method)
	}
	e.send(`{"jsonrpc":"2.0","id":1,"result":7}`)
	raw, err := p.Wait(t.Context())
	if err != nil || string(raw) != "7" {
		t.Fatal(string(raw), err)
	}
	if want = append(want, "answer"); !slices.Equal(seen, want) {
		t.Errorf("%v", seen)
	}
}

func TestCallsAndAnswers(t *testing.T) {
	e := connect(t, acp.Config{IDPrefix: "r-"})
	type outcome struct {
		raw json.RawMessage
		err error
	}
	got := make(chan outcome)
	call := func() {
		raw, err := e.conn.Call(context.Background(), "m", map[string]string{"a": "<&>"})
		got <- outcome{raw, err}
	}
	go call()
	if line := e.line(); line != `{"jsonrpc":"2.0","id":"r-1","method":"m","params":{"a":"<&>"}}` {
		t.Error(line)
	}
	e.send(`{"jsonrpc":"2.0","id":"r-2","result":1}`) // nobody asked
	e.send(`{"jsonrpc":"2.0","id":"r-1","error":{"code":5,"message":"no","data":[1]}}`)
	o := <-got
	if refusal, ok := errors.AsType[*acp.Error](o.err); !ok || refusal.Code != 5 || string(refusal.Data) != "[1]" {
		t.Error(o.err)
	}
	go call()
	e.line()
	e.in.Close()
	if o := <-got; !errors.Is(o.err, acp.ErrClosed) {
		t.Error(o.err)
	}
	if _, err := e.conn.Call(t.Context(), "m", nil); !errors.Is(err, acp.ErrClosed) {
		t.Error(err)
	}
}

// TestGivingUp: a context that ends sends a cancellation, and the late answer
// is ignored.
func TestGivingUp(t *testing.T) {
	e := connect(t, acp.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	p, err := e.conn.Send("slow", nil, func(json.RawMessage, error) { t.Error("the late answer is taken") })
	if err != nil {
		t.Fatal(err)
	}
	cancel(why)
	if _, err := p.Wait(ctx); !errors.Is(err, why) {
		t.Error(err)
	}
	e.line()
	if line := e.line(); line != `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}` {
		t.Error(line)
	}
	e.send(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	e.send(`{"jsonrpc":"2.0","id":7,"method":"ping"}`)
	if line := e.line(); !strings.Contains(line, `"id":7,"error"`) {
		t.Error(line)
	}
}

// TestPeerCancels: the context of a request ends when the peer cancels it.
func TestPeerCancels(t *testing.T) {
	var e *end
	e = connect(t, acp.Config{Handle: func(c *acp.Call) {
		e.conn.Go(func(context.Context) {
			<-c.Context().Done()
			c.Reply(nil, acp.NewError(acp.CodeCancelled, nil))
			c.Reply("again", nil) // only the first answer counts
		})
	}})
	e.send(`{"jsonrpc":"2.0","id":"a","method":"m"}`)
	e.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":1}}`)
	e.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"a"}}`)
	if line := e.line(); line != `{"jsonrpc":"2.0","id":"a","error":{"code":-32800,"message":"Request cancelled"}}` {
		t.Error(line)
	}
	e.send(`{"jsonrpc":"2.0","id":"b","method":"m"}`) // ends with the connection
}

// TestBatchAnswersWhenAllAreDone, in the order of the entries.
func TestBatchAnswersWhenAllAreDone(t *testing.T) {
	calls := make(chan *acp.Call, 2)
	e := connect(t, acp.Config{Batches: true, Handle: func(c *acp.Call) { calls <- c }})
	e.send(`[{"jsonrpc":"2.0","id":1,"method":"a"},{},{"jsonrpc":"2.0","id":2,"method":"b"}]`)
	one, two := <-calls, <-calls
	two.Reply("second", nil)
	one.Reply("first", nil)
	want := `[{"jsonrpc":"2.0","id":1,"result":"first"},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request"}},{"jsonrpc":"2.0","id":2,"result":"second"}]`
	if line := e.line(); line != want {
		t.Error(line)
	}
}

// TestSlowPeer: a peer that does not read holds up who writes, not memory, and
// an end of input frees them.
func TestSlowPeer(t *testing.T) {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe() // nobody reads
	conn := acp.New(inR, outW, acp.Config{Linger: time.Millisecond})
	served := make(chan error, 1)
	go func() { served <- conn.Serve(context.Background()) }()
	blob := strings.Repeat("x", 1<<20)
	written := make(chan int, 1)
	go func() {
		n := 0
		for conn.Notify("n", blob) == nil {
			n++
		}
		written <- n
	}()
	inW.Close()
	if n := <-written; n > 20 {
		t.Errorf("%d MiB are queued", n)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	outR.Close()
}

func TestFilterAndTap(t *testing.T) {
	var frames []acp.Frame
	e := connect(t, acp.Config{
		Tap:   func(f acp.Frame) { frames = append(frames, f) },
		Clock: func() time.Duration { return 5 },
		Filter: func(line []byte, emit func([]byte) error) error {
			return errors.Join(emit([]byte("noise")), emit(line))
		},
	})
	e.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	if a, b := e.line(), e.line(); a != "noise" || !strings.Contains(b, "-32601") {
		t.Error(a, b)
	}
	if len(frames) != 3 || frames[0].Dir != acp.In || frames[2].Dir != acp.Out || frames[2].Seq != 3 || frames[1].At != 5 {
		t.Errorf("%+v", frames)
	}
}

func TestQuiet(t *testing.T) {
	e := connect(t, acp.Config{Quiet: true, MaxLine: 100})
	for _, line := range []string{"", "log line", "{}", "[]", strings.Repeat("x", 1000)} {
		e.send(line)
	}
	e.send(`{"jsonrpc":"2.0","id":1,"method":"m"}`)
	if line := e.line(); !strings.Contains(line, `"id":1`) {
		t.Errorf("what is no message is answered: %s", line)
	}
}

func TestLineReader(t *testing.T) {
	long := strings.Repeat("y", 200_000)
	for _, x := range []struct {
		in    string
		limit int
		want  []string // "!" is a line that is too long
	}{
		{"", 10, nil}, {"a", 10, []string{"a"}}, {"a\nb\n", 10, []string{"a", "b"}}, {"\n\n", 10, []string{"", ""}},
		{"a\r\n", 10, []string{"a"}}, {"0123456789\nx\n", 10, []string{"0123456789", "x"}}, {"01234567890\nx", 10, []string{"!", "x"}},
		{long + "\nx", 1000, []string{"!", "x"}}, {long, 1000, []string{"!"}}, {long + "\n", 300_000, []string{long}},
	} {
		r := acp.NewLineReader(strings.NewReader(x.in), x.limit)
		var got []string
		for {
			line, err := r.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if errors.Is(err, acp.ErrTooLong) {
				got = append(got, "!")
				continue
			}
			got = append(got, string(line))
		}
		if !slices.Equal(got, x.want) {
			t.Errorf("%.20q with %d: %.40q", x.in, x.limit, got)
		}
	}
}

func TestObjectsKeepTheirOrder(t *testing.T) {
	var o acp.Object[int]
	in := `{"z":1,"a":2,"<":3}`
	if err := json.Unmarshal([]byte(in), &o); err != nil {
		t.Fatal(err)
	}
	if out, err := acp.Marshal(o); err != nil || string(out) != in {
		t.Errorf("%s, %v", out, err)
	}
	if err := json.Unmarshal([]byte(`[1]`), &o); err == nil {
		t.Error("an array is read as an object")
	}
}

func FuzzDecode(f *testing.F) {
	for _, s := range []string{"", "[]", "{}", "[[]]", `{"jsonrpc":"2.0","id":1,"method":"m"}`, `{"jsonrpc":"2.0","id":null,"result":null}`, `{"jsonrpc":"2.0","id":1e5,"error":{"code":1,"message":""}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		messages, batch, err := acp.Decode(line)
		if err != nil && len(messages) > 0 || err == nil && !batch && len(messages) != 1 {
			t.Fatalf("%q: %d messages, %v", line, len(messages), err)
		}
		for _, m := range messages {
			switch m.Kind {
			case acp.Request, acp.Notification:
				if (m.Kind == acp.Request) == m.ID.IsZero() {
					t.Fatalf("%q: a call with the id %q", line, m.ID)
				}
				again, err := acp.EncodeCall(m.ID, m.Method, m.Params)
				if err != nil || !json.Valid(again) || bytes.ContainsRune(again, '\n') {
					t.Fatalf("%q becomes %q, %v", line, again, err)
				}
			case acp.Response:
				if m.ID.IsZero() || (m.Error == nil) == (m.Result == nil) {
					t.Fatalf("%q: half an answer", line)
				}
			}
		}
	})
}
