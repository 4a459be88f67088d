package repo

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// Finish removes the folder of a committed transaction once its outcome is in
// the log. The index is looked at only if this process does not know that it
// follows the branch, and locked only if it does not: a fault
// state.index_locked says that this cannot be done yet. It is a fault state.needs_attention when somebody wrote into a
// displaced file after the exchange: both versions are then kept, until
// Resolve. Finishing again changes nothing.
func (w *Workspace) Finish(ctx context.Context, id string, attempt int) (err error) {
	defer func() { err = answer(err) }()
	if err := checkTx(id, attempt); err != nil {
		return err
	}
	release, err := w.acquire(ctx)
	if err != nil {
		return err
	}
	defer release()
	t, err := w.reopen(id, attempt)
	if errors.Is(err, unix.ENOENT) {
		return nil
	}
	if err != nil {
		return pathError(txDir, err)
	}
	defer t.close()
	m, err := t.marker()
	if err != nil {
		return err
	}
	if m != Committed {
		return fault.Errorf(fault.Conflict, "state.not_committed", "transaction %s, attempt %d, is not committed", id, attempt)
	}
	if err := t.sure(); err != nil {
		return err
	}
	return t.finish(ctx)
}

func (t *tx) finish(ctx context.Context) error {
	switch err := t.load(ctx); {
	case errors.Is(err, unix.ENOENT):
		return t.clear() // an earlier call had looked at all slots
	case err != nil:
		return err
	}
	if err := t.indexFollows(ctx); err != nil {
		return err
	}
	t.step(Finish, "look", "")
	late, err := t.late(ctx)
	if err != nil {
		return err
	}
	if len(late.Stuck) > 0 {
		if err := t.putJSON(Finish, "attention", late); err != nil {
			return err
		}
		var paths []string
		for _, s := range late.Stuck {
			paths = append(paths, s.Path)
		}
		return conflict("state.needs_attention", "applied, but the versions they replaced were written to afterwards; both are kept", paths)
	}
	return t.clear()
}

// late looks at the displaced files again, and stores those that the blob store
// lacks.
func (t *tx) late(ctx context.Context) (settlement, error) {
	var out settlement
	for i, op := range t.j.moves() {
		if op.Kind == create {
			continue
		}
		p := t.at(t.displaced(i, op))
		s, err := p.look(ctx)
		switch {
		case err != nil:
			return out, err
		case s.Kind == patch.Absent: // removed by an earlier call
			continue
		case s != op.Before:
			out.Stuck = append(out.Stuck, Stuck{string(op.Path), "somebody wrote into the version that was replaced"})
			continue
		}
		if err := t.w.putMissing(ctx, s.SHA256, p); err != nil {
			return out, err
		}
	}
	return out, nil
}

// putMissing stores an image that the blob store has lost since the staging.
func (w *Workspace) putMissing(ctx context.Context, digest string, p place) error {
	if w.o.Blobs != nil {
		if has, err := w.o.Blobs.Has(digest); err != nil || has {
			return err
		}
	}
	return w.putImage(ctx, p)
}

// Resolve ends a transaction that needs attention by a person's decision to
// keep what now lies at its paths. What lies in its folder and is nowhere else
// goes to the blob store and is returned.
func (w *Workspace) Resolve(ctx context.Context, id string, attempt int) (kept []Kept, err error) {
	defer func() { err = answer(err) }()
	if err := checkTx(id, attempt); err != nil {
		return nil, err
	}
	release, err := w.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	t, err := w.reopen(id, attempt)
	if errors.Is(err, unix.ENOENT) {
		return nil, fault.Errorf(fault.NotFound, "transaction_not_found", "transaction %s, attempt %d, has no folder to be settled", id, attempt)
	}
	if err != nil {
		return nil, pathError(txDir, err)
	}
	defer t.close()
	if done, err := t.has(resolved); err != nil {
		return nil, err
	} else if done {
		return t.resolvedBefore()
	}
	attention, err := t.has("attention")
	if err != nil {
		return nil, err
	}
	if _, err := t.marker(); errors.Is(err, errDamaged) {
		return t.resolve(ctx)
	} else if err != nil {
		return nil, err
	}
	switch err := t.load(ctx); {
	case errors.Is(err, errDamaged):
	case err != nil && !errors.Is(err, unix.ENOENT):
		return nil, err
	case !attention:
		return nil, fault.Errorf(fault.Conflict, "state.no_attention", "transaction %s needs no decision", id)
	}
	return t.resolve(ctx)
}

// resolve stores every slot's content that no image is and clears the folder.
func (t *tx) resolve(ctx context.Context) ([]Kept, error) {
	fd, err := openat(t.dir, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return nil, err
	}
	files, err := namesIn(fd)
	if err != nil {
		return nil, err
	}
	var kept []Kept
	for _, file := range files {
		op, is := t.operationOf(file)
		if !is {
			continue
		}
		s, err := t.at(file).look(ctx)
		if err != nil {
			return kept, err
		}
		if s == op.Before || s == op.After {
			continue
		}
		if s.Kind != patch.File && s.Kind != patch.Symlink {
			where := stateDir + "/tx/" + t.name() + "/" + file
			return kept, fault.Errorf(fault.Conflict, "state.needs_attention", "what was at %s is no file; move it out of %s first", quote(string(op.Path)), where).
				With("paths", []string{string(op.Path)}).With("held_at", where)
		}
		if err := t.w.putImage(ctx, t.at(file)); err != nil {
			return kept, err
		}
		kept = append(kept, Kept{string(op.Path), s})
	}
	m, err := t.marker()
	if err == nil && m != Committed || errors.Is(err, errDamaged) {
		err = t.putJSON(Finish, "aborted", settlement{Kept: kept, Origin: t.origin})
	}
	if err == nil {
		err = t.putJSON(Finish, resolved, settlement{Kept: kept})
	}
	if err != nil {
		return kept, err
	}
	if m == Committed {
		if err := t.nameIndex(); err != nil {
			return kept, err
		}
	}
	return kept, t.clear()
}

// resolved is the file that says what a decision to keep has kept, from before
// anything is removed until nothing else is left: whoever decides again after a
// crash is told the same.
const resolved = "resolved"

// resolvedBefore ends what an earlier call had begun to remove.
func (t *tx) resolvedBefore() ([]Kept, error) {
	s, err := t.settled(resolved)
	if err != nil {
		return nil, err
	}
	return s.Kept, t.clear()
}

// operationOf returns the operation that a slot belongs to. Where the journal
// is damaged only the slot's name is known.
func (t *tx) operationOf(file string) (operation, bool) {
	i, err := strconv.Atoi(strings.TrimSuffix(file, ".old"))
	switch {
	case err != nil || file != slot(i) && file != aside(i):
		return operation{}, false
	case i < len(t.j.Ops):
		return t.j.Ops[i], true
	}
	return operation{Path: name("slot " + file)}, true
}
