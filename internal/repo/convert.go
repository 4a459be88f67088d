package repo

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"roundtable/internal/patch"
)

// WithAttributes returns the tree as one that knows what git's attributes, and
// the person's own configuration, do to the bytes of the paths: a
// patch.Converter. In a plain folder nothing does, and it is the tree as it is.
func (w *Workspace) WithAttributes(ctx context.Context, tree patch.Tree, paths []string) (patch.Tree, error) {
	if !w.Git() || len(paths) == 0 {
		return tree, nil
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	byPath, err := w.attributes(ctx, paths)
	if err != nil {
		return nil, err
	}
	line := lineEnds{autocrlf: w.setting("core.autocrlf"), eol: w.setting("core.eol")}
	t := converting{tree, map[string]patch.Conversion{}}
	var byLooks []string
	for _, p := range paths {
		conv := line.of(byPath[p])
		switch {
		case converts(byPath[p]) != "":
			t.of[p] = patch.FilterAttr
		case conv.crlf:
			t.of[p] = patch.CRLFConversion
			if conv.byLooks {
				byLooks = append(byLooks, p)
			}
		}
	}
	as, err := w.keptLineEnds(ctx, byLooks)
	for p, eol := range as {
		if eol != "lf" && eol != "none" { // what is not kept with LF is not converted by its looks
			t.of[p] = patch.NoConversion
		}
	}
	return t, err
}

// A converting tree is one with git's attributes.
type converting struct {
	patch.Tree
	of map[string]patch.Conversion
}

// Conversion is patch.Converter's.
func (t converting) Conversion(path string) (patch.Conversion, error) { return t.of[path], nil }

// Links is patch.LinkCounter's.
func (t converting) Links(path string) (int, error) {
	if l, ok := t.Tree.(patch.LinkCounter); ok {
		return l.Links(path)
	}
	return 1, nil
}

// keptLineEnds returns the line ends of what the index, or the branch that is
// committed to, has of the paths, as
// git names them: lf, crlf, mixed, none, or -text of what looks binary.
func (w *Workspace) keptLineEnds(ctx context.Context, paths []string) (map[string]string, error) {
	as := map[string]string{}
	if w.Commits() {
		return as, w.committedLineEnds(ctx, paths, as)
	}
	for some := range slices.Chunk(paths, 200) { // they go on a command line
		args := append([]string{"ls-files", "-z", "--eol", "--"}, some...)
		out, err := w.git(ctx, call{args: args, env: []string{"GIT_LITERAL_PATHSPECS=1"}})
		if err != nil {
			return nil, err
		}
		for _, r := range records(out) {
			head, path, ok := strings.Cut(r, "\t")
			eol, is := strings.CutPrefix(strings.SplitN(head, " ", 2)[0], "i/")
			if !ok || !is {
				return nil, fmt.Errorf("git ls-files --eol answers %q", r)
			}
			as[path] = eol
		}
	}
	return as, nil
}

// committedLineEnds fills in what the branch's tree has.
func (w *Workspace) committedLineEnds(ctx context.Context, paths []string, as map[string]string) error {
	tree, _, err := w.branch(ctx)
	if err != nil {
		return err
	}
	for _, p := range paths {
		b, err := tree.Read(p)
		switch {
		case missing(err):
			continue
		case err != nil:
			return err
		case bytes.IndexByte(b, 0) >= 0:
			as[p] = "-text"
		case bytes.Contains(b, []byte("\r\n")):
			as[p] = "crlf"
		default:
			as[p] = "lf"
		}
	}
	return nil
}

// asKept returns the changes with the bytes that git would keep of them: where
// attributes give the work tree CR LF, the repository has LF.
func (w *Workspace) asKept(ctx context.Context, changes []patch.Change) ([]patch.Change, error) {
	var candidates []string
	for _, c := range changes {
		if c.After.Kind == patch.File && bytes.Contains(c.Content, []byte("\r\n")) {
			candidates = append(candidates, c.Path)
		}
	}
	if len(candidates) == 0 {
		return changes, nil
	}
	t, err := w.WithAttributes(ctx, nil, candidates)
	if err != nil {
		return nil, err
	}
	conv, ok := t.(converting)
	if !ok {
		return changes, nil
	}
	changes = slices.Clone(changes)
	for i, c := range changes {
		if conv.of[c.Path] == patch.CRLFConversion && c.After.Kind == patch.File && bytes.IndexByte(c.Content, 0) < 0 {
			changes[i].Content = bytes.ReplaceAll(c.Content, []byte("\r\n"), []byte("\n"))
		}
	}
	return changes, nil
}
