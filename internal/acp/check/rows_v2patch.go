package check

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"roundtable/internal/acp"
)

// seenIn is a row about what updates of a kind carry, if there were any.
func seenIn(kinds []string, judge func(u json.RawMessage) error) func(context.Context, *env) error {
	return inTurn(func(_ *env, l *link, t *turn) error {
		found := false
		for _, u := range updates(l.seen, t.session) {
			if !slices.Contains(kinds, str(u, "sessionUpdate")) {
				continue
			}
			found = true
			if err := judge(u); err != nil {
				return fmt.Errorf("%w in %s", err, u)
			}
		}
		if !found {
			return skip("no " + strings.Join(kinds, " or ") + " was seen")
		}
		return nil
	})
}

func v2Patches() []row {
	return []row{
		{"ACP-PATCH-203", Capability, "two prompts have two message ids", func(ctx context.Context, e *env) error {
			l, id, err := e.session(ctx)
			if err != nil {
				return err
			}
			one, err := l.run(ctx, id, e.o.Prompt)
			if err != nil {
				return err
			}
			two, err := l.run(ctx, id, e.o.Prompt)
			if err == nil && one.message == two.message {
				err = fmt.Errorf("both have %q", one.message)
			}
			return err
		}, sessions},
		{"ACP-PATCH-204", Capability, "tool call updates carry their id", seenIn([]string{"tool_call_update", "tool_call_content_chunk"}, has1("toolCallId")), sessions},
		{"ACP-PATCH-205", Capability, "plans carry their id", seenIn([]string{"plan_update"}, has1("plan", "planId")), sessions},
		{"ACP-PATCH-206", Capability, "the directory of a terminal is absolute", seenIn([]string{"terminal_update"}, func(u json.RawMessage) error {
			if cwd := str(u, "cwd"); cwd != "" && !filepath.IsAbs(cwd) {
				return errors.New("it is not")
			}
			return nil
		}), sessions},
		{"ACP-PATCH-207", Capability, "terminal output is base64", seenIn([]string{"terminal_output_chunk", "terminal_update"}, func(u json.RawMessage) error {
			for _, data := range []string{str(u, "data"), str(u, "output", "data")} {
				if _, err := base64.StdEncoding.DecodeString(data); err != nil {
					return err
				}
			}
			return nil
		}), sessions},
		{"ACP-PATCH-208", Advisory, "the first update of a tool call has a title", inTurn(func(_ *env, l *link, t *turn) error {
			first := map[string]bool{}
			for _, u := range updates(l.seen, t.session) {
				id := str(u, "toolCallId")
				if str(u, "sessionUpdate") == "tool_call_update" && !first[id] && str(u, "title") == "" {
					return fmt.Errorf("%s has none", u)
				}
				first[id] = first[id] || id != ""
			}
			if len(first) == 0 {
				return skip("no tool call was seen")
			}
			return nil
		}), sessions},
		{"ACP-PATCH-209", Advisory, "while permission is asked for, the state is requires_action", inTurn(func(_ *env, l *link, t *turn) error {
			state, asked := "", false
			for _, m := range l.seen {
				if u := field(m.Params, "update"); str(u, "sessionUpdate") == "state_update" {
					state = str(u, "state")
				}
				if m.Kind == acp.Request && m.Method == "session/request_permission" {
					asked = true
					if state != "requires_action" {
						return fmt.Errorf("it is %q", state)
					}
				}
			}
			if !asked {
				return skip("the agent asked for no permission")
			}
			return nil
		}), sessions},
	}
}

func v2Enums() []row {
	return []row{
		{"ACP-ENUM-201", Capability, "kinds, states and priorities are defined or custom", inTurn(func(_ *env, l *link, t *turn) error {
			return enums(updates(l.seen, t.session))
		}), sessions},
		{"ACP-ENUM-202", Advisory, "kinds of updates and states are defined or custom", inTurn(func(e *env, l *link, t *turn) error {
			for _, u := range updates(l.seen, t.session) {
				if str(u, "sessionUpdate") == "state_update" && !defined(str(u, "state"), "running", "idle", "requires_action") {
					return fmt.Errorf("state %q", str(u, "state"))
				}
			}
			return nil
		}), sessions},
		{"ACP-ENUM-203", Advisory, "a custom value of the client is survived", func(ctx context.Context, e *env) error {
			l, id, err := e.session(ctx)
			if err != nil {
				return err
			}
			l.outcome = "_roundtable_custom"
			_, err = l.run(ctx, id, e.o.Prompt)
			if err == nil && !slices.ContainsFunc(l.seen, func(m acp.Message) bool { return m.Method == "session/request_permission" }) {
				err = skip("the agent asked for no permission")
			}
			return err
		}, sessions},
	}
}

func has1(path ...string) func(json.RawMessage) error {
	return func(u json.RawMessage) error {
		if str(u, path...) == "" {
			return fmt.Errorf("no %s", strings.Join(path, "."))
		}
		return nil
	}
}

func enums(all []json.RawMessage) error {
	for _, u := range all {
		if str(u, "sessionUpdate") == "tool_call_update" {
			kind, status := str(u, "kind"), str(u, "status")
			if kind != "" && !defined(kind, "read", "edit", "delete", "move", "search", "execute", "think", "fetch", "switch_mode", "other") {
				return fmt.Errorf("kind %q", kind)
			}
			if status != "" && !defined(status, "pending", "in_progress", "paused", "completed", "failed", "cancelled") {
				return fmt.Errorf("status %q", status)
			}
		}
		for _, entry := range list(u, "plan", "entries") {
			if !defined(str(entry, "priority"), "high", "medium", "low") ||
				!defined(str(entry, "status"), "pending", "in_progress", "completed", "cancelled") {
				return fmt.Errorf("entry %s", entry)
			}
		}
	}
	return nil
}
