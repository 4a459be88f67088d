package world

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/redact"
	"roundtable/internal/wire"
)

// Bounds of the reverse patch that is shown, in bytes.
const (
	maxReverse      = 32 << 20  // of all images together
	maxShownReverse = 256 << 10 // of its text
	maxLinkTarget   = 4096
)

// Artifact looks at every image of files and makes the reverse patch for
// people to read. Only what was looked at is called stored.
func (w *World) Artifact(ctx context.Context, root string, files []events.ChangedPath) (out []wire.RollbackFile, reverse wire.ReversePatch, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return nil, reverse, err
	}
	seen := map[string]string{}
	whole, size := true, int64(0)
	for _, f := range files {
		row := wire.RollbackFile{Path: f.Path, Op: operationOf(f), Stored: "yes"}
		for _, side := range []struct {
			of   events.PathState
			into *wire.KeptImage
		}{{f.Before, &row.Before}, {f.After, &row.After}} {
			if *side.into, err = w.keptImage(ctx, side.of, seen); err != nil {
				return nil, reverse, err
			}
			if side.into.Code != "" {
				whole, row.Stored = false, side.into.Stored
			}
			size += side.of.Size
		}
		out = append(out, row)
	}
	switch {
	case !whole:
		reverse.Omitted = "an image is not there, or is damaged"
	case size > maxReverse:
		reverse.Omitted = fmt.Sprintf("the images have %d bytes together, and a reverse patch is shown of at most %d", size, maxReverse)
	default:
		reverse, err = w.shownReverse(ctx, files, s.sha256)
	}
	return out, reverse, err
}

// operationOf says what became of a path. A rename is a deletion and a creation.
func operationOf(f events.ChangedPath) string {
	b, a := f.Before, f.After
	switch {
	case b.SHA256 == "":
		return "create"
	case a.SHA256 == "":
		return "delete"
	case b.Kind != a.Kind:
		return "type"
	case b.SHA256 == a.SHA256:
		return "mode"
	}
	return "modify"
}

// keptImage says whether the bytes of a state are stored and sound. Each digest
// is looked at once.
func (w *World) keptImage(ctx context.Context, s events.PathState, seen map[string]string) (wire.KeptImage, error) {
	im := wire.KeptImage{Kind: s.Kind, Mode: s.Mode, SHA256: s.SHA256, Size: s.Size, Stored: "not_applicable"}
	if s.SHA256 == "" {
		return im, nil
	}
	if _, ok := seen[s.SHA256]; !ok {
		how, err := w.lookAt(ctx, s)
		if err != nil {
			return im, err
		}
		seen[s.SHA256] = how
	}
	if im.Stored = seen[s.SHA256]; im.Stored != "yes" {
		im.Code = "state.artifact_missing"
		return im, nil
	}
	if patch.Kind(s.Kind) == patch.Symlink && s.Size <= maxLinkTarget {
		target, err := w.blobs.Get(ctx, s.SHA256)
		if err != nil {
			return im, err
		}
		im.Target = redact.Text(patch.Show(string(target)))
	}
	return im, nil
}

// lookAt reads a blob through. That one cannot be read for a reason other than
// its own is an error.
func (w *World) lookAt(ctx context.Context, s events.PathState) (string, error) {
	r, err := w.blobs.Open(s.SHA256)
	if fault.CodeOf(err) == "blob_missing" {
		return "no", nil
	}
	if err != nil {
		return "", err
	}
	n, err := io.Copy(io.Discard, r)
	if err = errors.Join(err, r.Close()); ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil || n != s.Size {
		return "damaged", nil
	}
	return "yes", nil
}

// shownReverse makes the patch from after to before and spells it.
func (w *World) shownReverse(ctx context.Context, files []events.ChangedPath, sha256 bool) (out wire.ReversePatch, err error) {
	read := func(s events.PathState) ([]byte, error) {
		if s.SHA256 == "" {
			return nil, nil
		}
		return w.blobs.Get(ctx, s.SHA256)
	}
	var images []patch.Image
	for _, f := range files {
		im := patch.Image{Path: f.Path, Before: state(f.After), After: state(f.Before)}
		if im.Old, err = read(f.After); err == nil {
			im.New, err = read(f.Before)
		}
		if err != nil {
			return out, err
		}
		images = append(images, im)
	}
	data, err := patch.Format(images, sha256)
	if err != nil {
		return out, err
	}
	out.Digest, out.Bytes = patch.Digest(data), int64(len(data))
	out.Text, out.Cut = shownPatch(data)
	return out, nil
}

// shownPatch spells a patch for people, as its preview does, line by line up to
// a bound.
func shownPatch(data []byte) (text string, cut bool) {
	all := strings.Split(string(bytes.TrimSuffix(data, []byte("\n"))), "\n")
	var b strings.Builder
	for _, line := range redact.Lines(all) {
		if b.Len() > maxShownReverse {
			return b.String(), true
		}
		end := ""
		if l, crlf := strings.CutSuffix(line, "\r"); crlf {
			line, end = l, `\r`
		}
		short := cutLine(line, maxShownLine)
		cut = cut || len(short) < len(line)
		shown, _ := patch.ShowLine([]byte(short))
		b.WriteString(shown + end + "\n")
	}
	return b.String(), cut
}
