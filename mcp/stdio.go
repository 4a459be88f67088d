package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// StdioConfig is what MCP over a pair of pipes needs. A zero bound has the
// value in its remark.
type StdioConfig struct {
	// Who is the one principal that is at the other end. It is asked for each
	// request, so that a credential that was revoked is noticed.
	Who      func(context.Context) (auth.Principal, error)
	MaxLine  int           // bytes of one message: 10 MiB
	MaxCalls int           // requests at once; further ones wait unread: 64
	Grace    time.Duration // for requests that run when the input ends: 10 s
}

// ServeStdio speaks the protocol, a message a line, until in ends or ctx does.
// When in ends, requests that run have the grace to finish; when ctx ends they
// are cancelled. It returns once they all have ended. A Read of in that blocks
// then is left alone; whoever owns in ends it.
func ServeStdio(ctx context.Context, s *Server, cfg StdioConfig, in io.Reader, out io.Writer) error {
	cfg.MaxLine = cmp.Or(cfg.MaxLine, 10<<20)
	cfg.MaxCalls = cmp.Or(cfg.MaxCalls, 64)
	cfg.Grace = cmp.Or(cfg.Grace, 10*time.Second)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	p := &pipe{cfg: cfg, s: s, out: out, fail: cancel, slots: make(chan struct{}, cfg.MaxCalls),
		session: &pipeSession{id: "stdio-" + rand.Text(), notes: make(chan mcp.JSONRPCNotification, 16)}}
	if err := s.lib.RegisterSession(ctx, p.session); err != nil {
		return err
	}
	defer s.lib.UnregisterSession(context.WithoutCancel(ctx), p.session.id)
	ctx = s.lib.WithContext(ctx, p.session)

	var notes sync.WaitGroup
	defer notes.Wait()
	done := make(chan struct{})
	defer close(done)
	notes.Go(func() { p.notify(done) })

	err := p.read(ctx, in)
	ended := make(chan struct{})
	go func() { p.requests.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-ctx.Done():
	case <-time.After(cfg.Grace):
		cancel(errors.New("the input has ended"))
	}
	<-ended
	if cause := context.Cause(ctx); errors.Is(cause, errOutput) {
		return cause
	}
	return err
}

var (
	errOutput  = errors.New("mcp: cannot write to the client")
	errTooLong = errors.New("mcp: line too long")
)

type pipe struct {
	cfg     StdioConfig
	s       *Server
	session *pipeSession
	fail    context.CancelCauseFunc

	slots    chan struct{}
	requests sync.WaitGroup

	mu  sync.Mutex // over out: one message at a time
	out io.Writer
}

// read takes messages until in ends or ctx does.
func (p *pipe) read(ctx context.Context, in io.Reader) error {
	type line struct {
		text []byte
		err  error
	}
	lines := make(chan line)
	go func() { // ends with in, or with the line after ctx has ended
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			text, err := readLine(r, p.cfg.MaxLine)
			select {
			case lines <- line{text, err}:
			case <-ctx.Done():
				return
			}
			if err != nil && !errors.Is(err, errTooLong) {
				return
			}
		}
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case l := <-lines:
			if errors.Is(l.err, errTooLong) {
				p.send(rpcError(nil, mcp.INVALID_REQUEST, "The message is longer than this server takes.",
					op.Problem(fault.Errorf(fault.TooLarge, "body_too_large", "The message is larger than %d bytes.", p.cfg.MaxLine), "")))
				continue
			}
			if text := bytes.TrimSpace(l.text); len(text) > 0 {
				p.take(ctx, text)
			}
			if l.err == io.EOF {
				return nil
			}
			if l.err != nil {
				return l.err
			}
		}
	}
}

// readLine returns the next line, of which it holds no more than max bytes in
// memory. The rest of a longer one is read and dropped.
func readLine(r *bufio.Reader, max int) (text []byte, err error) {
	tooLong := false
	for {
		part, err := r.ReadSlice('\n')
		if tooLong = tooLong || len(text)+len(part) > max+1; tooLong {
			text = nil
		} else {
			text = append(text, part...)
		}
		switch {
		case err == bufio.ErrBufferFull:
		case tooLong && (err == nil || err == io.EOF):
			return nil, errTooLong
		default:
			return text, err
		}
	}
}

// take begins one message. Notifications are done when it returns; requests
// run on their own, so that one that waits does not hold the others.
func (p *pipe) take(ctx context.Context, text []byte) {
	var head struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	known := json.Unmarshal(text, &head) == nil
	if known && head.Method == "" && (bytes.Contains(text, []byte(`"result"`)) || bytes.Contains(text, []byte(`"error"`))) {
		return // an answer, and we have asked nothing
	}
	if known && head.ID == nil {
		p.handle(ctx, nil, text)
		return
	}
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return
	}
	p.requests.Go(func() {
		defer func() { <-p.slots }()
		p.handle(ctx, head.ID, text)
	})
}

// handle runs one message and sends its answer, if it has one.
func (p *pipe) handle(ctx context.Context, id json.RawMessage, text []byte) {
	defer func() {
		if r := recover(); r != nil {
			request := p.s.newID()
			p.s.Logger.ErrorContext(ctx, "mcp request panicked", "request", request, "panic", r, "stack", string(debug.Stack()))
			if id != nil {
				p.send(rpcError(id, mcp.INTERNAL_ERROR, "internal error", op.Problem(errors.New("panic"), request)))
			}
		}
	}()
	if id != nil {
		who, err := p.cfg.Who(ctx)
		if err != nil {
			request := p.s.newID()
			problem := op.Problem(err, request)
			if fault.KindOf(err) == fault.Internal {
				p.s.Logger.ErrorContext(ctx, "mcp request failed", "request", request, "err", err)
			}
			p.send(rpcError(id, mcp.INVALID_REQUEST, fmt.Sprint(problem["detail"]), problem))
			return
		}
		ctx = withCaller(ctx, caller{who: who})
	}
	if m := p.s.lib.HandleMessage(ctx, text); m != nil {
		p.send(m)
	}
}

// notify sends what the library has for the client beside answers.
func (p *pipe) notify(done <-chan struct{}) {
	for {
		select {
		case n := <-p.session.notes:
			p.send(n)
		case <-done:
			return
		}
	}
}

// send writes one message. A client that takes none ends everything.
func (p *pipe) send(m any) {
	b, err := json.Marshal(m)
	if err != nil {
		p.s.Logger.Error("mcp message is no JSON", "err", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.out.Write(append(b, '\n')); err != nil {
		p.fail(errors.Join(errOutput, err))
	}
}

// rpcError is an error of the protocol, with the problem for programs.
func rpcError(id json.RawMessage, code int, message string, p map[string]any) any {
	if id == nil {
		id = json.RawMessage("null")
	}
	return map[string]any{"jsonrpc": mcp.JSONRPC_VERSION, "id": id,
		"error": map[string]any{"code": code, "message": message, "data": p}}
}

// pipeSession is the library's idea of who is at the other end.
type pipeSession struct {
	id      string
	notes   chan mcp.JSONRPCNotification
	ready   atomic.Bool
	version atomic.Value // string
}

var _ server.SessionWithProtocolVersion = (*pipeSession)(nil)

func (s *pipeSession) Initialize()                                         { s.ready.Store(true) }
func (s *pipeSession) Initialized() bool                                   { return s.ready.Load() }
func (s *pipeSession) NotificationChannel() chan<- mcp.JSONRPCNotification { return s.notes }
func (s *pipeSession) SessionID() string                                   { return s.id }
func (s *pipeSession) SetProtocolVersion(v string)                         { s.version.Store(v) }

// ProtocolVersion returns the revision agreed on, or "".
func (s *pipeSession) ProtocolVersion() string {
	v, _ := s.version.Load().(string)
	return v
}
