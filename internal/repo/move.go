package repo

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/kernel"
	"roundtable/internal/patch"
)

// errThird means that a path is not as the plan had it: somebody else changed
// it meanwhile.
type errThird struct{ path string }

func (e errThird) Error() string { return quote(e.path) + " was changed by somebody else" }

// move does the operations: deletions, emptied folders, new folders, then
// creations and replacements. It stops at the first surprise and leaves the
// rest to rollback.
func (t *tx) move(ctx context.Context) error {
	for i, op := range t.j.moves() {
		if op.Kind == remove {
			if err := t.moveOne(ctx, i, op); err != nil {
				return err
			}
		}
	}
	for _, f := range t.j.Emptied {
		t.step(Moving, "rmdir", string(f.Path))
		if err := t.w.rmdir(string(f.Path)); err != nil {
			return err
		}
	}
	for _, dir := range t.j.Made {
		t.step(Moving, "mkdir", string(dir))
		if err := t.w.mkdir(string(dir)); err != nil {
			return err
		}
	}
	for i, op := range t.j.moves() {
		if op.Kind != remove {
			if err := t.moveOne(ctx, i, op); err != nil {
				return err
			}
		}
	}
	return nil
}

// moveOne flips one path and looks at what it displaced.
func (t *tx) moveOne(ctx context.Context, i int, op operation) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.step(Moving, string(op.Kind), string(op.Path))
	p, err := t.w.at.parent(string(op.Path))
	if gone(err) {
		return errThird{string(op.Path)}
	}
	if err != nil {
		return pathError(string(op.Path), err)
	}
	switch op.Kind {
	case create:
		err = t.placeNew(Moving, t.at(slot(i)), p)
	case remove:
		err = rename(p, t.at(slot(i)), 0) // the slot is ours and free
	default:
		err = t.swapIn(i, p)
	}
	if gone(err) || errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EISDIR) {
		err = errThird{string(op.Path)}
	}
	if err = errors.Join(err, p.close()); err != nil || op.Kind == create {
		return pathError(string(op.Path), err)
	}
	t.step(Moving, "displaced", string(op.Path))
	s, err := t.at(t.displaced(i, op)).look(ctx)
	if err == nil && s != op.Before {
		err = errThird{string(op.Path)}
	}
	return err
}

// displaced is the name under which the folder holds what an operation took
// away.
func (t *tx) displaced(i int, op operation) string {
	if op.Kind == replace && t.j.Aside {
		return aside(i)
	}
	return slot(i)
}

// swapIn puts a slot's file in the place of another, which comes into the slot.
func (t *tx) swapIn(i int, p place) error {
	if !t.j.Aside {
		return rename(t.at(slot(i)), p, unix.RENAME_EXCHANGE)
	}
	if err := link(p, t.at(aside(i))); err != nil {
		if s, _, err := p.stat(); err == nil && s.Kind == patch.Dir {
			return unix.EISDIR // which link answers with EPERM
		}
		return err
	}
	t.step(Moving, "replace_linked", string(t.j.Ops[i].Path))
	return rename(t.at(slot(i)), p, 0)
}

// placeNew moves what somebody has to a name that must be free. Without the
// flag a file has both names for a moment; a folder can have but one, and no
// file and no full folder gives way to it.
func (t *tx) placeNew(p Phase, from, to place) error {
	if t.w.exchanges() {
		return rename(from, to, unix.RENAME_NOREPLACE)
	}
	if s, _, err := from.stat(); err != nil {
		return err
	} else if s.Kind == patch.Dir {
		err := rename(from, to, 0)
		if errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ENOTEMPTY) {
			err = unix.EEXIST
		}
		return err
	}
	if err := link(from, to); err != nil {
		return err
	}
	t.step(p, "linked", to.name)
	return calls.Unlinkat(from.dir, from.name, 0)
}

// rename moves one name to another. With flags 0 a file that lies there goes.
func rename(from, to place, flags uint) error {
	return calls.Renameat(from.dir, from.name, to.dir, to.name, flags)
}

func link(from, to place) error {
	return calls.Linkat(from.dir, from.name, to.dir, to.name)
}

// rmdir removes a folder. One that is not empty any more stays: whether that
// is in the way shows later.
func (w *Workspace) rmdir(rel string) error {
	p, err := w.at.parent(rel)
	if gone(err) {
		return nil
	}
	if err != nil {
		return pathError(rel, err)
	}
	err = calls.Unlinkat(p.dir, p.name, unix.AT_REMOVEDIR)
	if gone(err) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.EEXIST) {
		err = nil
	}
	return pathError(rel, errors.Join(err, p.close()))
}

// mkdir makes a folder. One that is there by now is as good.
func (w *Workspace) mkdir(rel string) error {
	p, err := w.at.parent(rel)
	if gone(err) {
		return errThird{rel}
	}
	if err != nil {
		return pathError(rel, err)
	}
	err = calls.Mkdirat(p.dir, p.name, 0o777)
	if errors.Is(err, unix.EEXIST) {
		err = nil
		if s, _, err2 := p.stat(); err2 != nil || s.Kind != patch.Dir {
			err = errors.Join(errThird{rel}, err2)
		}
	}
	return pathError(rel, errors.Join(err, p.close()))
}

// sync makes every name that was moved durable: the folders touched, up to the
// root.
func (t *tx) sync() error {
	dirs := map[string]bool{"": true}
	add := func(rel string) {
		for dir := path.Dir(rel); dir != "."; dir = path.Dir(dir) {
			dirs[dir] = true
		}
	}
	for _, op := range t.j.moves() {
		add(string(op.Path))
	}
	for _, f := range t.j.Emptied {
		add(string(f.Path))
	}
	if len(dirs) > few && kernel.SyncfsReports() {
		return calls.Syncfs(t.dir)
	}
	for _, dir := range slices.Sorted(maps.Keys(dirs)) {
		fd, err := t.w.at.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
		if gone(err) {
			continue
		}
		if err != nil {
			return pathError(dir, err)
		}
		if err := errors.Join(calls.Fsync(fd, dir), calls.Close(fd)); err != nil {
			return pathError(dir, err)
		}
	}
	return calls.Fsync(t.dir, t.name())
}

// verify reads every touched path again.
func (t *tx) verify(ctx context.Context) error {
	for _, op := range t.j.moves() {
		s, err := t.w.at.lookAt(ctx, string(op.Path))
		if err != nil {
			return err
		}
		if s != op.After && !(op.After.Kind == patch.Absent && s.Kind == patch.Dir) {
			return errThird{string(op.Path)}
		}
	}
	return nil
}
