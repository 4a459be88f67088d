package rules

import (
	"encoding/json"
	"fmt"
	"slices"

	"roundtable/internal/acp"
)

// session is what is known of a session.
type session struct {
	setup    *request // the load or resume that runs
	partial  bool     // resumed: tool calls of before are not known
	prompted bool     // a prompt was sent since it was set up
	turns    []*turn
	tools    map[string]bool
	ended    int // the frame that ended the last turn; 0 if there was none
	ready    int // the frame of the response to load or resume
}

// turn is a prompt that has not ended.
type turn struct {
	id        acp.ID
	line      int
	cancelled int    // the frame of the cancel; 0 if there was none
	message   string // v2: the id of the user message
	accepted  bool   // v2: the response is there
	running   bool   // v2
}

// know makes a session known.
func (c *Checker) know(id string) *session {
	s := c.sessions[id]
	if s == nil {
		s = &session{tools: map[string]bool{}}
		if len(c.sessions) < 10_000 {
			c.sessions[id] = s
		}
	}
	return s
}

type update struct{ kind, tool, status, message, state, stop string }

// read takes what matters; what is malformed is a matter of the schema.
func (u *update) read(raw json.RawMessage) bool {
	var body map[string]json.RawMessage
	if json.Unmarshal(raw, &body) != nil {
		return false
	}
	u.kind, _ = text(body["sessionUpdate"])
	u.tool, _ = text(body["toolCallId"])
	u.status, _ = text(body["status"])
	u.message, _ = text(body["messageId"])
	u.state, _ = text(body["state"])
	u.stop, _ = text(body["stopReason"])
	return true
}

// conversation reports whether an update belongs to a turn, and not to the
// session as a whole.
func (u *update) conversation() bool {
	switch u.kind {
	case "user_message_chunk", "user_message", "agent_message_chunk", "agent_message", "agent_thought_chunk", "agent_thought",
		"tool_call", "tool_call_update", "tool_call_content_chunk", "plan", "plan_update":
		return true
	}
	return false
}

// update judges a session/update.
func (c *Checker) update(f acp.Frame, id string, body json.RawMessage) {
	var u update
	if !u.read(body) {
		return
	}
	s := c.sessions[id]
	if s == nil {
		if c.waitsFor("session/new") && c.nEarly < 1000 {
			c.early[id] = append(c.early[id], f.Seq)
			c.nEarly++
			return
		}
		c.find("session.known", Must, f, fmt.Sprintf("update for the session %q, which is not known", id))
		return
	}
	c.toolCall(f, s, u)
	switch {
	case s.setup != nil:
		if u.conversation() && !s.setup.replays && s.setup.content == 0 {
			s.setup.content = f.Seq
			c.add(Finding{"load.replay", Must, f.Dir, []int{s.setup.line, f.Seq}, s.setup.method + " replays history that was not asked for"})
		}
	case len(s.turns) == 0 && u.conversation():
		c.stray(f, s, u)
	}
	if c.version == 2 {
		c.lifecycle(f, s, u)
	}
}

func (c *Checker) waitsFor(method string) bool {
	for _, r := range c.ours {
		if r.method == method {
			return true
		}
	}
	return false
}

// stray is an update of a conversation outside of any turn.
func (c *Checker) stray(f acp.Frame, s *session, u update) {
	switch {
	case s.ready > 0 && !s.prompted:
		c.add(Finding{"load.replay", Must, f.Dir, []int{s.ready, f.Seq}, "an update of the conversation after the response that ends the replay"})
	case s.ended > 0:
		level := Must
		if c.version == 2 {
			level = Should
		}
		c.add(Finding{"turn.order", level, f.Dir, []int{s.ended, f.Seq}, fmt.Sprintf("%s after the end of the turn", u.kind)})
	}
}

// toolCall judges the tool calls of v1.
func (c *Checker) toolCall(f acp.Frame, s *session, u update) {
	if c.version != 1 || u.kind != "tool_call" && u.kind != "tool_call_update" {
		return
	}
	if u.kind == "tool_call_update" && !s.tools[u.tool] && !s.partial {
		c.find("toolcall.announced", Must, f, fmt.Sprintf("tool call %q was never announced", u.tool))
	}
	if len(s.tools) < 100_000 {
		s.tools[u.tool] = true
	}
	if u.status != "" && !slices.Contains([]string{"pending", "in_progress", "completed", "failed"}, u.status) {
		c.find("toolcall.status", Must, f, fmt.Sprintf("status %q", u.status))
	}
}

// lifecycle follows the turns of v2.
func (c *Checker) lifecycle(f acp.Frame, s *session, u update) {
	if len(s.turns) == 0 {
		return
	}
	t := s.turns[0]
	switch {
	case u.kind == "user_message" && s.setup == nil && t.accepted && t.message != "" && u.message != t.message:
		c.add(Finding{"message.id", Must, f.Dir, []int{t.line, f.Seq}, fmt.Sprintf("the echo has the id %q, the response %q", u.message, t.message)})
	case u.kind == "state_update" && u.state == "running":
		t.running = true
	case u.kind == "state_update" && u.state == "idle" && (t.running || u.stop != ""):
		s.turns = s.turns[1:]
		s.ended = f.Seq
		if t.cancelled > 0 && u.stop != "cancelled" {
			c.add(Finding{"cancel.result", Must, f.Dir, []int{t.cancelled, f.Seq}, fmt.Sprintf("a cancelled turn ends with %q", u.stop)})
		}
	}
}

// introduce makes a session known by a response.
func (c *Checker) introduce(f acp.Frame, id string) {
	c.know(id)
	for _, line := range c.early[id] {
		if c.version == 1 {
			c.add(Finding{"setup.order", Should, f.Dir, []int{line, f.Seq}, "an update before the response that introduces its session"})
		}
	}
	c.nEarly -= len(c.early[id])
	delete(c.early, id)
	if !c.waitsFor("session/new") {
		for id := range sorted(c.early) {
			c.unknown(id)
		}
	}
}

// unknown reports updates for a session that never was introduced.
func (c *Checker) unknown(id string) {
	for _, line := range c.early[id] {
		c.add(Finding{"session.known", Must, acp.In, []int{line}, fmt.Sprintf("update for the session %q, which is not known", id)})
	}
	c.nEarly -= len(c.early[id])
	delete(c.early, id)
}
