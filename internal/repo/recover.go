package repo

import (
	"context"
	"encoding/json"
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Recover settles every transaction that a dead process left: one without a
// journal is removed, one without a marker is rolled back, unless its branch
// has moved: then it is committed. Committed ones are
// returned and left as they are: report each to the log, then call Finish.
// It may be called at any time, and again.
func (w *Workspace) Recover(ctx context.Context) (out []Recovered, err error) {
	return w.Settle(ctx, nil)
}

// Settle is Recover, and tells of each transaction what it came to before the
// transaction's folder is removed: where telling fails the folder stays, with
// all that it has to tell, every other transaction is settled, and the error is
// returned. tell is called with the workspace locked; it must not use it.
func (w *Workspace) Settle(ctx context.Context, tell func(context.Context, Recovered) error) (out []Recovered, err error) {
	defer func() { err = answer(err) }()
	release, err := w.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := w.brought(ctx, false); err != nil {
		return nil, err
	}
	return w.settleAll(ctx, tell)
}

// settleAll is Settle for the holder of the lock.
func (w *Workspace) settleAll(ctx context.Context, tell func(context.Context, Recovered) error) ([]Recovered, error) {
	fd, err := w.at.open(txDir, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, pathError(txDir, err)
	}
	folders, err := namesIn(fd)
	if err != nil {
		return nil, err
	}
	if len(folders) > 0 {
		if _, err := w.Probe(ctx); err != nil {
			return nil, err
		}
	}
	var out []Recovered
	var untold error
	for _, f := range folders {
		id, attempt, ok := parseTx(f)
		if !ok {
			continue // not made by us
		}
		t, err := w.reopen(id, attempt)
		if err != nil {
			return out, pathError(txDir+"/"+f, err)
		}
		r, missed, err := t.end(ctx, tell)
		t.close()
		untold = errors.Join(untold, missed)
		if err != nil {
			return out, errors.Join(err, untold)
		}
		out = append(out, r)
	}
	return out, untold
}

// end settles one transaction, tells of it, and removes its folder if nobody
// needs it any more. untold is why it could not be told.
func (t *tx) end(ctx context.Context, tell func(context.Context, Recovered) error) (r Recovered, untold, err error) {
	r, over, err := t.settle(ctx)
	if err != nil {
		return r, nil, err
	}
	r.Folder = t.origin
	if tell != nil {
		untold = tell(ctx, r)
	}
	if over && untold == nil {
		err = t.clear()
	}
	return r, untold, err
}

// settle brings one transaction to where every path is before or after, but
// for those that are stuck. over says that its folder is of no more use.
func (t *tx) settle(ctx context.Context) (r Recovered, over bool, err error) {
	r = Recovered{Tx: t.id, Attempt: t.attempt}
	m, err := t.marker()
	if errors.Is(err, errDamaged) {
		r.Marker, r.Stuck = Attention, []Stuck{{"", err.Error()}}
		return r, false, nil
	}
	if err != nil {
		return r, false, err
	}
	r.Marker = m
	switch m {
	case Committed:
		if err := t.sure(); err != nil {
			return r, false, err
		}
		if err := t.nameIndex(); err != nil {
			return r, false, err
		}
		notes, err := t.settled("attention")
		r.Stuck, r.Kept = notes.Stuck, notes.Kept
		return r, false, err
	case Aborted:
		notes, err := t.settled("aborted")
		r.Kept = notes.Kept
		if err != nil { // the next recovery has nothing to read any more
			err = errors.Join(err, t.clear())
		}
		return r, true, err
	}
	switch err := t.load(ctx); {
	case errors.Is(err, unix.ENOENT):
		return r, true, nil
	case errors.Is(err, errDamaged):
		r.Marker, r.Stuck = Attention, []Stuck{{"", err.Error()}}
		return r, false, nil
	case err != nil:
		return r, false, err
	}
	t.w.moves.Lock()
	t.w.moved++
	defer t.w.moves.Unlock()
	if forward, err := t.forward(ctx, m); err != nil || forward {
		r.Marker = Committed
		return r, false, err
	}
	out, err := t.rollback(ctx)
	r.Stuck, r.Kept, r.Marker = out.Stuck, out.Kept, Aborted
	if len(out.Stuck) > 0 {
		r.Marker = Attention
		return r, false, err
	}
	return r, true, err
}

// forward looks whether the branch has moved already, which is the commit
// point of a transaction that is committed, and then gives the index its name
// and writes the marker. With
// any other marker it has been decided that the paths go back.
func (t *tx) forward(ctx context.Context, m Marker) (bool, error) {
	if t.j.Ref == nil || m != None || t.w.blind {
		return false, nil
	}
	_, is, err := t.w.branchPosition(ctx, *t.j.Ref)
	if err != nil || is != AtAfter {
		return false, err
	}
	if err := t.syncRef(*t.j.Ref); err != nil {
		return false, err
	}
	if err := t.nameIndex(); err != nil {
		return false, err
	}
	return true, t.mark()
}

// settled reads what a rollback or Finish wrote down; nothing if it wrote none.
func (t *tx) settled(file string) (settlement, error) {
	var s settlement
	f, _, err := t.at(file).openFile()
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	err = json.NewDecoder(f).Decode(&s)
	return s, errors.Join(err, f.Close())
}

// Outcome returns what the transaction's marker says.
func (w *Workspace) Outcome(id string, attempt int) (_ Marker, err error) {
	defer func() { err = answer(err) }()
	if err := checkTx(id, attempt); err != nil {
		return None, err
	}
	t, err := w.reopen(id, attempt)
	if errors.Is(err, unix.ENOENT) {
		return None, nil
	}
	if err != nil {
		return None, pathError(txDir, err)
	}
	defer t.close()
	m, err := t.marker()
	if errors.Is(err, errDamaged) {
		err = nil // which a person looks at, and nobody reports
	}
	return m, err
}
