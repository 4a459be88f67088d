package repo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// CheckConversion refuses, as apply.attr_filter, changes in a tree that
// WithAttributes gave whose bytes git would convert otherwise than the engine
// did: before or after them, under the attributes before or after them. So
// what is written is what git would write, and what git keeps is known. copied
// are paths that are read and stay as they are.
func (w *Workspace) CheckConversion(ctx context.Context, tree patch.Tree, changes []patch.Change, copied []string) error {
	if !w.Git() {
		return nil
	}
	t, converts := tree.(converting)
	if !converts {
		t = converting{tree, nil, w.Commits()}
	}
	then, err := w.rulesAfter(ctx, t, changes)
	if err != nil || len(t.rules)+len(then) == 0 {
		return err
	}
	for _, p := range copied {
		changes = append(slices.Clip(changes), patch.Change{Path: p, Before: patch.State{Kind: patch.File}})
	}
	both := []map[string]lineRule{t.rules}
	if then != nil {
		both = append(both, then)
	}
	var bad []string
	why := ""
	for _, c := range changes {
		for _, rules := range both {
			reason, err := t.strays(c, rules[c.Path])
			if err != nil {
				return err
			}
			if reason != "" && !slices.Contains(bad, c.Path) {
				bad, why = append(bad, c.Path), reason
			}
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	return unfaithful(bad, why)
}

func unfaithful(bad []string, why string) *fault.Error {
	return fault.Errorf(fault.Refused, "apply.attr_filter", "git converts what lies at %s (%s), and not in a way that gives back the bytes of a patch", quoteAll(bad), why).
		With("paths", bad).With("path", bad[0])
}

// strays says why a rule would not give back the bytes of a change, before or
// after it, from what is kept of them; nothing if it would.
func (t converting) strays(c patch.Change, r lineRule) (string, error) {
	if t.rules[c.Path].reason == "" && r.reason == "" {
		return "", nil
	}
	var images [][]byte
	if c.Before.Kind == patch.File {
		b, err := t.Read(c.Path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		images = append(images, b)
	}
	if c.After.Kind == patch.File {
		images = append(images, c.Content)
	}
	for _, b := range images {
		if r.filter == "" && !r.crlf && bytes.IndexByte(b, '\r') < 0 && (!t.asIs || !t.rules[c.Path].crlf) {
			continue // neither way is anything converted
		}
		if t.asIs {
			if !r.givesBack(b) || !bytes.Equal(r.toTree(b), t.rules[c.Path].toTree(b)) {
				return cmp.Or(r.reason, "no longer "+t.rules[c.Path].reason), nil
			}
			continue
		}
		kept, err := t.keptBytes(c.Path, b)
		if err != nil {
			return "", err
		}
		if r.filter != "" || !bytes.Equal(r.toGit(b), kept) || !bytes.Equal(r.toTree(kept), b) {
			return cmp.Or(r.reason, "no longer "+t.rules[c.Path].reason), nil
		}
	}
	return "", nil
}

const attributesFile = ".gitattributes"

// rulesAfter returns the rules for the changed paths as they will be, where the
// changes are about attributes too; none where they are not.
func (w *Workspace) rulesAfter(ctx context.Context, t converting, changes []patch.Change) (_ map[string]lineRule, err error) {
	i := slices.IndexFunc(changes, func(c patch.Change) bool { return path.Base(c.Path) == attributesFile })
	if i < 0 {
		return nil, nil
	}
	s, err := w.attrSources(ctx)
	if err != nil {
		return nil, err
	}
	paths := pathsOf(changes)
	for _, p := range paths {
		if w.Commits() {
			break // what lies on disk does not count
		}
		if _, err := s.of(path.Dir(p)); err != nil {
			return nil, err
		}
	}
	for _, c := range changes {
		if path.Base(c.Path) == attributesFile && (s.fromIndex || c.After.Kind == patch.Symlink) {
			return nil, unfaithful([]string{c.Path}, "which attributes will count is not to be told")
		}
	}
	dir, err := os.MkdirTemp(cmp.Or(w.o.Scratch, filepath.Join(w.root, stateDir, "tmp")), "attributes-")
	if err != nil {
		return nil, pathError(stateDir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := writeRules(dir, attributesFile, patch.After(t.Tree, changes), paths); err != nil {
		return nil, err
	}
	out, err := w.git(ctx, call{dir: dir, user: true, stdin: []byte(nulEnded(paths)), env: []string{"GIT_INDEX_FILE=" + w.noIndex()},
		args: append([]string{"check-attr", "-z", "--stdin"}, attrNames...)})
	if err != nil {
		return nil, err
	}
	byPath, err := readAttrs(out, len(paths))
	if err != nil {
		return nil, err
	}
	rules, err := w.rulesOf(ctx, byPath, paths)
	if err != nil {
		return nil, err
	}
	return rules, w.fillKept(ctx, t.Tree, rules)
}

// writeRules writes, into dir, the files of a tree that have this name and
// speak of the paths.
func writeRules(dir, file string, tree patch.Tree, paths []string) error {
	done := map[string]bool{}
	for _, p := range paths {
		for at := path.Dir(p); !done[at]; at = path.Dir(at) {
			done[at] = true
			name := path.Join(at, file)
			st, err := tree.Stat(name)
			if err != nil {
				return err
			}
			if st.Kind != patch.File {
				continue
			}
			data, err := tree.Read(name)
			if err != nil {
				return err
			}
			to := filepath.Join(dir, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
				return err
			}
			if err := os.WriteFile(to, data, 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func pathsOf(changes []patch.Change) (paths []string) {
	for _, c := range changes {
		paths = append(paths, c.Path)
	}
	return paths
}
