package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/wire"
)

// Since returns HEAD's commit and the paths that are no longer in these states.
func (w *World) Since(ctx context.Context, root string, paths []events.PathState) (head string, changed []string, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return "", nil, err
	}
	if head, err = s.Head(ctx); err != nil {
		return "", nil, err
	}
	was := map[string]patch.State{}
	for _, p := range paths {
		was[p.Path] = state(p)
	}
	changed, err = s.Changed(ctx, was)
	for i, p := range changed {
		changed[i] = patch.Show(p)
	}
	return head, changed, err
}

// maxHeld bounds what is held in memory on the way to the blob store, in bytes,
// but for one file.
const maxHeld = 32 << 20

// KeepBase stores durably what lies at paths, where it is as the states say.
// What somebody changes meanwhile is not kept: the revision's base is stale
// then anyway.
func (w *World) KeepBase(ctx context.Context, root string, paths []events.PathState) error {
	s, err := w.space(ctx, root)
	if err != nil {
		return err
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return err
	}
	var sources []func() (io.ReadCloser, error)
	held := 0
	for _, p := range paths {
		if held > maxHeld {
			if _, err := w.blobs.PutAll(ctx, sources); err != nil {
				return err
			}
			sources, held = nil, 0
		}
		if p.SHA256 == "" {
			continue
		}
		if has, err := w.blobs.Has(p.SHA256); err != nil {
			return err
		} else if has {
			continue
		}
		data, err := tree.Read(p.Path)
		if err != nil || patch.Digest(data) != p.SHA256 {
			if again, err2 := s.Changed(ctx, map[string]patch.State{p.Path: state(p)}); err2 != nil || len(again) == 0 {
				return errors.Join(err, err2)
			}
			continue
		}
		held += len(data)
		sources = append(sources, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil })
	}
	if len(sources) == 0 {
		return nil
	}
	_, err = w.blobs.PutAll(ctx, sources)
	return err
}

// Preview shows a page of what a revision's patch states, or of what differs
// between two revisions.
func (w *World) Preview(ctx context.Context, root string, v commands.PatchView) (out commands.PatchPage, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return out, err
	}
	var p *patch.Patch
	switch {
	case v.Merged != nil:
		out.Bytes = int64(len(v.Merged))
		p, err = patch.Parse(v.Merged, patch.Options{SHA256: s.sha256})
	case v.From == nil:
		p, out.Bytes, err = w.stated(ctx, s, v.Revision)
	default:
		p, out.Bytes, err = w.between(ctx, s, *v.From, v.Revision)
	}
	if err != nil {
		return out, err
	}
	out.Files, out.Notes = []wire.PatchFile{}, []wire.PatchNote{}
	if p == nil {
		return out, nil // the revisions give the same
	}
	out.Counts.Files, out.Counts.Added, out.Counts.Removed = p.Counts()
	notes := p.Findings()
	out.Found = len(notes)
	for _, n := range notes[:min(len(notes), maxNotes)] {
		out.Notes = append(out.Notes, wire.PatchNote{Kind: string(n.Kind), Path: n.Path, Line: n.Line, Detail: n.Detail})
	}
	out.Files, out.Next, err = page(p.Files(), v)
	return out, err
}

// stated parses a revision's patch, without a tree. How many components are to
// be stripped, where only the tree could tell, was found when it was attached.
func (w *World) stated(ctx context.Context, s *space, r domain.Revision) (*patch.Patch, int64, error) {
	data, err := w.blobs.Get(ctx, r.PatchDigest)
	if err != nil {
		return nil, 0, err
	}
	p, err := patch.Parse(data, patch.Options{SHA256: s.sha256})
	if err != nil {
		return nil, 0, fmt.Errorf("the patch of revision %d: %w", r.Number, err)
	}
	if _, known := p.Level(); known {
		return p, int64(len(data)), nil
	}
	for _, level := range []int{1, 0} {
		p, err := patch.Parse(data, patch.Options{SHA256: s.sha256, Strip: &level})
		if err != nil {
			continue // then it was the other one
		}
		var files []events.PatchedFile
		for _, f := range p.Files() {
			files = append(files, patched(f))
		}
		if slices.Equal(files, r.Files) {
			return p, int64(len(data)), nil
		}
	}
	return nil, 0, fmt.Errorf("the patch of revision %d does not give the files that it was attached with", r.Number)
}

// between makes the patch that takes what one revision gives to what another
// gives, each on its own base; nil if both give the same.
func (w *World) between(ctx context.Context, s *space, from, to domain.Revision) (*patch.Patch, int64, error) {
	was, err := w.made(ctx, s, from)
	if err != nil {
		return nil, 0, err
	}
	is, err := w.made(ctx, s, to)
	if err != nil {
		return nil, 0, err
	}
	paths := maps.Clone(was)
	maps.Copy(paths, is)
	var images []patch.Image
	for _, p := range slices.Sorted(maps.Keys(paths)) {
		a, touched := was[p]
		if !touched { // as it is on the other's base
			a = patch.Image{After: is[p].Before, New: is[p].Old}
		}
		b, touched := is[p]
		if !touched {
			b = patch.Image{After: was[p].Before, New: was[p].Old}
		}
		images = append(images, patch.Image{Path: p, Before: a.After, After: b.After, Old: a.New, New: b.New})
	}
	tree, err := s.Tree(ctx)
	if err != nil {
		return nil, 0, err
	}
	if images, err = s.kept(ctx, tree, images); err != nil {
		return nil, 0, err
	}
	data, err := patch.Format(images, s.sha256)
	if err != nil || len(data) == 0 {
		return nil, 0, err
	}
	p, err := patch.Parse(data, patch.Options{SHA256: s.sha256, MaxFiles: len(images) * 2, MaxPatchBytes: len(data)})
	return p, int64(len(data)), err
}

// made gives what a revision's patch makes of the paths that it touches, on its
// own base.
func (w *World) made(ctx context.Context, s *space, r domain.Revision) (map[string]patch.Image, error) {
	got, base, err := w.applied(ctx, s, r, "no_interdiff")
	if err != nil {
		return nil, err
	}
	return byPath(got, base)
}

func byPath(got *patch.Result, base patch.Tree) (map[string]patch.Image, error) {
	images, err := patch.Images(got.Changes, base)
	out := map[string]patch.Image{}
	for _, m := range images {
		out[m.Path] = m
	}
	return out, err
}

// applied applies a revision's patch to its own base. Where it does not fit,
// or that is not kept, the fault has the code.
func (w *World) applied(ctx context.Context, s *space, r domain.Revision, code string) (*patch.Result, *patch.MapTree, error) {
	p, _, err := w.stated(ctx, s, r)
	if err != nil {
		return nil, nil, err
	}
	base, err := w.base(ctx, s, r, p, code)
	if err != nil {
		return nil, nil, err
	}
	with, err := s.WithAttributes(ctx, base, append(p.Touched(), p.Sources()...))
	if err != nil {
		return nil, nil, err
	}
	got, err := patch.Apply(p, with)
	if refused, ok := errors.AsType[*patch.Refusal](err); ok {
		return nil, nil, fault.Errorf(fault.Conflict, code, "revision %d does not fit what it was made on, so what it gives cannot be told: %s", r.Number, refused.Error())
	}
	return got, base, err
}

// base is the tree that a revision was made on, as far as its patch touches it.
func (w *World) base(ctx context.Context, s *space, r domain.Revision, p *patch.Patch, code string) (*patch.MapTree, error) {
	tree, err := s.Tree(ctx)
	if err != nil {
		return nil, err
	}
	out := patch.NewMapTree()
	for _, at := range append(slices.Clone(r.Base.Paths), r.Base.Sources...) {
		if at.SHA256 == "" {
			continue
		}
		data, err := w.blobs.Get(ctx, at.SHA256)
		if fault.CodeOf(err) == "blob_missing" { // of an older version of the service, which did not keep it
			if data, err = tree.Read(at.Path); err != nil || patch.Digest(data) != at.SHA256 {
				return nil, errors.Join(fault.Errorf(fault.Conflict, code, "what %s held when revision %d was attached is not kept", patch.Show(at.Path), r.Number), err)
			}
		}
		if err != nil {
			return nil, err
		}
		out.Put(at.Path, at.Mode, data)
	}
	for _, f := range p.Files() {
		if f.Op != patch.Copy {
			continue
		}
		if st, err := out.Stat(f.OldPath); err != nil || st.Kind != patch.Absent {
			continue
		}
		st, err := tree.Stat(f.OldPath) // an older version of the service did not keep what is only copied
		if err != nil {
			return nil, err
		}
		if st.Kind == patch.File || st.Kind == patch.Symlink {
			data, err := tree.Read(f.OldPath)
			if err != nil {
				return nil, err
			}
			out.Put(f.OldPath, st.Mode, data)
		}
	}
	return out, nil
}
