package repo

import (
	"context"
	"errors"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// CheckedOut refuses paths, as a *patch.Refusal, that the index has and whose
// files are not in the work tree by the person's wish: sparse checkouts, and
// entries marked skip-worktree by hand. To make such a file would be against
// that wish, and a file that lies there nevertheless is not the one git knows.
// Where changes go to a branch that is not checked out here, none is refused.
func (w *Workspace) CheckedOut(ctx context.Context, paths []string) error {
	x, err := w.tracked(ctx)
	if err != nil || len(x.skips) == 0 {
		return err
	}
	if w.Commits() {
		if t, err := w.target(ctx); err == nil && !t.here {
			return nil // no file of the work tree is to change
		}
	}
	for _, p := range paths {
		if x.skips[p] {
			return patch.NotInWorkTree(p)
		}
	}
	return nil
}

// checkedOut is CheckedOut as a fault.
func (w *Workspace) checkedOut(ctx context.Context, ops []operation) error {
	paths := make([]string, len(ops))
	for i, op := range ops {
		paths[i] = string(op.Path)
	}
	err := w.CheckedOut(ctx, paths)
	if r, is := errors.AsType[*patch.Refusal](err); is {
		return fault.Errorf(fault.Refused, string(r.Class), "%s: %s", r.Path, r.Detail).With("path", r.Path)
	}
	return err
}
