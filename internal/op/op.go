// Package op describes what can be asked of the product, once for all
// transports: HTTP routes, MCP tools, CLI commands, the OpenAPI document and
// the tests of rights are all made from the same list of Ops.
//
// What always holds: an input is refused before anything runs when it is not
// strict JSON of the op's schema; the caller's right is checked before
// anything is read or written; no input names the caller.
package op

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
)

// A Call is what surrounds an input.
type Call struct {
	Who       auth.Principal
	Workspace string // id; "" of an op that is the server's
	Key       string // of a write: asking again under it does nothing more
	After     int64  // of a read: wait for the effect of the command that answered this position
	Request   string // id of the request, for the log and for correlation
	Body      []byte // what was sent beside the input as it stands, such as a patch; nil of most calls
}

// Effect is what an op may change.
type Effect int

// The effects, weakest first.
const (
	Reads   Effect = iota // nothing
	Records               // the history, and what is made from it
	Changes               // the repository's files
)

// May says who may ask.
type May struct {
	Roles      []auth.Role // any of these in the workspace; none: whoever is known to the server
	Any        bool        // any role in the workspace
	Human      bool        // people only
	Server     bool        // the roles count in any workspace, since the op concerns none
	Everywhere bool        // the roles count only if they are held in all workspaces, since the op concerns all
}

// An Op is one thing that can be asked.
type Op struct {
	Name   string // "proposal.create": CLI "proposal create", tool proposal_create, OpenAPI operationId
	Route  string // "POST /api/v1/workspaces/{workspace_id}/proposals"; a {x} fills input field x
	Doc    string // one sentence: what, and when to use it
	Tool   bool   // offered over MCP
	May    May
	Effect Effect
	Rights bool // it gives rights: no narrowed token may, or it could make itself a wider one
	Status int  // of success over HTTP; 0 is 200
	Later  bool // what it began may go on after the answer, which has the status 202 then
	In     *jsonschema.Schema
	Out    *jsonschema.Schema
	Run    func(ctx context.Context, c Call, in []byte) (any, error)

	// Shortfall says why what was asked for has not come true though it was
	// answered: an apply that failed, a history that does not verify. A
	// program that ends with an exit code ends with that of the fault. It is
	// nil of an op whose answer always means that it is done, and so is what
	// it returns of such an answer.
	Shortfall func(answer []byte) *fault.Error
}

// Writes reports whether o takes an idempotency key.
func (o Op) Writes() bool { return o.Effect != Reads }

// InWorkspace reports whether o concerns one workspace.
func (o Op) InWorkspace() bool { return strings.Contains(o.Route, "{workspace_id}") }

// Params returns the names of the parameters in o's path, in order.
func (o Op) Params() []string {
	var names []string
	for seg := range strings.SplitSeq(o.Route, "/") {
		if name, ok := strings.CutPrefix(seg, "{"); ok {
			names = append(names, strings.TrimSuffix(name, "}"))
		}
	}
	return names
}

// Of completes o, whose input and output are the Go types I and O. An output
// schema that o already has is kept.
func Of[I, O any](o Op, run func(context.Context, Call, I) (O, error)) Op {
	o.In = SchemaOf[I]()
	if o.Out == nil {
		o.Out = SchemaOf[O]()
	}
	scoped := scopedFields(o.In)
	o.Run = func(ctx context.Context, c Call, in []byte) (any, error) {
		if err := o.Allows(c); err != nil {
			return nil, err
		}
		var i I
		if err := Decode(in, o.In, &i); err != nil {
			return nil, err
		}
		if err := o.withinScope(c, in, scoped); err != nil {
			return nil, err
		}
		if o.Writes() {
			if err := CheckKey(c.Key); err != nil {
				return nil, err
			}
		}
		return run(ctx, c, i)
	}
	return o
}

// MaxKey bounds an idempotency key, in bytes.
const MaxKey = 255

// CheckKey checks an idempotency key: at most MaxKey printable ASCII characters
// and not blank.
func CheckKey(key string) error {
	odd := func(c rune) bool { return c < ' ' || c > '~' }
	switch {
	case strings.TrimSpace(key) == "":
		return fault.Errorf(fault.Invalid, "idempotency_key_required", "a call that changes something needs an idempotency key, over HTTP the header Idempotency-Key: a text of your own that is new for each new wish and the same when you repeat one")
	case len(key) > MaxKey || strings.ContainsFunc(key, odd):
		return fault.Errorf(fault.Invalid, "invalid_idempotency_key", "an idempotency key is at most %d printable ASCII characters", MaxKey)
	}
	return nil
}

// Allows checks whether the caller's kind, roles and token let it ask for o at
// all, whatever the input. Run does it too: a transport that asks before it
// reads a large input spares itself the reading.
func (o Op) Allows(c Call) error {
	m, who := o.May, c.Who
	ws := c.Workspace
	if m.Server {
		ws = ""
	}
	switch {
	case who.ID == "":
		return fault.Errorf(fault.Unauthenticated, "authentication_required", "this call needs a token")
	case m.Human && who.Kind != auth.Human:
		return fault.Errorf(fault.Forbidden, "people_only", "%s is for people; a token of kind %s cannot, whatever its roles", o.Name, who.Kind)
	case o.InWorkspace() && ws == "":
		return fault.Errorf(fault.Invalid, "workspace_required", "say which workspace: this token can see several").At("/workspace_id", "is required")
	case o.InWorkspace() && !who.Reads(ws):
		return fault.Errorf(fault.NotFound, "workspace_not_found", "there is no workspace %s that this token can see", ws)
	case m.Everywhere && !who.Everywhere(m.Roles...):
		return fault.Errorf(fault.Forbidden, "forbidden", "%s needs one of the roles %s in all workspaces", o.Name, m.RoleNames()).
			Then("principal.get", nil, "admin", "an admin can grant the role")
	case len(m.Roles) > 0 && !who.Has(ws, m.Roles...):
		return fault.Errorf(fault.Forbidden, "forbidden", "%s needs one of the roles %s", o.Name, m.RoleNames()).
			Then("principal.get", nil, "admin", "an admin can grant the role")
	}
	return o.inScope(c)
}

// inScope checks what the token is narrowed to as far as no input is needed.
// A narrowed token has none of its principal's rights over the server as a
// whole: with them it could make itself a wider one.
func (o Op) inScope(c Call) error {
	s := c.Who.Scope
	narrow := s.Workspace != "" || s.Task != "" || s.Proposal != ""
	switch {
	case s.Workspace != "" && o.InWorkspace() && c.Workspace != s.Workspace:
		return outOfScope("workspace", s.Workspace)
	case len(s.Operations) > 0 && !slices.Contains(s.Operations, o.Name):
		return outOfScope("the operations", strings.Join(s.Operations, ", "))
	case o.Rights && s.Narrows():
		return outOfScope("less than its principal may do, and", o.Name+" gives rights")
	case narrow && !o.InWorkspace() && (o.Writes() || o.May.Server || o.May.Everywhere):
		return outOfScope("a part of one workspace, and "+o.Name, "concerns the server")
	}
	return nil
}

func outOfScope(what, want string) error {
	return fault.Errorf(fault.Forbidden, "token_scope", "this token is narrowed to %s %s", what, want)
}

// scopedFields returns which of the fields that a token can be narrowed to
// stand in the input.
func scopedFields(in *jsonschema.Schema) map[string]bool {
	have := map[string]bool{}
	for _, f := range []string{"task_id", "proposal_id"} {
		have[f] = in.Properties[f] != nil
	}
	return have
}

// withinScope checks what the token is narrowed to by the input. A narrowed
// token may read its workspace, and write only what names its task or
// proposal. Of a token of a task an input may name a proposal instead: whether
// that is of the task is for whoever loads it to say.
func (o Op) withinScope(c Call, in []byte, has map[string]bool) error {
	s := c.Who.Scope
	if s.Task == "" && s.Proposal == "" {
		return nil
	}
	var named struct {
		Task     string `json:"task_id"`
		Proposal string `json:"proposal_id"`
	}
	if err := json.Unmarshal(in, &named); err != nil && len(bytes.TrimSpace(in)) > 0 {
		return err
	}
	if s.Proposal != "" && (named.Proposal != s.Proposal && (o.Writes() || has["proposal_id"])) {
		return outOfScope("proposal", s.Proposal)
	}
	other := named.Task != s.Task && named.Task != ""
	if s.Task != "" && (other || o.Writes() && named.Task == "" && named.Proposal == "") {
		return outOfScope("task", s.Task)
	}
	return nil
}

// RoleNames names every role that may ask, those that bring one of m's with them
// among them.
func (m May) RoleNames() string {
	var s []string
	for _, r := range auth.Having(m.Roles...) {
		s = append(s, string(r))
	}
	return strings.Join(s, ", ")
}
