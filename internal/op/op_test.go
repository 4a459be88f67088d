package op_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

type castIn struct {
	Proposal string `json:"proposal_id"`
	Vote     string `json:"vote" enum:"approve,reject"`
}

type castOut struct {
	Vote string `json:"vote"`
}

func cast(change ...func(*op.Op)) op.Op {
	o := op.Op{
		Name: "vote.cast", Route: "POST /api/v1/workspaces/{workspace_id}/proposals/{proposal_id}/votes",
		Doc: "Cast a vote on the newest revision.", Effect: op.Records, May: op.May{Roles: []auth.Role{auth.Reviewer}},
	}
	for _, f := range change {
		f(&o)
	}
	return op.Of(o, func(_ context.Context, _ op.Call, in castIn) (castOut, error) { return castOut{in.Vote}, nil })
}

func who(kind auth.Kind, grants ...auth.Grant) auth.Principal {
	return auth.Principal{ID: "PR-1", Kind: kind, Grants: grants}
}

// TestOrder: who may not ask learns nothing about the input, and a scope that
// names the proposal is held after it was read.
func TestOrder(t *testing.T) {
	reviewer := who(auth.Agent, auth.Grant{Workspace: "WS-1", Role: auth.Reviewer})
	scoped := func(s auth.Scope) auth.Principal { p := reviewer; p.Scope = s; return p }
	const good = `{"proposal_id":"P-1","vote":"approve"}`
	for name, c := range map[string]struct {
		who  auth.Principal
		ws   string
		key  string
		in   string
		want string
	}{
		"done":              {reviewer, "WS-1", "k", good, ""},
		"nobody":            {auth.Principal{}, "WS-1", "", "not json", "authentication_required"},
		"no role":           {who(auth.Human, auth.Grant{Workspace: "WS-1", Role: auth.Viewer}), "WS-1", "", "not json", "forbidden"},
		"elsewhere":         {reviewer, "WS-2", "", "not json", "workspace_not_found"},
		"no workspace":      {reviewer, "", "", "not json", "workspace_required"},
		"bad input":         {reviewer, "WS-1", "", "not json", "malformed_json"},
		"no key":            {reviewer, "WS-1", " ", good, "idempotency_key_required"},
		"token workspace":   {scoped(auth.Scope{Workspace: "WS-9"}), "WS-1", "k", good, "token_scope"},
		"token operations":  {scoped(auth.Scope{Operations: []string{"vote.list"}}), "WS-1", "k", "not json", "token_scope"},
		"token proposal":    {scoped(auth.Scope{Proposal: "P-2"}), "WS-1", "k", good, "token_scope"},
		"token of a task":   {scoped(auth.Scope{Task: "T-1"}), "WS-1", "k", good, ""}, // whose the proposal is, is found where it is loaded
		"token of proposal": {scoped(auth.Scope{Proposal: "P-1"}), "WS-1", "k", good, ""},
	} {
		_, err := cast().Run(t.Context(), op.Call{Who: c.who, Workspace: c.ws, Key: c.key}, []byte(c.in))
		if got := fault.CodeOf(err); err == nil && c.want != "" || err != nil && got != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	apply := op.Op{Name: "x.y", Route: "POST /api/v1/x", May: op.May{Roles: []auth.Role{auth.Orchestrator}, Server: true}}
	err := apply.Allows(op.Call{Who: who(auth.Agent, auth.Grant{Workspace: "*", Role: auth.Viewer})})
	if err == nil || !strings.Contains(err.Error(), "roles admin, operator, orchestrator") {
		t.Errorf("not all that may are named: %v", err)
	}
}

// TestServerRights: rights over the server cannot be had through one
// workspace, nor by a token narrowed to a part.
func TestServerRights(t *testing.T) {
	everywhere := op.Op{Name: "log.list", Route: "GET /api/v1/events", May: op.May{Roles: []auth.Role{auth.Auditor}, Everywhere: true}}
	anywhere := op.Op{Name: "principal.create", Route: "POST /api/v1/principals", Effect: op.Records, May: op.May{Roles: []auth.Role{auth.Admin}, Server: true, Human: true}}
	narrow := who(auth.Human, auth.Grant{Workspace: "*", Role: auth.Admin}, auth.Grant{Workspace: "*", Role: auth.Auditor})
	narrow.Scope.Task = "T-1"
	single := narrow
	single.Scope = auth.Scope{Operations: []string{"principal.create"}}
	gives := anywhere
	gives.Rights = true
	for name, c := range map[string]struct {
		op   op.Op
		who  auth.Principal
		want string
	}{
		"auditor of one":      {everywhere, who(auth.Human, auth.Grant{Workspace: "WS-1", Role: auth.Auditor}), "forbidden"},
		"auditor of all":      {everywhere, who(auth.Human, auth.Grant{Workspace: "*", Role: auth.Auditor}), ""},
		"narrowed auditor":    {everywhere, narrow, "token_scope"},
		"admin of one":        {anywhere, who(auth.Human, auth.Grant{Workspace: "WS-1", Role: auth.Admin}), ""},
		"agent with the role": {anywhere, who(auth.Agent, auth.Grant{Workspace: "*", Role: auth.Admin}), "people_only"},
		"one op":              {anywhere, single, ""},
		"one op of rights":    {gives, single, "token_scope"},
		"narrowed admin":      {anywhere, narrow, "token_scope"},
	} {
		if err := c.op.Allows(op.Call{Who: c.who}); err == nil && c.want != "" || err != nil && fault.CodeOf(err) != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// TestTaskScope: a token of a task writes nothing that names neither the task
// nor a proposal, and reads the workspace but other tasks.
func TestTaskScope(t *testing.T) {
	type free struct {
		Name string `json:"name,omitempty"`
	}
	type both struct {
		Task     string `json:"task_id,omitempty"`
		Proposal string `json:"proposal_id,omitempty"`
	}
	run := func(context.Context, op.Call, free) (free, error) { return free{}, nil }
	of := func(context.Context, op.Call, both) (both, error) { return both{}, nil }
	o := func(route string, e op.Effect) op.Op {
		return op.Op{Name: "x.y", Route: route, Effect: e, May: op.May{Any: true}}
	}
	const ws = "/api/v1/workspaces/{workspace_id}/x"
	me := who(auth.Human, auth.Grant{Workspace: "WS-1", Role: auth.Operator})
	me.Scope.Task = "T-1"
	for name, c := range map[string]struct {
		op   op.Op
		in   string
		want string
	}{
		"write of neither field": {op.Of(o("POST "+ws, op.Records), run), `{}`, "token_scope"},
		"read of neither field":  {op.Of(o("GET "+ws, op.Reads), run), `{}`, ""},
		"write naming neither":   {op.Of(o("POST "+ws, op.Records), of), `{}`, "token_scope"},
		"write of another":       {op.Of(o("POST "+ws, op.Records), of), `{"task_id":"T-2","proposal_id":"P-1"}`, "token_scope"},
		"read of another":        {op.Of(o("GET "+ws, op.Reads), of), `{"task_id":"T-2"}`, "token_scope"},
		"write of the task":      {op.Of(o("POST "+ws, op.Records), of), `{"task_id":"T-1"}`, ""},
		"write of a proposal":    {op.Of(o("POST "+ws, op.Records), of), `{"proposal_id":"P-1"}`, ""},
	} {
		_, err := c.op.Run(t.Context(), op.Call{Who: me, Workspace: "WS-1", Key: "k"}, []byte(c.in))
		if err == nil && c.want != "" || err != nil && fault.CodeOf(err) != c.want {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

func TestCheck(t *testing.T) {
	if err := op.Check([]op.Op{cast()}); err != nil {
		t.Fatal(err)
	}
	for want, list := range map[string][]op.Op{
		"used twice":       {cast(), cast(func(o *op.Op) { o.Route = "POST /api/v1/votes/{proposal_id}" })},
		"route POST":       {cast(), cast(func(o *op.Op) { o.Name = "vote.put"; o.Route = strings.ReplaceAll(o.Route, "proposal_id", "vote") })},
		"noun.verb":        {cast(func(o *op.Op) { o.Name = "voteCast" })},
		"only reads":       {cast(func(o *op.Op) { o.Route = strings.Replace(o.Route, "POST", "GET", 1) })},
		"{id} is no":       {cast(func(o *op.Op) { o.Route = "POST /api/v1/votes/{id}" })},
		"one sentence":     {cast(func(o *op.Op) { o.Doc = "Cast. A vote." })},
		"of the form":      {cast(func(o *op.Op) { o.Route = "POST /other" })},
		"rights over":      {cast(func(o *op.Op) { o.May.Server = true })},
		"nothing enforces": {func() op.Op { o := cast(); o.In.Properties["vote"].Pattern = "x"; return o }()},
		"may not have workspace_id": {func() op.Op {
			o := cast()
			o.In.Properties["workspace_id"] = o.In.Properties["vote"]
			return o
		}()},
	} {
		if err := op.Check(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

func TestWorkspace(t *testing.T) {
	list := func(context.Context) ([]string, error) { return []string{"WS-1", "WS-2", "WS-3"}, nil }
	one := who(auth.Agent, auth.Grant{Workspace: "WS-2", Role: auth.Viewer})
	narrowed := who(auth.Agent, auth.Grant{Workspace: "*", Role: auth.Viewer})
	narrowed.Scope.Workspace = "WS-3"
	for name, c := range map[string]struct {
		who         auth.Principal
		asked, want string
		code        string
	}{
		"asked":    {one, "WS-9", "WS-9", ""},
		"the only": {one, "", "WS-2", ""},
		"narrowed": {narrowed, "", "WS-3", ""},
		"several":  {who(auth.Agent, auth.Grant{Workspace: "*", Role: auth.Viewer}), "", "", "workspace_required"},
		"none":     {who(auth.Agent), "", "", "workspace_not_found"},
	} {
		got, err := op.Workspace(t.Context(), c.who, c.asked, list)
		if got != c.want || c.code != "" && fault.CodeOf(err) != c.code || c.code == "" && err != nil {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestSchemaTags(t *testing.T) {
	s := op.SchemaOf[struct {
		Names []string `json:"names" jsonschema:"who they are" enum:"a,b" maxitems:"2"`
		Share *float64 `json:"share,omitempty" max:"1"`
		When  []byte   `json:"when,omitempty"`
	}]()
	names := s.Properties["names"]
	if names.Type != "array" || names.Description != "who they are" || *names.MaxItems != 2 || !slices.Equal(names.Items.Enum, []any{"a", "b"}) {
		t.Errorf("names: %+v", names)
	}
	if p := s.Properties["share"]; p.Type != "number" || *p.Maximum != 1 || s.Properties["when"].Type != "string" {
		t.Errorf("share: %+v", p)
	}
	defer func() {
		if recover() == nil {
			t.Error("a tag that cannot be read was taken")
		}
	}()
	op.SchemaOf[struct {
		N int `json:"n" min:"one"`
	}]()
}
