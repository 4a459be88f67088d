package repo

import (
	"context"
	"errors"
	"os"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// CheckedOut refuses paths, as a *patch.Refusal, that the index has and whose
// files are not in the work tree by the person's wish: sparse checkouts, and
// entries marked skip-worktree by hand. To make such a file would be against
// that wish, and a file that lies there nevertheless is not the one git knows.
func (w *Workspace) CheckedOut(ctx context.Context, paths []string) error {
	skipped, err := w.skipped(ctx)
	if err != nil || len(skipped) == 0 {
		return err
	}
	for _, p := range paths {
		if skipped[p] {
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

// A skipCache keeps the skipped entries of an index that has not changed.
type skipCache struct {
	sync.Mutex
	of    unix.Stat_t
	paths map[string]bool
}

// skipped returns the paths of the index that are marked skip-worktree.
func (w *Workspace) skipped(ctx context.Context) (map[string]bool, error) {
	if !w.Git() {
		return nil, nil
	}
	w.skips.Lock()
	defer w.skips.Unlock()
	var st unix.Stat_t
	if err := calls.Stat(w.index, &st); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	st.Atim = unix.Timespec{}
	if w.skips.paths != nil && w.skips.of == st {
		return w.skips.paths, nil
	}
	out, err := w.git(ctx, call{args: []string{"ls-files", "-t", "-z", "--cached"}})
	if err != nil {
		return nil, err
	}
	paths := map[string]bool{}
	for _, r := range records(out) {
		if p, skip := strings.CutPrefix(r, "S "); skip {
			paths[p] = true
		}
	}
	w.skips.of, w.skips.paths = st, paths
	return paths, nil
}
