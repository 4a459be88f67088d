package repo

import (
	"context"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// State says for each path of a transaction which of its versions it is, by
// reading the files. Where its folder is gone, before and after say what to
// compare with; else the journal does.
func (w *Workspace) State(ctx context.Context, id string, attempt int, before, after map[string]patch.State) (r Report, err error) {
	if err := checkTx(id, attempt); err != nil {
		return Report{}, err
	}
	r.Marker = None
	t, err := w.reopen(id, attempt)
	switch {
	case errors.Is(err, unix.ENOENT):
		t = nil
	case err != nil:
		return r, pathError(txDir, err)
	default:
		defer t.close()
		if r, err = t.report(ctx); err != nil {
			return r, err
		}
		if len(t.j.Ops) > 0 {
			before, after = t.j.states()
		}
		if m := t.j.Ref; m != nil {
			b, err := w.Branch(ctx, m.Ref, m.New, m.Old)
			if err != nil {
				return r, err
			}
			r.Branch = &b
		}
	}
	look, err := w.present(ctx, slices.Sorted(maps.Keys(before)))
	if err != nil {
		return r, err
	}
	for _, rel := range slices.Sorted(maps.Keys(before)) {
		p := PathReport{Path: rel, Before: before[rel], After: after[rel]}
		if p.Now, err = look(rel); err != nil {
			return r, err
		}
		p.Is = position(p)
		r.Paths = append(r.Paths, p)
	}
	if t != nil {
		if err := t.slots(ctx, r.Paths); err != nil {
			return r, err
		}
	}
	r.Repository = whole(r.Paths)
	return r, nil
}

// present returns what says the state of each of the paths now: on disk, or in
// the branch that is committed to where that is checked out nowhere. Where
// changes are committed it is in the bytes that git keeps.
func (w *Workspace) present(ctx context.Context, paths []string) (func(rel string) (patch.State, error), error) {
	disk := func(rel string) (patch.State, error) { return w.stateOf(ctx, rel) }
	if !w.Commits() {
		return disk, nil
	}
	t, err := w.target(ctx)
	switch {
	case fault.CodeOf(err) == "state.no_branch":
		return disk, nil
	case err == nil && t.here:
		return w.keptHere(ctx, t.old, paths)
	}
	return w.treeOf(ctx, t.old).look, err
}

// Branch says where a branch stands, seen from a transaction that was
// committed to it.
func (w *Workspace) Branch(ctx context.Context, ref, commit, parent string) (RefReport, error) {
	now, is, err := w.branchPosition(ctx, refMove{Ref: ref, New: commit, Old: parent})
	return RefReport{Ref: ref, Commit: commit, Parent: parent, Now: now, Is: is}, err
}

// JournalBranch is Branch of the one that an attempt's journal names; without a
// ref if there is none.
func (w *Workspace) JournalBranch(ctx context.Context, id string, attempt int) (RefReport, error) {
	if err := checkTx(id, attempt); err != nil {
		return RefReport{}, err
	}
	t, err := w.reopen(id, attempt)
	if errors.Is(err, unix.ENOENT) {
		return RefReport{}, nil
	}
	if err != nil {
		return RefReport{}, pathError(txDir, err)
	}
	defer t.close()
	if err := t.load(ctx); err != nil || t.j.Ref == nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, errDamaged) {
			err = nil
		}
		return RefReport{}, err
	}
	return w.Branch(ctx, t.j.Ref.Ref, t.j.Ref.New, t.j.Ref.Old)
}

// position says which version a path is. Where nothing is to lie, a folder is
// as good: the paths in it are judged for themselves.
func position(p PathReport) Position {
	is := func(want patch.State) bool {
		return p.Now == want || want.Kind == patch.Absent && p.Now.Kind == patch.Dir
	}
	switch {
	case is(p.Before):
		return AtBefore
	case is(p.After):
		return AtAfter
	}
	return AtOther
}

// whole says what the paths come to together.
func whole(paths []PathReport) string {
	count := map[Position]int{}
	for _, p := range paths {
		count[p.Is]++
	}
	switch {
	case count[AtOther] > 0:
		return "diverged"
	case count[AtBefore] > 0 && count[AtAfter] > 0:
		return "mixed"
	case count[AtAfter] > 0:
		return "after"
	}
	return "before"
}

// report fills in what the folder says.
func (t *tx) report(ctx context.Context) (r Report, err error) {
	if r.Marker, err = t.marker(); errors.Is(err, errDamaged) {
		r.CanResolve = true
		return r, nil
	} else if err != nil {
		return r, err
	}
	attention, err := t.has("attention")
	if err != nil {
		return r, err
	}
	err = t.load(ctx)
	damaged := errors.Is(err, errDamaged)
	if damaged || errors.Is(err, unix.ENOENT) {
		err = nil
	}
	if damaged && r.Marker == None {
		r.Marker = Attention
	}
	r.CanFinish = r.Marker == Committed && !damaged
	r.CanRecover = r.Marker != Committed && !damaged
	r.CanResolve = attention || damaged
	return r, err
}

// slots fills in what lies in the folder for each path, and why it is stuck.
func (t *tx) slots(ctx context.Context, paths []PathReport) error {
	notes, err := t.settled("attention")
	if err != nil {
		return err
	}
	at := map[string]*PathReport{}
	for i := range paths {
		at[paths[i].Path] = &paths[i]
	}
	for _, s := range notes.Stuck {
		if p := at[s.Path]; p != nil {
			p.Stuck = s.Reason
		}
	}
	for i, op := range t.j.moves() {
		s, err := t.at(t.displaced(i, op)).look(ctx)
		if err != nil {
			return err
		}
		if p := at[string(op.Path)]; p != nil && s.Kind != patch.Absent {
			s = op.asKeptState(s)
			p.Slot = &s
		}
	}
	return nil
}
