package commands

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// AddWorkspace puts a folder under governance.
type AddWorkspace struct {
	Root  string `json:"root" jsonschema:"absolute path of a Git work tree or folder on the server"`
	Label string `json:"name,omitempty" jsonschema:"unique on this server; default: the folder's name"`
}

// Name is the command's on the wire.
func (AddWorkspace) Name() string { return "workspace.add" }

func (c AddWorkspace) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	type found struct{ root, kind string }
	f, err := fact(u, "root "+c.Root, func() (f found, err error) {
		f.root, f.kind, err = u.h.World.Root(ctx, c.Root)
		return f, err
	})
	if err != nil {
		return nil, err
	}
	ws, err := load[domain.Workspaces](ctx, u, events.WorkspacesStream)
	if err != nil {
		return nil, err
	}
	name := c.Label
	if name == "" {
		name = domain.WorkspaceName(filepath.Base(f.root))
	}
	u.ids["workspace"] = u.id("WS")
	e := events.WorkspaceAdded{Workspace: u.ids["workspace"], Name: name, Root: f.root, Kind: f.kind}
	added, err := ws.Add(e)
	if err != nil {
		return nil, err
	}
	t := begin[domain.Tree](u, events.TreeStream(e.Workspace))
	t.Asks = u.mode(e.Kind)
	return append(added, t.TakeMode(e.Workspace, nil, u.now)...), nil
}

// CreatePrincipal makes someone who can be given credentials.
type CreatePrincipal struct {
	Label  string      `json:"name" jsonschema:"unique on this server"`
	Kind   string      `json:"kind" enum:"human,agent,service"`
	Owner  string      `json:"owner,omitempty" jsonschema:"the person or team it works for; agents and services need one"`
	Vendor string      `json:"vendor,omitempty"`
	Model  string      `json:"model,omitempty"`
	Roles  []wire.Role `json:"roles"`
}

// Name is the command's on the wire.
func (CreatePrincipal) Name() string { return "principal.create" }

func (c CreatePrincipal) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	d, err := load[domain.Directory](ctx, u, events.DirectoryStream)
	if err != nil {
		return nil, err
	}
	ws, err := load[domain.Workspaces](ctx, u, events.WorkspacesStream)
	if err != nil {
		return nil, err
	}
	var grants []auth.Grant
	for _, r := range c.Roles {
		grants = append(grants, auth.Grant{Workspace: r.Workspace, Role: auth.Role(r.Role)})
	}
	u.ids["principal"] = u.id("PR")
	e := events.PrincipalCreated{Principal: u.ids["principal"], Name: c.Label, Kind: c.Kind, Owner: c.Owner, Vendor: c.Vendor, Model: c.Model}
	return d.Create(e, grants, u.caller.Who, ws)
}

// IssueToken makes a credential. Whoever sends it has made the token itself
// and shows it once; only the hash comes here.
type IssueToken struct {
	Principal string     `json:"principal_id" jsonschema:"whose credential; its name is fine too"`
	ExpiresIn int        `json:"expires_in_seconds,omitempty" jsonschema:"default 30 days, at most 366 days" min:"1" max:"31622400"`
	Scope     auth.Scope `json:"scope,omitzero" jsonschema:"what the token is narrowed to"`
	id, hash  string
}

// Name is the command's on the wire.
func (IssueToken) Name() string { return "token.issue" }

func (c IssueToken) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	d, err := load[domain.Directory](ctx, u, events.DirectoryStream)
	if err != nil {
		return nil, err
	}
	who, err := d.Get(c.Principal)
	if err != nil {
		return nil, err
	}
	if err := c.checkScope(ctx, u, who); err != nil {
		return nil, err
	}
	if c.ExpiresIn == 0 {
		c.ExpiresIn = 30 * 24 * 3600
	}
	u.ids["token"] = c.id
	return d.Issue(events.TokenIssued{Token: c.id, Principal: who.ID, Hash: c.hash, Scope: events.TokenScope(c.Scope),
		ExpiresAt: u.now.Add(time.Duration(c.ExpiresIn) * time.Second)}, u.caller.Who, u.now)
}

// checkScope checks that what the token is narrowed to is there, as far as the
// principal can see: a name that was mistyped would lock it out, or come to be
// somebody else's.
func (c IssueToken) checkScope(ctx context.Context, u *unit, who auth.Principal) error {
	for _, name := range c.Scope.Operations {
		if err := u.h.knows(name); err != nil {
			return err
		}
	}
	s := c.Scope
	seen := func(workspace, code, field, id string) error {
		if workspace == "" || !who.Reads(workspace) || s.Workspace != "" && workspace != s.Workspace {
			return fault.Errorf(fault.NotFound, code, "there is no %s %.80q that this token could see", field, id).At("/scope/"+field, "unknown")
		}
		return nil
	}
	if s.Workspace != "" {
		ws, err := load[domain.Workspaces](ctx, u, events.WorkspacesStream)
		if err != nil {
			return err
		}
		if _, err := ws.Get(s.Workspace); err != nil {
			return err
		}
		if err := seen(s.Workspace, "workspace_not_found", "workspace_id", s.Workspace); err != nil {
			return err
		}
	}
	if s.Task != "" {
		t, err := load[domain.Task](ctx, u, events.TaskStream(s.Task))
		if err != nil {
			return err
		}
		if err := seen(t.Workspace, "task_not_found", "task_id", s.Task); err != nil {
			return err
		}
	}
	if s.Proposal != "" {
		p, err := load[domain.Proposal](ctx, u, events.ProposalStream(s.Proposal))
		if err != nil {
			return err
		}
		return seen(p.Workspace, "proposal_not_found", "proposal_id", s.Proposal)
	}
	return nil
}

// knows refuses the name of what is no operation.
func (h *Handler) knows(name string) error {
	var known []string
	if h.Operations != nil {
		known = h.Operations()
	}
	if slices.Contains(known, name) {
		return nil
	}
	say := "is no operation"
	if near := op.Nearest(name, known); near != "" {
		say = fmt.Sprintf("is no operation; did you mean %q?", near)
	}
	return fault.Errorf(fault.Invalid, "invalid_field", "%.80q %s", name, say).At("/scope/operations", say)
}

// RevokeToken ends a credential.
type RevokeToken struct {
	Token string `json:"token_id"`
}

// Name is the command's on the wire.
func (RevokeToken) Name() string { return "token.revoke" }

func (c RevokeToken) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	d, err := load[domain.Directory](ctx, u, events.DirectoryStream)
	if err != nil {
		return nil, err
	}
	u.ids["token"] = c.Token
	return d.Revoke(c.Token, u.caller.Who)
}
