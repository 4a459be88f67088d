package world

import (
	"context"

	"roundtable/domain"
	"roundtable/internal/repo"
	"roundtable/internal/wire"
)

// Branch says where the branch stands that a transaction was committed to, by
// the log or by the journal of its newest attempt; nil if it has none.
func (w *World) Branch(ctx context.Context, root string, t domain.Transaction) (*wire.RecoveryBranch, error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return nil, err
	}
	var r repo.RefReport
	if t.Commit != "" {
		r, err = s.Branch(ctx, t.Ref, t.Commit, t.Parent)
	} else if r, err = s.JournalBranch(ctx, t.ID, t.Attempt); err == nil && r.Ref == "" {
		return nil, nil
	}
	return &wire.RecoveryBranch{Ref: r.Ref, Commit: r.Commit, Parent: r.Parent, Now: r.Now, State: string(r.Is)}, err
}

// Commit returns the full id of a commit that the repository has.
func (w *World) Commit(ctx context.Context, root, rev string) (string, error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return "", err
	}
	return s.ResolveCommit(ctx, rev)
}
