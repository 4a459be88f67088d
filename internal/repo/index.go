package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// bringIndex brings the entries of the paths that were committed, and no
// others, to what was committed, in the index of the workspace's owner. It may
// be interrupted anywhere and done again. An entry that its owner has changed
// meanwhile, or a branch that they have left, stays as it is. Doing it again
// takes git's lock only if something is left to do.
func (t *tx) bringIndex(ctx context.Context, again bool) (err error) {
	m := t.j.Ref
	if m == nil || !m.Here {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	if again {
		if done, err := t.indexBrought(ctx); err != nil || done {
			return err
		}
	}
	t.step(Finish, "index_lock", "")
	lock, err := t.lockIndex(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	if head, err := t.w.symbolic(ctx); err != nil || head != m.Ref {
		return err
	}
	x, err := t.w.privateOf(ctx, t.w.index)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	lines, err := t.behind(ctx, x)
	if err != nil || len(lines) == 0 {
		return err
	}
	keep := []setting{{"core.untrackedCache", "keep"}}
	if _, err := x.git(ctx, call{config: keep, args: []string{"update-index", "--add", "-z", "--index-info"}, stdin: lines}); err != nil {
		return err
	}
	if _, err := x.git(ctx, call{config: keep, args: []string{"update-index", "-q", "--refresh"}, ok: []int{1}}); err != nil {
		return err
	}
	t.step(Finish, "index_write", "")
	if err := lock.write(filepath.Join(x.dir, "index")); err != nil {
		return err
	}
	t.step(Finish, "index_name", "")
	return lock.commit()
}

// indexBrought says that no entry is behind, and that no lock of ours lies there.
func (t *tx) indexBrought(ctx context.Context) (done bool, err error) {
	var st unix.Stat_t
	own := t.ownIndex()
	if err := calls.Lstat(own, &st); !missing(err) {
		return false, pathError(own, err)
	}
	if head, err := t.w.symbolic(ctx); err != nil || head != t.j.Ref.Ref {
		return err == nil, err
	}
	x, err := t.w.privateOf(ctx, t.w.index)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	lines, err := t.behind(ctx, x)
	return len(lines) == 0, err
}

// ownIndex is the second name of a lock of ours.
func (t *tx) ownIndex() string {
	return filepath.Join(filepath.Dir(t.w.index), "roundtable-"+t.name())
}

// behind returns, as update-index reads them, the entries that are still as
// they were before the commit and should be as they are after it.
func (t *tx) behind(ctx context.Context, x *private) ([]byte, error) {
	m := t.j.Ref
	have, err := x.entries(ctx, "")
	if err != nil {
		return nil, err
	}
	now, _, err := t.w.branchPosition(ctx, *m)
	if err != nil {
		return nil, err
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
			return nil, err
		}
		switch at := index[p]; {
		case at == is || at != was || top != is:
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
			return nil, err
		} else if !inTheWay[p] && !underFile(index, p) {
			fmt.Fprintf(&there, "%s %s\t%s\x00", is.mode, is.oid, p)
		}
	}
	return append(away.Bytes(), there.Bytes()...), nil
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

// An indexLock is git's lock on the index, held by a file of ours that has a
// second name: by that a lock that a dead process left is known to be ours.
type indexLock struct {
	w    *Workspace
	f    *calls.File
	own  string
	done bool // the lock has become the index
}

func (l *indexLock) name() string { return l.w.index + ".lock" }

// lockIndex takes the lock. One that somebody else holds is waited for, and
// never removed.
func (t *tx) lockIndex(ctx context.Context) (*indexLock, error) {
	l := &indexLock{w: t.w, own: t.ownIndex()}
	ours, err := sameFile(l.own, l.name())
	if err != nil {
		return nil, pathError(l.own, err)
	}
	if !ours {
		if err := calls.Unlink(l.own); err != nil && !missing(err) {
			return nil, pathError(l.own, err)
		}
	}
	how := unix.O_WRONLY | unix.O_NOFOLLOW
	if !ours {
		how |= unix.O_CREAT | unix.O_EXCL
	}
	if l.f, err = calls.OpenFile(l.own, how, 0o600); err != nil {
		return nil, pathError(l.own, err)
	}
	if ours {
		return l, pathError(l.own, l.f.Truncate(0))
	}
	t.step(Finish, "index_link", "")
	for end := time.Now().Add(t.w.o.LockWait); ; time.Sleep(10 * time.Millisecond) {
		err = calls.Linkat(unix.AT_FDCWD, l.own, unix.AT_FDCWD, l.name())
		if !errors.Is(err, unix.EEXIST) || time.Now().After(end) {
			break
		}
	}
	if errors.Is(err, unix.EEXIST) {
		err = fault.Errorf(fault.Unavailable, "state.index_locked", "another program holds %s, so the index cannot be brought to what was committed yet; if none is running, remove that file", l.name()).
			With("lock", l.name())
	}
	if err != nil {
		return nil, errors.Join(pathError(l.own, err), l.f.Close(), calls.Unlink(l.own))
	}
	return l, nil
}

// sameFile says whether two names are of one file.
func sameFile(a, b string) (bool, error) {
	var sa, sb unix.Stat_t
	for name, st := range map[string]*unix.Stat_t{a: &sa, b: &sb} {
		if err := calls.Lstat(name, st); missing(err) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	return sa.Dev == sb.Dev && sa.Ino == sb.Ino, nil
}

// write fills the lock with a new index, durably, with the owner and the
// permission bits of the old one.
func (l *indexLock) write(from string) error {
	src, err := calls.OpenFile(from, unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return pathError(from, err)
	}
	_, err = io.Copy(l.f, src)
	if err = errors.Join(err, src.Close()); err != nil {
		return pathError(l.name(), err)
	}
	var st unix.Stat_t
	switch err := calls.Lstat(l.w.index, &st); {
	case missing(err):
		err = calls.Fchmod(l.f.Fd(), 0o644)
		return pathError(l.name(), errors.Join(err, l.f.Sync()))
	case err != nil:
		return pathError(l.w.index, err)
	}
	if err := dress(l.f.Fd(), l.w.index, int(st.Uid), int(st.Gid), nil, st.Mode&0o777); err != nil {
		return err
	}
	return pathError(l.name(), l.f.Sync())
}

// commit makes the lock the index.
func (l *indexLock) commit() error {
	if err := calls.Rename(l.name(), l.w.index); err != nil {
		return pathError(l.w.index, err)
	}
	l.done = true
	dir := filepath.Dir(l.w.index)
	return syncDir(dir, func(fd int) error { return calls.Fsync(fd, dir) })
}

// release gives the lock up, if it has not become the index.
func (l *indexLock) release() error {
	err := l.f.Close()
	if !l.done {
		err = errors.Join(err, calls.Unlink(l.name()))
	}
	return pathError(l.own, errors.Join(err, calls.Unlink(l.own)))
}
