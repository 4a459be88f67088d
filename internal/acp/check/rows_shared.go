package check

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"roundtable/internal/acp"
	"roundtable/internal/acp/proc"
)

// aggregated are the rows about every line of all agents that were started.
func aggregated(version int) []row {
	broken := func(names ...string) func(context.Context, *env) error {
		return func(_ context.Context, e *env) error {
			e.broken.mu.Lock()
			defer e.broken.mu.Unlock()
			for _, name := range names {
				if text := e.broken.rules[name]; text != "" {
					return errors.New(text)
				}
			}
			return nil
		}
	}
	rows := []row{
		{"ACP-TRANSPORT-002", Mandatory, "standard output is UTF-8", broken("transport.utf8"), nil},
		{"ACP-JSONRPC-002", Mandatory, "a response has exactly one of result and error, an error an integer code and a string message", broken("response.shape"), nil},
		{"ACP-SCHEMA-001", Mandatory, "every message fits the schema", broken("schema.valid", "null.array"), nil},
		{"ACP-SCHEMA-002", Advisory, "no unknown properties at the root of messages, params and results", broken("root.fields"), nil},
	}
	if version == 1 {
		return append(rows, row{"ACP-TRANSPORT-001", Mandatory, "every line on standard output is one message", broken("transport.json", "transport.size"), nil})
	}
	return append(rows,
		row{"ACP-TRANSPORT-201", Mandatory, "every line on standard output is a message or a batch of some", broken("transport.json", "transport.size"), nil},
		row{"ACP-TRANSPORT-203", Mandatory, "a message is on one line", broken("transport.json"), nil},
		row{"ACP-META-201", Advisory, "_meta is an object or null", broken("root.fields"), nil},
		row{"ACP-PATCH-201", Capability, "message updates carry a messageId", broken("message.id", "schema.valid"), sessions},
		row{"ACP-PROMPT-205", Capability, "updates fit the schema and are about a known session", broken("schema.valid", "session.known"), sessions},
	)
}

// envelopeRows are about JSON-RPC itself.
func envelopeRows() []row {
	return []row{
		{"ACP-JSONRPC-001", Mandatory, "the id comes back as it was, integer and string", idsComeBack, nil},
		{"ACP-JSONRPC-003", Mandatory, "notifications are never answered", notificationsAreNotAnswered, nil},
		{"ACP-JSONRPC-004", Advisory, "an unknown method gives -32601", func(ctx context.Context, e *env) error {
			m, err := e.strange(ctx, "roundtable/unknown")
			if err == nil && (m.Error == nil || m.Error.Code != acp.CodeMethodNotFound) {
				err = fmt.Errorf("answered with %s", show(m))
			}
			return err
		}, nil},
		{"ACP-JSONRPC-005", Advisory, "the connection is usable after errors", usableAfterErrors, nil},
		{"ACP-EXT-001", Mandatory, "a request with a custom method gets an answer", func(ctx context.Context, e *env) error {
			_, err := e.strange(ctx, "_roundtable/custom")
			return err
		}, nil},
		{"ACP-ERROR-001", Advisory, "an error has a message of one line", func(ctx context.Context, e *env) error {
			m, err := e.strange(ctx, "roundtable/unknown")
			switch {
			case err != nil:
				return err
			case m.Error == nil:
				return skip("there was no error to look at")
			case m.Error.Message == "" || strings.ContainsAny(m.Error.Message, "\n\r"):
				return fmt.Errorf("the message is %q", m.Error.Message)
			}
			return nil
		}, nil},
		{"ACP-SHUTDOWN-001", Advisory, "the agent exits when its input is closed", func(ctx context.Context, e *env) error {
			l, err := e.open(ctx)
			if err != nil {
				return err
			}
			if r := l.stop(); r.Step != proc.StepStdin {
				return fmt.Errorf("it took %s to end it", r.Step)
			}
			return nil
		}, nil},
		{"ACP-INIT-001", Mandatory, "initialize succeeds with a valid result", func(ctx context.Context, e *env) error {
			l, err := e.open(ctx)
			if err != nil {
				return err
			}
			if e.version != e.o.Version {
				return nil // what it says is not of this version
			}
			return e.fits("InitializeResponse", l.init)
		}, nil},
		{"ACP-INIT-003", Mandatory, "an unsupported version is not echoed", unsupportedVersion, nil},
		{"ACP-META-001", Advisory, "a prompt with _meta is accepted", func(ctx context.Context, e *env) error {
			return e.accepts(ctx, object{"_meta": object{"roundtable": true}}, block(e.o.Prompt))
		}, sessions},
		{"ACP-PROMPT-003", Advisory, "a prompt of text and a resource link is accepted", func(ctx context.Context, e *env) error {
			return e.accepts(ctx, nil, block(e.o.Prompt), object{"type": "resource_link", "name": "x", "uri": "file:///x"})
		}, sessions},
	}
}

// sessions is the condition that the agent has sessions at all.
func sessions(e *env) string {
	if e.o.Version == 1 || has(e.caps, "capabilities", "session") {
		return ""
	}
	return "capabilities.session is not advertised"
}

func (e *env) strange(ctx context.Context, method string) (acp.Message, error) {
	l, err := e.open(ctx)
	if err != nil {
		return acp.Message{}, err
	}
	return l.call(ctx, method, object{})
}

// accepts runs a turn with a prompt.
func (e *env) accepts(ctx context.Context, extra object, blocks ...object) error {
	l, id, err := e.session(ctx)
	if err != nil {
		return err
	}
	t, err := l.prompt(id, extra, blocks...)
	if err != nil {
		return err
	}
	return l.finish(ctx, t)
}

func show(m acp.Message) string {
	if m.Error != nil {
		return m.Error.Error()
	}
	return string(m.Result)
}

func idsComeBack(ctx context.Context, e *env) error {
	l, err := e.open(ctx)
	if err != nil {
		return err
	}
	for _, id := range []acp.ID{acp.IntID(4711), acp.StringID("4712"), acp.StringID("an-id/ä"), acp.IntID(-1)} {
		if err := l.request(id, "_roundtable/ping", object{}); err != nil {
			return err
		}
		if _, err := l.response(ctx, id); err != nil {
			return err
		}
	}
	return l.clean("response.known_id")
}

func notificationsAreNotAnswered(ctx context.Context, e *env) error {
	l, err := e.open(ctx)
	if err != nil {
		return err
	}
	for _, method := range []string{"_roundtable/note", "session/cancel", "$/roundtable"} {
		if err := l.notify(method, object{"sessionId": "roundtable-nobody"}); err != nil {
			return err
		}
	}
	if _, err := l.call(ctx, "_roundtable/ping", object{}); err != nil {
		return err
	}
	l.quiet(ctx)
	for _, m := range l.seen {
		if m.Kind == acp.Response && (m.ID.IsNull() || m.ID.IsZero()) {
			return fmt.Errorf("%w: %s", errAnswered, show(m))
		}
	}
	return l.clean("response.known_id")
}

func usableAfterErrors(ctx context.Context, e *env) error {
	l, err := e.open(ctx)
	if err != nil {
		return err
	}
	for _, bad := range []string{"{bad", `{"foo":"bar"}`, `{"jsonrpc":"2.0","id":"bad-1","method":"session/prompt","params":{}}`} {
		if err := l.send(bad); err != nil {
			return err
		}
	}
	_, _, err = l.newSession(ctx, object{"cwd": e.o.Dir, "mcpServers": []any{}})
	return err
}

func unsupportedVersion(ctx context.Context, e *env) error {
	l, err := e.start()
	if err != nil {
		return err
	}
	raw, err := l.result(ctx, "initialize", initParams(65535))
	if err != nil {
		return err
	}
	var version int
	if json.Unmarshal(field(raw, "protocolVersion"), &version) != nil || version == 65535 || version < e.version {
		return fmt.Errorf("asked for 65535 it answers %s; asked for %d it answered %d", field(raw, "protocolVersion"), e.o.Version, e.version)
	}
	return nil
}

// promptCaps are the rows of the kinds of content.
func promptCaps(path ...string) []row {
	var rows []row
	for _, c := range []struct {
		id, name string
		block    object
	}{
		{"ACP-PROMPTCAP-001", "image", object{"type": "image", "mimeType": "image/png", "data": "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+/p9sAAAAASUVORK5CYII="}},
		{"ACP-PROMPTCAP-002", "audio", object{"type": "audio", "mimeType": "audio/wav", "data": "UklGRiQAAABXQVZFZm10IBAAAAABAAEAESsAACJWAAACABAAZGF0YQAAAAA="}},
		{"ACP-PROMPTCAP-003", "embeddedContext", object{"type": "resource", "resource": object{"uri": "file:///x", "mimeType": "text/plain", "text": "x"}}},
	} {
		rows = append(rows, row{c.id, Capability, "a prompt with " + c.name + " is accepted", func(ctx context.Context, e *env) error {
			return e.accepts(ctx, nil, block(e.o.Prompt), c.block)
		}, needs(append(append([]string{}, path...), c.name)...)})
	}
	return rows
}

// sameSet reports whether every id of the options before is among those after.
func sameSet(before, after []json.RawMessage, key string) error {
	for _, b := range before {
		found := false
		for _, a := range after {
			found = found || bytes.Equal(field(a, key), field(b, key))
		}
		if !found {
			return fmt.Errorf("the option %s is missing", field(b, key))
		}
	}
	return nil
}
