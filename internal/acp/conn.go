package acp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"
)

// Direction is which way a frame went.
type Direction int

// The directions of a frame, seen from the owner of the connection.
const (
	In Direction = iota
	Out
)

// A Frame is one line of the transcript.
type Frame struct {
	Seq     int           // from 1, both directions together
	At      time.Duration // since the connection was made
	Dir     Direction
	Line    []byte // without the newline; of a line that was too long its beginning
	TooLong bool
	// Read is what an incoming line was taken apart to. Nil for others: see
	// Decode.
	Read *Decoded
}

// Config is how a connection behaves. The zero Config is a peer that answers
// nothing but errors.
type Config struct {
	MaxLine  int    // bytes; 0 means DefaultMaxLine
	Batches  bool   // arrays are batches; else each is one invalid request
	NullIDs  bool   // a request may have the id null
	Quiet    bool   // what is no message gets no answer, and blank lines are nothing
	IDPrefix string // of the ids of own requests, a counter follows; "" means integers

	// Handle is called for each request and notification, one at a time. A
	// request must be answered by [Call.Reply], then or later.
	Handle func(*Call)

	// Tap sees every frame before it is read or written, one at a time.
	Tap   func(Frame)
	Clock func() time.Duration // for Frame.At; nil means always 0

	// Filter, if set, is handed every outgoing line, one at a time, and emits
	// what is written instead. It is for peers that misbehave on purpose.
	Filter func(line []byte, emit func(line []byte) error) error

	// Linger is how long, after the incoming stream has ended, work may take to
	// stop and what is queued to be written; 0 means a second.
	Linger time.Duration

	Log *slog.Logger // nil discards
}

// A Conn is one connection to a peer. Its methods may be called from any
// goroutine once Serve runs; what is sent before is queued.
type Conn struct {
	cfg Config
	in  *LineReader
	w   *writer

	filterMu sync.Mutex

	tapMu sync.Mutex
	seq   int

	ctx    context.Context // of the work of this connection
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu      sync.Mutex
	nextID  int
	pending map[ID]*Pending
	calls   map[ID]*Call // requests of the peer that are not answered
	over    error
}

// New makes a connection that reads from in and writes to out. Nothing happens
// before Serve.
func New(in io.Reader, out io.Writer, cfg Config) *Conn {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Handle == nil {
		cfg.Handle = func(c *Call) { c.Reply(nil, NewError(CodeMethodNotFound, c.Method)) }
	}
	c := &Conn{
		cfg: cfg, in: NewLineReader(in, cfg.MaxLine),
		pending: map[ID]*Pending{}, calls: map[ID]*Call{},
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.w = newWriter(out, func(line []byte) { c.tap(Frame{Dir: Out, Line: line}) })
	return c
}

func (c *Conn) tap(f Frame) {
	if c.cfg.Tap == nil {
		return
	}
	c.tapMu.Lock()
	defer c.tapMu.Unlock()
	c.seq++
	f.Seq = c.seq
	f.Line = bytes.Clone(f.Line) // the reader uses its buffer again
	if c.cfg.Clock != nil {
		f.At = c.cfg.Clock()
	}
	c.cfg.Tap(f)
}

// Serve reads and dispatches until the incoming stream ends; the owner ends
// it. It then cancels the work started by Go, waits for it, and writes what is
// queued, for as long as Config.Linger allows; a peer that does not read may
// then still hold the writer, which ends when the owner closes the outgoing
// stream. It returns nil at a clean end of the incoming stream.
func (c *Conn) Serve(ctx context.Context) error {
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.w.run()
	}()
	err := c.read()
	cause := ErrClosed
	if err != nil {
		cause = fmt.Errorf("%w: %w", ErrClosed, err)
	}
	c.fail(cause) // first: whoever sees the end of the work sees that the stream has ended
	c.cancel()
	linger := c.cfg.Linger
	if linger == 0 {
		linger = time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, linger)
	defer cancel()
	defer context.AfterFunc(ctx, func() { c.w.fail(ErrClosed) })()
	c.work.Wait()
	c.w.close()
	select {
	case <-written:
	case <-ctx.Done():
	}
	return err
}

func (c *Conn) read() error {
	for {
		line, err := c.in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, ErrTooLong):
			c.tap(Frame{Dir: In, Line: line, TooLong: true})
			c.refuse(NewError(CodeInvalidRequest, fmt.Sprintf("message exceeds %d bytes", c.in.max)))
		case err != nil:
			return err
		default:
			d := &Decoded{}
			d.Messages, d.Batch, d.Err = Decode(line)
			c.tap(Frame{Dir: In, Line: line, Read: d})
			c.line(line, d)
		}
	}
}

// refuse answers what is no message, or what has no readable id.
func (c *Conn) refuse(e *Error) {
	if c.cfg.Quiet {
		c.cfg.Log.Warn("acp: unreadable line", "error", e.Message)
		return
	}
	c.answer(NullID(), nil, e)
}

func (c *Conn) line(line []byte, d *Decoded) {
	if c.cfg.Quiet && len(bytes.TrimSpace(line)) == 0 {
		return
	}
	switch {
	case d.Batch && !c.cfg.Batches:
		c.refuse(NewError(CodeInvalidRequest, "JSON-RPC batches are not supported"))
	case d.Err != nil:
		c.refuse(d.Err)
	case d.Batch:
		b := &batch{conn: c, answers: make([]json.RawMessage, len(d.Messages)), open: 1}
		for i, m := range d.Messages {
			c.message(m, b, i)
		}
		b.leave()
	default:
		c.message(d.Messages[0], nil, 0)
	}
}

func (c *Conn) message(m Message, b *batch, slot int) {
	if m.Kind == Request && m.ID.IsNull() && !c.cfg.NullIDs {
		m.Kind = Invalid
	}
	switch m.Kind {
	case Malformed:
		c.cfg.Log.Warn("acp: malformed response ignored", "id", m.ID.String())
	case Response:
		c.settle(m)
	case Invalid:
		e := NewError(CodeInvalidRequest, nil)
		switch {
		case b != nil:
			b.enter()
			b.put(slot, NullID(), nil, e)
		case m.ID.IsZero():
			c.refuse(e)
		case !c.cfg.Quiet:
			c.answer(m.ID, nil, e)
		}
	default:
		call := &Call{Message: m, conn: c, batch: b, slot: slot}
		call.ctx, call.cancel = context.WithCancel(c.ctx)
		if m.Kind == Request {
			b.enter()
			c.mu.Lock()
			c.calls[m.ID] = call
			c.mu.Unlock()
		}
		if m.Method == "$/cancel_request" && m.Kind == Notification {
			c.cancelled(m.Params)
			call.cancel()
			return
		}
		c.cfg.Handle(call)
		if m.Kind == Notification {
			call.cancel()
		}
	}
}

// cancelled ends the context of a request of the peer.
func (c *Conn) cancelled(params json.RawMessage) {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return
	}
	id, ok := ParseID(p.RequestID)
	if !ok {
		return
	}
	c.mu.Lock()
	call := c.calls[id]
	c.mu.Unlock()
	if call != nil {
		call.cancel()
	}
}

func (c *Conn) answer(id ID, result any, failure error) {
	line, err := EncodeAnswer(id, result, failure)
	if err == nil {
		err = c.put(line)
	}
	if err != nil {
		c.cfg.Log.Warn("acp: answer not sent", "id", id.String(), "error", err)
	}
}

func (c *Conn) put(line []byte) error {
	if c.cfg.Filter == nil {
		return c.w.put(line)
	}
	c.filterMu.Lock()
	defer c.filterMu.Unlock()
	return c.cfg.Filter(line, c.w.put)
}

// Notify sends a notification.
func (c *Conn) Notify(method string, params any) error {
	line, err := EncodeCall(ID{}, method, params)
	if err != nil {
		return err
	}
	return c.put(line)
}

// Flush waits until what was sent so far has been written or ctx ends.
func (c *Conn) Flush(ctx context.Context) error { return c.w.flush(ctx) }

// Go runs f as work of the connection. Its context ends with the incoming
// stream, and Serve waits for it. It is called from a handler or from other
// work of the connection.
func (c *Conn) Go(f func(context.Context)) { c.work.Go(func() { f(c.ctx) }) }
