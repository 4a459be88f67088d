package projections

import (
	"context"

	"roundtable/events"
)

var claims = Projector{
	Name:   "claims",
	Tables: []string{"claims"},
	on: when(
		on(func(ctx context.Context, r *rows, e events.Event, p events.ClaimGranted) error {
			return r.exec(ctx, `INSERT INTO claims (seq, id, workspace, resource, type, holder, task, rationale, fence,
				base_state, base_hash, granted_at, expires_at, state, cause) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,'active','')`,
				e.Position, p.Claim, p.Workspace, p.Resource, p.Type, p.Holder, p.Task, p.Rationale, p.Fence,
				p.Base.State, p.Base.Hash, nanos(p.GrantedAt), nanos(p.ExpiresAt))
		}),
		on(func(ctx context.Context, r *rows, _ events.Event, p events.ClaimReleased) error {
			return endClaim(ctx, r, p.Claim, "released", p.Cause)
		}),
		on(func(ctx context.Context, r *rows, _ events.Event, p events.ClaimExpired) error {
			return endClaim(ctx, r, p.Claim, "expired", p.Cause)
		}),
	),
}

func endClaim(ctx context.Context, r *rows, id, state, cause string) error {
	return r.set(ctx, `UPDATE claims SET state = ?, cause = ? WHERE id = ?`, state, cause, id)
}
