package check

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

func v2Sessions() []row {
	del, dirs := needs("capabilities", "session", "delete"), needs("capabilities", "session", "additionalDirectories")
	listed := func(judge func(e *env, s json.RawMessage) error, params func(e *env) object) func(context.Context, *env) error {
		return func(ctx context.Context, e *env) error {
			l, _, err := e.session(ctx)
			if err != nil {
				return err
			}
			raw, err := l.result(ctx, "session/list", params(e))
			if err != nil {
				return err
			}
			if err := e.fits("ListSessionsResponse", raw); err != nil {
				return err
			}
			for _, s := range list(raw, "sessions") {
				if err := judge(e, s); err != nil {
					return err
				}
			}
			return nil
		}
	}
	all := func(*env) object { return object{} }
	rows := []row{
		{"ACP-SESSION-001", Capability, "session/new works", newSessionWorks, sessions},
		{"ACP-SESSION-002", Capability, "session ids are unique", idsAreUnique, sessions},
		{"ACP-SESSION-203", Capability, "mcpServers left out is []", func(ctx context.Context, e *env) error {
			l, err := e.open(ctx)
			if err == nil {
				_, _, err = l.newSession(ctx, object{"cwd": e.o.Dir})
			}
			return err
		}, sessions},
		{"ACP-LIST-201", Capability, "session/list lists", listed(func(*env, json.RawMessage) error { return nil }, all), sessions},
		{"ACP-LIST-202", Capability, "nothing that matches is []", emptyList, sessions},
		{"ACP-LIST-203", Capability, "a filter by directory is kept", listed(func(e *env, s json.RawMessage) error {
			if str(s, "cwd") != e.o.Dir {
				return fmt.Errorf("%s does not match", s)
			}
			return nil
		}, func(e *env) object { return object{"cwd": e.o.Dir} }), sessions},
		{"ACP-LIST-204", Capability, "directories are absolute", listed(func(_ *env, s json.RawMessage) error {
			if !filepath.IsAbs(str(s, "cwd")) {
				return fmt.Errorf("%s is not", s)
			}
			return nil
		}, all), sessions},
		{"ACP-CLOSE-201", Capability, "session/close works", closeWorks, sessions},
		{"ACP-DELETE-201", Capability, "session/delete works", func(ctx context.Context, e *env) error {
			l, id, err := e.session(ctx)
			if err == nil {
				_, err = l.result(ctx, "session/delete", object{"sessionId": id})
			}
			return err
		}, del},
		{"ACP-DELETE-202", Capability, "a deleted session is not listed", deletedIsGone, del},
		{"ACP-DELETE-203", Advisory, "deleting an unknown session succeeds", deleteUnknown, del},
		{"ACP-ADDDIRS-201", Capability, "session/new takes additional directories", addDirs, dirs},
		{"ACP-ADDDIRS-202", Capability, "session/resume takes additional directories", func(ctx context.Context, e *env) error {
			l, id, err := e.session(ctx)
			if err == nil {
				_, err = l.result(ctx, "session/resume", object{"sessionId": id, "cwd": e.o.Dir, "additionalDirectories": []string{"/"}})
			}
			return err
		}, dirs},
	}
	return append(rows, v2Resume()...)
}

func deletedIsGone(ctx context.Context, e *env) error {
	l, id, err := e.session(ctx)
	if err != nil {
		return err
	}
	if _, err := l.result(ctx, "session/delete", object{"sessionId": id}); err != nil {
		return err
	}
	raw, err := l.result(ctx, "session/list", object{})
	for _, s := range list(raw, "sessions") {
		if str(s, "sessionId") == id {
			return errors.New("it is still listed")
		}
	}
	return err
}

// resumed is a session after a turn, and what its resume brought.
type resumed struct {
	message       string // of the prompt before
	raw           json.RawMessage
	before, after []json.RawMessage
}

func v2Resume() []row {
	in := func(replay bool, judge func(e *env, r resumed) error) func(context.Context, *env) error {
		return func(ctx context.Context, e *env) error {
			l, id, err := e.session(ctx)
			if err != nil {
				return err
			}
			t, err := l.run(ctx, id, e.o.Prompt)
			if err != nil {
				return err
			}
			l.quiet(ctx)
			r := resumed{message: t.message}
			params := object{"sessionId": id, "cwd": e.o.Dir}
			if replay {
				params["replayFrom"] = object{"type": "start"}
			}
			from := len(l.seen)
			if r.raw, err = l.result(ctx, "session/resume", params); err != nil {
				return err
			}
			r.before, r.after = updates(l.seen[from:], id), updates(l.quiet(ctx), id)
			return judge(e, r)
		}
	}
	return []row{
		{"ACP-RESUME-201", Capability, "session/resume works", in(false, func(e *env, r resumed) error {
			return e.fits("ResumeSessionResponse", r.raw)
		}), sessions},
		{"ACP-RESUME-202", Capability, "a replay is over before the response", in(true, func(_ *env, r resumed) error {
			if slices.ContainsFunc(r.after, history) {
				return errors.New("history comes after the response")
			}
			return nil
		}), sessions},
		{"ACP-RESUME-203", Capability, "no replay that was not asked for", in(false, func(_ *env, r resumed) error {
			if slices.ContainsFunc(r.before, history) {
				return errors.New("history comes before the response")
			}
			return nil
		}), sessions},
		{"ACP-RESUME-204", Capability, "a replayed user message keeps its id", in(true, func(_ *env, r resumed) error {
			for _, u := range r.before {
				if strings.HasPrefix(str(u, "sessionUpdate"), "user_message") {
					if str(u, "messageId") != r.message {
						return fmt.Errorf("it was %q and is %q", r.message, str(u, "messageId"))
					}
					return nil
				}
			}
			return skip("no user message is replayed")
		}), sessions},
		{"ACP-RESUME-205", Capability, "in a replay, a chunk follows the whole message", in(true, func(_ *env, r resumed) error {
			whole := map[string]bool{}
			for _, u := range r.before {
				kind, id := str(u, "sessionUpdate"), str(u, "messageId")
				if strings.HasSuffix(kind, "_chunk") && id != "" && !whole[id] {
					return fmt.Errorf("a chunk of %q comes first", id)
				}
				whole[id] = true
			}
			return nil
		}), sessions},
	}
}

func v2Config() []row {
	in := func(judge func(ctx context.Context, e *env, l *link, id string, raw json.RawMessage) error) func(context.Context, *env) error {
		return func(ctx context.Context, e *env) error {
			l, err := e.open(ctx)
			if err != nil {
				return err
			}
			id, raw, err := l.newSession(ctx, object{"cwd": e.o.Dir})
			if err == nil && len(list(raw, "configOptions")) == 0 {
				err = skip("session/new returns no configOptions")
			}
			if err != nil {
				return err
			}
			return judge(ctx, e, l, id, raw)
		}
	}
	return []row{
		{"ACP-CONFIG-201", Capability, "configOptions are valid", in(func(_ context.Context, e *env, _ *link, _ string, raw json.RawMessage) error {
			return e.fits("NewSessionResponse", raw)
		}), sessions},
		{"ACP-CONFIG-202", Capability, "session/set_config_option returns the complete list", in(func(ctx context.Context, _ *env, l *link, id string, raw json.RawMessage) error {
			_, after, err := l.setFirst(ctx, id, list(raw, "configOptions"), object{"type": "id"})
			if err != nil {
				return err
			}
			return sameSet(list(raw, "configOptions"), list(after, "configOptions"), "configId")
		}), sessions},
		{"ACP-CONFIG-203", Capability, "session/resume returns valid options", in(func(ctx context.Context, e *env, l *link, id string, _ json.RawMessage) error {
			raw, err := l.result(ctx, "session/resume", object{"sessionId": id, "cwd": e.o.Dir})
			if err != nil {
				return err
			}
			return e.fits("ResumeSessionResponse", raw)
		}), sessions},
		{"ACP-CONFIG-204", Capability, "the current value is one of the options", in(func(_ context.Context, _ *env, _ *link, _ string, raw json.RawMessage) error {
			for _, o := range list(raw, "configOptions") {
				if str(o, "type") == "select" && !slices.Contains(selectValues(o), str(o, "currentValue")) {
					return fmt.Errorf("%s is at %q", str(o, "configId"), str(o, "currentValue"))
				}
			}
			return nil
		}), sessions},
		{"ACP-CONFIG-206", Capability, "config_option_update carries the complete list", in(func(ctx context.Context, e *env, l *link, id string, raw json.RawMessage) error {
			if _, err := l.run(ctx, id, e.o.Prompt); err != nil {
				return err
			}
			for _, u := range updates(l.seen, id) {
				if str(u, "sessionUpdate") == "config_option_update" {
					return sameSet(list(raw, "configOptions"), list(u, "configOptions"), "configId")
				}
			}
			return skip("there was none")
		}), sessions},
	}
}

func v2Auth() []row {
	none := func(e *env) string {
		if len(list(e.caps, "authMethods")) == 0 {
			return "there are no authMethods"
		}
		return ""
	}
	return []row{
		{"ACP-AUTH-201", Advisory, "the ids of authMethods are unique", authIDs("methodId"), nil},
		{"ACP-AUTH-202", Mandatory, "no terminal method for a client that does not offer it", noTerminalAuth, nil},
		{"ACP-AUTH-203", Capability, "auth/logout works", func(ctx context.Context, e *env) error {
			l, err := e.open(ctx)
			if err == nil {
				_, err = l.result(ctx, "auth/logout", object{})
			}
			return err
		}, none},
		{"ACP-AUTH-204", Capability, "after auth/login, session/new does not ask for it", authenticates("auth/login"), none},
		{"ACP-AUTH-205", Advisory, "without authMethods nothing asks for authentication", noAuthNeeded, nil},
		{"ACP-AUTH-206", Mandatory, "the types of authMethods are defined or custom", func(_ context.Context, e *env) error {
			for _, m := range list(e.caps, "authMethods") {
				if !defined(str(m, "type"), "agent", "terminal") {
					return fmt.Errorf("the type is %q", str(m, "type"))
				}
			}
			return nil
		}, nil},
		{"ACP-AUTH-207", Mandatory, "terminal methods are well-formed", func(ctx context.Context, e *env) error {
			l, err := e.start()
			if err != nil {
				return err
			}
			params := initParams(2)
			params["capabilities"] = object{"auth": object{"terminal": object{}}}
			raw, err := l.result(ctx, "initialize", params)
			if err != nil {
				return err
			}
			for _, m := range list(raw, "authMethods") {
				names := map[string]bool{}
				for _, v := range list(m, "env") {
					if name := str(v, "name"); name == "" || names[name] {
						return fmt.Errorf("%s has a variable without a name, or twice", m)
					}
					names[str(v, "name")] = true
				}
			}
			return e.fits("InitializeResponse", raw)
		}, isV2},
	}
}
