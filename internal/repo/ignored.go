package repo

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"roundtable/internal/patch"
)

const ignoreFile = ".gitignore"

// Ignored returns those of paths, in their order, that git ignores and does not
// track. Git is called at most once, for those that it does not track and of
// which there says that they are there. In a plain folder nothing is, nor where
// changes are committed: what is there is tracked.
func (w *Workspace) Ignored(ctx context.Context, paths []string, there func(path string) (bool, error)) ([]string, error) {
	if !w.Git() || w.Commits() {
		return nil, nil
	}
	x, err := w.tracked(ctx)
	if err != nil {
		return nil, err
	}
	var ask []string
	for _, p := range paths {
		if _, tracked := x.find(p); tracked {
			continue
		}
		is, err := there(p)
		if err != nil {
			return nil, err
		}
		if is {
			ask = append(ask, p)
		}
	}
	return w.checkIgnore(ctx, x, "", ask)
}

// IgnoredAfter returns those of the paths that changes of a tree leave there
// which git will ignore, by the ignore files as the changes leave them, and
// does not track: files that no id of the whole tree will cover. Git is called
// only where the changes make such a path or touch an ignore file.
func (w *Workspace) IgnoredAfter(ctx context.Context, tree patch.Tree, changes []patch.Change) (_ []string, err error) {
	if !w.Git() || w.Commits() {
		return nil, nil
	}
	x, err := w.tracked(ctx)
	if err != nil {
		return nil, err
	}
	rules := slices.ContainsFunc(changes, func(c patch.Change) bool { return path.Base(c.Path) == ignoreFile })
	var ask []string
	for _, c := range changes {
		if _, tracked := x.find(c.Path); tracked || c.After.Kind != patch.File && c.After.Kind != patch.Symlink {
			continue
		}
		if rules || c.Before.Kind != patch.File && c.Before.Kind != patch.Symlink {
			ask = append(ask, c.Path)
		}
	}
	if len(ask) == 0 {
		return nil, nil
	}
	dir, err := os.MkdirTemp(cmp.Or(w.o.Scratch, filepath.Join(w.root, stateDir, "tmp")), "ignored-")
	if err != nil {
		return nil, pathError(stateDir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := writeRules(dir, ignoreFile, patch.After(tree, changes), ask); err != nil {
		return nil, err
	}
	return w.checkIgnore(ctx, x, dir, ask)
}

// checkIgnore asks git, by the ignore files in dir if one is named, which of
// the paths it ignores.
func (w *Workspace) checkIgnore(ctx context.Context, x *index, dir string, paths []string) ([]string, error) {
	if len(paths) == 0 {
		return nil, nil
	}
	args := []string{"check-ignore", "--no-index", "-z", "--stdin"}
	if len(x.skips) > 0 { // a .gitignore that is not checked out counts too
		args = []string{"check-ignore", "-z", "--stdin"}
	}
	var ask []string
	for _, p := range paths {
		ask = append(ask, "./"+p) // a name that begins with a colon would be a pattern
	}
	out, err := w.git(ctx, call{dir: dir, args: args, stdin: []byte(nulEnded(ask)), ok: []int{1}})
	found := records(out)
	for i, p := range found {
		found[i] = strings.TrimPrefix(p, "./")
	}
	return found, err
}
