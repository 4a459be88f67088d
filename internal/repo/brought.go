package repo

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// brought refuses a work tree whose index, or at the opening HEAD, has anything
// at the state folder's place: git writes such files over ignored ones without
// a word, so what lies there is the repository's and not this program's.
func (w *Workspace) brought(ctx context.Context, head bool) error {
	if !w.Git() {
		return nil
	}
	x, err := w.tracked(ctx)
	if err != nil {
		return err
	}
	if x.state != "" {
		return trackedState(w.root, x.state)
	}
	if !head {
		return nil
	}
	return committedState(ctx, w.o, w.settings, w.root, patch.IsStateFolder)
}

// committedState refuses a folder if HEAD has an entry in it by a name.
func committedState(ctx context.Context, o Options, settings []setting, dir string, is func(name string) bool) error {
	commit, err := o.run(ctx, call{dir: dir, config: settings, args: []string{"rev-parse", "--quiet", "--verify", "HEAD^{commit}"}, ok: []int{1}})
	if err != nil || len(bytes.TrimSpace(commit)) == 0 {
		return err
	}
	out, err := o.run(ctx, call{dir: dir, config: settings, args: []string{"ls-tree", "-z", "--name-only", strings.TrimSpace(string(commit))}})
	if err != nil {
		return err
	}
	for _, name := range records(out) {
		if is(name) {
			return trackedState(dir, name)
		}
	}
	return nil
}

func trackedState(dir, name string) error {
	return fault.Errorf(fault.Refused, "state.tracked", "Git tracks %s in %s: that folder is this program's own, and nothing that a repository brings in it is believed or touched; "+
		"take it out of the repository (git rm -r --cached %s, and commit), move away what lies there if you did not make it here, and try again", quote(name), dir, name).
		With("path", name)
}

// CheckData refuses a data folder that the index or HEAD of a Git work tree
// around it tracks. Nothing in the folder is read.
func CheckData(ctx context.Context, data string, o Options) error {
	dir, err := filepath.EvalSymlinks(filepath.Dir(data))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if in, err := inWorkTree(dir); err != nil || !in {
		return err
	}
	o = o.withDefaults()
	trust := []setting{{"safe.directory", "*"}} // only names are read
	base := filepath.Base(data)
	is := func(path string) bool {
		name, _, _ := strings.Cut(path, "/")
		return strings.EqualFold(name, base) || patch.IsStateFolder(base) && patch.IsStateFolder(name)
	}
	out, err := o.run(ctx, call{dir: dir, config: trust, args: []string{"ls-files", "-z", "--cached"}})
	if err != nil {
		return fault.Errorf(fault.Invalid, "workspace.not_git", "%s lies in a work tree that git cannot read: %v", data, err)
	}
	for _, path := range records(out) {
		if is(path) {
			name, _, _ := strings.Cut(path, "/")
			return trackedState(dir, name)
		}
	}
	return committedState(ctx, o, trust, dir, is)
}

// inWorkTree says whether a .git lies in a folder or above it.
func inWorkTree(dir string) (bool, error) {
	for {
		if filepath.Base(dir) == ".git" {
			return false, nil
		}
		if s, err := stampOfLink(filepath.Join(dir, ".git")); err != nil || s.there {
			return s.there, err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false, nil
		}
		dir = up
	}
}
