package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"roundtable/internal/acp"
	"roundtable/internal/acp/proc"
	"roundtable/internal/acp/rules"
	"roundtable/internal/acp/schema"
)

type object = map[string]any

// env is what the rows share.
type env struct {
	o       Options
	schemas map[int]*schema.Set
	set     *schema.Set     // of the version under test
	name    string          // of the agent
	version int             // that it answers to the version under test
	caps    json.RawMessage // the result of initialize
	links   []*link         // of the row that runs
	broken  *broken
}

// broken are the rules that any agent has broken so far, with the first text.
type broken struct {
	mu    sync.Mutex
	rules map[string]string
}

// own is the environment of one row.
func (e *env) own() *env {
	own := *e
	own.links = nil
	return &own
}

// keep notes what the agents of a row broke.
func (e *env) keep(findings []rules.Finding) {
	e.broken.mu.Lock()
	defer e.broken.mu.Unlock()
	for _, f := range findings {
		if e.broken.rules[f.Rule] == "" {
			e.broken.rules[f.Rule] = f.String()
		}
	}
}

// link is a connection to a fresh agent, with every frame under control.
type link struct {
	o       Options
	p       *proc.Process
	lines   chan line // closed at the end of the output
	quit    chan struct{}
	checker *rules.Checker
	seq     int
	n       int           // of own ids
	seen    []acp.Message // all that came, in order
	init    json.RawMessage
	outcome string // what requests for permission are answered with; "" selects the first option
}

type line struct {
	text    []byte
	tooLong bool
}

// start starts an agent and says nothing.
func (e *env) start() (*link, error) {
	cmd := e.o.Command
	if cmd.Stderr == nil {
		cmd.Stderr = e.o.Stderr
	}
	p, err := proc.Start(cmd)
	if err != nil {
		return nil, err
	}
	l := &link{o: e.o, p: p, checker: rules.NewWith(e.schemas, e.o.Next, 1, 2), lines: make(chan line, 1024), quit: make(chan struct{})}
	e.links = append(e.links, l)
	go l.read() // it ends with the output, which stop closes, or with quit
	return l, nil
}

func (l *link) read() {
	defer close(l.lines)
	for r := acp.NewLineReader(l.p.Stdout, 0); ; {
		text, err := r.Next()
		if err != nil && !errors.Is(err, acp.ErrTooLong) {
			return
		}
		select {
		case l.lines <- line{slices.Clone(text), err != nil}:
		case <-l.quit:
			return
		}
	}
}

// closeAll ends the agents of a row and says what their wire broke.
func (e *env) closeAll() (findings []rules.Finding) {
	for _, l := range e.links {
		report := l.stop()
		l.checker.Finish(report.Step != proc.StepNone, report.Step == proc.StepStdin)
		findings = append(findings, l.checker.Findings()...)
	}
	e.links = nil
	return findings
}

func (l *link) stop() proc.Report {
	defer func() {
		for range l.lines { // until the reader has ended
		}
	}()
	select {
	case <-l.quit:
	default:
		close(l.quit)
	}
	return l.p.Stop(context.Background(), 2*time.Second)
}

func (l *link) frame(d acp.Direction, text []byte, tooLong bool) {
	l.seq++
	l.checker.Observe(acp.Frame{Seq: l.seq, Dir: d, Line: text, TooLong: tooLong})
}

func (l *link) send(text string) error {
	l.frame(acp.Out, []byte(text), false)
	_, err := io.WriteString(l.p.Stdin, text+"\n")
	return err
}

// errGone means that the agent's output has ended.
var errGone = errors.New("the agent closed its output")

// next is the next message, or an error when none comes in time. What the
// agent asks is answered.
func (l *link) next(ctx context.Context, limit time.Duration) (acp.Message, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return acp.Message{}, ctx.Err()
		case <-timer.C:
			return acp.Message{}, fmt.Errorf("nothing comes within %s", limit)
		case got, ok := <-l.lines:
			if !ok {
				return acp.Message{}, errGone
			}
			l.frame(acp.In, got.text, got.tooLong)
			messages, batch, err := acp.Decode(got.text)
			if err != nil || len(messages) == 0 || got.tooLong {
				continue // a breach that the checker has noted
			}
			m := messages[0]
			if batch {
				m = acp.Message{Kind: acp.Invalid, Params: got.text} // looked at by the batch rows only
			}
			l.seen = append(l.seen, m)
			if m.Kind == acp.Request {
				if err := l.answer(m); err != nil {
					return m, err
				}
			}
			return m, nil
		}
	}
}

// answer is that of a client that offers nothing: permission it gives by the
// first option.
func (l *link) answer(m acp.Message) error {
	var result any
	failure := error(acp.NewError(acp.CodeMethodNotFound, m.Method))
	if m.Method == "session/request_permission" {
		var p struct {
			Options []struct {
				OptionID string `json:"optionId"`
			} `json:"options"`
		}
		outcome := object{"outcome": "cancelled"}
		if json.Unmarshal(m.Params, &p) == nil && len(p.Options) > 0 {
			outcome = object{"outcome": "selected", "optionId": p.Options[0].OptionID}
		}
		if l.outcome != "" {
			outcome = object{"outcome": l.outcome}
		}
		result, failure = object{"outcome": outcome}, nil
	}
	text, err := acp.EncodeAnswer(m.ID, result, failure)
	if err != nil {
		return err
	}
	return l.send(string(text))
}

// id draws the next id.
func (l *link) id() acp.ID {
	l.n++
	return acp.IntID(int64(l.n))
}

func (l *link) request(id acp.ID, method string, params any) error {
	text, err := acp.EncodeCall(id, method, params)
	if err != nil {
		return err
	}
	return l.send(string(text))
}

func (l *link) notify(method string, params any) error { return l.request(acp.ID{}, method, params) }

// response waits for the answer to a request.
func (l *link) response(ctx context.Context, id acp.ID) (acp.Message, error) {
	for {
		m, err := l.next(ctx, l.o.Limit)
		if err != nil {
			return m, fmt.Errorf("no answer to request %s: %w", id, err)
		}
		if m.Kind == acp.Response && m.ID == id {
			return m, nil
		}
	}
}

// call is a request and its answer.
func (l *link) call(ctx context.Context, method string, params any) (acp.Message, error) {
	id := l.id()
	if err := l.request(id, method, params); err != nil {
		return acp.Message{}, err
	}
	return l.response(ctx, id)
}

// result is call whose answer must be a result.
func (l *link) result(ctx context.Context, method string, params any) (json.RawMessage, error) {
	m, err := l.call(ctx, method, params)
	if err == nil && m.Error != nil {
		err = fmt.Errorf("%s: %w", method, m.Error)
	}
	return m.Result, err
}

// quiet waits whether anything more comes, and returns it.
func (l *link) quiet(ctx context.Context) []acp.Message {
	from := len(l.seen)
	for {
		if _, err := l.next(ctx, l.o.Quiet); err != nil {
			return l.seen[from:]
		}
	}
}

// clean fails if the wire broke one of the rules.
func (l *link) clean(names ...string) error {
	for _, f := range l.checker.Findings() {
		if slices.Contains(names, f.Rule) {
			return errors.New(f.String())
		}
	}
	return nil
}
