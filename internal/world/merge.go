package world

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// Bounds of a merge, in bytes: of one file, as the engine takes none that is
// larger, and of all that lies in the tree at its paths.
const (
	maxMerged    = 32 << 20
	maxMergedAll = 256 << 20
)

// A holder reads what lies at the paths of a merge, as much as may be held.
type holder struct {
	tree patch.Tree
	left int
}

func (h *holder) hold(path string) (patch.Held, error) {
	held, err := patch.Hold(h.tree, path, min(maxMerged, h.left))
	h.left -= len(held.Data)
	return held, err
}

// Reverse merges the taking back of files into the tree as it lies. A path that
// is as it was left goes back to what it was, byte for byte; one that is so
// already is left out; later work is kept if it can be.
func (w *World) Reverse(ctx context.Context, root string, files []events.ChangedPath, renames map[string]string) (m commands.Merging, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return m, err
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return m, err
	}
	lies := holder{tree, maxMergedAll}
	var forks []patch.Fork
	for _, f := range files {
		fork := patch.Fork{Path: f.Path}
		if fork.Ours, err = lies.hold(f.Path); err != nil {
			return m, err
		}
		if fork.Theirs, err = w.held(ctx, f.Before, fork.Ours); err != nil {
			return m, err
		}
		fork.Base = patch.Held{State: held(f.After)}
		if fork.Theirs.State != fork.Ours.State { // else what it was made of does not matter
			if fork.Base, err = w.held(ctx, f.After, fork.Ours); err != nil {
				return m, err
			}
		}
		forks = append(forks, fork)
	}
	return w.merging(ctx, s, forks, renames)
}

// held is the state of a path as something that can be merged: a folder leaves
// the path free.
func held(st events.PathState) patch.State {
	if st.Kind == string(patch.Dir) {
		return patch.State{Kind: patch.Absent}
	}
	return state(st)
}

// held gives the bytes that a path had, from the tree if they lie there.
func (w *World) held(ctx context.Context, st events.PathState, ours patch.Held) (patch.Held, error) {
	h := patch.Held{State: held(st)}
	switch {
	case h.State == ours.State:
		return ours, nil
	case h.State.SHA256 == "":
		return h, nil
	}
	var err error
	if h.Data, err = w.blobs.Get(ctx, h.State.SHA256); err != nil {
		return h, errors.Join(fault.Errorf(fault.Unavailable, "state.artifact_missing", "what %s held cannot be read any more", patch.Show(st.Path)), err)
	}
	return h, nil
}

// Rebase merges what a revision makes of its own base into the tree as it lies.
func (w *World) Rebase(ctx context.Context, root string, r domain.Revision) (m commands.Merging, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return m, err
	}
	made, err := w.made(ctx, s, r)
	if fault.CodeOf(err) == "no_interdiff" {
		made, err = w.madeEarlier(ctx, s, r, err)
	}
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Code == "no_interdiff" {
		return commands.Merging{Impossible: f.Detail}, nil
	}
	if err != nil {
		return m, err
	}
	p, _, err := w.stated(ctx, s, r)
	if err != nil {
		return m, err
	}
	renames := map[string]string{}
	for _, f := range p.Files() {
		if f.Op == patch.Rename {
			renames[f.OldPath] = f.NewPath
		}
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return m, err
	}
	lies := holder{tree, maxMergedAll}
	var forks []patch.Fork
	for _, path := range slices.Sorted(maps.Keys(made)) {
		im := made[path]
		ours, err := lies.hold(path)
		if err != nil {
			return m, err
		}
		forks = append(forks, patch.Fork{Path: path, Base: patch.Held{State: im.Before, Data: im.Old}, Ours: ours, Theirs: patch.Held{State: im.After, Data: im.New}})
	}
	return w.merging(ctx, s, forks, renames)
}

// madeEarlier is made of a revision that does not fit its own base, on the older
// versions of the files that its patch names by their ids, where the last
// commits have them: a patch against a commit, sent when the files had changed
// already. If that gives nothing either, the error is why.
func (w *World) madeEarlier(ctx context.Context, s *space, r domain.Revision, why error) (map[string]patch.Image, error) {
	p, _, err := w.stated(ctx, s, r)
	if err != nil {
		return nil, err
	}
	found, err := s.Earlier(ctx, p.OldIDs())
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, why
	}
	base, err := w.base(ctx, s, r, p, "no_interdiff")
	if err != nil {
		return nil, err
	}
	with, err := s.WithAttributes(ctx, base, append(p.Touched(), p.Sources()...))
	if err != nil {
		return nil, err
	}
	for path, e := range found {
		base.Put(path, e.Mode, repo.InWorkTree(with, path, e.Data))
	}
	got, err := patch.Apply(p, with)
	if _, refused := errors.AsType[*patch.Refusal](err); refused {
		return nil, why
	}
	if err != nil {
		return nil, err
	}
	return byPath(got, base)
}

// merging makes the patch of a merge, and sees that it gives the merged tree.
func (w *World) merging(ctx context.Context, s *space, forks []patch.Fork, renames map[string]string) (m commands.Merging, err error) {
	merged := patch.MergeTrees(forks, renames)
	for _, f := range forks {
		m.Base = append(m.Base, pathState(f.Path, f.Ours.State))
	}
	if len(merged.Conflicts) > 0 {
		m.Conflicts, m.Paths = shownConflicts(merged.Conflicts)
		return m, nil
	}
	m.Merged = merged.Merged
	view, err := s.View(ctx)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	kept, err := s.kept(ctx, view, merged.Images)
	if err != nil {
		return m, err
	}
	f, err := s.spell(ctx, view, kept, renames, &m.Patch)
	switch {
	case err != nil || len(m.Patch) == 0:
		return m, err
	case f.ignored != nil:
		return m, f.ignored
	case f.refused != nil && (f.refused.Class.Stage() == patch.StagePaths || f.refused.Class == patch.Exists):
		m.Patch, m.Merged = nil, nil
		m.Conflicts, m.Paths = shownConflicts([]patch.Conflict{{Path: f.refused.Path, Reason: patch.ReasonPlace, Detail: f.refused.Error()}})
		return m, nil
	case f.strays != nil:
		return m, f.strays
	case f.refused != nil || !gives(f.result.Changes, merged.Images):
		return m, s.misfit(ctx, m.Base, f.refused)
	}
	return m, nil
}

// spell makes the patch of a merge and fits it to the tree. What was moved is
// told as a rename, by which a later merge can follow it, unless the patch is
// taken only as what goes and what comes.
func (s *space) spell(ctx context.Context, tree patch.Tree, kept []patch.Image, renames map[string]string, to *[]byte) (f fitted, err error) {
	told, err := patch.FormatMoved(kept, renames, s.sha256)
	if err != nil {
		return f, err
	}
	if *to, err = patch.Format(kept, s.sha256); err != nil || len(*to) == 0 {
		return f, err
	}
	if !bytes.Equal(told, *to) {
		if f, err = s.fit(ctx, tree, told); err != nil || f.result != nil && f.strays == nil && f.ignored == nil {
			*to = told
			return f, err
		}
	}
	return s.fit(ctx, tree, *to)
}

// misfit says why the patch of a merge does not give what was merged: the files
// changed meanwhile, and else what keeps the patch from being taken, which
// would be the same the next time.
func (s *space) misfit(ctx context.Context, base []events.PathState, refused *patch.Refusal) error {
	was := map[string]patch.State{}
	for _, p := range base {
		was[p.Path] = state(p)
	}
	moved, err := s.Changed(ctx, was)
	switch {
	case err != nil:
		return err
	case len(moved) > 0:
		return fault.Errorf(fault.Conflict, "state.stale", "the files changed while they were merged; send it again")
	case refused != nil:
		return refusal(refused)
	}
	return fault.Errorf(fault.Refused, "apply.attr_filter", "by the attributes as they are now, git does not give back the bytes that the merge comes to")
}

// gives reports whether changes are exactly the images.
func gives(changes []patch.Change, images []patch.Image) bool {
	return slices.EqualFunc(changes, images, func(c patch.Change, m patch.Image) bool {
		return c.Path == m.Path && c.Before == m.Before && c.After == m.After
	})
}
