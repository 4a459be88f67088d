package repo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// Materialise writes the whole tree that Candidate names into the folder dst,
// which is empty or not there, outside the workspace or in its state
// directory, and compares what it wrote with the tree. No filter is run: a
// file that is kept in other bytes than it is worked on (as by Git LFS) is
// written as it is kept. Submodules are empty folders.
func (w *Workspace) Materialise(ctx context.Context, changes []patch.Change, dst string) (CandidateTree, error) {
	dst, err := w.emptyFolder(dst)
	if err != nil {
		return CandidateTree{}, err
	}
	if !w.Git() {
		return w.copyTree(ctx, changes, dst)
	}
	x, err := w.private(ctx)
	if err != nil {
		return CandidateTree{}, err
	}
	id, err := x.checkout(ctx, changes, dst)
	return CandidateTree{ID: id, Kind: "git"}, errors.Join(err, x.close())
}

// emptyFolder makes dst and refuses one that is not empty or is part of the
// work tree.
func (w *Workspace) emptyFolder(dst string) (string, error) {
	if err := os.MkdirAll(dst, 0o777); err != nil {
		return "", err
	}
	dst, err := filepath.EvalSymlinks(dst)
	if err != nil {
		return "", err
	}
	if dst, err = filepath.Abs(dst); err != nil {
		return "", err
	}
	rel, err := filepath.Rel(w.root, dst)
	if err != nil {
		return "", err
	}
	if filepath.IsLocal(rel) && !strings.HasPrefix(rel, stateDir+"/") {
		return "", fault.Errorf(fault.Invalid, "bad_folder", "%s is part of the workspace", dst)
	}
	left, err := os.ReadDir(dst)
	if err != nil {
		return "", err
	}
	if len(left) > 0 {
		return "", fault.Errorf(fault.Invalid, "bad_folder", "%s is not empty", dst)
	}
	return dst, nil
}

// checkout writes the candidate into dst and compares.
func (x *private) checkout(ctx context.Context, changes []patch.Change, dst string) (string, error) {
	id, err := x.candidate(ctx, changes, true)
	if err != nil {
		return "", err
	}
	many := []setting{{"checkout.workers", "0"}} // as many as the machine has cores
	if _, err := x.git(ctx, call{config: many, args: []string{"checkout-index", "--all", "--prefix=" + dst + "/"}}); err != nil {
		return "", err
	}
	return id, x.compare(ctx, id, dst)
}

// compare reads a tree into a fresh index and looks at every file of dst by it.
func (x *private) compare(ctx context.Context, id, dst string) error {
	fresh := []string{"GIT_INDEX_FILE=" + filepath.Join(x.dir, "compare"), "GIT_WORK_TREE=" + dst}
	if _, err := x.git(ctx, call{args: []string{"read-tree", id}, env: fresh}); err != nil {
		return err
	}
	out, err := x.git(ctx, call{args: []string{"update-index", "--refresh"}, env: fresh, ok: []int{1}})
	if err != nil {
		return err
	}
	if len(out) > 0 {
		return fmt.Errorf("what was written is not the tree %s: %s", id, out)
	}
	out, err = x.git(ctx, call{args: []string{"ls-files", "-z", "--others"}, env: fresh})
	if err == nil && len(out) > 0 {
		err = fmt.Errorf("what was written is more than the tree %s: %q", id, records(out)[0])
	}
	return err
}
