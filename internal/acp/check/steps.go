package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"roundtable/internal/acp"
)

// initParams are those of a client that offers nothing, in the words of both
// versions.
func initParams(version int) object {
	info := object{"name": "roundtable-check", "version": "1"}
	return object{
		"protocolVersion": version, "clientCapabilities": object{}, "clientInfo": info, "capabilities": object{}, "info": info,
	}
}

// probe learns what the agent says of itself.
func (e *env) probe(ctx context.Context) error {
	defer func() { e.keep(e.closeAll()) }()
	l, err := e.start()
	if err != nil {
		return err
	}
	raw, err := l.result(ctx, "initialize", initParams(e.o.Version))
	if err != nil {
		return err
	}
	var r struct {
		ProtocolVersion int `json:"protocolVersion"`
		AgentInfo, Info struct{ Name, Version string }
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	e.version, e.caps = r.ProtocolVersion, raw
	e.name = strings.TrimSpace(r.AgentInfo.Name + r.Info.Name + " " + r.AgentInfo.Version + r.Info.Version)
	return nil
}

// open is an agent that has been initialized and, if asked for, authenticated.
func (e *env) open(ctx context.Context) (*link, error) {
	l, err := e.start()
	if err != nil {
		return nil, err
	}
	if l.init, err = l.result(ctx, "initialize", initParams(e.o.Version)); err != nil {
		return nil, err
	}
	if e.o.AuthMethod == "" || len(list(e.caps, "authMethods")) == 0 {
		return l, nil
	}
	method := "authenticate"
	if e.o.Version == 2 {
		method = "auth/login"
	}
	_, err = l.result(ctx, method, object{"methodId": e.o.AuthMethod})
	return l, err
}

// session is an agent in a new session.
func (e *env) session(ctx context.Context) (*link, string, error) {
	l, err := e.open(ctx)
	if err != nil {
		return nil, "", err
	}
	id, _, err := l.newSession(ctx, object{"cwd": e.o.Dir, "mcpServers": []any{}})
	return l, id, err
}

func (l *link) newSession(ctx context.Context, params object) (string, json.RawMessage, error) {
	raw, err := l.result(ctx, "session/new", params)
	if err != nil {
		return "", nil, err
	}
	id := str(raw, "sessionId")
	if id == "" {
		return "", raw, fmt.Errorf("session/new answers no sessionId but %s", raw)
	}
	return id, raw, nil
}

func block(text string) object { return object{"type": "text", "text": text} }

// turn is a prompt and what came of it.
type turn struct {
	id       acp.ID
	session  string
	from     int // the first message after the prompt
	response *acp.Message
	stop     string
	running  bool // v2: a running state came before the idle one
	ended    bool
	message  string // v2
}

// prompt sends a prompt.
func (l *link) prompt(session string, extra object, blocks ...object) (*turn, error) {
	t := &turn{id: l.id(), session: session, from: len(l.seen)}
	params := object{"sessionId": session, "prompt": blocks}
	for k, v := range extra {
		params[k] = v
	}
	return t, l.request(t.id, "session/prompt", params)
}

// finish waits for the end of a turn.
func (l *link) finish(ctx context.Context, t *turn) error {
	for !t.ended {
		m, err := l.next(ctx, l.o.Limit)
		if err != nil {
			return fmt.Errorf("the turn does not end: %w", err)
		}
		t.note(l.o.Version, m)
		if t.response != nil && t.response.Error != nil {
			return fmt.Errorf("session/prompt: %w", t.response.Error)
		}
	}
	return nil
}

func (t *turn) note(version int, m acp.Message) {
	if m.Kind == acp.Response && m.ID == t.id {
		t.response = &m
		t.message = str(m.Result, "messageId")
		if version == 1 {
			t.stop, t.ended = str(m.Result, "stopReason"), true
		}
	}
	if m.Method != "session/update" || str(m.Params, "sessionId") != t.session {
		return
	}
	u := field(m.Params, "update")
	if str(u, "sessionUpdate") != "state_update" {
		return
	}
	switch state := str(u, "state"); {
	case state == "running":
		t.running = true
	case state == "idle" && field(u, "stopReason") != nil && string(field(u, "stopReason")) != "null":
		t.stop, t.ended = str(u, "stopReason"), true
	}
}

// run is a whole turn.
func (l *link) run(ctx context.Context, session, text string) (*turn, error) {
	t, err := l.prompt(session, nil, block(text))
	if err != nil {
		return nil, err
	}
	return t, l.finish(ctx, t)
}

// updates are the updates of a session among messages.
func updates(messages []acp.Message, session string) (all []json.RawMessage) {
	for _, m := range messages {
		if m.Method == "session/update" && (session == "" || str(m.Params, "sessionId") == session) {
			all = append(all, field(m.Params, "update"))
		}
	}
	return all
}

// history reports whether an update belongs to a conversation.
func history(u json.RawMessage) bool {
	kind := str(u, "sessionUpdate")
	return slices.Contains([]string{"tool_call", "tool_call_update", "plan", "plan_update", "tool_call_content_chunk"}, kind) ||
		strings.Contains(kind, "_message") || strings.Contains(kind, "_thought")
}

// field is a property of an object, or nil.
func field(raw json.RawMessage, path ...string) json.RawMessage {
	for _, name := range path {
		var o map[string]json.RawMessage
		if json.Unmarshal(raw, &o) != nil {
			return nil
		}
		raw = o[name]
	}
	return raw
}

func str(raw json.RawMessage, path ...string) (s string) {
	if json.Unmarshal(field(raw, path...), &s) != nil {
		return ""
	}
	return s
}

func list(raw json.RawMessage, path ...string) (l []json.RawMessage) {
	if json.Unmarshal(field(raw, path...), &l) != nil {
		return nil
	}
	return l
}

// has reports whether a capability is there: true or an object.
func has(raw json.RawMessage, path ...string) bool {
	v := field(raw, path...)
	return len(v) > 0 && (v[0] == '{' || string(v) == "true")
}

// needs is the condition that a capability is advertised.
func needs(path ...string) func(*env) string {
	return func(e *env) string {
		if has(e.caps, path...) {
			return ""
		}
		return strings.Join(path, ".") + " is not advertised"
	}
}

// fits holds a result against its type.
func (e *env) fits(definition string, raw json.RawMessage) error {
	if err := e.set.Def(definition).Validate(raw); err != nil {
		return fmt.Errorf("%s: %w in %s", definition, err, raw)
	}
	return nil
}

var errAnswered = errors.New("a notification was answered")
