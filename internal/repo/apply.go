package repo

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// Apply changes the work tree: wholly, or not at all. A refusal is a fault
// with the code state.stale or state.third_party_edit (a conflict, its paths
// under "paths"), state.locked, state.no_space, state.cross_device,
// state.permission, state.needs_attention (both versions kept) or
// state.unknown (the marker could not be made durable: ask Outcome). Where
// changes are committed also state.ref_moved, state.dirty, state.no_branch or
// state.checked_out_elsewhere, or state.index_locked: nothing has changed then. After
// success report it, then call Finish. Applying a committed attempt again
// gives its receipt again.
func (w *Workspace) Apply(ctx context.Context, id string, attempt int, p Plan) (_ Receipt, err error) {
	defer func() { err = answer(err) }()
	if err := checkTx(id, attempt); err != nil {
		return Receipt{}, err
	}
	if w.o.Blobs == nil {
		return Receipt{}, errors.New("repo: a workspace without a blob store applies nothing")
	}
	release, err := w.acquire(ctx)
	if err != nil {
		return Receipt{}, err
	}
	defer release()
	if err := w.brought(ctx, false); err != nil {
		return Receipt{}, err
	}
	if r, done, err := w.receiptOf(ctx, id, attempt); err != nil || done {
		return r, err
	}
	w.o.Step(Step{Tx: id, Attempt: attempt, Phase: Prepare, Name: "plan"})
	if err := w.ready(ctx, p); err != nil {
		return Receipt{}, err
	}
	j, err := w.plan(ctx, id, attempt, p)
	if err != nil {
		return Receipt{}, err
	}
	if j.Aside = !w.exchanges(); j.Aside {
		j.notes = append(j.notes, Note{"", NoAtomicDetect})
	}
	t, err := w.begin(id, attempt)
	if err != nil {
		return Receipt{}, err
	}
	defer t.close()
	return t.apply(ctx, j, p)
}

// ready settles what dead processes left, knows what the file system can do,
// and refuses paths that wait for a person.
func (w *Workspace) ready(ctx context.Context, p Plan) error {
	left, err := w.settleAll(ctx, nil)
	if err != nil {
		return err
	}
	for _, r := range left {
		var closed []string
		for _, s := range r.Stuck {
			for _, c := range p.Changes {
				if within(c.Path, s.Path) || within(s.Path, c.Path) { // "" stands for all
					closed = append(closed, c.Path)
				}
			}
		}
		if len(closed) > 0 {
			slices.Sort(closed)
			return conflict("state.needs_attention", "closed until a person settles transaction "+r.Tx, slices.Compact(closed)).
				With("transaction_id", r.Tx).With("attempt", r.Attempt)
		}
	}
	_, err = w.Probe(ctx)
	return err
}

// apply does the steps from the staging on.
func (t *tx) apply(ctx context.Context, p planned, of Plan) (Receipt, error) {
	t.j = p.journal
	err := t.stage(ctx, p)
	if err == nil && t.j.Ref != nil {
		err = t.makeCommit(ctx, of)
	}
	if err == nil {
		defer t.closeNext()
		err = t.holdIndex(ctx)
	}
	if err == nil {
		err = t.writeJournal()
	}
	if err := t.flip(ctx, of.Commit, err); err != nil {
		return Receipt{}, err
	}
	t.step(Verify, "marked", "")
	if t.unnamed != nil || t.indexFollows(ctx) != nil {
		p.notes = append(p.notes, Note{Note: "index_not_updated"}) // Finish does it, or says why it cannot
	}
	return t.receipt(p.notes)
}

// flip changes the tree and passes the commit point, or leaves all as it was.
// err is what went wrong before.
func (t *tx) flip(ctx context.Context, c *Commit, err error) error {
	t.w.moves.Lock() // until the tree is whole again, one way or the other
	t.w.moved++
	defer t.w.moves.Unlock()
	switch {
	case errors.Is(err, errUnknown):
		return t.abort(ctx, err)
	case err != nil:
		return errors.Join(err, t.clear())
	}
	if err := t.change(ctx); err != nil {
		return t.abort(ctx, err)
	}
	if err := t.fillIndex(ctx); err != nil {
		return t.abort(ctx, err)
	}
	passed := false
	if t.j.Ref != nil {
		if passed, err = t.moveRef(ctx, *c); !passed {
			return t.abort(ctx, err)
		}
	}
	if err == nil && passed {
		t.unnamed = t.nameIndex()
	}
	if err == nil {
		err = t.mark()
	}
	switch {
	case err == nil:
		return nil
	case passed || errors.Is(err, errUnknown):
		return fault.Errorf(fault.Unavailable, "state.unknown", "whether transaction %s is applied is known after the next start: %v", t.id, err)
	}
	return t.abort(ctx, err)
}

// mark writes the marker that says: committed.
func (t *tx) mark() error {
	digest, err := t.j.digest()
	if err != nil {
		return err
	}
	err = t.putJSON(Verify, "commit", map[string]any{"transaction_id": t.id, "attempt": t.attempt, "plan_digest": digest, "origin": t.origin})
	if err == nil {
		t.w.durable[t.name()] = true
	}
	return err
}

// sure makes a marker durable that this process has found and not made: who
// wrote it may have died before it was, or its sync may have failed. So it is
// written once more. Nobody may be told of it before.
func (t *tx) sure() error {
	if t.w.durable[t.name()] || t.w.lax {
		return nil
	}
	b, _, err := t.at("commit").read(context.Background(), 1<<20)
	if err == nil {
		err = t.put(Verify, "commit", b)
	}
	if errors.Is(err, errUnknown) {
		return fault.Errorf(fault.Unavailable, "state.unknown", "whether transaction %s is applied is known after the next start: %v", t.id, err)
	}
	if err == nil {
		t.w.durable[t.name()] = true
	}
	return err
}

func (t *tx) writeJournal() error {
	t.j.Origin = t.origin
	b, err := t.j.encode()
	if err != nil {
		return err
	}
	if err := t.put(Prepare, "journal", b); err != nil {
		return err
	}
	t.step(Prepare, "journal_sync", "")
	for _, dir := range []string{txDir, stateDir, ""} {
		fd, err := t.w.at.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
		if err == nil {
			err = errors.Join(calls.Fsync(fd, dir), calls.Close(fd))
		}
		if err != nil {
			return errors.Join(errUnknown, pathError(dir, err))
		}
	}
	return nil
}

// change moves, syncs and verifies.
func (t *tx) change(ctx context.Context) error {
	if err := t.move(ctx); err != nil {
		return err
	}
	t.step(Moving, "sync", "")
	if err := t.sync(); err != nil {
		return err
	}
	t.step(Verify, "verify", "")
	return t.verify(ctx)
}

// abort rolls back and says why.
func (t *tx) abort(ctx context.Context, cause error) error {
	ctx = context.WithoutCancel(ctx) // half of it is no answer to a caller who went away
	out, err := t.rollback(ctx)
	var third errThird
	if errors.As(cause, &third) {
		cause = conflict("state.third_party_edit", "changed by somebody else during the apply", []string{third.path})
	}
	switch {
	case err != nil || out.failed != nil:
		return errors.Join(fault.Errorf(fault.Unavailable, "state.unknown", "transaction %s could not be taken back yet; recovery will do it: %v", t.id, errors.Join(err, out.failed)), cause)
	case len(out.Stuck) > 0:
		var paths []string
		for _, s := range out.Stuck {
			paths = append(paths, s.Path)
		}
		return errors.Join(conflict("state.needs_attention", "changed by somebody else, and both versions are kept", paths), cause)
	}
	return errors.Join(cause, t.clear())
}

// receipt is made from the journal.
func (t *tx) receipt(notes []Note) (Receipt, error) {
	digest, err := t.j.digest()
	r := Receipt{Tx: t.id, Attempt: t.attempt, PlanDigest: digest, Notes: notes}
	r.Before, r.After = t.j.states()
	r.BeforeDigest, r.AfterDigest = PathsDigest(r.Before), PathsDigest(r.After)
	if m := t.j.Ref; m != nil {
		r.Ref, r.Commit, r.Parent = m.Ref, m.New, m.Old
	}
	return r, err
}

// receiptOf is the receipt of an attempt that is committed and not finished.
func (w *Workspace) receiptOf(ctx context.Context, id string, attempt int) (r Receipt, done bool, err error) {
	t, err := w.reopen(id, attempt)
	if errors.Is(err, unix.ENOENT) {
		return Receipt{}, false, nil
	}
	if err != nil {
		return Receipt{}, false, pathError(txDir, err)
	}
	defer t.close()
	if m, err := t.marker(); err != nil || m != Committed {
		return Receipt{}, false, err
	}
	if err := t.sure(); err != nil {
		return Receipt{}, true, err
	}
	if err := t.load(ctx); errors.Is(err, unix.ENOENT) {
		return Receipt{}, true, fault.Errorf(fault.Conflict, "state.finished", "transaction %s is applied and being finished", id)
	} else if err != nil {
		return Receipt{}, true, err
	}
	r, err = t.receipt(nil)
	return r, true, err
}
