package world

import (
	"context"
	"errors"
	"maps"
	"slices"

	"roundtable/commands"
	"roundtable/events"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// Plan returns what the patch changes in the tree as it lies now. That it does
// not fit any more is a fault.
func (w *World) Plan(ctx context.Context, root string, data []byte) ([]patch.Change, error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return nil, err
	}
	view, err := s.View(ctx)
	if err != nil {
		return nil, err
	}
	r, err := s.result(ctx, view, data)
	if err = errors.Join(err, view.Close()); err != nil {
		return nil, err
	}
	return r.Changes, nil
}

// result is what the patch gives on a tree, or why it is not taken.
func (s *space) result(ctx context.Context, tree patch.Tree, data []byte) (*patch.Result, error) {
	f, err := s.fit(ctx, tree, data)
	switch {
	case err != nil:
		return nil, err
	case f.ignored != nil:
		return nil, f.ignored
	case f.refused != nil:
		return nil, refusal(f.refused)
	case f.strays != nil:
		return nil, f.strays
	}
	return f.result, nil
}

// Tree returns the id of the whole tree that the patch would give now.
func (w *World) Tree(ctx context.Context, root string, data []byte) (string, error) {
	changes, err := w.Plan(ctx, root, data)
	if err != nil {
		return "", err
	}
	s, err := w.space(ctx, root)
	if err != nil {
		return "", err
	}
	t, err := s.Candidate(ctx, changes)
	return t.ID, err
}

// Materialise writes the whole tree that the patch would give, or the tree as
// it lies if there is no patch, into the empty folder dst, and returns its id.
func (w *World) Materialise(ctx context.Context, root string, data []byte, dst string) (string, error) {
	var changes []patch.Change
	var err error
	if data != nil {
		if changes, err = w.Plan(ctx, root, data); err != nil {
			return "", err
		}
	}
	s, err := w.space(ctx, root)
	if err != nil {
		return "", err
	}
	t, err := s.Materialise(ctx, changes, dst)
	return t.ID, err
}

// kept gives images of a tree's files in the bytes that git keeps of them,
// which is what a patch speaks of.
func (s *space) kept(ctx context.Context, tree patch.Tree, images []patch.Image) ([]patch.Image, error) {
	var paths []string
	for _, m := range images {
		paths = append(paths, m.Path)
	}
	with, err := s.WithAttributes(ctx, tree, paths)
	if err != nil {
		return nil, err
	}
	return repo.KeptImages(with, images)
}

// Lies compares a transaction's paths and journal with what lies there now.
func (w *World) Lies(ctx context.Context, root, transaction string, attempt int, files []events.ChangedPath) (out commands.Look, err error) {
	r, err := w.report(ctx, root, transaction, attempt, files)
	if err != nil {
		return out, err
	}
	out = commands.Look{Repository: r.Repository, Journal: string(r.Marker), CanResolve: r.CanResolve}
	if r.Marker == repo.None && r.CanRecover {
		out.Journal = "open"
	}
	for _, p := range r.Paths {
		l := commands.LookPath{Path: patch.Show(p.Path), Is: string(p.Is), Now: pathState(p.Path, p.Now), Stuck: p.Stuck}
		if p.Slot != nil && *p.Slot != p.Before && *p.Slot != p.After {
			held := pathState(p.Path, *p.Slot)
			l.Held = &held
		}
		out.Paths = append(out.Paths, l)
	}
	return out, nil
}

// Resolve ends what waits for a person by keeping what lies at the paths, and
// says what lies there and which further versions went to the blob store. The
// fault is transaction_not_found where that was done before.
func (w *World) Resolve(ctx context.Context, root, transaction string, attempt int, files []events.ChangedPath) (out events.TransactionResolved, err error) {
	r, err := w.report(ctx, root, transaction, attempt, files)
	if err != nil {
		return out, err
	}
	s, err := w.space(ctx, root)
	if err != nil {
		return out, err
	}
	kept, err := s.Resolve(ctx, transaction, attempt)
	if err != nil {
		return out, err
	}
	out = events.TransactionResolved{Transaction: transaction, Attempt: attempt, Repository: r.Repository}
	for _, p := range r.Paths {
		out.Paths = append(out.Paths, pathState(p.Path, p.Now))
	}
	for _, k := range kept {
		out.Kept = append(out.Kept, pathState(k.Path, k.State))
	}
	return out, nil
}

// Planned returns the states before and after that an attempt's journal holds.
func (w *World) Planned(ctx context.Context, root, transaction string, attempt int) (out []events.ChangedPath, err error) {
	r, err := w.report(ctx, root, transaction, attempt, nil)
	for _, p := range r.Paths {
		out = append(out, events.ChangedPath{Path: p.Path, Before: pathState(p.Path, p.Before), After: pathState(p.Path, p.After)})
	}
	return out, err
}

func (w *World) report(ctx context.Context, root, transaction string, attempt int, files []events.ChangedPath) (repo.Report, error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return repo.Report{}, err
	}
	before, after := map[string]patch.State{}, map[string]patch.State{}
	for _, f := range files {
		before[f.Path], after[f.Path] = state(f.Before), state(f.After)
	}
	return s.State(ctx, transaction, attempt, before, after)
}

// ChangedPaths returns the paths with the states that a transaction gave them.
func ChangedPaths(before, after map[string]patch.State) (out []events.ChangedPath) {
	for _, p := range slices.Sorted(maps.Keys(after)) {
		out = append(out, events.ChangedPath{Path: p, Before: pathState(p, before[p]), After: pathState(p, after[p])})
	}
	return out
}
