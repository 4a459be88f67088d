package projections

import (
	"context"
	"slices"

	"roundtable/events"
	"roundtable/internal/wire"
)

var claims = Projector{
	Name:   "claims",
	Tables: []string{"claims"},
	on: when(
		on(func(ctx context.Context, r *rows, e events.Event, p events.ClaimGranted) error {
			if err := r.exec(ctx, `INSERT INTO claims (seq, id, workspace, resource, type, holder, task, rationale, fence,
				base_state, base_hash, granted_at, expires_at, state, cause, stale) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,'active','','null')`,
				e.Position, p.Claim, p.Workspace, p.Resource, p.Type, p.Holder, p.Task, p.Rationale, p.Fence,
				p.Base.State, p.Base.Hash, nanos(p.GrantedAt), nanos(p.ExpiresAt)); err != nil {
				return err
			}
			// What the holder had claimed there before rests on what lies there now.
			return r.exec(ctx, `UPDATE claims SET stale = 'null', base_state = ?, base_hash = ?
				WHERE workspace = ? AND resource = ? AND holder = ? AND state = 'active' AND stale <> 'null'`,
				p.Base.State, p.Base.Hash, p.Workspace, p.Resource, p.Holder)
		}),
		on(becameStale),
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

// maxStalePaths bounds the paths that are shown of why a claim is stale.
const maxStalePaths = 100

// becameStale adds a change to those that a claim is stale by.
func becameStale(ctx context.Context, r *rows, e events.Event, p events.ClaimBecameStale) error {
	var was *wire.Stale
	if err := r.get(ctx, `SELECT stale FROM claims WHERE id = ?`, []any{p.Claim}, decoded{&was}); err != nil {
		return err
	}
	s := wire.Stale{Cause: p.Cause, Transaction: p.Transaction, Paths: []string{}, More: p.More, Since: e.Time}
	if was != nil {
		s.Paths, s.More = was.Paths, s.More+was.More
	}
	for _, c := range p.Paths {
		s.Paths = append(s.Paths, c.Path)
	}
	slices.Sort(s.Paths)
	s.Paths = slices.Compact(s.Paths)
	if n := len(s.Paths) - maxStalePaths; n > 0 {
		s.Paths, s.More = s.Paths[:maxStalePaths], s.More+n
	}
	stale, err := document(s)
	if err != nil {
		return err
	}
	return r.set(ctx, `UPDATE claims SET stale = ? WHERE id = ?`, stale, p.Claim)
}
