package testy

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"roundtable/internal/acp"
	v2 "roundtable/internal/acp/v2"
)

// v2Agent is the agent of draft v2. It shares no state with that of v1.
type v2Agent struct {
	peer
	initialized bool // used on the dispatching goroutine only

	mu       sync.Mutex
	sessions map[string]*v2Session
	nSession int // the last number given out
	nMessage int // the next one
}

// v2Session is one session. Its fields belong to the agent's mu.
type v2Session struct {
	id, cwd   string
	dirs      []string
	active    bool
	busy      bool // foreground work runs, up to and including its idle update
	cancelled bool
	ctx       context.Context // of the work that runs
	stop      context.CancelFunc
	held      []held // prompts that wait, in draft next
	closing   []func()
	history   []json.RawMessage
}

// held is a prompt that has not been answered.
type held struct {
	call   *acp.Call
	blocks []json.RawMessage
}

func newV2(p peer) *v2Agent { return &v2Agent{peer: p, sessions: map[string]*v2Session{}} }

func (a *v2Agent) next() bool { return a.opts.Draft == "next" }

func (a *v2Agent) handle(c *acp.Call) {
	if c.Method == v2.MethodInitialize && c.Kind == acp.Request {
		a.initialize(c)
		return
	}
	if !a.initialized {
		c.Reply(nil, acp.NewError(acp.CodeInvalidRequest,
			fmt.Sprintf("ACP initialization must complete before `%s` can be used", c.Method)))
		return
	}
	switch c.Method {
	case v2.MethodSessionNew:
		serve(&a.peer, c, a.newSession)
	case v2.MethodSessionList:
		serve(&a.peer, c, a.list)
	case v2.MethodSessionPrompt:
		a.prompt(c)
	case v2.MethodSessionCancel:
		a.cancel(c)
	case v2.MethodSessionClose:
		a.close(c)
	case v2.MethodSessionResume:
		serve(&a.peer, c, a.resume)
	default:
		a.unknown(c)
	}
}

func (a *v2Agent) initialize(c *acp.Call) {
	if a.initialized {
		c.Reply(nil, acp.NewError(acp.CodeInvalidRequest,
			"ACP connections may only be initialized once; reconnect to initialize again"))
		return
	}
	requested, ok := requestedVersion(c.Params)
	if ok && (requested == 0 || requested == 1 && a.next()) {
		c.Reply(nil, unsupportedVersion(a.opts.Draft, requested, 2))
		return
	}
	if _, err := decode[v2.InitializeRequest](&a.peer, c); err != nil {
		c.Reply(nil, err)
		return
	}
	a.initialized = true
	c.Reply(v2.InitializeResponse{
		ProtocolVersion: 2,
		Info:            v2.Implementation{Name: "testy", Title: new("Testy"), Version: a.opts.Version},
		Capabilities:    &v2.AgentCapabilities{Session: &v2.SessionCapabilities{}},
	}, nil)
}

func (a *v2Agent) newSession(p v2.NewSessionRequest) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.nSession++
	s := &v2Session{
		id: fmt.Sprintf("testy-v2-session-%d", a.nSession), cwd: string(p.Cwd),
		dirs: values[string](p.AdditionalDirectories), active: true,
	}
	a.sessions[s.id] = s
	return v2.NewSessionResponse{SessionID: v2.SessionID(s.id)}, nil
}

func (a *v2Agent) list(p v2.ListSessionsRequest) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	var r v2.ListSessionsResponse
	for _, s := range a.sessions {
		if p.Cwd != nil && string(*p.Cwd) != s.cwd {
			continue
		}
		info := v2.SessionInfo{
			SessionID: v2.SessionID(s.id), Cwd: v2.AbsolutePath(s.cwd),
			Title: new("Testy v2 session"), UpdatedAt: new(updatedAt),
		}
		if len(s.dirs) > 0 {
			info.AdditionalDirectories = values[v2.AbsolutePath](s.dirs)
		}
		r.Sessions = append(r.Sessions, info)
	}
	slices.SortFunc(r.Sessions, func(x, y v2.SessionInfo) int {
		return strings.Compare(string(x.SessionID), string(y.SessionID))
	})
	return r, nil
}

// missing is the error for a session that cannot be used.
func (a *v2Agent) missing(what, id string) error {
	if a.next() {
		return acp.NewError(acp.CodeNotFound, map[string]string{"sessionId": id})
	}
	return acp.InvalidParams("%s session `%s`", what, id)
}

func (a *v2Agent) resume(p v2.ResumeSessionRequest) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	id := string(p.SessionID)
	s := a.sessions[id]
	switch {
	case s == nil:
		return nil, a.missing("unknown", id)
	case s.busy:
		return nil, acp.InvalidParams("session `%s` still has foreground work", id)
	case s.cwd != string(p.Cwd):
		return nil, acp.InvalidParams("session `%s` has a different working directory", id)
	case p.ReplayFrom != nil && p.ReplayFrom.Kind != "start":
		return nil, acp.InvalidParams("unsupported session replay cursor")
	}
	s.dirs, s.active, s.cancelled = values[string](p.AdditionalDirectories), true, false
	if p.ReplayFrom != nil {
		for _, update := range s.history {
			a.notify(s, update)
		}
	}
	if a.next() {
		a.state(s, v2.StateUpdate{Kind: "idle", Idle: &v2.IdleStateUpdate{}})
	}
	return v2.ResumeSessionResponse{}, nil
}

func (a *v2Agent) cancel(c *acp.Call) {
	p, err := decode[v2.CancelSessionNotification](&a.peer, c)
	if err != nil {
		a.log.Warn("cancel ignored", "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[string(p.SessionID)]
	if s == nil || !s.busy {
		a.log.Info("cancel without work ignored", "session", p.SessionID)
		return
	}
	a.interrupt(s)
}

// interrupt cancels the work of a session, and the prompts that wait behind
// it. a.mu is held.
func (a *v2Agent) interrupt(s *v2Session) {
	s.cancelled = true
	s.stop()
	waiting := s.held
	s.held = nil
	for _, h := range waiting {
		s.closing = append(s.closing, func() { h.call.Reply(nil, acp.NewError(acp.CodeCancelled, nil)) })
	}
}

func (a *v2Agent) close(c *acp.Call) {
	p, err := decode[v2.CloseSessionRequest](&a.peer, c)
	if err != nil {
		c.Reply(nil, err)
		return
	}
	reply := func() { c.Reply(v2.CloseSessionResponse{}, nil) }
	a.mu.Lock()
	defer a.mu.Unlock()
	s := a.sessions[string(p.SessionID)]
	switch {
	case s == nil && a.next():
		reply()
	case s == nil:
		c.Reply(nil, a.missing("unknown", string(p.SessionID)))
	case !s.busy:
		s.active = false
		reply()
	default:
		s.active = false
		if !a.opts.faults.has("ignore-cancel") {
			a.interrupt(s)
		}
		s.closing = append(s.closing, reply)
	}
}

// notify sends an update.
func (a *v2Agent) notify(s *v2Session, update json.RawMessage) {
	n := v2.UpdateSessionNotification{SessionID: v2.SessionID(s.id), Update: v2.SessionUpdate{Raw: update}}
	if err := a.conn.Notify(v2.MethodSessionUpdate, n); err != nil {
		a.log.Warn("update not sent", "error", err)
	}
}

func (a *v2Agent) state(s *v2Session, u v2.StateUpdate) {
	a.notify(s, raw(v2.SessionUpdate{Kind: "state_update", StateUpdate: &u}))
}
