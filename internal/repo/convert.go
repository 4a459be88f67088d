package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"roundtable/internal/patch"
)

// WithAttributes returns the tree as one that knows what git's attributes, and
// the person's own configuration, do to the bytes of the paths: a
// patch.Converter. In a plain folder, and where nothing is said of any path,
// it is the tree as it is.
func (w *Workspace) WithAttributes(ctx context.Context, tree patch.Tree, paths []string) (patch.Tree, error) {
	rules, err := w.lineRules(ctx, tree, paths)
	if err != nil || len(rules) == 0 {
		return tree, err
	}
	return converting{tree, rules, w.Commits()}, nil
}

// lineRules returns what git does with those of the paths with which it does
// anything.
func (w *Workspace) lineRules(ctx context.Context, tree patch.Tree, paths []string) (map[string]lineRule, error) {
	if !w.Git() || len(paths) == 0 {
		return nil, nil
	}
	paths = slices.Compact(slices.Sorted(slices.Values(paths)))
	byPath, err := w.attributes(ctx, paths)
	if err != nil {
		return nil, err
	}
	rules, err := w.rulesOf(ctx, byPath, paths)
	if err != nil {
		return nil, err
	}
	return rules, w.fillKept(ctx, tree, rules)
}

// rulesOf makes rules of attributes. What the repository keeps is not known.
func (w *Workspace) rulesOf(ctx context.Context, byPath map[string]attrs, paths []string) (map[string]lineRule, error) {
	settings, err := w.configured(ctx)
	if err != nil {
		return nil, err
	}
	rules := map[string]lineRule{}
	for _, p := range paths {
		if r := lineRuleOf(byPath[p], settingIn(settings, "core.autocrlf"), settingIn(settings, "core.eol")); r.reason != "" {
			rules[p] = r
		}
	}
	return rules, nil
}

// fillKept finds out of which paths the repository has CR LF already.
func (w *Workspace) fillKept(ctx context.Context, tree patch.Tree, rules map[string]lineRule) error {
	if w.Commits() {
		return committedKept(tree, rules)
	}
	x, err := w.tracked(ctx)
	if err != nil {
		return err
	}
	var ask []string
	for p, r := range rules {
		oid, tracked := x.find(p)
		if !r.guess || !tracked {
			continue
		}
		b, err := tree.Read(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err == nil && !r.crlf && !bytes.Contains(b, []byte("\r\n")) {
			continue // whatever is kept, nothing is converted
		}
		switch lf := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")); {
		case err == nil && oid == patch.BlobID(lf, w.format == "sha256"):
		case err == nil && oid == patch.BlobID(b, w.format == "sha256"):
			r.kept = !patch.LooksBinary(b)
			rules[p] = r
		default: // it is not there, or not as it is kept
			ask = append(ask, p)
		}
	}
	as, err := w.keptLineEnds(ctx, ask)
	for p, eol := range as {
		r := rules[p]
		r.kept = eol == "crlf" || eol == "mixed"
		rules[p] = r
	}
	return err
}

// committedKept is fillKept of the tree of a branch.
func committedKept(tree patch.Tree, rules map[string]lineRule) error {
	for p, r := range rules {
		b, err := tree.Read(p)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		r.kept = r.guess && bytes.Contains(b, []byte("\r\n")) && !patch.LooksBinary(b)
		rules[p] = r
	}
	return nil
}

// A converting tree is one with git's attributes.
type converting struct {
	patch.Tree
	rules map[string]lineRule
	asIs  bool // the tree has what git keeps already: a branch's
}

// Conversion is patch.Converter's.
func (t converting) Conversion(path string) (patch.Conversion, error) {
	switch r := t.rules[path]; {
	case r.filter != "":
		return patch.FilterAttr, nil
	case t.asIs:
		return patch.NoConversion, nil
	case r.crlf && r.guess && !r.kept:
		return patch.CRLFOfText, nil
	case r.crlf && !r.kept:
		return patch.CRLFConversion, nil
	}
	return patch.NoConversion, nil
}

// Links is patch.LinkCounter's.
func (t converting) Links(path string) (int, error) {
	if l, ok := t.Tree.(patch.LinkCounter); ok {
		return l.Links(path)
	}
	return 1, nil
}

// keptBytes is what the repository has, by the engine, of a file that lies in
// the work tree before or after the changes.
func (t converting) keptBytes(path string, b []byte) ([]byte, error) {
	c, err := t.Conversion(path)
	if c == patch.CRLFConversion || c == patch.CRLFOfText && !patch.LooksBinary(b) {
		b = bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	}
	return b, err
}

// KeptImages returns the images in the bytes that git keeps of them under the
// attributes that a tree has by WithAttributes: a patch speaks of those.
func KeptImages(tree patch.Tree, images []patch.Image) (_ []patch.Image, err error) {
	t, ok := tree.(converting)
	if !ok {
		return images, nil
	}
	images = slices.Clone(images)
	for i := range images {
		m := &images[i]
		if m.Before, m.Old, err = t.keptImage(m.Path, m.Before, m.Old); err != nil {
			return nil, err
		}
		if m.After, m.New, err = t.keptImage(m.Path, m.After, m.New); err != nil {
			return nil, err
		}
	}
	return images, nil
}

// InWorkTree returns the bytes that git writes into the work tree for what it
// keeps of a path, under the attributes that a tree has by WithAttributes.
func InWorkTree(tree patch.Tree, path string, kept []byte) []byte {
	t, ok := tree.(converting)
	if !ok || t.asIs || t.rules[path].filter != "" {
		return kept
	}
	return t.rules[path].toTree(kept)
}

// keptImage returns an image as git keeps it. One that git would not give back
// stays as it is: whoever makes a patch of it is told then.
func (t converting) keptImage(path string, s patch.State, b []byte) (patch.State, []byte, error) {
	r := t.rules[path]
	if s.Kind != patch.File || !r.crlf {
		return s, b, nil
	}
	kept, err := t.keptBytes(path, b)
	if err != nil || !bytes.Equal(r.toTree(kept), b) {
		return s, b, err
	}
	sum := sha256.Sum256(kept)
	s.SHA256, s.Size = hex.EncodeToString(sum[:]), int64(len(kept))
	return s, kept, nil
}

// keptLineEnds returns the line ends of what the index has of the paths, as
// git names them: lf, crlf, mixed, none, or -text of what looks binary.
func (w *Workspace) keptLineEnds(ctx context.Context, paths []string) (map[string]string, error) {
	as := map[string]string{}
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

// asKept returns the changes with the bytes that git would keep of them: where
// attributes give the work tree CR LF, the repository has LF. Where changes are
// committed they are in those bytes already.
func (w *Workspace) asKept(ctx context.Context, changes []patch.Change) ([]patch.Change, error) {
	if w.Commits() {
		return changes, nil // they are of the branch
	}
	var candidates []string
	for _, c := range changes {
		if c.After.Kind == patch.File && bytes.Contains(c.Content, []byte("\r\n")) {
			candidates = append(candidates, c.Path)
		}
	}
	if len(candidates) == 0 {
		return changes, nil
	}
	tree, err := w.Tree(ctx)
	if err != nil {
		return nil, err
	}
	with, err := w.WithAttributes(ctx, tree, candidates)
	t, ok := with.(converting)
	if !ok || err != nil {
		return changes, err
	}
	changes = slices.Clone(changes)
	for i, c := range changes {
		if c.After.Kind != patch.File {
			continue
		}
		if changes[i].Content, err = t.keptBytes(c.Path, c.Content); err != nil {
			return nil, err
		}
	}
	return changes, nil
}
