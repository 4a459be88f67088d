package world

import (
	"context"
	"errors"
	"fmt"

	"roundtable/commands"
	"roundtable/internal/patch"
	"roundtable/internal/redact"
)

// maxFlaws bounds how many flaws are named.
const maxFlaws = 1000

// Flaws looks for whitespace errors and conflict markers in the lines that the
// patch adds to the tree as it lies now, in the bytes that git keeps of them.
func (w *World) Flaws(ctx context.Context, root string, data []byte) (out commands.Flaws, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return out, err
	}
	view, err := s.View(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	r, err := s.result(ctx, view, data)
	if err != nil {
		return out, err
	}
	images, err := patch.Images(r.Changes, view)
	if err != nil {
		return out, err
	}
	if images, err = s.kept(ctx, view, images); err != nil {
		return out, err
	}
	found, all := patch.Flaws(besideOld(images, r.Files), maxFlaws)
	for _, x := range found {
		out.Lines = append(out.Lines, fmt.Sprintf("%s:%d: %s\n", redact.Text(patch.Show(x.Path)), x.Line, x.What))
	}
	out.All = all
	return out, nil
}

// besideOld compares what was renamed with what it was at its old path.
func besideOld(images []patch.Image, files []patch.FileResult) []patch.Image {
	from, old := map[string]string{}, map[string][]byte{}
	for _, f := range files {
		if f.Op == patch.Rename {
			from[f.NewPath] = f.OldPath
		}
	}
	for _, m := range images {
		old[m.Path] = m.Old
	}
	for i := range images {
		if was, ok := from[images[i].Path]; ok {
			images[i].Old = old[was]
		}
	}
	return images
}
