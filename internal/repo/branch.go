package repo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"path/filepath"
	"strings"

	"roundtable/internal/fault"
)

// Commits says whether changes are judged on a branch and committed to it. A
// plain folder's never are.
func (w *Workspace) Commits() bool { return w.o.Commit && w.Git() }

// SHA256 says whether the repository's object ids are SHA-256.
func (w *Workspace) SHA256() bool { return w.format == "sha256" }

// A target is the branch that changes are committed to, as it is now.
type target struct {
	ref  string // full name
	old  string // its commit; empty before the first one
	here bool   // it is the one that the workspace has checked out
}

// target finds the branch.
func (w *Workspace) target(ctx context.Context) (target, error) {
	head, err := w.symbolic(ctx)
	if err != nil {
		return target{}, err
	}
	t := target{ref: head, here: true}
	if w.o.Branch != "" {
		t.ref = "refs/heads/" + w.o.Branch
		t.here = t.ref == head
		if ok, err := w.o.names(ctx, w.o.Branch); err != nil || !ok {
			return t, cmp.Or(err, noBranch(w.root, quote(w.o.Branch)+" can name no branch"))
		}
	}
	switch {
	case t.ref == "":
		return t, noBranch(w.root, "HEAD is detached")
	case !strings.HasPrefix(t.ref, "refs/heads/"):
		return t, noBranch(w.root, "HEAD stands at "+t.ref)
	}
	out, err := w.refIs(ctx, t.ref, "%(objectname) %(objecttype) %(symref)")
	if err != nil {
		return t, err
	}
	fields := strings.Fields(out)
	switch {
	case len(fields) == 0 && t.here:
		return t, nil
	case len(fields) == 0:
		return t, noBranch(w.root, "there is no branch "+w.o.Branch)
	case len(fields) != 2 || fields[1] != "commit":
		return t, noBranch(w.root, t.ref+" is no plain branch")
	}
	t.old = fields[0]
	return t, nil
}

// refIs has git say what a branch is; nothing of one that is not there. One
// whose commit the repository does not have is a fault state.object_missing.
func (w *Workspace) refIs(ctx context.Context, ref, format string) (string, error) {
	out, err := w.git(ctx, call{args: []string{"for-each-ref", "--format=" + format, ref}})
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		err = cmp.Or(w.lost(ctx, ref), err)
	}
	return strings.TrimSpace(string(out)), err
}

// lost says of a ref that it is an object which the repository does not have.
func (w *Workspace) lost(ctx context.Context, ref string) error {
	out, err := w.git(ctx, call{args: []string{"rev-parse", "--quiet", "--verify", ref}, ok: []int{1}})
	id := strings.TrimSpace(string(out))
	if err != nil || id == "" {
		return err
	}
	kind, err := w.kindOf(ctx, id)
	if err == nil && kind == "" {
		err = fault.Errorf(fault.Unavailable, "state.object_missing", "%s of %s is %s, which the repository does not have; bring it back with git fetch, or set the ref to a commit that is there", ref, w.root, id)
	}
	return err
}

func noBranch(root, why string) error {
	return fault.Errorf(fault.Conflict, "state.no_branch", "nothing can be committed in %s: %s; check out a branch with git switch, make the one that is named with git branch, or start the service with --apply-branch and one that is there; then apply again", root, why)
}

// CanNameBranch says whether git takes name for that of a branch, whether there
// is one or not.
func CanNameBranch(ctx context.Context, name string) (bool, error) {
	return Options{}.withDefaults().names(ctx, name)
}

func (o Options) names(ctx context.Context, name string) (bool, error) {
	if name == "" || name == "HEAD" || name == "@" || strings.HasPrefix(name, "-") || strings.HasPrefix(name, "refs/") || strings.Contains(name, "\x00") {
		return false, nil
	}
	_, err := o.run(ctx, call{args: []string{"check-ref-format", "refs/heads/" + name}})
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return false, nil
	}
	return err == nil, err
}

// CheckBranch says why nothing can be committed to the branch that changes are
// committed to, as things are now; nil if it can, or if nothing is committed.
func (w *Workspace) CheckBranch(ctx context.Context) error {
	if !w.Commits() {
		return nil
	}
	t, err := w.target(ctx)
	if err != nil {
		return err
	}
	return w.elsewhere(ctx, t.ref)
}

// symbolic returns the full name of what HEAD stands at; empty if it is
// detached.
func (w *Workspace) symbolic(ctx context.Context) (string, error) {
	out, err := w.git(ctx, call{args: []string{"symbolic-ref", "--quiet", "HEAD"}, ok: []int{1}})
	return strings.TrimSuffix(string(out), "\n"), err
}

// elsewhere refuses a branch that another work tree of the repository has
// checked out: its files would no longer be those of its HEAD.
func (w *Workspace) elsewhere(ctx context.Context, ref string) error {
	out, err := w.git(ctx, call{args: []string{"worktree", "list", "--porcelain"}})
	if err != nil {
		return err
	}
	for i, block := range strings.Split(strings.TrimSpace(string(out)), "\n\n") {
		lines := strings.Split(block, "\n")
		dir, has := strings.TrimPrefix(lines[0], "worktree "), false
		for _, l := range lines[1:] {
			has = has || l == "branch "+ref
			if strings.HasPrefix(l, "prunable") { // its folder is gone
				has = false
				break
			}
		}
		if has && !w.isWorktree(i, dir) {
			return fault.Errorf(fault.Conflict, "state.checked_out_elsewhere", "%s is checked out in the work tree %s as well; nothing is committed to it from here", ref, quote(dir)).
				With("ref", ref).With("worktree", dir)
		}
	}
	return nil
}

// isWorktree says whether the i-th of the repository's work trees is this one:
// the first has the repository's own folder.
func (w *Workspace) isWorktree(i int, dir string) bool {
	if w.gitDir == w.commonDir {
		return i == 0
	}
	real, err := filepath.EvalSymlinks(dir)
	return i > 0 && err == nil && real == w.root
}

// emptyTree is the id of the tree without files.
func (w *Workspace) emptyTree() string {
	h := newHash(w.format)
	fmt.Fprint(h, "tree 0\x00")
	return hexOf(h)
}

// treeish names the tree of a commit; that without files if there is none.
func (w *Workspace) treeish(commit string) string {
	if commit == "" {
		return w.emptyTree()
	}
	return commit
}

// TreeID returns the id of a commit's tree; that of the tree without files for
// none.
func (w *Workspace) TreeID(ctx context.Context, commit string) (string, error) {
	if commit == "" {
		return w.emptyTree(), nil
	}
	out, err := w.git(ctx, call{args: []string{"rev-parse", "--quiet", "--verify", "--end-of-options", commit + "^{tree}"}})
	return strings.TrimSpace(string(out)), err
}

// branch returns the tree that changes are judged on, and the commit it is of.
func (w *Workspace) branch(ctx context.Context) (*committed, string, error) {
	t, err := w.target(ctx)
	if err != nil {
		return nil, "", err
	}
	return w.treeOf(ctx, t.old), t.old, nil
}

// A branchPosition says where a branch stands, seen from a transaction.
func (w *Workspace) branchPosition(ctx context.Context, m refMove) (now string, is Position, err error) {
	if now, err = w.refIs(ctx, m.Ref, "%(objectname)"); err != nil {
		return "", "", err
	}
	switch {
	case now == m.New:
		return now, AtAfter, nil
	case now == m.Old:
		return now, AtBefore, nil
	case now == "":
		return now, AtOther, nil
	}
	kind, err := w.kindOf(ctx, m.New)
	if err != nil || kind != "commit" { // collected: then nothing has it as an ancestor
		return now, AtOther, err
	}
	none, err := w.git(ctx, call{args: []string{"rev-list", "--max-count=1", "--end-of-options", m.New, "^" + now}})
	if err == nil && len(none) == 0 {
		return now, AtAfter, nil
	}
	return now, AtOther, err
}

// folderOfRef is where the repository keeps a branch that is not packed.
func (w *Workspace) folderOfRef(ref string) string {
	return filepath.Dir(filepath.Join(w.commonDir, filepath.FromSlash(ref)))
}

// missing says that an error means: there is no such file or folder.
func missing(err error) bool { return errors.Is(err, fs.ErrNotExist) || gone(err) }
