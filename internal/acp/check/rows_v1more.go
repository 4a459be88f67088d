package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"roundtable/internal/acp"
)

// settingRows are about modes and configuration options.
func settingRows() []row {
	fresh := func(ctx context.Context, e *env, property string) (*link, string, json.RawMessage, error) {
		l, err := e.open(ctx)
		if err != nil {
			return nil, "", nil, err
		}
		id, raw, err := l.newSession(ctx, object{"cwd": e.o.Dir, "mcpServers": []any{}})
		if err == nil && (field(raw, property) == nil || string(field(raw, property)) == "null") {
			err = skip("session/new returns no " + property)
		}
		return l, id, raw, err
	}
	return []row{
		{"ACP-MODES-001", Capability, "the current mode is one of the available ones", func(ctx context.Context, e *env) error {
			_, _, raw, err := fresh(ctx, e, "modes")
			if err != nil {
				return err
			}
			for _, m := range list(raw, "modes", "availableModes") {
				if str(m, "id") == str(raw, "modes", "currentModeId") {
					return nil
				}
			}
			return fmt.Errorf("the current mode %q is not available", str(raw, "modes", "currentModeId"))
		}, nil},
		{"ACP-MODES-002", Capability, "session/set_mode works for each mode", func(ctx context.Context, e *env) error {
			l, id, raw, err := fresh(ctx, e, "modes")
			for _, m := range list(raw, "modes", "availableModes") {
				if err == nil {
					_, err = l.result(ctx, "session/set_mode", object{"sessionId": id, "modeId": str(m, "id")})
				}
			}
			return err
		}, nil},
		{"ACP-CONFIG-001", Capability, "session/set_config_option returns the complete list", func(ctx context.Context, e *env) error {
			l, id, raw, err := fresh(ctx, e, "configOptions")
			if err != nil {
				return err
			}
			_, after, err := l.setFirst(ctx, id, list(raw, "configOptions"), nil)
			if err != nil {
				return err
			}
			return sameSet(list(raw, "configOptions"), list(after, "configOptions"), "id")
		}, nil},
		{"ACP-CONFIG-002", Capability, "the list shows the new value", func(ctx context.Context, e *env) error {
			l, id, raw, err := fresh(ctx, e, "configOptions")
			if err != nil {
				return err
			}
			set, after, err := l.setFirst(ctx, id, list(raw, "configOptions"), nil)
			if err != nil {
				return err
			}
			for _, o := range list(after, "configOptions") {
				if str(o, "id") == set.option && str(o, "currentValue") != set.value {
					return fmt.Errorf("%s was set to %q and is %q", set.option, set.value, str(o, "currentValue"))
				}
			}
			return nil
		}, nil},
		{"ACP-CONFIG-003", Mandatory, "no boolean option for a client that does not offer them", func(ctx context.Context, e *env) error {
			_, _, raw, err := fresh(ctx, e, "configOptions")
			if err != nil {
				return err
			}
			for _, o := range list(raw, "configOptions") {
				if str(o, "type") == "boolean" {
					return fmt.Errorf("%s is boolean", str(o, "id"))
				}
			}
			return nil
		}, nil},
	}
}

type setting struct{ option, value string }

// setFirst sets the first select option to its last value.
func (l *link) setFirst(ctx context.Context, session string, options []json.RawMessage, extra object) (setting, json.RawMessage, error) {
	for _, o := range options {
		var last string
		for _, v := range selectValues(o) {
			last = v
		}
		if str(o, "type") != "select" || last == "" {
			continue
		}
		s := setting{str(o, "id") + str(o, "configId"), last}
		params := object{"sessionId": session, "configId": s.option, "value": s.value}
		for k, v := range extra {
			params[k] = v
		}
		raw, err := l.result(ctx, "session/set_config_option", params)
		return s, raw, err
	}
	return setting{}, nil, skip("there is no option to select from")
}

// selectValues are the values of a select option, flat or in groups.
func selectValues(option json.RawMessage) (values []string) {
	for _, o := range list(option, "options") {
		if v := str(o, "value"); v != "" {
			values = append(values, v)
		}
		for _, inner := range list(o, "options") {
			values = append(values, str(inner, "value"))
		}
	}
	return values
}

// authRows are about authentication and about what a client did not offer.
func authRows() []row {
	none := func(e *env) string {
		if len(list(e.caps, "authMethods")) == 0 {
			return "there are no authMethods"
		}
		return ""
	}
	return []row{
		{"ACP-AUTH-001", Advisory, "the ids of authMethods are unique", authIDs("id"), none},
		{"ACP-AUTH-002", Mandatory, "no terminal method for a client that does not offer it", noTerminalAuth, nil},
		{"ACP-AUTH-003", Capability, "after authenticate, session/new does not ask for it", authenticates("authenticate"), none},
		{"ACP-AUTH-004", Capability, "logout works", func(ctx context.Context, e *env) error {
			l, err := e.open(ctx)
			if err == nil {
				_, err = l.result(ctx, "logout", object{})
			}
			return err
		}, needs("agentCapabilities", "auth", "logout")},
		{"ACP-AUTH-005", Advisory, "without authMethods nothing asks for authentication", noAuthNeeded, nil},
		{"ACP-CLIENTCAP-001", Mandatory, "no fs method that was not offered", calls("fs/"), nil},
		{"ACP-CLIENTCAP-002", Mandatory, "no terminal method that was not offered", calls("terminal/"), nil},
		{"ACP-CLIENTCAP-003", Mandatory, "no elicitation that was not offered", calls("elicitation/"), nil},
	}
}

func authIDs(key string) func(context.Context, *env) error {
	return func(_ context.Context, e *env) error {
		seen := map[string]bool{}
		for _, m := range list(e.caps, "authMethods") {
			id := str(m, key)
			if seen[id] {
				return fmt.Errorf("%q comes twice", id)
			}
			seen[id] = true
		}
		return nil
	}
}

func noTerminalAuth(_ context.Context, e *env) error {
	for _, m := range list(e.caps, "authMethods") {
		if str(m, "type") == "terminal" {
			return fmt.Errorf("%s is one", m)
		}
	}
	return nil
}

func authenticates(method string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		if e.o.AuthMethod == "" {
			return skip("no auth method was given")
		}
		l, err := e.start()
		if err != nil {
			return err
		}
		if _, err := l.result(ctx, "initialize", initParams(e.o.Version)); err != nil {
			return err
		}
		if _, err := l.result(ctx, method, object{"methodId": e.o.AuthMethod}); err != nil {
			return err
		}
		_, _, err = l.newSession(ctx, object{"cwd": e.o.Dir, "mcpServers": []any{}})
		if refusal, ok := errors.AsType[*acp.Error](err); ok && refusal.Code == acp.CodeAuthRequired {
			return err
		}
		return nil
	}
}

func noAuthNeeded(ctx context.Context, e *env) error {
	if len(list(e.caps, "authMethods")) > 0 {
		return nil
	}
	_, _, err := e.session(ctx)
	if refusal, ok := errors.AsType[*acp.Error](err); ok && refusal.Code == acp.CodeAuthRequired {
		return err
	}
	return nil
}

// calls runs a turn and looks for requests of the agent with a prefix.
func calls(prefix string) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		l, id, err := e.session(ctx)
		if err != nil {
			return err
		}
		if _, err := l.run(ctx, id, e.o.Prompt); err != nil {
			return err
		}
		for _, m := range l.seen {
			if m.Kind == acp.Request && strings.HasPrefix(m.Method, prefix) {
				return fmt.Errorf("the agent calls %s", m.Method)
			}
		}
		return nil
	}
}
