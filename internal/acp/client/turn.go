package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"roundtable/internal/acp"
	v1 "roundtable/internal/acp/v1"
)

// A Result is how a turn ended.
type Result struct {
	StopReason string // in the words of the agent; "cancelled" for a cancelled turn that ended with an error
	Cancelled  bool   // a cancel was sent before the end
	Unknown    bool   // the protocol has no such stop reason
	MessageID  string // of the prompt, in version 2
}

// turn is a prompt that has not ended. Its fields belong to the session's mu.
type turn struct {
	cancelled bool
	accepted  bool
	running   bool
	idle      *string // the stop reason of an idle update that came before the response
	message   string
	over      bool
	result    Result
	err       error
	done      chan struct{}
	cancels   chan struct{} // closed when a cancel is sent
}

// Text is a text block of a prompt.
func Text(s string) any {
	return v1.ContentBlock{Kind: "text", Text: &v1.TextContent{Text: s}}
}

// Link is a block of a prompt that refers to a resource.
func Link(name, uri string) any {
	return v1.ContentBlock{Kind: "resource_link", ResourceLink: &v1.ResourceLink{Name: name, URI: uri}}
}

// Prompt sends a prompt of blocks and waits for the end of its turn. When ctx
// ends or the TurnLimit passes, the turn is cancelled; an agent that does not
// end it within CancelGrace is hung, and the error says so. An agent that
// answers with an error gives an *acp.Error.
func (s *Session) Prompt(ctx context.Context, blocks ...any) (Result, error) {
	prompt := acp.List[any](blocks)
	if err := s.c.accepts(prompt); err != nil {
		return Result{}, err
	}
	t := &turn{done: make(chan struct{}), cancels: make(chan struct{})}
	s.mu.Lock()
	s.turns = append(s.turns, t)
	p, err := s.c.conn.Send("session/prompt", object{"sessionId": s.ID, "prompt": prompt}, func(raw json.RawMessage, err error) {
		s.answered(t, raw, err)
	})
	s.mu.Unlock()
	if err != nil {
		s.finish(t, Result{}, err)
		return Result{}, s.c.explain(err)
	}
	if err := s.await(ctx, t); err != nil {
		s.finish(t, Result{}, err)
		p.Forget()
	}
	return t.result, s.c.explain(t.err)
}

// await waits for the end of a turn; the error is that of one that hangs.
func (s *Session) await(ctx context.Context, t *turn) error {
	var limit <-chan time.Time
	if s.c.cfg.TurnLimit > 0 {
		timer := time.NewTimer(s.c.cfg.TurnLimit)
		defer timer.Stop()
		limit = timer.C
	}
	why := "the cancel"
	select {
	case <-t.done:
		return nil
	case <-t.cancels:
	case <-ctx.Done():
		why = "the end of the caller's patience"
	case <-limit:
		why = fmt.Sprintf("the limit of %s for a turn", s.c.cfg.TurnLimit)
	case <-s.c.gone: // in version 2 no request is open that would fail
		select {
		case <-t.done:
			return nil
		default:
			return acp.ErrClosed
		}
	}
	s.Cancel()
	timer := time.NewTimer(s.c.cfg.CancelGrace)
	defer timer.Stop()
	select {
	case <-t.done:
		return nil
	case <-s.c.gone:
		return acp.ErrClosed
	case <-timer.C:
		s.c.judge.Lock()
		s.c.checker.Overdue(s.ID)
		s.c.judge.Unlock()
		return &EndError{Reason: Hung, Err: fmt.Errorf("the turn did not end within %s after %s", s.c.cfg.CancelGrace, why)}
	}
}

// Cancel cancels the turns that run, and everything that the agent has asked
// for them. Without one nothing is sent, and it returns false.
func (s *Session) Cancel() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	any := false
	for _, t := range s.turns {
		if !t.cancelled {
			t.cancelled, any = true, true
			close(t.cancels)
		}
	}
	if !any {
		return false
	}
	if err := s.c.conn.Notify("session/cancel", object{"sessionId": s.ID}); err != nil {
		s.c.cfg.Log.Info("acp: cancel not sent", "error", err)
	}
	s.endAsks()
	s.asks, s.endAsks = context.WithCancel(context.Background())
	return true
}

// answered handles the response to a prompt.
func (s *Session) answered(t *turn, raw json.RawMessage, err error) {
	s.mu.Lock()
	var r struct {
		StopReason string `json:"stopReason"`
		MessageID  string `json:"messageId"`
	}
	switch refusal, isAnswer := errors.AsType[*acp.Error](err); {
	case isAnswer && (t.cancelled || refusal.Code == acp.CodeCancelled):
		r.StopReason, err = "cancelled", nil
	case err == nil && json.Unmarshal(raw, &r) != nil:
		err = &EndError{Reason: BrokenProtocol, Err: fmt.Errorf("session/prompt was answered with %s", raw)}
	case err == nil && s.c.version >= 2:
		t.accepted, t.message = true, r.MessageID
		if t.idle == nil {
			s.mu.Unlock()
			return // the idle update ends it
		}
		r.StopReason = *t.idle
	}
	s.mu.Unlock()
	s.finish(t, Result{StopReason: r.StopReason, MessageID: t.message}, err)
}

// stateChanged follows the turns of version 2. A state that is unknown is
// busy, never idle.
func (s *Session) stateChanged(raw json.RawMessage) {
	var u struct {
		State      string  `json:"state"`
		StopReason *string `json:"stopReason"`
	}
	if json.Unmarshal(raw, &u) != nil {
		return
	}
	s.mu.Lock()
	if s.replaying || len(s.turns) == 0 {
		s.mu.Unlock()
		return
	}
	t := s.turns[0]
	switch {
	case u.State != "idle":
		t.running = true
	case !t.running && u.StopReason == nil: // a snapshot
	default:
		stop := ""
		if u.StopReason != nil {
			stop = *u.StopReason
		}
		if !t.accepted {
			t.idle = &stop
			break
		}
		s.mu.Unlock()
		s.finish(t, Result{StopReason: stop, MessageID: t.message}, nil)
		return
	}
	s.mu.Unlock()
}

// finish ends a turn once.
func (s *Session) finish(t *turn, r Result, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.over {
		return
	}
	t.over = true
	s.turns = slices.DeleteFunc(s.turns, func(o *turn) bool { return o == t })
	r.Cancelled = t.cancelled
	known := []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
	if s.c.cfg.Next && s.c.version >= 2 {
		known = append(known, "error")
	}
	r.Unknown = err == nil && !slices.Contains(known, r.StopReason)
	t.result, t.err = r, err
	close(t.done)
}

// accepts checks that the agent takes the content of a prompt.
func (c *Client) accepts(prompt acp.List[any]) error {
	raw, err := acp.Marshal(prompt)
	if err != nil {
		return err
	}
	var blocks []struct{ Type string }
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return fmt.Errorf("a prompt is made of content blocks: %w", err)
	}
	at := []string{"promptCapabilities"}
	if c.version >= 2 {
		at = []string{"session", "prompt"}
	}
	for _, b := range blocks {
		name := map[string]string{"image": "image", "audio": "audio", "resource": "embeddedContext"}[b.Type]
		if name != "" && !c.agent.Can(append(slices.Clone(at), name)...) {
			return fmt.Errorf("the agent does not take %s in a prompt", b.Type)
		}
	}
	return nil
}
