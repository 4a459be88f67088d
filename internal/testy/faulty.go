package testy

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"roundtable/internal/acp"
)

// faulty stands between an honest agent and the wire and does what --fault
// asks for.
type faulty struct {
	faultSet
	streams Streams
	next    bool
	conn    *acp.Conn

	mu      sync.Mutex
	asked   map[acp.ID]ask        // requests of the client without an answer
	turns   map[string]*faultTurn // by session
	replays map[string][][]byte   // updates that a load holds back, by session
	n       int                   // of the ids of own frames
	begun   bool                  // something has been written
	half    atomic.Bool           // the next write is cut in half, and the last
}

type ask struct{ method, session string }

// faultTurn is a turn as far as its faults go.
type faultTurn struct {
	started bool // what comes at the start is out
	updates int
	final   []byte // the final chunk, held back
}

func newFaulty(o Options, s Streams) *faulty {
	return &faulty{
		faultSet: o.faults, streams: s, next: o.Draft == "next",
		asked: map[acp.ID]ask{}, turns: map[string]*faultTurn{}, replays: map[string][][]byte{},
	}
}

// admit notes a message of the client; false means that the agent never sees
// it.
func (f *faulty) admit(c *acp.Call) bool {
	switch {
	case c.Method == "initialize" && f.has("hang-init"),
		c.Method == "session/prompt" && f.has("hang"),
		c.Method == "session/cancel" && (f.has("hang") || f.has("ignore-cancel")):
		return false
	}
	var p struct {
		SessionID string `json:"sessionId"`
	}
	if c.Kind != acp.Request || c.Params != nil && json.Unmarshal(c.Params, &p) != nil {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[c.ID] = ask{c.Method, p.SessionID}
	switch c.Method {
	case "session/prompt":
		f.turns[p.SessionID] = &faultTurn{}
	case "session/load", "session/resume":
		if f.has("late-replay") {
			f.replays[p.SessionID] = [][]byte{}
		}
	}
	return true
}

// frame is what the faults look at in an outgoing message.
type frame struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params struct {
		SessionID string `json:"sessionId"`
		Update    struct {
			Kind      string `json:"sessionUpdate"`
			State     string `json:"state"`
			MessageID string `json:"messageId"`
		} `json:"update"`
	} `json:"params"`
	Result struct {
		SessionID  string `json:"sessionId"`
		MessageID  string `json:"messageId"`
		StopReason string `json:"stopReason"`
	} `json:"result"`
}

// final reports whether it is the reply that ends a turn.
func (m frame) final() bool {
	id := m.Params.Update.MessageID
	return m.Params.Update.Kind == "agent_message_chunk" &&
		(strings.HasPrefix(id, "testy-message-") || strings.HasPrefix(id, "testy-v2-agent-message-"))
}

// filter is called for every outgoing line, one at a time.
func (f *faulty) filter(line []byte, emit func([]byte) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &emitter{emit: emit}
	if f.has("noise") && !f.begun {
		out.line(noise())
	}
	f.begun = true
	var m frame
	if json.Unmarshal(line, &m) != nil {
		out.line(line) // a batch of answers
		return out.err
	}
	line = f.garble(line)
	switch {
	case m.Method == "session/update":
		f.update(out, m, line)
	case m.Method == "":
		f.response(out, m, line)
	default:
		out.line(line)
	}
	return out.err
}

// emitter writes lines until one fails.
type emitter struct {
	emit func([]byte) error
	err  error
}

func (e *emitter) line(l []byte) {
	if e.err == nil {
		e.err = e.emit(l)
	}
}

func noise() []byte { return []byte("\x1b[33mwarn testy noise\x1b[0m") }

func (f *faulty) update(out *emitter, m frame, line []byte) {
	session := m.Params.SessionID
	if held, ok := f.replays[session]; ok {
		f.replays[session] = append(held, line)
		return
	}
	t := f.turns[session]
	if t == nil {
		out.line(line)
		return
	}
	f.start(out, t, session)
	if m.final() && f.has("response-first") {
		t.final = line
		return
	}
	if n, ok := f.faultSet["huge-line"]; ok && m.final() && n > len(line) {
		line = pad(line, n)
	}
	if f.has("half-line") && t.updates == 0 {
		f.half.Store(true)
	}
	out.line(line)
	if t.updates++; t.updates == 1 {
		f.afterFirst(out)
	}
	if m.Params.Update.Kind == "state_update" && m.Params.Update.State == "idle" {
		f.finish(out, t, session)
	}
}

// afterFirst is what happens after the first update of a turn.
func (f *faulty) afterFirst(out *emitter) {
	if f.has("bad-line") {
		out.line([]byte("{bad"))
	}
	code, exits := f.faultSet["exit"]
	if !exits && !f.has("kill") || out.err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	out.err = f.conn.Flush(ctx)
	if exits {
		fmt.Fprintln(f.streams.Err, "testy: exits as asked by --fault=exit")
		f.streams.Exit(code, nil)
		return
	}
	f.streams.Exit(0, syscall.SIGKILL)
}

// finish is what follows a turn.
func (f *faulty) finish(out *emitter, t *faultTurn, session string) {
	if t.final != nil {
		out.line(t.final)
	}
	if f.has("late-update") {
		out.line(f.say("agent_message_chunk", session, "late update"))
	}
	delete(f.turns, session)
}

func (f *faulty) response(out *emitter, m frame, line []byte) {
	id, ok := acp.ParseID(m.ID)
	a := f.asked[id]
	delete(f.asked, id)
	if ok && f.has("string-id") && !id.IsString() && !id.IsNull() {
		line = edit(line, func(o object) { o["id"] = id.Text() })
	}
	switch a.method {
	case "initialize":
		if n, ok := f.faultSet["version"]; ok {
			line = edit(line, func(o object) { member(o, "result")["protocolVersion"] = n })
		}
	case "session/new":
		if f.has("early-update") && m.Result.SessionID != "" {
			out.line(f.updateLine(m.Result.SessionID, object{
				"sessionUpdate": "available_commands_update", "availableCommands": []any{},
			}))
		}
	case "session/load", "session/resume":
		out.line(line)
		for _, held := range f.replays[a.session] {
			out.line(held)
		}
		delete(f.replays, a.session)
		return
	case "session/prompt":
		f.promptResponse(out, a, m, line)
		return
	}
	out.line(line)
}

func (f *faulty) promptResponse(out *emitter, a ask, m frame, line []byte) {
	t := f.turns[a.session]
	isV1 := m.Result.MessageID == ""
	if t != nil && isV1 {
		f.start(out, t, a.session)
	}
	if f.has("noise") {
		out.line(noise())
	}
	if ms, ok := f.faultSet["late-answer"]; ok {
		time.Sleep(time.Duration(ms) * time.Millisecond)
	}
	if f.has("wrong-id") {
		line = edit(line, func(o object) { o["id"] = "testy-wrong-id" })
	}
	if f.has("cancel-error") && m.Result.StopReason == "cancelled" {
		line = edit(line, func(o object) {
			delete(o, "result")
			o["error"] = acp.NewError(acp.CodeCancelled, nil)
		})
	}
	out.line(line)
	if f.has("double-response") {
		out.line(line)
	}
	if t != nil && isV1 {
		f.finish(out, t, a.session)
	}
}

// writer is the outgoing stream under the faults of single bytes.
func (f *faulty) writer(w io.Writer) io.Writer {
	if f.has("split-writes") {
		return splitter{w}
	}
	if f.has("half-line") {
		return halver{f, w}
	}
	return w
}

type splitter struct{ w io.Writer }

func (s splitter) Write(p []byte) (n int, err error) {
	for piece := range slices.Chunk(p, 7) {
		m, err := s.w.Write(piece)
		n += m
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

type halver struct {
	f *faulty
	w io.Writer
}

func (h halver) Write(p []byte) (int, error) {
	if !h.f.half.Load() {
		return h.w.Write(p)
	}
	n, err := h.w.Write(p[:len(p)/2])
	h.f.streams.Exit(7, nil)
	return n, err
}
