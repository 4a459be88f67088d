package repo

import (
	"context"
	"errors"
	"slices"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// Uncommitted returns which of the paths, sorted, have work in the branch that
// is checked out here which is not committed, or lie under .gitattributes that
// are not: changes of them would be refused as state.dirty. None where changes
// are not committed, or go to a branch that is checked out nowhere.
func (w *Workspace) Uncommitted(ctx context.Context, paths []string) ([]string, error) {
	if !w.Commits() || len(paths) == 0 {
		return nil, nil
	}
	w.moves.RLock()
	defer w.moves.RUnlock()
	t, err := w.target(ctx)
	if err != nil || !t.here {
		return nil, err
	}
	tree := w.treeOf(ctx, t.old)
	rules, err := w.lineRules(ctx, tree, paths)
	if err != nil {
		return nil, err
	}
	var out []string
	err = w.sameRules(ctx, rules, paths)
	if f, is := errors.AsType[*fault.Error](err); is && f.Code == "state.dirty" {
		out, _ = f.Context["paths"].([]string)
	} else if err != nil {
		return nil, err
	}
	index, err := w.tracked(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		same, err := w.asInBranch(ctx, tree, index, rules[p], p)
		if err != nil {
			return nil, err
		}
		if !same {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

// asInBranch says whether a path is the same on disk, in the index and in the
// branch. A folder is as good as nothing: the paths in it are not asked about.
func (w *Workspace) asInBranch(ctx context.Context, tree *committed, index *index, r lineRule, rel string) (bool, error) {
	is, err := tree.file(rel)
	if err != nil {
		return false, err
	}
	if oid, tracked := index.find(rel); tracked != (is.mode != "") || oid != is.oid {
		return false, nil
	}
	if !w.ours(rel) {
		return true, nil
	}
	_, now, err := w.lies(ctx, rel, r)
	if err != nil {
		return false, err
	}
	if is.mode == "" {
		return now.Kind == patch.Absent || now.Kind == patch.Dir, nil
	}
	want, err := tree.look(rel)
	return now == want, err
}
