package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"sync"

	"roundtable/internal/acp"
)

// A Session is one conversation with the agent.
type Session struct {
	ID   string
	Info json.RawMessage // the result that introduced it

	c         *Client
	mu        sync.Mutex
	replaying bool
	turns     []*turn
	asks      context.Context // ends with the next cancel; what the agent asks runs under it
	endAsks   context.CancelFunc
}

func (c *Client) newSession(id string) *Session {
	s := &Session{ID: id, c: c}
	s.asks, s.endAsks = context.WithCancel(context.Background())
	return s
}

// NewSession starts a session in a directory, which is absolute. Servers are
// MCP servers in the words of the version that was agreed on.
func (c *Client) NewSession(ctx context.Context, cwd string, servers ...any) (*Session, error) {
	if !filepath.IsAbs(cwd) {
		return nil, fmt.Errorf("the directory %q of a session is not absolute", cwd)
	}
	var s *Session
	introduced := func(raw json.RawMessage, err error) {
		var r struct {
			SessionID string `json:"sessionId"`
		}
		if err != nil || json.Unmarshal(raw, &r) != nil || r.SessionID == "" {
			return
		}
		s = c.newSession(r.SessionID)
		s.Info = raw
		c.introduce(s)
	}
	raw, err := c.call(ctx, c.cfg.CallLimit, "session/new", object{"cwd": cwd, "mcpServers": acp.List[any](servers)}, introduced)
	if err != nil {
		return nil, err
	}
	if s == nil {
		return nil, &EndError{Reason: BrokenProtocol, Err: fmt.Errorf("session/new was answered with %s", raw)}
	}
	return s, nil
}

// Load continues a session; its history is delivered as replay.
func (c *Client) Load(ctx context.Context, id, cwd string, servers ...any) (*Session, error) {
	if c.version == 1 {
		return c.reopen(ctx, "session/load", id, cwd, servers, nil)
	}
	return c.reopen(ctx, "session/resume", id, cwd, servers, object{"type": "start"})
}

// Resume continues a session without its history.
func (c *Client) Resume(ctx context.Context, id, cwd string, servers ...any) (*Session, error) {
	return c.reopen(ctx, "session/resume", id, cwd, servers, nil)
}

func (c *Client) reopen(ctx context.Context, method, id, cwd string, servers []any, from object) (*Session, error) {
	params := object{"sessionId": id, "cwd": cwd, "mcpServers": acp.List[any](servers)}
	if from != nil {
		params["replayFrom"] = from
	}
	c.mu.Lock()
	s := c.sessions[id]
	c.mu.Unlock()
	if s == nil {
		s = c.newSession(id)
	}
	replay := func(on bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.replaying = on
	}
	replay(true)
	c.introduce(s) // its updates come before the response
	raw, err := c.call(ctx, c.cfg.CallLimit, method, params, func(json.RawMessage, error) { replay(false) })
	if err != nil {
		return nil, err
	}
	s.Info = raw
	return s, nil
}

// Listed is a session that the agent knows.
type Listed struct {
	ID                    string   `json:"sessionId"`
	Cwd                   string   `json:"cwd"`
	Title                 string   `json:"title"`
	AdditionalDirectories []string `json:"additionalDirectories"`
}

// List asks for the sessions of a directory, or for all if it is "".
func (c *Client) List(ctx context.Context, cwd string) ([]Listed, error) {
	params := object{}
	if cwd != "" {
		params["cwd"] = cwd
	}
	var all []Listed
	for range 1000 {
		raw, err := c.Call(ctx, "session/list", params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Sessions   []json.RawMessage `json:"sessions"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, &EndError{Reason: BrokenProtocol, Err: err}
		}
		for _, item := range page.Sessions {
			if l, ok := listed(item); ok {
				all = append(all, l)
			}
		}
		if page.NextCursor == "" {
			return all, nil
		}
		params["cursor"] = page.NextCursor
	}
	return nil, &EndError{Reason: BrokenProtocol, Err: errors.New("session/list has no end")}
}

// listed reads an item; malformed optional properties count as absent.
func listed(raw json.RawMessage) (l Listed, ok bool) {
	var f map[string]json.RawMessage
	if json.Unmarshal(raw, &f) != nil || json.Unmarshal(f["sessionId"], &l.ID) != nil {
		return l, false
	}
	if json.Unmarshal(f["cwd"], &l.Cwd) != nil || json.Unmarshal(f["title"], &l.Title) != nil {
		return l, l.ID != ""
	}
	if json.Unmarshal(f["additionalDirectories"], &l.AdditionalDirectories) != nil {
		l.AdditionalDirectories = nil
	}
	return l, true
}

// Close ends the session; that the agent does not know it is success.
func (s *Session) Close(ctx context.Context) error { return s.end(ctx, "session/close") }

// Delete ends the session for ever; that the agent does not know it is success.
func (s *Session) Delete(ctx context.Context) error { return s.end(ctx, "session/delete") }

func (s *Session) end(ctx context.Context, method string) error {
	_, err := s.c.Call(ctx, method, object{"sessionId": s.ID})
	if e, ok := errors.AsType[*acp.Error](err); ok && e.Code == acp.CodeNotFound {
		return nil
	}
	return err
}

// SetMode switches the mode of a session of version 1.
func (s *Session) SetMode(ctx context.Context, mode string) error {
	_, err := s.c.Call(ctx, "session/set_mode", object{"sessionId": s.ID, "modeId": mode})
	return err
}

// SetOption sets a configuration option to one of its values.
func (s *Session) SetOption(ctx context.Context, option, value string) error {
	params := object{"sessionId": s.ID, "configId": option, "value": value}
	if s.c.version >= 2 {
		params["type"] = "id"
	}
	_, err := s.c.Call(ctx, "session/set_config_option", params)
	return err
}
