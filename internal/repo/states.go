package repo

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// States returns what the governed tree holds at paths, all of one moment as far
// as this process moves files: never the middle of an apply. A path that may
// not be read, or is not the workspace's, is left out.
func (w *Workspace) States(ctx context.Context, paths []string) (map[string]patch.State, error) {
	look, _, err := w.looker(ctx)
	if err != nil {
		return nil, err
	}
	w.moves.RLock()
	defer w.moves.RUnlock()
	out := map[string]patch.State{}
	for _, p := range paths {
		if !w.ours(p) {
			continue
		}
		s, err := look(p)
		if errors.Is(err, unix.EACCES) || fault.CodeOf(err) == "state.permission" {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[p] = s
	}
	return out, nil
}

// HeadBranch returns the name of the branch that HEAD is on; empty in a plain
// folder and where HEAD is on none.
func (w *Workspace) HeadBranch(ctx context.Context) (string, error) {
	if !w.Git() {
		return "", nil
	}
	out, err := w.git(ctx, call{args: []string{"symbolic-ref", "--quiet", "--short", "HEAD"}, ok: []int{1}})
	return strings.TrimSpace(string(out)), err
}
