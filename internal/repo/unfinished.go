package repo

import (
	"context"
	"errors"

	"golang.org/x/sys/unix"
)

// Unfinished returns the transactions that have a folder in the workspace, as
// their markers say, without waiting for whoever works on them, and changes
// nothing. Marker None is one that is in work or that a dead process left.
func (w *Workspace) Unfinished(ctx context.Context) ([]Recovered, error) {
	fd, err := w.at.open(txDir, unix.O_RDONLY|unix.O_DIRECTORY)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, pathError(txDir, err)
	}
	folders, err := namesIn(fd)
	if err != nil {
		return nil, err
	}
	var out []Recovered
	for _, f := range folders {
		id, attempt, ok := parseTx(f)
		if !ok {
			continue // not made by us
		}
		r, err := w.unfinished(ctx, id, attempt)
		if errors.Is(err, unix.ENOENT) {
			continue // it was finished just now
		}
		if err != nil {
			return out, pathError(txDir+"/"+f, err)
		}
		out = append(out, r)
	}
	return out, nil
}

func (w *Workspace) unfinished(ctx context.Context, id string, attempt int) (r Recovered, err error) {
	t, err := w.reopen(id, attempt)
	if err != nil {
		return r, err
	}
	defer t.close()
	r = Recovered{Tx: id, Attempt: attempt}
	if r.Marker, err = t.marker(); errors.Is(err, errDamaged) {
		r.Stuck = []Stuck{{"", err.Error()}}
		return r, nil
	} else if err != nil {
		return r, err
	}
	notes, err := t.settled("attention")
	if err != nil {
		return r, err
	}
	r.Stuck = notes.Stuck
	if len(r.Stuck) == 0 && r.Marker == None {
		if err := t.load(ctx); errors.Is(err, errDamaged) {
			r.Marker, r.Stuck = Attention, []Stuck{{"", err.Error()}}
		} else if err != nil && !errors.Is(err, unix.ENOENT) {
			return r, err
		}
	}
	return r, nil
}
