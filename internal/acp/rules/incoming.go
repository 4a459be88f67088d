package rules

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"roundtable/internal/acp"
	"roundtable/internal/acp/schema"
)

// response judges an answer of the agent.
func (c *Checker) response(f acp.Frame, m acp.Message) {
	r := c.ours[m.ID]
	if r == nil {
		if !c.sentNonsense(m) {
			c.strangeID(f, m.ID)
		}
		return
	}
	delete(c.ours, m.ID)
	if len(c.answered) < 100_000 {
		c.answered[m.ID] = true
	}
	s := c.sessions[r.session]
	switch r.method {
	case "initialize":
		c.initialized(f, m)
	case "session/new":
		var p struct {
			SessionID string `json:"sessionId"`
		}
		if m.Error == nil && json.Unmarshal(m.Result, &p) == nil {
			c.introduce(f, p.SessionID)
		}
	case "session/load", "session/resume":
		if s != nil {
			s.setup, s.ready, s.prompted = nil, f.Seq, false
		}
	case "session/prompt":
		if s != nil {
			c.prompted(f, m, s)
		}
	}
	if m.Error == nil {
		if method, ok := c.set().Method("agent", r.method); ok && method.Result != nil {
			c.validate(f, method.Result, m.Result)
			if c.version != 2 || r.method != "session/prompt" { // messageId is known to newer drafts only
				var body map[string]json.RawMessage
				if json.Unmarshal(m.Result, &body) == nil {
					c.bodyFields(f, method.Result, body)
				}
			}
		}
	}
}

// sentNonsense reports whether it is the answer to something that had no id.
func (c *Checker) sentNonsense(m acp.Message) bool { return m.ID.IsNull() && m.Error != nil }

func (c *Checker) strangeID(f acp.Frame, id acp.ID) {
	text := fmt.Sprintf("a response with the id %s, which nobody waits for", id)
	if c.answered[id] {
		text = fmt.Sprintf("a second response with the id %s", id)
	}
	for open := range c.ours {
		if open.Text() == id.Text() {
			text = fmt.Sprintf("the id %s comes back as %s", open, id)
		}
	}
	c.find("response.known_id", Must, f, text)
}

func (c *Checker) set() *schema.Set {
	if c.version == 2 {
		return c.schemas[2]
	}
	return c.schemas[1]
}

func (c *Checker) initialized(f acp.Frame, m acp.Message) {
	var r struct {
		ProtocolVersion *int            `json:"protocolVersion"`
		AgentInfo       json.RawMessage `json:"agentInfo"`
	}
	if m.Error != nil || json.Unmarshal(m.Result, &r) != nil || r.ProtocolVersion == nil {
		return
	}
	c.version = *r.ProtocolVersion
	if !slices.Contains(c.versions, c.version) {
		c.find("version.supported", Must, f, fmt.Sprintf("version %d was answered, supported are %v", c.version, c.versions))
	}
	if c.version == 1 && (len(r.AgentInfo) == 0 || string(r.AgentInfo) == "null") {
		c.find("info.present", Should, f, "no agentInfo")
	}
}

// prompted judges the answer to a prompt.
func (c *Checker) prompted(f acp.Frame, m acp.Message, s *session) {
	i := slices.IndexFunc(s.turns, func(t *turn) bool { return t.id == m.ID })
	if i < 0 {
		return
	}
	t := s.turns[i]
	var r struct {
		StopReason string `json:"stopReason"`
		MessageID  string `json:"messageId"`
	}
	if m.Error == nil && json.Unmarshal(m.Result, &r) != nil {
		return
	}
	if c.version == 2 && m.Error == nil {
		t.accepted, t.message = true, r.MessageID
		return // the idle update ends it
	}
	s.turns = slices.Delete(s.turns, i, i+1)
	if len(s.turns) == 0 && c.version == 1 {
		s.ended = f.Seq
	}
	switch {
	case t.cancelled > 0 && m.Error != nil && c.version == 1:
		c.add(Finding{"cancel.result", Must, f.Dir, []int{t.cancelled, f.Seq}, "a cancelled turn ends with an error: " + m.Error.Error()})
	case t.cancelled > 0 && m.Error == nil && r.StopReason != "cancelled":
		c.add(Finding{"cancel.result", Must, f.Dir, []int{t.cancelled, f.Seq}, fmt.Sprintf("a cancelled turn ends with %q", r.StopReason)})
	}
	known := []string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}
	if m.Error == nil && !slices.Contains(known, r.StopReason) {
		c.find("stop.reason", Must, f, fmt.Sprintf("stop reason %q", r.StopReason))
	}
}

// call judges a request or a notification of the agent.
func (c *Checker) call(f acp.Frame, m acp.Message) {
	if m.Kind == acp.Request && len(c.theirs) < 10_000 {
		c.theirs[m.ID] = m.Method
	}
	var p map[string]json.RawMessage
	if m.Params != nil && json.Unmarshal(m.Params, &p) != nil {
		p = nil // a matter of the schema
	}
	session, hasSession := text(p["sessionId"])
	mode, _ := text(p["mode"])
	if !c.offers(m.Method, mode) {
		c.find("capability.client", Must, f, fmt.Sprintf("%s was not offered", strings.TrimSpace(m.Method+" "+mode)))
	} else if method, ok := c.set().Method("client", m.Method); ok {
		c.validate(f, method.Params, m.Params)
		c.bodyFields(f, method.Params, p)
	}
	switch {
	case m.Method == "session/update":
		c.update(f, session, p["update"])
		return
	case m.Method == "terminal/release":
		terminal, _ := text(p["terminalId"])
		delete(c.terms, terminal)
	}
	if hasSession && c.sessions[session] == nil {
		c.find("session.known", Must, f, fmt.Sprintf("%s for the session %q, which is not known", m.Method, session))
	}
}

// text is a JSON string.
func text(raw json.RawMessage) (s string, ok bool) {
	return s, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
}

// offers reports whether the client said that it can do a method.
func (c *Checker) offers(method, mode string) bool {
	o := c.offered
	switch {
	case c.version == 2 && (strings.HasPrefix(method, "fs/") || strings.HasPrefix(method, "terminal/")):
		return false
	case method == "fs/read_text_file":
		return o.read
	case method == "fs/write_text_file":
		return o.write
	case strings.HasPrefix(method, "terminal/"):
		return o.terminal
	case method == "elicitation/create":
		return mode == "form" && o.form || mode == "url" && o.url || mode != "form" && mode != "url" && (o.form || o.url)
	}
	return true
}
