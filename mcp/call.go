package mcp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"math"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
	"github.com/oklog/ulid/v2"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// handler runs o for one tool call. It never returns an error: the library
// would hide from the model what it says.
func (s *Server) handler(o op.Op) server.ToolHandlerFunc {
	return func(ctx context.Context, r mcp.CallToolRequest) (res *mcp.CallToolResult, _ error) {
		request := cmp.Or(callerOf(ctx).request, s.newID())
		defer func() {
			if p := recover(); p != nil {
				s.Logger.ErrorContext(ctx, "tool panicked", "tool", o.Name, "request", request, "panic", p, "stack", string(debug.Stack()))
				res = refusal(op.Problem(errors.New("panic"), request))
			}
		}()
		out, err := s.run(ctx, o, request, r)
		if err == nil {
			return answer(ctx, out), nil
		}
		if ctx.Err() != nil && fault.KindOf(err) == fault.Internal {
			err = fault.Errorf(fault.Unavailable, "cancelled", "The call was cancelled before it was done.")
		}
		if fault.KindOf(err) == fault.Internal {
			s.Logger.ErrorContext(ctx, "tool failed", "tool", o.Name, "request", request, "err", err)
		}
		return refusal(op.Problem(err, request)), nil
	}
}

// run calls o and returns its answer as JSON.
func (s *Server) run(ctx context.Context, o op.Op, request string, r mcp.CallToolRequest) (json.RawMessage, error) {
	c := callerOf(ctx)
	if s.Limiter != nil && !c.counted {
		if wait, ok := s.Limiter.Take(c.who.ID); !ok {
			return nil, tooFast(wait)
		}
	}
	raw, err := arguments(r)
	if err != nil {
		return nil, err
	}
	call := op.Call{Who: c.who, Request: request}
	in, err := s.takeExtras(ctx, o, raw, &call)
	if err != nil {
		return nil, err
	}
	out, err := o.Run(ctx, call, in)
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	if o.Writes() {
		s.seen.wrote(c.who.ID, positionOf(b))
	}
	return b, nil
}

// arguments returns the bytes that were sent, if any were.
func arguments(r mcp.CallToolRequest) ([]byte, error) {
	raw := []byte(r.Params.RawArguments)
	if raw == nil && r.Params.Arguments != nil {
		var err error
		if raw, err = json.Marshal(r.Params.Arguments); err != nil {
			return nil, err
		}
	}
	if t := bytes.TrimSpace(raw); len(t) == 0 || string(t) == "null" {
		return []byte("{}"), nil
	}
	return raw, nil
}

// takeExtras fills c from the arguments that are not o's own, and returns
// those that are, as they were sent.
func (s *Server) takeExtras(ctx context.Context, o op.Op, raw []byte, c *op.Call) ([]byte, error) {
	ms, err := members(raw)
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "invalid_field", "The arguments must be a JSON object.")
	}
	mine := extras(o)
	took := map[string]json.RawMessage{}
	var twice string
	ms = slices.DeleteFunc(ms, func(m member) bool {
		if mine[m.name] == nil {
			return false
		}
		if took[m.name] != nil {
			twice = m.name
		}
		took[m.name] = m.value
		return true
	})
	if twice != "" {
		return nil, fault.Errorf(fault.Invalid, "malformed_json", "The argument %s is there twice.", twice).At("/"+twice, "duplicate name")
	}
	if c.Key, err = textOf(took, argKey); err != nil {
		return nil, err
	}
	if o.Writes() && strings.TrimSpace(c.Key) == "" {
		c.Key = s.newID() // a client that names no key wishes for something new each time
	}
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	if len(c.Key) > 255 || strings.ContainsFunc(c.Key, odd) {
		return nil, fault.Errorf(fault.Invalid, "invalid_idempotency_key", "An idempotency key has at most 255 printable ASCII characters.").At("/"+argKey, "must be at most 255 printable ASCII characters")
	}
	if c.After, err = s.after(o, took[argAfter], c.Who.ID); err != nil {
		return nil, err
	}
	if o.InWorkspace() {
		asked, err := textOf(took, argWorkspace)
		if err != nil {
			return nil, err
		}
		list := func(ctx context.Context) ([]string, error) { return s.Workspaces(ctx, c.Who) }
		if c.Workspace, err = op.Workspace(ctx, c.Who, asked, list); err != nil {
			return nil, err
		}
	}
	return object(ms), nil
}

func textOf(took map[string]json.RawMessage, name string) (text string, err error) {
	raw := took[name]
	if raw == nil || string(raw) == "null" {
		return "", nil
	}
	if json.Unmarshal(raw, &text) != nil {
		return "", fault.Errorf(fault.Invalid, "invalid_field", "%s must be a string.", name).At("/"+name, "must be a string")
	}
	return text, nil
}

// after is the position that a read waits for: what the caller asks for, and
// its own writes.
func (s *Server) after(o op.Op, raw json.RawMessage, who string) (int64, error) {
	if o.Writes() {
		return 0, nil
	}
	var asked int64
	if raw != nil && (json.Unmarshal(raw, &asked) != nil || asked < 0) {
		return 0, fault.Errorf(fault.Invalid, "invalid_field", "after must be the position that a command was answered with").At("/"+argAfter, "must be a position")
	}
	return max(asked, s.seen.of(who)), nil
}

// positionOf returns the log position in the answer to a write, or 0.
func positionOf(answer []byte) int64 {
	var a struct {
		Position int64 `json:"position"`
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0
	}
	return a.Position
}

func (s *Server) newID() string {
	return ulid.MustNew(ulid.Timestamp(s.Now()), rand.Reader).String()
}

func tooFast(wait time.Duration) *fault.Error {
	seconds := int(math.Ceil(wait.Seconds()))
	return fault.Errorf(fault.Limit, "rate_limited", "Too many requests; ask again in %d s.", seconds).With("retry_after_seconds", seconds)
}
