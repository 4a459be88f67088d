package testy

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"roundtable/internal/acp"
	v1 "roundtable/internal/acp/v1"
)

func (a *v1Agent) newSession(p v1.NewSessionRequest) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var id string
	for {
		a.nSession++
		id = fmt.Sprintf("testy-session-%d", a.nSession)
		if a.sessions[id] == nil {
			break
		}
	}
	s := a.upsert(id, p.Cwd, p.AdditionalDirectories, p.MCPServers)
	return v1.NewSessionResponse{
		SessionID: v1.SessionID(id), Modes: modes(s.mode), ConfigOptions: configOptions(s.verbosity),
	}, nil
}

// upsert makes a session, or gives the one there is new directories and
// servers. a.mu is held.
func (a *v1Agent) upsert(id, cwd string, dirs []string, servers []v1.MCPServer) *session {
	s := a.sessions[id]
	if s == nil {
		old := a.archive[id]
		delete(a.archive, id)
		s = &session{id: id, mode: "chat", verbosity: "normal", prompts: old.prompts, history: old.history}
		s.renew()
		a.sessions[id] = s
	}
	s.cwd, s.dirs, s.servers = cwd, dirs, servers
	return s
}

func (a *v1Agent) load(c *acp.Call) {
	p, err := decode[v1.LoadSessionRequest](&a.peer, c)
	if err != nil {
		c.Reply(nil, err)
		return
	}
	a.out.Lock() // the replay and the response are one block
	defer a.out.Unlock()
	a.mu.Lock()
	s := a.upsert(string(p.SessionID), p.Cwd, p.AdditionalDirectories, p.MCPServers)
	result := v1.LoadSessionResponse{Modes: modes(s.mode), ConfigOptions: configOptions(s.verbosity)}
	a.mu.Unlock()
	for _, update := range s.history {
		a.notify(s.id, update)
	}
	c.Reply(result, nil)
}

func (a *v1Agent) resume(p v1.ResumeSessionRequest) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.upsert(string(p.SessionID), p.Cwd, p.AdditionalDirectories, p.MCPServers)
	return v1.ResumeSessionResponse{Modes: modes(s.mode), ConfigOptions: configOptions(s.verbosity)}, nil
}

func (a *v1Agent) list(p v1.ListSessionsRequest) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var r v1.ListSessionsResponse
	for _, s := range a.sessions {
		if s.closed || p.Cwd != nil && *p.Cwd != s.cwd {
			continue
		}
		info := v1.SessionInfo{
			SessionID: v1.SessionID(s.id), Cwd: s.cwd, Title: new("Testy session"), UpdatedAt: new(updatedAt),
		}
		if len(s.dirs) > 0 {
			info.AdditionalDirectories = s.dirs
		}
		r.Sessions = append(r.Sessions, info)
	}
	slices.SortFunc(r.Sessions, func(x, y v1.SessionInfo) int {
		return strings.Compare(string(x.SessionID), string(y.SessionID))
	})
	return r, nil
}

// end closes or deletes a session.
func (a *v1Agent) end(c *acp.Call) {
	p, err := decode[v1.CloseSessionRequest](&a.peer, c) // delete takes the same
	if err != nil {
		c.Reply(nil, err)
		return
	}
	reply := func() { c.Reply(v1.CloseSessionResponse{}, nil) }
	a.mu.Lock()
	s := a.sessions[string(p.SessionID)]
	if s == nil {
		if c.Method == v1.MethodSessionDelete {
			delete(a.archive, string(p.SessionID))
		}
		a.mu.Unlock()
		reply()
		return
	}
	s.closed = true
	s.forget = s.forget || c.Method == v1.MethodSessionDelete
	if !a.opts.faults.has("ignore-cancel") {
		s.cancelled = true
		s.stop()
	}
	idle := s.active == 0
	if !idle && a.opts.Strict {
		s.drained = append(s.drained, reply)
		a.mu.Unlock()
		return
	}
	a.mu.Unlock()
	if idle {
		a.remove(s)
	}
	reply()
}

// remove takes a closed session out, and keeps the history of one that was not
// deleted.
func (a *v1Agent) remove(s *session) {
	a.out.Lock()
	defer a.out.Unlock()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[s.id] != s {
		return
	}
	delete(a.sessions, s.id)
	if !s.forget {
		a.archive[s.id] = archived{s.prompts, s.history}
	}
}

func (a *v1Agent) setMode(p v1.SetSessionModeRequest) (any, error) {
	if p.ModeID != "chat" && p.ModeID != "plan" {
		return nil, acp.InvalidParams("unsupported mode `%s`; supported modes: chat, plan", p.ModeID)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.find(p.SessionID)
	if err != nil {
		return nil, err
	}
	s.mode = p.ModeID
	return v1.SetSessionModeResponse{}, nil
}

// setConfig looks at the value itself: its errors are more precise than what
// the schema has to say.
func (a *v1Agent) setConfig(c *acp.Call) {
	var p struct {
		SessionID *v1.SessionID   `json:"sessionId"`
		ConfigID  *string         `json:"configId"`
		Value     json.RawMessage `json:"value"`
	}
	if json.Unmarshal(c.Params, &p) != nil || p.SessionID == nil || p.ConfigID == nil || p.Value == nil {
		_, err := decode[v1.SetSessionConfigOptionRequest](&a.peer, c)
		c.Reply(nil, err)
		return
	}
	c.Reply(a.configure(*p.SessionID, *p.ConfigID, p.Value))
}

func (a *v1Agent) configure(id v1.SessionID, option string, raw json.RawMessage) (any, error) {
	if option != "verbosity" {
		return nil, acp.InvalidParams("unsupported config option `%s`; supported config options: verbosity", option)
	}
	value, err := configValue(raw)
	if err != nil {
		return nil, err
	}
	if !slices.Contains([]string{"brief", "normal", "verbose"}, value) {
		return nil, acp.InvalidParams("unsupported verbosity value `%s`; supported values: brief, normal, verbose", value)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.find(id)
	if err != nil {
		return nil, err
	}
	s.verbosity = value
	return v1.SetSessionConfigOptionResponse{ConfigOptions: configOptions(value)}, nil
}

// configValue is a string, a boolean as text, or an object with a value that
// is one of them.
func configValue(raw json.RawMessage) (string, error) {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		return "", acp.InvalidParams("%v", err)
	}
	o, isObject := v.(map[string]any)
	if isObject {
		v = o["value"]
	}
	switch v := v.(type) {
	case string:
		return v, nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	if isObject {
		return "", acp.InvalidParams("session config value must include a string value")
	}
	return "", acp.InvalidParams("session config value must be a string or object")
}

// cancel ends the prompts that run; without one it is remembered for
// cancel_status.
func (a *v1Agent) cancel(c *acp.Call) {
	p, err := decode[v1.CancelNotification](&a.peer, c)
	if err != nil {
		a.log.Warn("cancel ignored", "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[string(p.SessionID)]
	switch {
	case s == nil:
		a.log.Info("cancel of an unknown session ignored", "session", p.SessionID)
	case s.active == 0:
		s.pendingCancel = true
	default:
		s.cancelled = true
		s.stop()
	}
}
