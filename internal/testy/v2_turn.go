package testy

import (
	"context"
	"encoding/json"
	"fmt"

	"roundtable/internal/acp"
	v2 "roundtable/internal/acp/v2"
)

const v2Help = `Testy v2 commands: help, greet, echo <message>, wait_for_cancel, cancel_status. ` +
	`JSON command form: {"command":"run_scenario","scenario":"wait_for_cancel"}`

func (a *v2Agent) prompt(c *acp.Call) {
	p, err := decode[v2.PromptRequest](&a.peer, c)
	var blocks []json.RawMessage
	if err == nil || a.next() {
		var broken error
		blocks, broken = promptBlocks(c.Params)
		if broken == nil && blocks != nil && len(blocks) == 0 && a.next() {
			err = acp.InvalidParams("prompt must contain at least one content block")
		}
	}
	if err != nil {
		c.Reply(nil, err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	id := string(p.SessionID)
	s := a.sessions[id]
	switch {
	case s == nil:
		c.Reply(nil, a.missing("unknown", id))
	case !s.active:
		c.Reply(nil, a.missing("closed", id))
	case s.busy && a.next():
		s.held = append(s.held, held{c, blocks})
	case s.busy:
		c.Reply(nil, acp.InvalidParams("session `%s` already has foreground work", id))
	default:
		a.accept(s, c, blocks)
	}
}

// accept answers a prompt and starts its work. a.mu is held.
func (a *v2Agent) accept(s *v2Session, c *acp.Call, blocks []json.RawMessage) {
	s.busy, s.cancelled = true, false
	s.ctx, s.stop = context.WithCancel(context.Background())
	id := a.messageID("user")
	c.Reply(struct {
		MessageID v2.MessageID `json:"messageId"`
	}{id}, nil)
	sessionCtx := s.ctx
	a.conn.Go(func(connection context.Context) {
		ctx, cancel := context.WithCancel(sessionCtx)
		defer cancel()
		defer context.AfterFunc(connection, cancel)()
		a.work(ctx, s, id, blocks)
	})
}

// messageID draws the next message id. a.mu is held.
func (a *v2Agent) messageID(who string) v2.MessageID {
	n := a.nMessage
	a.nMessage++
	return v2.MessageID(fmt.Sprintf("testy-v2-%s-message-%d", who, n))
}

// work is the foreground work of one prompt.
func (a *v2Agent) work(ctx context.Context, s *v2Session, id v2.MessageID, blocks []json.RawMessage) {
	user := raw(struct {
		SessionUpdate string            `json:"sessionUpdate"`
		MessageID     v2.MessageID      `json:"messageId"`
		Content       []json.RawMessage `json:"content"`
	}{"user_message", id, append([]json.RawMessage{}, blocks...)})
	a.mu.Lock()
	s.history = append(s.history, user)
	a.mu.Unlock()
	a.notify(s, user)
	a.state(s, v2.StateUpdate{Kind: "running", Running: &v2.RunningStateUpdate{}})

	reply, stop := a.run(ctx, parseCommand(promptText(blocks)))

	a.mu.Lock()
	defer a.mu.Unlock()
	if ctx.Err() != nil || s.cancelled || !s.active && !a.opts.faults.has("ignore-cancel") {
		stop = v2.StopReasonCancelled
	}
	if stop != v2.StopReasonCancelled {
		message := a.messageID("agent")
		block := text{"text", reply}
		s.history = append(s.history, raw(struct {
			SessionUpdate string       `json:"sessionUpdate"`
			MessageID     v2.MessageID `json:"messageId"`
			Content       []text       `json:"content"`
		}{"agent_message", message, []text{block}}))
		a.notify(s, raw(struct {
			SessionUpdate string       `json:"sessionUpdate"`
			MessageID     v2.MessageID `json:"messageId"`
			Content       text         `json:"content"`
		}{"agent_message_chunk", message, block}))
	}
	a.state(s, v2.StateUpdate{Kind: "idle", Idle: &v2.IdleStateUpdate{StopReason: &stop}})
	a.release(s)
}

// release ends the work of a session: who waited for that is answered, and the
// next prompt starts. a.mu is held since before the idle update was sent, so
// that a prompt that follows it finds the session free.
func (a *v2Agent) release(s *v2Session) {
	s.busy = false
	s.stop()
	waiting := s.closing
	s.closing = nil
	for _, f := range waiting {
		f()
	}
	if a.conn.Ended() {
		for _, h := range s.held {
			h.call.Reply(nil, acp.NewError(acp.CodeCancelled, nil))
		}
		s.held = nil
	}
	if len(s.held) > 0 && s.active {
		h := s.held[0]
		s.held = s.held[1:]
		a.accept(s, h.call, h.blocks)
	}
}

// run is what the command says and how it stops.
func (a *v2Agent) run(ctx context.Context, c command) (string, v2.StopReason) {
	switch {
	case c.name == "help":
		return v2Help, v2.StopReasonEndTurn
	case c.name == "echo":
		return c.message, v2.StopReasonEndTurn
	case c.scenario == "wait_for_cancel":
		<-ctx.Done()
		return "", v2.StopReasonCancelled
	case c.scenario == "cancel_status":
		return "cancel_status: not_cancelled", v2.StopReasonEndTurn
	case c.name == "run_scenario":
		return fmt.Sprintf("Testy v2 scenario `%s` is not implemented yet", c.scenario), v2.StopReasonRefusal
	case c.name == "call_tool" || c.name == "list_tools":
		return "Testy v2 does not advertise MCP support yet", v2.StopReasonRefusal
	}
	return greeting, v2.StopReasonEndTurn
}
