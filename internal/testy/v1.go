package testy

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"

	"roundtable/internal/acp"
	v1 "roundtable/internal/acp/v1"
)

const (
	authMethod = "testy-agent-auth"
	updatedAt  = "2026-01-01T00:00:00Z"
)

// v1Agent is the agent of protocol v1.
type v1Agent struct {
	peer
	// out is held while an update is recorded and sent, so that the history has
	// the order of the wire. It is taken before mu.
	out sync.Mutex

	mu       sync.Mutex
	client   v1.ClientCapabilities // of the last initialize
	sessions map[string]*session
	archive  map[string]archived // histories of closed sessions
	nSession int                 // the last number given out, each
	nMessage int
	nTool    int
}

func newV1(p peer) *v1Agent {
	return &v1Agent{peer: p, sessions: map[string]*session{}, archive: map[string]archived{}}
}

func (a *v1Agent) handle(c *acp.Call) {
	switch c.Method {
	case v1.MethodInitialize:
		serve(&a.peer, c, a.initialize)
	case v1.MethodAuthenticate:
		serve(&a.peer, c, a.authenticate)
	case v1.MethodLogout:
		serve(&a.peer, c, func(v1.LogoutRequest) (any, error) { return v1.LogoutResponse{}, nil })
	case v1.MethodSessionNew:
		serve(&a.peer, c, a.newSession)
	case v1.MethodSessionLoad:
		a.load(c)
	case v1.MethodSessionResume:
		serve(&a.peer, c, a.resume)
	case v1.MethodSessionList:
		serve(&a.peer, c, a.list)
	case v1.MethodSessionDelete, v1.MethodSessionClose:
		a.end(c)
	case v1.MethodSessionSetMode:
		serve(&a.peer, c, a.setMode)
	case v1.MethodSessionSetConfigOption:
		a.setConfig(c)
	case v1.MethodSessionPrompt:
		a.prompt(c)
	case v1.MethodSessionCancel:
		a.cancel(c)
	default:
		a.unknown(c)
	}
}

func (a *v1Agent) initialize(p v1.InitializeRequest) (any, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.client = v1.ClientCapabilities{}
	if p.ClientCapabilities != nil {
		a.client = *p.ClientCapabilities
	}
	return v1.InitializeResponse{
		ProtocolVersion: 1,
		AgentCapabilities: &v1.AgentCapabilities{
			LoadSession:        new(true),
			PromptCapabilities: &v1.PromptCapabilities{Image: new(true), Audio: new(true), EmbeddedContext: new(true)},
			MCPCapabilities:    &v1.MCPCapabilities{HTTP: new(true), SSE: new(false)},
			SessionCapabilities: &v1.SessionCapabilities{
				List: &v1.SessionListCapabilities{}, Delete: &v1.SessionDeleteCapabilities{},
				AdditionalDirectories: &v1.SessionAdditionalDirectoriesCapabilities{},
				Resume:                &v1.SessionResumeCapabilities{}, Close: &v1.SessionCloseCapabilities{},
			},
			Auth: &v1.AgentAuthCapabilities{Logout: &v1.LogoutCapabilities{}},
		},
		AuthMethods: []v1.AuthMethod{{AuthMethodAgent: &v1.AuthMethodAgent{
			ID: authMethod, Name: "Testy agent auth",
			Description: new("Deterministic no-op authentication for ACP client testing"),
		}}},
		AgentInfo: &v1.Implementation{Name: "testy", Title: new("Testy"), Version: a.opts.Version},
	}, nil
}

func (a *v1Agent) authenticate(p v1.AuthenticateRequest) (any, error) {
	if p.MethodID != authMethod {
		return nil, acp.InvalidParams("unsupported auth method `%s`; supported methods: %s", p.MethodID, authMethod)
	}
	return v1.AuthenticateResponse{}, nil
}

// number draws the next number of a counter.
func (a *v1Agent) number(counter *int) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	*counter++
	return *counter
}

func (a *v1Agent) messageID(prefix string) *v1.MessageID {
	return new(v1.MessageID(fmt.Sprintf("%s-%d", prefix, a.number(&a.nMessage))))
}

func (a *v1Agent) toolID(prefix string) v1.ToolCallID {
	return v1.ToolCallID(fmt.Sprintf("%s-%d", prefix, a.number(&a.nTool)))
}

// find looks a session up that takes part in the conversation. a.mu is held.
func (a *v1Agent) find(id v1.SessionID) (*session, error) {
	s := a.sessions[string(id)]
	switch {
	case s == nil:
		return nil, acp.InvalidParams("unknown session `%s`", id)
	case s.closed:
		return nil, acp.InvalidParams("closed session `%s`", id)
	}
	return s, nil
}

// send sends an update of a session and records it if a replay shows it.
func (a *v1Agent) send(s *session, u v1.SessionUpdate) {
	a.out.Lock()
	defer a.out.Unlock()
	raw, err := acp.Marshal(u)
	if err != nil {
		a.log.Error("update not sent", "error", err)
		return
	}
	if recorded(u.Kind) {
		s.history = append(s.history, raw)
	}
	a.notify(s.id, raw)
}

// notify sends an update as it is. a.out is held.
func (a *v1Agent) notify(id string, update json.RawMessage) {
	n := v1.SessionNotification{SessionID: v1.SessionID(id), Update: v1.SessionUpdate{Raw: update}}
	if err := a.conn.Notify(v1.MethodSessionUpdate, n); err != nil {
		a.log.Warn("update not sent", "error", err)
	}
}

func recorded(kind string) bool {
	switch kind {
	case "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "plan":
		return true
	}
	return false
}

// modes are the modes of a session with the current one.
func modes(current v1.SessionModeID) *v1.SessionModeState {
	return &v1.SessionModeState{CurrentModeID: current, AvailableModes: acp.List[v1.SessionMode]{
		{ID: "chat", Name: "Chat", Description: new("Default deterministic chat mode")},
		{ID: "plan", Name: "Plan", Description: new("Planning-focused test mode")},
	}}
}

// configOptions are the options of a session with the current verbosity.
func configOptions(verbosity string) []v1.SessionConfigOption {
	current, err := acp.Marshal(verbosity)
	if err != nil {
		current = nil // a string always marshals
	}
	return []v1.SessionConfigOption{{
		ID: "verbosity", Name: "Verbosity", Description: new("Controls how much text Testy includes in summaries"),
		Type: new("select"), CurrentValue: current,
		Options: json.RawMessage(`[{"value":"brief","name":"Brief"},{"value":"normal","name":"Normal"},{"value":"verbose","name":"Verbose"}]`),
	}}
}

// session is one session. Its mutable fields belong to a.mu, history to a.out.
type session struct {
	id            string
	cwd           string
	dirs          []string
	servers       []v1.MCPServer
	mode          v1.SessionModeID
	verbosity     string
	cancelled     bool // until the last prompt that was active has finished
	pendingCancel bool // a cancel without a prompt, until it is read
	closed        bool
	forget        bool // deleted: the history goes too
	active        int
	drained       []func() // called once when no prompt is active any more

	// ctx ends when the session is cancelled or closed; the prompts of the
	// time run under it.
	ctx  context.Context
	stop context.CancelFunc

	prompts int // so far, for the ids of the history
	history []json.RawMessage
}

// archived is what is kept of a closed session.
type archived struct {
	prompts int
	history []json.RawMessage
}

func (s *session) renew() {
	s.cancelled = false
	s.ctx, s.stop = context.WithCancel(context.Background())
}
