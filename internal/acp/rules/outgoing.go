package rules

import (
	"cmp"
	"encoding/json"
	"iter"
	"maps"
	"slices"

	"roundtable/internal/acp"
)

// offer is what the client said it can do.
type offer struct{ read, write, terminal, form, url bool }

// sorted goes through a map in the order of its keys.
func sorted[K cmp.Ordered, V any](m map[K]V) iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for _, k := range slices.Sorted(maps.Keys(m)) {
			if !yield(k, m[k]) {
				return
			}
		}
	}
}

// out notes what the client sent.
func (c *Checker) out(f acp.Frame) {
	messages, _, err := acp.Decode(f.Line)
	if err != nil {
		return // a client may send anything on purpose
	}
	for _, m := range messages {
		switch m.Kind {
		case acp.Request:
			c.request(f, m)
		case acp.Notification:
			var p struct {
				SessionID string `json:"sessionId"`
			}
			if m.Method == "session/cancel" && json.Unmarshal(m.Params, &p) == nil {
				c.cancelled(p.SessionID, f.Seq)
			}
		case acp.Response:
			c.answer(f, m)
		}
	}
}

func (c *Checker) request(f acp.Frame, m acp.Message) {
	var p struct {
		SessionID          string          `json:"sessionId"`
		ReplayFrom         json.RawMessage `json:"replayFrom"`
		ClientCapabilities json.RawMessage `json:"clientCapabilities"`
		Capabilities       json.RawMessage `json:"capabilities"`
	}
	if m.Params != nil && json.Unmarshal(m.Params, &p) != nil {
		return
	}
	r := &request{method: m.Method, session: p.SessionID, line: f.Seq}
	delete(c.answered, m.ID)
	c.ours[m.ID] = r
	switch m.Method {
	case "initialize":
		c.noteOffer(p.ClientCapabilities)
		c.noteOffer(p.Capabilities)
	case "session/load", "session/resume":
		r.replays = m.Method == "session/load" || len(p.ReplayFrom) > 0 && string(p.ReplayFrom) != "null"
		s := c.know(p.SessionID)
		s.setup, s.partial = r, m.Method == "session/resume" || s.partial
	case "session/prompt":
		if s := c.sessions[p.SessionID]; s != nil {
			s.turns = append(s.turns, &turn{line: f.Seq, id: m.ID})
			s.prompted = true
		}
	case "session/close", "session/delete":
		c.cancelled(p.SessionID, f.Seq)
	}
}

func (c *Checker) noteOffer(raw json.RawMessage) {
	var caps struct {
		Fs struct {
			ReadTextFile  bool `json:"readTextFile"`
			WriteTextFile bool `json:"writeTextFile"`
		} `json:"fs"`
		Terminal    bool `json:"terminal"`
		Elicitation struct {
			Form *struct{} `json:"form"`
			URL  *struct{} `json:"url"`
		} `json:"elicitation"`
	}
	if raw == nil || json.Unmarshal(raw, &caps) != nil {
		return
	}
	o := &c.offered
	o.read = o.read || caps.Fs.ReadTextFile
	o.write = o.write || caps.Fs.WriteTextFile
	o.terminal = o.terminal || caps.Terminal
	o.form = o.form || caps.Elicitation.Form != nil
	o.url = o.url || caps.Elicitation.URL != nil
}

// cancelled marks the turns of a session that run.
func (c *Checker) cancelled(id string, line int) {
	s := c.sessions[id]
	if s == nil {
		return
	}
	for _, t := range s.turns {
		if t.cancelled == 0 {
			t.cancelled = line
		}
	}
}

// answer notes what the client answered.
func (c *Checker) answer(f acp.Frame, m acp.Message) {
	method := c.theirs[m.ID]
	delete(c.theirs, m.ID)
	if method != "terminal/create" || m.Error != nil {
		return
	}
	var r struct {
		TerminalID string `json:"terminalId"`
	}
	if json.Unmarshal(m.Result, &r) == nil && len(c.terms) < 10_000 {
		c.terms[r.TerminalID] = f.Seq
	}
}
