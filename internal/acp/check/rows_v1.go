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

// v1Rows are the rows of protocol version 1.
func v1Rows() []row {
	rows := envelopeRows()
	rows = append(rows,
		row{"ACP-INIT-002", Mandatory, "a request for version 1 gives version 1", func(_ context.Context, e *env) error {
			if e.version != 1 {
				return fmt.Errorf("it gives %d", e.version)
			}
			return nil
		}, nil},
		row{"ACP-INIT-004", Advisory, "agentInfo is there", func(_ context.Context, e *env) error {
			if str(e.caps, "agentInfo", "name") == "" {
				return errors.New("there is none")
			}
			return nil
		}, nil},
		row{"ACP-SESSION-001", Mandatory, "session/new works", newSessionWorks, nil},
		row{"ACP-SESSION-002", Mandatory, "session ids are unique", idsAreUnique, nil},
		row{"ACP-PROMPT-001", Mandatory, "a turn ends with a defined stop reason", func(ctx context.Context, e *env) error {
			l, id, err := e.session(ctx)
			if err != nil {
				return err
			}
			t, err := l.run(ctx, id, e.o.Prompt)
			if err == nil && !slices.Contains([]string{"end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"}, t.stop) {
				err = fmt.Errorf("it ends with %q", t.stop)
			}
			return err
		}, nil},
		row{"ACP-PROMPT-002", Mandatory, "updates fit the schema and carry the session id", func(ctx context.Context, e *env) error {
			l, id, err := e.session(ctx)
			if err != nil {
				return err
			}
			if _, err := l.run(ctx, id, e.o.Prompt); err != nil {
				return err
			}
			return l.clean("schema.valid", "session.known", "null.array", "toolcall.announced", "toolcall.status")
		}, nil},
		row{"ACP-CANCEL-001", Mandatory, "a cancelled turn ends as success with cancelled", cancelled, nil},
		row{"ACP-CANCEL-002", Mandatory, "no update of a turn after its response", func(ctx context.Context, e *env) error {
			l, id, _, err := e.cancelledTurn(ctx)
			if err != nil {
				return err
			}
			for _, u := range updates(l.quiet(ctx), id) {
				if history(u) {
					return fmt.Errorf("after the response comes %s", u)
				}
			}
			return nil
		}, nil},
	)
	rows = append(rows, loadRows()...)
	rows = append(rows, lifeRows()...)
	rows = append(rows, settingRows()...)
	rows = append(rows, promptCaps("agentCapabilities", "promptCapabilities")...)
	return append(rows, authRows()...)
}

func newSessionWorks(ctx context.Context, e *env) error {
	l, err := e.open(ctx)
	if err != nil {
		return err
	}
	_, raw, err := l.newSession(ctx, object{"cwd": e.o.Dir, "mcpServers": []any{}})
	if err != nil {
		return err
	}
	return e.fits("NewSessionResponse", raw)
}

func idsAreUnique(ctx context.Context, e *env) error {
	l, first, err := e.session(ctx)
	if err != nil {
		return err
	}
	second, _, err := l.newSession(ctx, object{"cwd": e.o.Dir, "mcpServers": []any{}})
	if err == nil && first == second {
		err = fmt.Errorf("two sessions have the id %s", first)
	}
	return err
}

// cancelledTurn runs a turn that is cancelled at once.
func (e *env) cancelledTurn(ctx context.Context) (*link, string, *turn, error) {
	l, id, err := e.session(ctx)
	if err != nil {
		return nil, "", nil, err
	}
	text := e.o.CancelPrompt
	if text == "" {
		text = e.o.Prompt
	}
	t, err := l.prompt(id, nil, block(text))
	if err != nil {
		return nil, "", nil, err
	}
	if err := l.notify("session/cancel", object{"sessionId": id}); err != nil {
		return nil, "", nil, err
	}
	if err := l.finish(ctx, t); err != nil {
		return nil, "", nil, err
	}
	if t.stop != "cancelled" && e.o.CancelPrompt == "" {
		return nil, "", nil, skip("the turn ended before the cancel; a cancel prompt would keep the agent busy")
	}
	return l, id, t, nil
}

func cancelled(ctx context.Context, e *env) error {
	_, _, t, err := e.cancelledTurn(ctx)
	if err == nil && t.stop != "cancelled" {
		err = fmt.Errorf("it ends with %q", t.stop)
	}
	return err
}

func loadRows() []row {
	load := needs("agentCapabilities", "loadSession")
	resume := needs("agentCapabilities", "sessionCapabilities", "resume")
	// again runs a turn, and calls the method for its session on the same
	// connection.
	again := func(ctx context.Context, e *env, method string) (l *link, id string, before []json.RawMessage, raw json.RawMessage, err error) {
		l, id, err = e.session(ctx)
		if err != nil {
			return
		}
		if _, err = l.run(ctx, id, e.o.Prompt); err != nil {
			return
		}
		l.quiet(ctx)
		from := len(l.seen)
		raw, err = l.result(ctx, method, object{"sessionId": id, "cwd": e.o.Dir, "mcpServers": []any{}})
		return l, id, updates(l.seen[from:], id), raw, err
	}
	return []row{
		{"ACP-LOAD-001", Capability, "session/load replays the conversation before its response", func(ctx context.Context, e *env) error {
			_, _, before, _, err := again(ctx, e, "session/load")
			if err == nil && !slices.ContainsFunc(before, history) {
				err = errors.New("no update of the conversation comes before the response")
			}
			return err
		}, load},
		{"ACP-LOAD-002", Capability, "no replay after the response", func(ctx context.Context, e *env) error {
			l, id, _, _, err := again(ctx, e, "session/load")
			if err == nil && slices.ContainsFunc(updates(l.quiet(ctx), id), history) {
				err = errors.New("an update of the conversation comes after the response")
			}
			return err
		}, load},
		{"ACP-LOAD-003", Advisory, "the result is an object, not null", func(ctx context.Context, e *env) error {
			_, _, _, raw, err := again(ctx, e, "session/load")
			if err == nil && !strings.HasPrefix(string(raw), "{") {
				err = fmt.Errorf("it is %s", raw)
			}
			return err
		}, load},
		{"ACP-RESUME-001", Capability, "session/resume works", func(ctx context.Context, e *env) error {
			_, _, _, _, err := again(ctx, e, "session/resume")
			return err
		}, resume},
		{"ACP-RESUME-002", Capability, "session/resume replays nothing", func(ctx context.Context, e *env) error {
			_, _, before, _, err := again(ctx, e, "session/resume")
			if err == nil && slices.ContainsFunc(before, history) {
				err = errors.New("an update of the conversation comes before the response")
			}
			return err
		}, resume},
	}
}

func lifeRows() []row {
	cap := func(name string) func(*env) string { return needs("agentCapabilities", "sessionCapabilities", name) }
	return []row{
		{"ACP-LIST-001", Capability, "session/list lists", func(ctx context.Context, e *env) error {
			l, _, err := e.session(ctx)
			if err != nil {
				return err
			}
			raw, err := l.result(ctx, "session/list", object{})
			if err != nil {
				return err
			}
			return e.fits("ListSessionsResponse", raw)
		}, cap("list")},
		{"ACP-LIST-002", Capability, "nothing that matches is []", emptyList, cap("list")},
		{"ACP-DELETE-001", Capability, "session/delete works", func(ctx context.Context, e *env) error {
			l, id, err := e.session(ctx)
			if err == nil {
				_, err = l.result(ctx, "session/delete", object{"sessionId": id})
			}
			return err
		}, cap("delete")},
		{"ACP-DELETE-002", Advisory, "deleting an unknown session succeeds", deleteUnknown, cap("delete")},
		{"ACP-CLOSE-001", Capability, "session/close works", closeWorks, cap("close")},
		{"ACP-CLOSE-002", Capability, "session/close cancels the running prompt", closeCancels, cap("close")},
		{"ACP-ADDDIRS-001", Capability, "session/new takes additional directories", addDirs, cap("additionalDirectories")},
	}
}

func emptyList(ctx context.Context, e *env) error {
	l, err := e.open(ctx)
	if err != nil {
		return err
	}
	raw, err := l.result(ctx, "session/list", object{"cwd": "/roundtable/nobody/uses/this"})
	if err == nil && string(field(raw, "sessions")) != "[]" {
		err = fmt.Errorf("sessions is %s", field(raw, "sessions"))
	}
	return err
}

func deleteUnknown(ctx context.Context, e *env) error {
	l, err := e.open(ctx)
	if err == nil {
		_, err = l.result(ctx, "session/delete", object{"sessionId": "roundtable-nobody"})
	}
	return err
}

func closeWorks(ctx context.Context, e *env) error {
	l, id, err := e.session(ctx)
	if err != nil {
		return err
	}
	raw, err := l.result(ctx, "session/close", object{"sessionId": id})
	if err != nil {
		return err
	}
	return e.fits("CloseSessionResponse", raw)
}

// closeCancels closes a session whose prompt runs.
func closeCancels(ctx context.Context, e *env) error {
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
	closing := l.id()
	if err := l.request(closing, "session/close", object{"sessionId": id}); err != nil {
		return err
	}
	closed := false
	for !t.ended || !closed {
		m, err := l.next(ctx, e.o.Limit)
		if err != nil {
			return fmt.Errorf("the turn does not end with its session: %w", err)
		}
		t.note(e.o.Version, m)
		if m.Kind == acp.Response && m.ID == closing {
			closed = true
			if m.Error != nil {
				return m.Error
			}
		}
	}
	if t.stop != "cancelled" {
		return fmt.Errorf("it ends with %q", t.stop)
	}
	return nil
}

func addDirs(ctx context.Context, e *env) error {
	l, err := e.open(ctx)
	if err == nil {
		_, _, err = l.newSession(ctx, object{"cwd": e.o.Dir, "mcpServers": []any{}, "additionalDirectories": []string{"/"}})
	}
	return err
}
