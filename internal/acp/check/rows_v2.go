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

// v2Rows are the rows of draft version 2.
func v2Rows() []row {
	rows := envelopeRows()
	rows = append(rows, v2Init()...)
	rows = append(rows, v2Prompt()...)
	rows = append(rows, v2Cancel()...)
	rows = append(rows, batchRows()...)
	rows = append(rows, v2Sessions()...)
	rows = append(rows, v2Config()...)
	rows = append(rows, v2Auth()...)
	rows = append(rows, v2Patches()...)
	rows = append(rows, v2Enums()...)
	return append(rows, promptCaps("capabilities", "session", "prompt")...)
}

// isV2 is the condition that the agent speaks version 2.
func isV2(e *env) string {
	if e.version == 2 {
		return ""
	}
	return "VERSION-MISMATCH"
}

func v2Init() []row {
	return []row{
		{"ACP-INIT-201", Mandatory, "initialize answers 2 or its own latest version", func(_ context.Context, e *env) error {
			if e.version != 1 && e.version != 2 {
				return fmt.Errorf("it answers %s", field(e.caps, "protocolVersion"))
			}
			return nil
		}, nil},
		{"ACP-INIT-202", Mandatory, "a request for version 1 succeeds", func(ctx context.Context, e *env) error {
			l, err := e.start()
			if err != nil {
				return err
			}
			raw, err := l.result(ctx, "initialize", initParams(1))
			if v := string(field(raw, "protocolVersion")); err == nil && v != "1" && v != "2" {
				err = fmt.Errorf("it answers %s", v)
			}
			return err
		}, nil},
		{"ACP-INIT-203", Mandatory, "info has a name and a version", func(_ context.Context, e *env) error {
			if str(e.caps, "info", "name") == "" || str(e.caps, "info", "version") == "" {
				return fmt.Errorf("info is %s", field(e.caps, "info"))
			}
			return nil
		}, isV2},
		{"ACP-INIT-204", Mandatory, "no capability is a boolean", func(_ context.Context, e *env) error {
			if path := boolean(field(e.caps, "capabilities"), "capabilities"); path != "" {
				return fmt.Errorf("%s is one", path)
			}
			return nil
		}, isV2},
		{"ACP-EXT-201", Advisory, "a custom notification is ignored", notificationsAreNotAnswered, nil},
		{"ACP-EXT-202", Advisory, "capabilities have no unknown properties", func(_ context.Context, e *env) error {
			var caps map[string]json.RawMessage
			if json.Unmarshal(field(e.caps, "capabilities"), &caps) != nil {
				return nil
			}
			for name := range caps {
				if !e.set.Def("AgentCapabilities").Knows(name) {
					return fmt.Errorf("%q is unknown; _meta is the place for custom ones", name)
				}
			}
			return nil
		}, isV2},
	}
}

// boolean is the path of the first boolean below, outside of _meta.
func boolean(raw json.RawMessage, path string) string {
	var o map[string]json.RawMessage
	if json.Unmarshal(raw, &o) != nil {
		if s := string(raw); s == "true" || s == "false" {
			return path
		}
		return ""
	}
	for name, v := range o {
		if name == "_meta" {
			continue
		}
		if found := boolean(v, path+"."+name); found != "" {
			return found
		}
	}
	return ""
}

// inTurn is a row that runs a turn and judges it.
func inTurn(judge func(e *env, l *link, t *turn) error) func(context.Context, *env) error {
	return func(ctx context.Context, e *env) error {
		l, id, err := e.session(ctx)
		if err != nil {
			return err
		}
		t, err := l.run(ctx, id, e.o.Prompt)
		if err != nil {
			return err
		}
		if t.response == nil { // it may still be on its way
			l.quiet(ctx)
			for _, m := range l.seen[t.from:] {
				t.note(2, m)
			}
		}
		return judge(e, l, t)
	}
}

func v2Prompt() []row {
	return []row{
		{"ACP-PROMPT-201", Capability, "the response to a prompt carries a messageId", inTurn(func(_ *env, _ *link, t *turn) error {
			if t.message == "" {
				return errors.New("there is none")
			}
			return nil
		}), sessions},
		{"ACP-PROMPT-203", Capability, "the user message is echoed with that id, no later than idle", inTurn(func(_ *env, l *link, t *turn) error {
			for _, u := range updates(l.seen[t.from:], t.session) {
				switch kind := str(u, "sessionUpdate"); {
				case strings.HasPrefix(kind, "user_message") && str(u, "messageId") == t.message:
					return nil
				case kind == "state_update" && str(u, "state") == "idle":
					return errors.New("idle comes first")
				}
			}
			return errors.New("it is not echoed")
		}), sessions},
		{"ACP-STATE-201", Capability, "running comes before idle", inTurn(func(_ *env, _ *link, t *turn) error {
			if !t.running {
				return errors.New("there is no running state")
			}
			return nil
		}), sessions},
		{"ACP-STATE-202", Capability, "idle arrives", inTurn(func(*env, *link, *turn) error { return nil }), sessions},
		{"ACP-STATE-203", Capability, "idle has a defined stop reason", inTurn(func(_ *env, _ *link, t *turn) error {
			if !defined(t.stop, "end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled", "error") {
				return fmt.Errorf("it is %q", t.stop)
			}
			return nil
		}), sessions},
		{"ACP-PERM-201", Capability, "requests for permission are valid, and the turn goes on after the answer", inTurn(func(e *env, l *link, _ *turn) error {
			asked := false
			for _, m := range l.seen {
				if m.Method != "session/request_permission" {
					continue
				}
				asked = true
				if err := e.fits("RequestPermissionRequest", m.Params); err != nil {
					return err
				}
			}
			if !asked {
				return skip("the agent asked for no permission")
			}
			return nil
		}), sessions},
		{"ACP-CLIENTCAP-201", Capability, "no elicitation that was not offered", calls("elicitation/"), sessions},
		{"ACP-CLIENTCAP-202", Capability, "only methods that are defined or custom", inTurn(func(e *env, l *link, _ *turn) error {
			for _, m := range l.seen {
				if _, ok := e.set.Method("client", m.Method); m.Method != "" && !ok && !strings.HasPrefix(m.Method, "_") {
					return fmt.Errorf("the agent calls %s", m.Method)
				}
			}
			return nil
		}), sessions},
	}
}

// defined reports whether a value is one of the constants or custom.
func defined(value string, constants ...string) bool {
	return strings.HasPrefix(value, "_") || slices.Contains(constants, value)
}

func v2Cancel() []row {
	inCancel := func(judge func(ctx context.Context, e *env, l *link, t *turn) error) func(context.Context, *env) error {
		return func(ctx context.Context, e *env) error {
			l, _, t, err := e.cancelledTurn(ctx)
			if err != nil {
				return err
			}
			return judge(ctx, e, l, t)
		}
	}
	ends := inCancel(func(_ context.Context, _ *env, _ *link, t *turn) error {
		if t.stop != "cancelled" {
			return fmt.Errorf("it ends with %q", t.stop)
		}
		return nil
	})
	return []row{
		{"ACP-CANCEL-201", Capability, "a cancelled turn ends with idle and cancelled", ends, sessions},
		{"ACP-CANCEL-202", Capability, "no state_update after that", inCancel(func(ctx context.Context, _ *env, l *link, t *turn) error {
			for _, u := range updates(l.quiet(ctx), t.session) {
				if str(u, "sessionUpdate") == "state_update" {
					return fmt.Errorf("after idle comes %s", u)
				}
			}
			return nil
		}), sessions},
		{"ACP-CANCEL-203", Capability, "a cancel is never reported as a failure", ends, sessions},
		{"ACP-CANCEL-205", Capability, "session/cancel is never answered", inCancel(func(ctx context.Context, _ *env, l *link, t *turn) error {
			l.quiet(ctx)
			return l.clean("response.known_id")
		}), sessions},
		{"ACP-CANCEL-206", Capability, "session/cancel with _meta is accepted", func(ctx context.Context, e *env) error {
			if e.o.CancelPrompt == "" {
				return skip("no cancel prompt keeps the agent busy")
			}
			l, id, err := e.session(ctx)
			if err != nil {
				return err
			}
			t, err := l.prompt(id, nil, block(e.o.CancelPrompt))
			if err != nil {
				return err
			}
			if err := l.notify("session/cancel", object{"sessionId": id, "_meta": object{"x": 1}}); err != nil {
				return err
			}
			if err := l.finish(ctx, t); err != nil {
				return err
			}
			if t.stop != "cancelled" {
				return fmt.Errorf("it ends with %q", t.stop)
			}
			return nil
		}, sessions},
		{"ACP-CANCEL-207", Capability, "no other word stands for cancelled", ends, sessions},
		{"ACP-CANCEL-208", Capability, "session/close cancels the work", closeCancels, sessions},
		{"ACP-CLOSE-202", Capability, "session/close cancels the work as session/cancel does", closeCancels, sessions},
	}
}

// batchRows are about arrays of messages, which newer drafts do not have.
func batchRows() []row {
	applies := func(e *env) string {
		switch {
		case e.o.Next:
			return "this draft has no batches"
		case e.o.NoBatches:
			return "batches are left out"
		}
		return ""
	}
	const ping = `{"jsonrpc":"2.0","id":%q,"method":"_roundtable/ping"}`
	batch := func(ctx context.Context, e *env, text string, answered bool) ([]acp.Message, error) {
		l, err := e.open(ctx)
		if err != nil {
			return nil, err
		}
		from := len(l.seen)
		if err := l.send(text); err != nil {
			return nil, err
		}
		if answered {
			if _, err := l.next(ctx, e.o.Limit); err != nil {
				return nil, err
			}
		}
		l.quiet(ctx)
		return l.seen[from:], nil
	}
	// answers checks for one array with answers to ids, null for an error -32600.
	answers := func(ctx context.Context, e *env, text string, ids ...string) error {
		got, err := batch(ctx, e, text, true)
		if err != nil {
			return err
		}
		if len(got) != 1 || got[0].Kind != acp.Invalid {
			return fmt.Errorf("%d answers, and not one array", len(got))
		}
		var entries []json.RawMessage
		if err := json.Unmarshal(got[0].Params, &entries); err != nil {
			return err
		}
		var have []string
		for _, entry := range entries {
			have = append(have, string(field(entry, "id")))
		}
		slices.Sort(have)
		slices.Sort(ids)
		if !slices.Equal(have, ids) {
			return fmt.Errorf("answers to %v, not to %v", have, ids)
		}
		return nil
	}
	return []row{
		{"ACP-BATCH-201", Mandatory, "[] gives one -32600 without an id", func(ctx context.Context, e *env) error {
			got, err := batch(ctx, e, "[]", true)
			if err == nil && (len(got) != 1 || got[0].Error == nil || got[0].Error.Code != acp.CodeInvalidRequest || !got[0].ID.IsNull()) {
				err = fmt.Errorf("%d answers", len(got))
			}
			return err
		}, applies},
		{"ACP-BATCH-202", Mandatory, "a batch of notifications gets no answer", func(ctx context.Context, e *env) error {
			got, err := batch(ctx, e, `[{"jsonrpc":"2.0","method":"_roundtable/note"},{"jsonrpc":"2.0","method":"_roundtable/note"}]`, false)
			if err == nil && len(got) > 0 {
				err = errAnswered
			}
			return err
		}, applies},
		{"ACP-BATCH-203", Advisory, "an invalid entry gives -32600 and spoils no other", func(ctx context.Context, e *env) error {
			return answers(ctx, e, fmt.Sprintf("["+ping+",5]", "a"), `"a"`, "null")
		}, applies},
		{"ACP-BATCH-204", Advisory, "the answers come in one array", func(ctx context.Context, e *env) error {
			return answers(ctx, e, fmt.Sprintf("["+ping+","+ping+"]", "a", "b"), `"a"`, `"b"`)
		}, applies},
		{"ACP-BATCH-205", Advisory, "the answers are matched by their ids", func(ctx context.Context, e *env) error {
			return answers(ctx, e, fmt.Sprintf("["+ping+`,{"jsonrpc":"2.0","method":"_roundtable/note"},`+ping+"]", "b", "a"), `"b"`, `"a"`)
		}, applies},
	}
}
