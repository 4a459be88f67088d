package client

import (
	"bytes"
	"encoding/json"
	"slices"

	v1 "roundtable/internal/acp/v1"
	v2 "roundtable/internal/acp/v2"
)

// The bounds of what is kept for sessions that are not known yet.
const (
	maxEarly     = 1000
	maxEarlySize = 8 << 20 // bytes
)

// An Event is one update of a session.
type Event struct {
	Session string
	Kind    string          // the tag of the update
	Raw     json.RawMessage // the update as it came
	Replay  bool            // history, not new
	Unknown bool            // of a kind that this client does not know
	Version int             // of the protocol
}

// V1 is the update by its type in version 1.
func (e Event) V1() (u v1.SessionUpdate, err error) { return u, json.Unmarshal(e.Raw, &u) }

// V2 is the update by its type in version 2.
func (e Event) V2() (u v2.SessionUpdate, err error) { return u, json.Unmarshal(e.Raw, &u) }

// Text is the text of a message chunk, or "".
func (e Event) Text() string {
	var u struct {
		Content struct {
			Type string `json:"type"`
			Text string `json:"text"`
		} `json:"content"`
	}
	if json.Unmarshal(e.Raw, &u) != nil || u.Content.Type != "text" {
		return ""
	}
	return u.Content.Text
}

func knownKind(version int, kind string) bool {
	kinds := []string{
		"user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call_update",
		"available_commands_update", "config_option_update", "session_info_update", "usage_update",
		"notice", "compaction_update", "compaction_summary_chunk",
	}
	if version == 1 {
		kinds = append(kinds, "tool_call", "plan", "current_mode_update")
	} else {
		kinds = append(kinds, "user_message", "agent_message", "agent_thought", "state_update", "tool_call_content_chunk",
			"terminal_update", "terminal_output_chunk", "plan_update")
	}
	return slices.Contains(kinds, kind)
}

// update handles a session/update on the reading goroutine.
func (c *Client) update(params json.RawMessage) {
	var p struct {
		SessionID string          `json:"sessionId"`
		Update    json.RawMessage `json:"update"`
	}
	var tag struct {
		Kind string `json:"sessionUpdate"`
	}
	if json.Unmarshal(params, &p) != nil || json.Unmarshal(p.Update, &tag) != nil {
		return // a finding already
	}
	e := Event{
		Session: p.SessionID, Kind: tag.Kind, Raw: bytes.Clone(p.Update), Version: c.version,
		Unknown: !knownKind(c.version, tag.Kind),
	}
	c.mu.Lock()
	s := c.sessions[e.Session]
	if s == nil {
		if len(c.early) < maxEarly && c.earlySize+len(e.Raw) <= maxEarlySize {
			c.early = append(c.early, e)
			c.earlySize += len(e.Raw)
		}
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	s.deliver(e)
}

// introduce makes a session known and delivers what came for it before.
func (c *Client) introduce(s *Session) {
	c.mu.Lock()
	c.sessions[s.ID] = s
	var mine, rest []Event
	for _, e := range c.early {
		if e.Session == s.ID {
			mine = append(mine, e)
			c.earlySize -= len(e.Raw)
		} else {
			rest = append(rest, e)
		}
	}
	c.early = rest
	c.mu.Unlock()
	for _, e := range mine {
		s.deliver(e)
	}
}

// deliver hands an update over, and follows the turns of version 2.
func (s *Session) deliver(e Event) {
	s.mu.Lock()
	e.Replay = s.replaying
	s.mu.Unlock()
	s.c.cfg.Event(e)
	if e.Kind == "state_update" && e.Version == 2 {
		s.stateChanged(e.Raw)
	}
}
