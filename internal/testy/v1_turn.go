package testy

import (
	"context"
	"encoding/json"
	"fmt"

	"roundtable/internal/acp"
	v1 "roundtable/internal/acp/v1"
)

const stopCancelled = v1.StopReasonCancelled

// turn is one prompt that was accepted.
type turn struct {
	*v1Agent
	s      *session
	blocks int
	ctx    context.Context // ends when the session is cancelled or closed, and with the connection
	ended  bool            // the client was gone when it was asked something
}

// prompt books a turn and starts it.
func (a *v1Agent) prompt(c *acp.Call) {
	p, err := decode[v1.PromptRequest](&a.peer, c)
	var blocks []json.RawMessage
	if err == nil {
		blocks, err = promptBlocks(c.Params)
	}
	if err != nil {
		c.Reply(nil, err)
		return
	}
	a.out.Lock()
	a.mu.Lock()
	s, err := a.find(p.SessionID)
	if err != nil {
		a.mu.Unlock()
		a.out.Unlock()
		c.Reply(nil, err)
		return
	}
	s.active++
	s.prompts++
	sessionCtx := s.ctx
	for _, b := range blocks {
		s.record(b)
	}
	a.mu.Unlock()
	a.out.Unlock()
	a.conn.Go(func(connection context.Context) {
		// Of the session's context, so that a cancel is seen by whatever comes
		// after it on the wire.
		ctx, cancel := context.WithCancel(sessionCtx)
		defer cancel()
		defer context.AfterFunc(connection, cancel)()
		t := &turn{v1Agent: a, s: s, blocks: len(blocks), ctx: ctx}
		text, stop, err := t.run(parseCommand(promptText(blocks)))
		t.finish(c, text, stop, err)
	})
}

// record notes a block of a prompt for a replay.
func (s *session) record(block json.RawMessage) {
	raw, err := acp.Marshal(struct {
		SessionUpdate string          `json:"sessionUpdate"`
		Content       json.RawMessage `json:"content"`
		MessageID     string          `json:"messageId"`
	}{"user_message_chunk", block, fmt.Sprintf("testy-history-user-%d", s.prompts)})
	if err == nil { // the block was valid JSON
		s.history = append(s.history, raw)
	}
}

// finish ends the turn: the last chunk, the response, and what waited for it.
func (t *turn) finish(c *acp.Call, text string, stop v1.StopReason, err error) {
	t.mu.Lock()
	if t.ended || t.s.cancelled || t.s.closed && !t.opts.faults.has("ignore-cancel") {
		stop, err = stopCancelled, nil
	}
	t.s.active--
	var drained []func()
	last := t.s.active == 0
	closed := t.s.closed
	if last {
		drained, t.s.drained = t.s.drained, nil
		if !closed && t.s.cancelled {
			t.s.renew()
		}
	}
	t.mu.Unlock()
	switch {
	case err != nil:
		c.Reply(nil, err)
	case stop == stopCancelled:
		c.Reply(v1.PromptResponse{StopReason: stop}, nil)
	default:
		t.send(t.s, chunk("agent_message_chunk", textBlock(text), t.messageID("testy-message-end-turn")))
		c.Reply(v1.PromptResponse{StopReason: stop}, nil)
	}
	if last && closed {
		t.remove(t.s)
	}
	for _, f := range drained {
		f()
	}
}

func (t *turn) run(c command) (string, v1.StopReason, error) {
	switch c.name {
	case "help":
		return v1Help, v1.StopReasonEndTurn, nil
	case "echo":
		return c.message, v1.StopReasonEndTurn, nil
	case "run_scenario":
		return t.scenario(c.scenario)
	case "call_tool", "list_tools":
		return t.mcp(c), v1.StopReasonEndTurn, nil
	default:
		return greeting, v1.StopReasonEndTurn, nil
	}
}

const (
	greeting = "Hello, world!"
	v1Help   = `Testy commands: help, greet, echo <message>, session_updates, content, tool_calls, callbacks, elicitations, ` +
		`cancel_status, wait_for_cancel, full. JSON command form: {"command":"run_scenario","scenario":"full"}`
)

// cancelled reports whether the turn has been cancelled.
func (t *turn) cancelled() bool {
	if t.ctx.Err() == nil {
		return t.ended
	}
	t.ended = t.ended || t.conn.Ended()
	return true
}

// readCancel reads whether the session was cancelled, which consumes it.
func (t *turn) readCancel() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	cancelled := t.s.cancelled || t.s.pendingCancel
	t.s.pendingCancel = false
	if t.s.active <= 1 && t.s.cancelled && !t.s.closed {
		t.s.renew()
	}
	if cancelled {
		return "cancel_status: cancelled"
	}
	return "cancel_status: not_cancelled"
}
