package projections

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// principalView shows principals with all their roles.
func principalView() view[wire.Principal] {
	return view[wire.Principal]{
		name: "principal", missing: absent("principal_not_found", "principal"), plural: "principals", from: principals, source: "principals", global: true,
		columns: "seq, id, name, kind, owner, vendor, model, created_at", created: "created_at",
		scan: func(s scanner) (seq int64, p wire.Principal, err error) {
			p.Roles = []wire.Role{}
			err = s.Scan(&seq, &p.ID, &p.Name, &p.Kind, &p.Owner, &p.Vendor, &p.Model, stamp{&p.CreatedAt})
			return seq, p, err
		},
		fill: func(ctx context.Context, tx *sql.Tx, ps []wire.Principal) error {
			at, ids := indexBy(ps, func(p wire.Principal) string { return p.ID })
			return each(ctx, tx, `SELECT principal, workspace, role FROM roles WHERE principal IN (SELECT value FROM json_each(?)) ORDER BY seq`,
				[]any{ids}, func(s scanner) error {
					var id string
					var role wire.Role
					err := s.Scan(&id, &role.Workspace, &role.Role)
					p := &ps[at[id]]
					p.Roles = append(p.Roles, role)
					return err
				})
		},
	}
}

// indexBy returns where each entity stands by its id, and the ids as one
// argument for json_each.
func indexBy[E any](es []E, id func(E) string) (at map[string]int, ids string) {
	at, list := make(map[string]int, len(es)), make([]string, len(es))
	for i, e := range es {
		at[id(e)], list[i] = i, id(e)
	}
	return at, jsonList(list)
}

// principalViewFor is principalView as who may see it: of others, only the
// roles in workspaces that who knows of.
func principalViewFor(c op.Call, _ time.Time) view[wire.Principal] {
	v, who := principalView(), c.Who
	all := v.fill
	v.fill = func(ctx context.Context, tx *sql.Tx, ps []wire.Principal) error {
		if err := all(ctx, tx, ps); err != nil {
			return err
		}
		for i := range ps {
			if ps[i].ID != who.ID {
				ps[i].Roles = slices.DeleteFunc(ps[i].Roles, func(r wire.Role) bool {
					return r.Workspace != auth.AllWorkspaces && !who.Reads(r.Workspace)
				})
			}
		}
		return nil
	}
	return v
}

func tokenView(_ op.Call, now time.Time) view[wire.Token] {
	return view[wire.Token]{
		name: "token", missing: absent("token_not_found", "token"), plural: "tokens", from: principals, source: "tokens", global: true,
		columns: "seq, id, principal, scope, issued_by, issued_at, expires_at, revoked_at", created: "issued_at",
		scan: func(s scanner) (seq int64, t wire.Token, err error) {
			err = s.Scan(&seq, &t.ID, &t.Principal, decoded{&t.Scope}, &t.IssuedBy, stamp{&t.IssuedAt}, stamp{&t.ExpiresAt}, stampOrNil{&t.RevokedAt})
			switch {
			case t.RevokedAt != nil:
				t.State = "revoked"
			case !now.Before(t.ExpiresAt):
				t.State = "expired"
			default:
				t.State = "active"
			}
			return seq, t, err
		},
	}
}

type principalID struct {
	ID string `json:"principal_id"`
}

type principalList struct {
	Page
	Kind      string `json:"kind,omitempty" jsonschema:"human, agent or service"`
	Owner     string `json:"owner,omitempty"`
	Name      string `json:"name,omitempty" jsonschema:"the whole name"`
	Workspace string `json:"in_workspace,omitempty" jsonschema:"a workspace's id: only who has a role there"`
	Role      string `json:"role,omitempty" jsonschema:"only who was granted this role itself, where you can see it"`
}

type tokenList struct {
	Page
	Principal string `json:"principal_id,omitempty"`
	State     string `json:"state,omitempty" jsonschema:"active, expired or revoked"`
}

func (r *Reader) principalOps() []op.Op {
	return []op.Op{
		listOp(r, op.Op{
			Name: "principal.list", Route: "GET /api/v1/principals",
			Doc: "List people, agents and services with the roles that you can see.",
		}, principalViewFor, principalConds),
		getOp(r, op.Op{
			Name: "principal.get", Route: "GET /api/v1/principals/{principal_id}",
			Doc: "Show one person, agent or service with the roles that you can see.",
		}, principalViewFor, func(_ op.Call, in principalID) string { return in.ID }),
		listOp(r, op.Op{
			Name: "token.list", Route: "GET /api/v1/tokens", May: op.May{Roles: []auth.Role{auth.Admin}, Human: true, Server: true},
			Doc: "List credentials, without their secrets, to see which are alive.",
		}, tokenView, tokenConds),
	}
}

func principalConds(c op.Call, in principalList, _ time.Time) (where, error) {
	w := where{}
	w.is("kind", in.Kind)
	w.is("owner", in.Owner)
	w.is("name", in.Name)
	if in.Workspace != "" && !c.Who.Reads(in.Workspace) {
		return w, fault.Errorf(fault.NotFound, "workspace_not_found", "there is no workspace %s that this token can see", short(in.Workspace))
	}
	if in.Workspace != "" || in.Role != "" {
		cond, args := "(? = '' OR role = ?)", []any{in.Role, in.Role}
		if in.Workspace != "" {
			cond, args = cond+" AND workspace IN (?, '*')", append(args, in.Workspace)
		} else if !c.Who.Everywhere(auth.Roles...) {
			cond, args = cond+" AND (workspace = '*' OR principal = ? OR workspace IN (SELECT value FROM json_each(?)))", append(args, c.Who.ID, jsonList(c.Who.Workspaces()))
		}
		w.add("id IN (SELECT principal FROM roles WHERE "+cond+")", args...)
	}
	var roles []string
	for _, role := range auth.Roles {
		roles = append(roles, string(role))
	}
	return w, errorsOf(oneOf("/kind", in.Kind, "human", "agent", "service"), oneOf("/role", in.Role, roles...))
}

func tokenConds(_ op.Call, in tokenList, now time.Time) (where, error) {
	w := where{}
	w.is("principal", in.Principal)
	switch in.State {
	case "revoked":
		w.add("revoked_at <> 0")
	case "expired":
		w.add("revoked_at = 0 AND expires_at <= ?", nanos(now))
	case "active":
		w.add("revoked_at = 0 AND expires_at > ?", nanos(now))
	}
	return w, oneOf("/state", in.State, "active", "expired", "revoked")
}
