package projections

import (
	"context"

	"roundtable/events"
)

var principals = Projector{
	Name:   "principals",
	Tables: []string{"principals", "roles", "tokens"},
	on: when(
		on(func(ctx context.Context, r *rows, e events.Event, p events.PrincipalCreated) error {
			return r.exec(ctx, `INSERT INTO principals (seq, id, name, kind, owner, vendor, model, created_at) VALUES (?,?,?,?,?,?,?,?)`,
				e.Position, p.Principal, p.Name, p.Kind, p.Owner, p.Vendor, p.Model, nanos(e.Time))
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.RoleGranted) error {
			// A grant of what is granted already changes nothing.
			return r.exec(ctx, `INSERT INTO roles (seq, principal, workspace, role) VALUES (?,?,?,?) ON CONFLICT DO NOTHING`,
				e.Position, p.Principal, p.Workspace, p.Role)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TokenIssued) error {
			scope, err := document(p.Scope)
			if err != nil {
				return err
			}
			return r.exec(ctx, `INSERT INTO tokens (seq, id, principal, scope, issued_by, issued_at, expires_at, revoked_at) VALUES (?,?,?,?,?,?,?,0)`,
				e.Position, p.Token, p.Principal, scope, e.Actor, nanos(e.Time), nanos(p.ExpiresAt))
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TokenRevoked) error {
			return r.set(ctx, `UPDATE tokens SET revoked_at = ? WHERE id = ?`, nanos(e.Time), p.Token)
		}),
	),
}
