// Package client drives an agent over the Agent Client Protocol: it starts the
// agent's process, agrees on a version, runs sessions and turns, answers what
// the agent asks, and judges the wire.
//
// What always holds:
//
//   - Updates are delivered in the order of the wire, and a turn ends only after
//     all updates before its end were delivered.
//   - What the agent asks is answered outside of the reader, so that nothing it
//     asks can hold up a cancel. A consumer of updates that is slow slows the
//     agent down; nothing is dropped.
//   - Nothing the agent sends ends the connection: what it does against the
//     protocol is a finding, and what is unknown is kept as it came.
//   - When the agent is gone, all open calls fail at once and say why.
//   - After [Client.Stop] no process, goroutine or file of the connection is
//     left.
package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"roundtable/internal/acp"
	"roundtable/internal/acp/proc"
	"roundtable/internal/acp/rules"
	"roundtable/internal/acp/schema"
)

// Config is how to drive an agent. The zero value of a limit means its default.
type Config struct {
	Command  proc.Command
	Versions []int // of the protocol that may be agreed on; nil means 1
	Next     bool  // which draft of version 2
	Name     string
	Version  string

	MaxLine     int           // bytes; default 32 MiB
	StartLimit  time.Duration // for initialize; default 30 s
	CallLimit   time.Duration // for any other request but a prompt; default 60 s
	TurnLimit   time.Duration // for a turn; 0 means none
	CancelGrace time.Duration // for a cancelled turn to end; default 5 s
	Grace       time.Duration // for the process to end; default 5 s
	Strict      bool          // a broken frame ends the connection

	// Root is the absolute directory that files and terminals stay in. Without
	// it neither is offered.
	Root      string
	Files     bool                         // offer fs/*
	Terminals bool                         // offer terminal/*
	Wrap      func(argv []string) []string // what a terminal runs instead; nil means the same

	Permission Policy   // nil means Deny
	Elicit     Elicitor // nil means that it is not offered

	// Schemas are what the wire is judged by; nil loads them. Clients of one
	// draft may share them.
	Schemas map[int]*schema.Set

	// Event sees every update, in order, on the reading goroutine.
	Event func(Event)
	// Frame sees every line in both directions before it is read or written.
	Frame func(acp.Frame)
	Clock func() time.Duration // of the frames; nil means always 0
	Log   *slog.Logger         // nil discards
}

// A Client is a connection to a running agent. Its methods may be called from
// any goroutine.
type Client struct {
	cfg   Config
	conn  *acp.Conn
	proc  *proc.Process
	work  sync.WaitGroup
	ended chan struct{} // closed when the agent's output has ended
	gone  chan struct{} // closed when nothing more comes from the agent

	version int // agreed on, set before Start returns
	agent   Agent

	judge   sync.Mutex
	checker *rules.Checker

	mu        sync.Mutex
	sessions  map[string]*Session
	early     []Event // for sessions that nobody has introduced
	earlySize int
	terminals map[string]*terminal
	nTerminal int
	stopping  bool

	stop   sync.Once
	report proc.Report
}

// Agent is what the agent said of itself.
type Agent struct {
	Version      int    // of the protocol
	Name         string // "" if it did not say
	Title        string
	Release      string
	Capabilities json.RawMessage
	AuthMethods  []string // ids
}

// Start starts the agent and agrees on a version. When it fails, the agent has
// been ended; the error is an *EndError.
func Start(ctx context.Context, cfg Config) (*Client, error) {
	cfg.defaults()
	if cfg.Schemas == nil {
		var err error
		if cfg.Schemas, err = rules.Schemas(cfg.Next); err != nil {
			return nil, err
		}
	}
	p, err := proc.Start(cfg.Command)
	if err != nil {
		return nil, &EndError{Reason: NotStarted, Err: err}
	}
	c := &Client{
		cfg: cfg, proc: p, checker: rules.NewWith(cfg.Schemas, cfg.Next, cfg.Versions...), ended: make(chan struct{}), gone: make(chan struct{}),
		sessions: map[string]*Session{}, terminals: map[string]*terminal{},
	}
	c.conn = acp.New(p.Stdout, p.Stdin, acp.Config{
		MaxLine: cfg.MaxLine, Batches: !cfg.Next, NullIDs: !cfg.Next, Quiet: true,
		Handle: c.handle, Tap: c.tap, Clock: cfg.Clock, Log: cfg.Log,
	})
	c.work.Go(func() {
		defer close(c.ended)
		if err := c.conn.Serve(context.Background()); err != nil {
			cfg.Log.Warn("acp: reading failed", "error", err)
		}
	})
	c.work.Go(c.watch)
	if err := c.initialize(ctx); err != nil {
		c.Stop(ctx)
		return nil, err
	}
	return c, nil
}

func (cfg *Config) defaults() {
	or := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	or(&cfg.StartLimit, 30*time.Second)
	or(&cfg.CallLimit, time.Minute)
	or(&cfg.CancelGrace, 5*time.Second)
	or(&cfg.Grace, 5*time.Second)
	if len(cfg.Versions) == 0 {
		cfg.Versions = []int{1}
	}
	if cfg.Name == "" {
		cfg.Name, cfg.Version = "roundtable", "0.0.0"
	}
	if cfg.Permission == nil {
		cfg.Permission = Deny
	}
	if cfg.Event == nil {
		cfg.Event = func(Event) {}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Root == "" {
		cfg.Files, cfg.Terminals = false, false
	}
}

// watch fails what is open when the process is gone but something else still
// holds its output.
func (c *Client) watch() {
	defer close(c.gone)
	select {
	case <-c.ended:
		return
	case <-c.proc.Done():
	}
	timer := time.NewTimer(500 * time.Millisecond) // what it wrote before is read first
	defer timer.Stop()
	select {
	case <-c.ended:
	case <-timer.C:
		c.conn.Interrupt(acp.ErrClosed)
	}
}

func (c *Client) tap(f acp.Frame) {
	if c.cfg.Frame != nil {
		c.cfg.Frame(f)
	}
	c.judge.Lock()
	before := c.checker.Len()
	c.checker.Observe(f)
	var found []rules.Finding
	if c.checker.Len() > before {
		found = c.checker.Findings()[before:]
	}
	c.judge.Unlock()
	if !c.cfg.Strict || f.Dir == acp.Out {
		return
	}
	for _, f := range found {
		if slices.Contains([]string{"transport.json", "transport.utf8", "transport.size", "response.shape"}, f.Rule) {
			c.conn.Interrupt(&EndError{Reason: BrokenProtocol, Err: errors.New(f.String())})
		}
	}
}

// Findings are what the agent did against the protocol so far; after Stop they
// are complete.
func (c *Client) Findings() []rules.Finding {
	c.judge.Lock()
	defer c.judge.Unlock()
	return c.checker.Findings()
}

// Agent is what the agent said of itself.
func (c *Client) Agent() Agent { return c.agent }

// Stderr is the end of what the agent wrote to standard error.
func (c *Client) Stderr() string { return c.proc.Tail() }

// Gone is closed when the agent's process has ended.
func (c *Client) Gone() <-chan struct{} { return c.proc.Done() }

// Call sends any request and waits for its result, for at most CallLimit. An
// error that the agent answered with is an *acp.Error.
func (c *Client) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return c.call(ctx, c.cfg.CallLimit, method, params, nil)
}

func (c *Client) call(ctx context.Context, limit time.Duration, method string, params any, then func(json.RawMessage, error)) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, &EndError{Reason: Hung, Err: fmt.Errorf("no answer to %s within %s", method, limit)})
	defer cancel()
	p, err := c.conn.Send(method, params, then)
	if err != nil {
		return nil, c.explain(err)
	}
	result, err := p.Wait(ctx)
	return result, c.explain(err)
}

// Stop cancels the turns that run and ends the agent and all its descendants.
// Only the first call does anything; all return its report.
func (c *Client) Stop(ctx context.Context) proc.Report {
	c.stop.Do(func() {
		for _, s := range c.all() {
			s.Cancel()
		}
		c.mu.Lock()
		c.stopping = true
		c.mu.Unlock()
		for _, t := range c.allTerminals() {
			t.kill()
		}
		c.report = c.proc.Stop(ctx, c.cfg.Grace)
		c.work.Wait()
		for _, t := range c.allTerminals() {
			t.release()
		}
		c.judge.Lock()
		defer c.judge.Unlock()
		c.checker.Finish(c.report.Step != proc.StepNone, c.report.Step == proc.StepStdin)
	})
	return c.report
}

func (c *Client) all() (all []*Session) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.sessions {
		all = append(all, s)
	}
	return all
}

// PID is the process id of the agent, and that of its process group.
func (c *Client) PID() int { return c.proc.PID() }
