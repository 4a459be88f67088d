package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/patch"
)

// A settlement is what a rollback came to.
type settlement struct {
	Stuck  []Stuck `json:"stuck,omitempty"`
	Kept   []Kept  `json:"kept,omitempty"`
	Origin string  `json:"origin,omitempty"` // of the folder it was written in
	failed error   // why paths are stuck that only a failed call keeps from going back
}

// rollback brings every path back to its before-state, by what lies at the
// path and in the slot and by nothing else, and marks the transaction. It may
// be interrupted anywhere and done again. Paths that somebody else has changed
// are stuck: both versions stay where they are, and all others go back. The
// caller holds w.moves.
func (t *tx) rollback(ctx context.Context) (settlement, error) {
	var out settlement
	back := func(i int, op operation) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		why, err := t.back(ctx, i, op, &out)
		if err != nil {
			out.failed = errors.Join(out.failed, pathError(string(op.Path), err))
			why = err.Error()
		}
		if why != "" {
			out.Stuck = append(out.Stuck, Stuck{string(op.Path), why})
		}
		return nil
	}
	for i, op := range slices.Backward(t.j.moves()) {
		if op.Kind != remove {
			if err := back(i, op); err != nil {
				return out, err
			}
		}
	}
	for _, dir := range slices.Backward(t.j.Made) {
		t.step(Back, "rmdir", string(dir))
		if err := t.w.rmdir(string(dir)); err != nil {
			return out, err
		}
	}
	for i, f := range slices.Backward(t.j.Emptied) {
		t.step(Back, "mkdir", string(f.Path))
		if err := t.remake(i, f); err != nil {
			return out, err
		}
	}
	for i, op := range t.j.moves() {
		if op.Kind == remove {
			if err := back(i, op); err != nil {
				return out, err
			}
		}
	}
	t.step(Back, "sync", "")
	if err := t.sync(); err != nil {
		return out, err
	}
	if err := t.dropLocks(); err != nil {
		return out, err
	}
	out.Origin = t.origin
	if len(out.Stuck) > 0 {
		return out, t.putJSON(Back, "attention", out)
	}
	return out, t.putJSON(Back, "aborted", out)
}

// back settles one operation. It says why the path is stuck, if it is.
func (t *tx) back(ctx context.Context, i int, op operation, out *settlement) (why string, err error) {
	t.step(Back, string(op.Kind), string(op.Path))
	p, err := t.w.at.parent(string(op.Path))
	here := patch.State{Kind: patch.Absent}
	reachable := err == nil
	if !reachable && !gone(err) {
		return "", err
	}
	if reachable {
		defer func() { err = errors.Join(err, p.close()) }()
		if here, err = p.look(ctx); err != nil {
			return "", err
		}
	}
	held, err := t.at(slot(i)).look(ctx)
	if err != nil {
		return "", err
	}
	m := moved{t: t, i: i, op: op, p: p, here: here, held: held, reachable: reachable, out: out}
	switch {
	case op.Kind == create:
		return m.uncreate(ctx)
	case op.Kind == remove:
		return m.undelete(ctx)
	case t.j.Aside:
		return m.unlinkReplace(ctx)
	}
	return m.unreplace(ctx)
}

// A moved operation and what lies at its two places.
type moved struct {
	t          *tx
	i          int
	op         operation
	p          place
	here, held patch.State // at the path, in the slot
	reachable  bool        // the path's folder is there
	out        *settlement
}

func (m moved) slot() place { return m.t.at(slot(m.i)) }

const edited = "somebody changed it after it was applied; both versions are kept"

func (m moved) uncreate(ctx context.Context) (string, error) {
	none := patch.Absent
	if twice, err := m.linked(); err != nil {
		return "", err
	} else if twice { // both names are of one file: the path is the one that counts
		m.t.step(Back, "unlink", string(m.op.Path))
		if err := calls.Unlinkat(m.t.dir, slot(m.i), 0); err != nil {
			return "", err
		}
		m.held = patch.State{Kind: none}
	}
	switch {
	case m.held == m.op.After: // not moved
		return "", nil
	case m.held.Kind != none:
		return "the transaction's folder holds something else for it", nil
	case m.here.Kind == none: // somebody removed it
		return "", nil
	case m.here != m.op.After:
		return edited, nil
	}
	m.t.step(Back, "take", string(m.op.Path))
	if err := rename(m.p, m.slot(), 0); err != nil && !gone(err) {
		return "", err
	}
	s, err := m.slot().look(ctx)
	if err != nil || s == m.op.After || s.Kind == none {
		return "", err
	}
	if err := m.t.placeNew(Back, m.slot(), m.p); err != nil {
		return "", fmt.Errorf("changed while it was taken back; it lies in the transaction's folder: %w", err)
	}
	return edited, nil
}

// linked says whether the path and the slot are names of one file, as while it
// is moved without NOREPLACE.
func (m moved) linked() (bool, error) {
	if !m.reachable || m.here != m.held || m.held.Kind == patch.Absent {
		return false, nil
	}
	_, here, err := m.p.stat()
	_, held, err2 := m.slot().stat()
	return here.Dev == held.Dev && here.Ino == held.Ino, errors.Join(err, err2)
}

func (m moved) undelete(ctx context.Context) (string, error) {
	switch {
	case m.held.Kind == patch.Absent: // not moved
		return "", nil
	case m.here == m.op.Before: // somebody put the old content back
		return "", m.keep(ctx)
	case m.here.Kind != patch.Absent:
		return "something else lies there now; the deleted version is kept", nil
	case !m.reachable:
		return "its folder is gone; the deleted version is kept", nil
	}
	m.t.step(Back, "put", string(m.op.Path))
	err := m.t.placeNew(Back, m.slot(), m.p)
	if errors.Is(err, unix.EEXIST) {
		return "something else lies there now; the deleted version is kept", nil
	}
	return "", err
}

func (m moved) unreplace(ctx context.Context) (string, error) {
	switch {
	case m.held == m.op.After: // not swapped, or swapped back
		return "", nil
	case m.held.Kind == patch.Absent:
		if m.here == m.op.Before {
			return "", nil
		}
		return "the displaced version is not in the transaction's folder", nil
	case m.here == m.op.Before: // somebody put the old content back
		return "", m.keep(ctx)
	case m.here != m.op.After:
		return edited, nil
	}
	m.t.step(Back, "swap", string(m.op.Path))
	if err := rename(m.slot(), m.p, unix.RENAME_EXCHANGE); err != nil {
		return "", err
	}
	s, err := m.slot().look(ctx)
	if err != nil || s == m.op.After {
		return "", err
	}
	// Edited in the moment of the swap: the newer version goes back in place.
	if err := rename(m.slot(), m.p, unix.RENAME_EXCHANGE); err != nil {
		return "", err
	}
	return edited, nil
}

// unlinkReplace is unreplace where there is no exchange: the displaced file
// has a second name, and the slot is free once its file was moved.
func (m moved) unlinkReplace(ctx context.Context) (string, error) {
	old := m.t.at(aside(m.i))
	was, err := old.look(ctx)
	switch {
	case err != nil:
		return "", err
	case m.held == m.op.After, m.here == m.op.Before && was == m.here: // not moved, or moved back
		return "", nil
	case was.Kind == patch.Absent:
		if m.here == m.op.Before {
			return "", nil
		}
		return "the displaced version is not in the transaction's folder", nil
	case m.here == m.op.Before:
		return "", m.keep(ctx)
	case m.here != m.op.After:
		return edited, nil
	}
	m.t.step(Back, "swap", string(m.op.Path))
	return "", rename(old, m.p, 0)
}

// keep puts what a rollback does not need into the blob store, unless it is
// the before-image, which is there.
func (m moved) keep(ctx context.Context) error {
	p := m.t.at(m.t.displaced(m.i, m.op))
	s, err := p.look(ctx)
	if err != nil || s == m.op.Before || s == m.op.After || s.Kind == patch.Absent {
		return err
	}
	if err := m.t.w.putImage(ctx, p); err != nil {
		return err
	}
	m.out.Kept = append(m.out.Kept, Kept{string(m.op.Path), s})
	return nil
}

// putImage stores the bytes that lie at a place.
func (w *Workspace) putImage(ctx context.Context, p place) error {
	if w.o.Blobs == nil {
		return errors.New("repo: there is no blob store to keep it in")
	}
	_, err := w.o.Blobs.PutAll(ctx, []func() (io.ReadCloser, error){p.image})
	return err
}

// remake puts an emptied folder back: the copy that was made of it, so that it
// never has another owner or other permissions.
func (t *tx) remake(i int, f folder) error {
	p, err := t.w.at.parent(string(f.Path))
	if gone(err) {
		return nil // what was in it will be stuck
	}
	if err != nil {
		return pathError(string(f.Path), err)
	}
	if s, _, err := p.stat(); err != nil || s.Kind != patch.Absent {
		return errors.Join(err, p.close())
	}
	if err = t.makeAside(i, f); err == nil {
		t.step(Back, "place", string(f.Path))
		err = rename(t.at(folderCopy(i)), p, 0) // onto nothing, or onto an empty folder
	}
	if errors.Is(err, unix.EEXIST) || errors.Is(err, unix.ENOTEMPTY) || errors.Is(err, unix.ENOTDIR) {
		err = nil // somebody was quicker; what was in it may be stuck
	}
	return pathError(string(f.Path), errors.Join(err, p.close()))
}

// folderCopy is the name in the transaction's folder of a copy of the emptied
// folder i.
func folderCopy(i int) string { return "folder-" + strconv.Itoa(i) }

// makeAside makes the copy of an emptied folder, unless it is there.
func (t *tx) makeAside(i int, f folder) error {
	err := calls.Mkdirat(t.dir, folderCopy(i), 0o700)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return err
	}
	fd, err := openat(t.dir, folderCopy(i), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if errors.Is(err, unix.EACCES) {
		return nil // made, with permissions that keep us out
	}
	if err != nil {
		return err
	}
	return errors.Join(dress(fd, string(f.Path), f.UID, f.GID, f.Xattrs, f.Perm), calls.Close(fd))
}
