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
	return committedState(ctx, w.o, w.settings, w.root, ".", patch.IsStateFolder)
}

// committedState refuses a folder within a work tree if HEAD has an entry in
// it by a name.
func committedState(ctx context.Context, o Options, settings []setting, top, within string, is func(name string) bool) error {
	commit, err := o.run(ctx, call{dir: top, config: settings, args: []string{"rev-parse", "--quiet", "--verify", "HEAD^{commit}"}, ok: []int{1}})
	if err != nil || len(bytes.TrimSpace(commit)) == 0 {
		return err
	}
	args := []string{"ls-tree", "-z", "--name-only", strings.TrimSpace(string(commit))}
	if within != "." {
		args = append(args, within+"/")
	}
	out, err := o.run(ctx, call{dir: top, config: settings, args: args})
	if err != nil {
		return err
	}
	for _, path := range records(out) {
		if name := beneath(path, within); is(name) {
			return trackedState(filepath.Join(top, within), name)
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
	top, err := workTreeOf(dir)
	if err != nil || top == "" {
		return err
	}
	within, err := filepath.Rel(top, dir)
	if err != nil {
		return err
	}
	o = o.withDefaults()
	trust := []setting{{"safe.directory", "*"}} // only names are read
	base := filepath.Base(data)
	is := func(path string) bool {
		name, _, _ := strings.Cut(path, "/")
		return strings.EqualFold(name, base) || patch.IsStateFolder(base) && patch.IsStateFolder(name)
	}
	out, err := o.run(ctx, call{dir: top, config: trust, args: []string{"ls-files", "-z", "--cached", "--", literally(within)}})
	if err != nil {
		return fault.Errorf(fault.Invalid, "workspace.not_git", "%s lies in a work tree that git cannot read: %v", data, err)
	}
	for _, path := range records(out) {
		path = beneath(path, within)
		if is(path) {
			name, _, _ := strings.Cut(path, "/")
			return trackedState(dir, name)
		}
	}
	return committedState(ctx, o, trust, top, within, is)
}

// literally names a folder to git as it is spelled.
func literally(within string) string { return ":(top,literal)" + strings.TrimPrefix(within, ".") }

// beneath is a path as it is seen from a folder that it lies in.
func beneath(path, within string) string {
	if within == "." {
		return path
	}
	return strings.TrimPrefix(path, within+"/")
}

// workTreeOf returns the folder with a .git that is a folder or is above it; ""
// where there is none.
func workTreeOf(dir string) (string, error) {
	for {
		if filepath.Base(dir) == ".git" {
			return "", nil
		}
		if s, err := stampOfLink(filepath.Join(dir, ".git")); err != nil || s.there {
			return dir, err
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", nil
		}
		dir = up
	}
}
