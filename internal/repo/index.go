package repo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// holdIndex takes git's lock on the index of the workspace's owner, and makes
// what is to become that index once the branch has moved, before anything has:
// as long as the lock is held nobody commits by an index that is behind the
// branch. What the owner staged since the plan refuses the apply.
func (t *tx) holdIndex(ctx context.Context) error {
	if m := t.j.Ref; m == nil || !m.Here || t.w.late {
		return nil
	}
	t.step(Prepare, "index_lock", "")
	if err := t.lockIndex(ctx, t.heldLock()); err != nil {
		return err
	}
	x, err := t.w.privateOf(ctx, t.w.index)
	if err != nil {
		return err
	}
	t.next = x
	if err := x.asOldAs(t.w.index); err != nil {
		return err
	}
	lines, staged, err := t.behind(ctx, x, t.j.Ref.New)
	if err == nil && len(staged) > 0 {
		err = conflict("state.dirty", "changed and not committed", staged)
	}
	if err != nil {
		return err
	}
	return x.enter(ctx, lines)
}

// fillIndex writes the new index into the lock, durably, with the files as
// they lie now, so that only a rename is left to be done.
func (t *tx) fillIndex(ctx context.Context) error {
	if t.next == nil {
		return nil
	}
	if err := t.next.refresh(ctx); err != nil {
		return err
	}
	ours, err := sameFile(t.heldLock(), t.w.indexLock())
	if err == nil && !ours {
		err = cmp.Or(t.w.indexThere(), error(indexLocked(t.w.indexLock())))
	}
	if err != nil {
		return err
	}
	t.step(Verify, "index_write", "")
	return t.writeLock(t.heldLock(), filepath.Join(t.next.dir, "index"))
}

// closeNext removes what the new index was made in. What it cannot remove the
// next opening of the workspace does.
func (t *tx) closeNext() {
	if t.next != nil {
		_ = t.next.close()
	}
}

// nameIndex makes the lock the index where it is this transaction's: its
// branch has moved, and so the lock holds the whole new index. It may be done
// again.
func (t *tx) nameIndex() error {
	if t.w.index == "" {
		return nil
	}
	own := t.heldLock()
	ours, err := sameFile(own, t.w.indexLock())
	if err != nil || !ours {
		return pathError(own, err)
	}
	return t.renameLock(own)
}

// indexFollows makes sure that the entries of the paths that were committed,
// and no others, are what was committed. Mostly that is so already, and no
// lock is taken. An entry that its owner has changed meanwhile, or a branch
// that they have left, stays as it is.
func (t *tx) indexFollows(ctx context.Context) error {
	m := t.j.Ref
	if m == nil || !m.Here || t.w.indexed[t.name()] {
		return nil
	}
	if err := t.nameIndex(); err != nil || t.w.indexed[t.name()] {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	x, lines, err := t.isBehind(ctx)
	if x != nil {
		err = errors.Join(err, x.close())
	}
	switch {
	case err != nil:
		return err
	case len(lines) == 0:
		return t.dropLocks()
	}
	return t.bringIndex(ctx)
}

// isBehind returns the entries that are not what was committed, with the copy
// of the index that they are of.
func (t *tx) isBehind(ctx context.Context) (x *private, lines []byte, err error) {
	if head, err := t.w.symbolic(ctx); err != nil || head != t.j.Ref.Ref {
		return nil, nil, err
	}
	now, _, err := t.w.branchPosition(ctx, *t.j.Ref)
	if err != nil {
		return nil, nil, err
	}
	if x, err = t.w.privateOf(ctx, t.w.index); err == nil {
		lines, _, err = t.behind(ctx, x, now)
	}
	return x, lines, err
}

// bringIndex is for an index whose lock was lost after the branch had moved.
// It may be interrupted anywhere and done again.
func (t *tx) bringIndex(ctx context.Context) (err error) {
	own := t.lateLock()
	t.step(Finish, "index_late_lock", "")
	if err := t.lockIndex(ctx, own); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.dropLock(own)) }()
	x, lines, err := t.isBehind(ctx)
	if x != nil {
		defer func() { err = errors.Join(err, x.close()) }()
	}
	if err != nil || len(lines) == 0 {
		return err
	}
	if err := errors.Join(x.asOldAs(t.w.index), x.enter(ctx, lines)); err != nil {
		return err
	}
	if err := x.refresh(ctx); err != nil {
		return err
	}
	t.step(Finish, "index_late_write", "")
	if err := t.writeLock(own, filepath.Join(x.dir, "index")); err != nil {
		return err
	}
	return t.renameLock(own)
}

var keepUntracked = []setting{{"core.untrackedCache", "keep"}}

// enter brings entries into the index, as update-index reads them.
func (x *private) enter(ctx context.Context, lines []byte) error {
	_, err := x.git(ctx, call{config: keepUntracked, args: []string{"update-index", "--add", "-z", "--index-info"}, stdin: lines})
	return err
}

// refresh brings into the index how its files lie on disk.
func (x *private) refresh(ctx context.Context) error {
	_, err := x.git(ctx, call{config: keepUntracked, args: []string{"update-index", "-q", "--refresh"}, ok: []int{1}})
	return err
}

// asOldAs gives the copy the time of the index it is of: by that git knows
// which files it must look into, since they may have changed just after.
func (x *private) asOldAs(index string) error {
	st, err := os.Stat(index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Chtimes(filepath.Join(x.dir, "index"), st.ModTime(), st.ModTime())
	}
	return pathError(index, err)
}

// behind returns, as update-index reads them, the entries that are still as
// they were before the commit and should be as they are after it, where the
// branch is at the commit now; and the paths whose entries somebody changed.
func (t *tx) behind(ctx context.Context, x *private, now string) (lines []byte, others []string, err error) {
	m := t.j.Ref
	have, err := x.entries(ctx, "")
	if err != nil {
		return nil, nil, err
	}
	before, after, head := t.w.treeOf(ctx, m.Old), t.w.treeOf(ctx, m.New), t.w.treeOf(ctx, now)
	index := map[string]item{}
	for _, e := range have {
		if _, twice := index[e.path]; twice {
			e.mode = "unmerged"
		}
		index[e.path] = item{e.mode, e.oid}
	}
	var away, there bytes.Buffer
	var comes []operation
	for _, op := range t.j.Ops {
		p := string(op.Path)
		was, err1 := before.file(p)
		is, err2 := after.file(p)
		top, err3 := head.file(p)
		if err := errors.Join(err1, err2, err3); err != nil {
			return nil, nil, err
		}
		switch at := index[p]; {
		case at == is:
		case at != was || top != is:
			others = append(others, p)
		case is.mode == "":
			fmt.Fprintf(&away, "0 %s\t%s\x00", strings.Repeat("0", len(m.New)), p)
			delete(index, p)
		default:
			comes = append(comes, op)
		}
	}
	inTheWay := parents(index)
	for _, op := range comes {
		p := string(op.Path)
		if is, err := after.file(p); err != nil {
			return nil, nil, err
		} else if inTheWay[p] || underFile(index, p) {
			others = append(others, p)
		} else {
			fmt.Fprintf(&there, "%s %s\t%s\x00", is.mode, is.oid, p)
		}
	}
	return append(away.Bytes(), there.Bytes()...), others, nil
}

// parents returns the folders that an index's files lie in.
func parents(index map[string]item) map[string]bool {
	out := map[string]bool{}
	for p := range index {
		for dir := path.Dir(p); dir != "." && !out[dir]; dir = path.Dir(dir) {
			out[dir] = true
		}
	}
	return out
}

// underFile says whether a path lies below a file of the index.
func underFile(index map[string]item, p string) bool {
	for dir := path.Dir(p); dir != "."; dir = path.Dir(dir) {
		if _, is := index[dir]; is {
			return true
		}
	}
	return false
}
