package repo_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// farFiles are files beside those that everyKind changes.
var farFiles = map[string]spec{"far/a": "100644 far\n", "far/deep/b": "100755 b\n", "far/link": "120000 a", "near.txt": "100644 near\n"}

// gitStates are states of a repository in which its index and its work tree
// do not simply agree. Each makes one of a fresh repository and returns the
// work tree.
var gitStates = map[string]func(t *testing.T, root string) string{
	"plain": func(_ *testing.T, root string) string { return root },
	"sparse, by folders": func(t *testing.T, root string) string {
		git(t, root, "sparse-checkout", "set", "--cone", "empties", "wasdir", "kept")
		return root
	},
	"sparse, with a sparse index": func(t *testing.T, root string) string {
		git(t, root, "sparse-checkout", "set", "--cone", "--sparse-index", "empties", "wasdir", "kept")
		return root
	},
	"sparse, by patterns": func(t *testing.T, root string) string {
		git(t, root, "sparse-checkout", "set", "--no-cone", "/*", "!/far/")
		return root
	},
	"skip-worktree by hand": func(t *testing.T, root string) string {
		git(t, root, "update-index", "--skip-worktree", "far/a", "near.txt")
		must(t, os.Remove(filepath.Join(root, "far/a")))
		write(t, root, "near.txt", "100644 hidden from git\n")
		return root
	},
	"assume-unchanged": func(t *testing.T, root string) string {
		git(t, root, "update-index", "--assume-unchanged", "far/a", "near.txt")
		must(t, os.Remove(filepath.Join(root, "far/a")))
		write(t, root, "near.txt", "100644 hidden from git\n")
		return root
	},
	"intent to add": func(t *testing.T, root string) string {
		write(t, root, "meant.txt", "100644 to be added\n")
		write(t, root, "meant too.txt", "100644 to be added\n")
		git(t, root, "add", "-N", "meant.txt", "meant too.txt")
		must(t, os.Remove(filepath.Join(root, "meant too.txt")))
		return root
	},
	"split index": func(t *testing.T, root string) string {
		git(t, root, "update-index", "--split-index")
		write(t, root, "staged.txt", "100644 staged\n")
		git(t, root, "add", "staged.txt")
		return root
	},
	"untracked cache": func(t *testing.T, root string) string {
		git(t, root, "update-index", "--force-untracked-cache")
		git(t, root, "status")
		write(t, root, "far/untracked", "100644 untracked\n")
		return root
	},
	"core.fileMode=false": func(t *testing.T, root string) string {
		git(t, root, "config", "core.fileMode", "false")
		must(t, os.Chmod(filepath.Join(root, "near.txt"), 0o755))
		return root
	},
	"core.symlinks=false": func(t *testing.T, root string) string {
		git(t, root, "config", "core.symlinks", "false")
		write(t, root, "far/link", "100644 a")
		return root
	},
	"linked worktree": func(t *testing.T, root string) string {
		linked := filepath.Join(t.TempDir(), "linked")
		git(t, root, "worktree", "add", "-q", linked)
		write(t, linked, "near.txt", "100644 edited\n")
		return linked
	},
	"linked and sparse": func(t *testing.T, root string) string {
		linked := filepath.Join(t.TempDir(), "linked")
		git(t, root, "worktree", "add", "-q", linked)
		git(t, linked, "sparse-checkout", "set", "--cone", "empties", "wasdir", "kept")
		return linked
	},
	"submodule": func(t *testing.T, root string) string {
		super := gitRepo(t, nil)
		git(t, super, "-c", "protocol.file.allow=always", "submodule", "add", "-q", root, "mod")
		return filepath.Join(super, "mod")
	},
	"git folder under another name": func(t *testing.T, root string) string {
		must(t, os.Rename(filepath.Join(root, ".git"), filepath.Join(root, "hidden")))
		must(t, os.WriteFile(filepath.Join(root, ".git"), []byte("gitdir: hidden\n"), 0o644))
		return root
	},
}

// unlike is what git has to be told first where this program, on purpose, does
// not do as it does: files are taken as they lie there, whatever the index says
// of not looking at them, and modes and links as the files are.
var unlike = map[string][][]string{
	"assume-unchanged":    {{"update-index", "--no-assume-unchanged", "far/a", "near.txt"}},
	"core.fileMode=false": {{"config", "core.fileMode", "true"}},
	"core.symlinks=false": {{"config", "core.symlinks", "true"}},
}

// someStates are those of the quick run.
var someStates = []string{"plain", "sparse, by folders", "assume-unchanged", "intent to add", "core.symlinks=false", "linked worktree"}

// In each state the candidate tree is the one that git apply --index gives on
// top of git add -A, an apply changes the files as git does, and the index
// stays as it was.
func TestGitStates(t *testing.T) {
	diff := everyDiff(t)
	for name, make := range gitStates {
		if long := os.Getenv("ROUNDTABLE_LONG") != ""; !long && !slices.Contains(someStates, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			files := maps.Clone(everyKind.files)
			maps.Copy(files, farFiles)
			root := make(t, gitRepo(t, files))
			w := open(t, root, repo.Options{})
			must(t, w.InitExclude(ctx(t)))
			dir := git(t, root, "rev-parse", "--absolute-git-dir")
			was := gitFolder(t, dir)
			got, err := w.Candidate(ctx(t), everyKind.changes)
			must(t, err)
			if now := gitFolder(t, dir); now != was {
				t.Errorf("the Git folder was\n%s\nis\n%s", was, now)
			}
			wantTree, wantFiles := gitApplied(t, root, dir, diff, unlike[name]...)
			if got.ID != wantTree {
				t.Errorf("the candidate is %s, git gives %s:\n%s", got.ID, wantTree, git(t, root, "ls-tree", "-r", wantTree))
			}
			status := git(t, root, "ls-files", "--stage", "-v", "-f")
			_, err = w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: everyKind.changes})
			must(t, err)
			must(t, w.Finish(ctx(t), "TX-1", 1))
			must(t, os.Chmod(root, 0o755))
			if got := listing(t, root, false); sameFiles(got) != sameFiles(wantFiles) {
				t.Errorf("applied gives\n%s\ngit gives\n%s", got, wantFiles)
			}
			if now := git(t, root, "ls-files", "--stage", "-v", "-f"); now != status {
				t.Errorf("the index was\n%s\nis\n%s", status, now)
			}
			again, err := w.Candidate(ctx(t), nil)
			must(t, err)
			if again.ID != wantTree {
				t.Errorf("applied, the tree is %s", again.ID)
			}
		})
	}
}

// sameFiles is a listing without what is git's.
func sameFiles(listing string) string {
	var lines []string
	for line := range strings.SplitSeq(listing, "\n") {
		if !strings.HasPrefix(line, "hidden") && !strings.HasPrefix(line, ".git ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// everyDiff is everyKind.changes as git writes them down.
func everyDiff(t *testing.T) string {
	t.Helper()
	root := gitRepo(t, everyKind.files)
	git(t, root, "rm", "-q", "-r", ".")
	for p, s := range after(everyKind.files, everyKind.changes) {
		write(t, root, p, s)
	}
	git(t, root, "add", "-A")
	file := filepath.Join(t.TempDir(), "diff")
	must(t, os.WriteFile(file, []byte(git(t, root, "diff", "--cached", "--binary", "--no-renames")+"\n"), 0o600))
	return file
}

// gitApplied is the tree, and the files, that git makes of a copy of the work
// tree and index.
func gitApplied(t *testing.T, root, gitDir, diff string, first ...[]string) (tree, files string) {
	t.Helper()
	dir := t.TempDir()
	copied := filepath.Join(dir, "tree")
	if out, err := exec.Command("cp", "-a", root, copied).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	must(t, os.RemoveAll(filepath.Join(copied, ".git")))
	must(t, os.RemoveAll(filepath.Join(copied, "hidden")))
	index := filepath.Join(dir, "index")
	b, err := os.ReadFile(filepath.Join(gitDir, "index"))
	must(t, err)
	must(t, os.WriteFile(index, b, 0o600))
	run := func(args ...string) string {
		cmd := exec.Command("git", args...)
		cmd.Dir = copied
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
			"GIT_DIR=" + gitDir, "GIT_WORK_TREE=" + copied, "GIT_INDEX_FILE=" + index}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v %s", strings.Join(args, " "), err, out)
		}
		return strings.TrimSpace(string(out))
	}
	for _, args := range first {
		run(args...)
	}
	run("add", "-A", ".")
	run("apply", "--index", diff)
	tree = run("write-tree")
	must(t, os.Chmod(copied, 0o755))
	return tree, listing(t, copied, false)
}

// gitFolder is the listing of a Git folder but for its objects.
func gitFolder(t *testing.T, dir string) string {
	t.Helper()
	var lines []string
	for line := range strings.SplitSeq(listing(t, dir, true), "\n") {
		if !strings.HasPrefix(line, "objects") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// A path that the checkout leaves out is refused before anything changes,
// whether its file is there or not.
func TestNotCheckedOut(t *testing.T) {
	files := maps.Clone(everyKind.files)
	maps.Copy(files, farFiles)
	for _, name := range []string{"sparse, by folders", "sparse, with a sparse index", "sparse, by patterns", "skip-worktree by hand"} {
		root := gitStates[name](t, gitRepo(t, files))
		w := open(t, root, repo.Options{})
		was := listing(t, root, false)
		cases := []patch.Change{change("far/a", "100644 far\n", "100644 x\n"), change("far/a", "100644 far\n", ""), change("far/a", "", "100644 x\n")}
		if name == "skip-worktree by hand" {
			cases = append(cases, change("near.txt", "100644 hidden from git\n", "100644 x\n"))
		}
		for _, c := range cases {
			_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("text.txt", "100644 one\n", "100644 two\n"), c}})
			if fault.CodeOf(err) != string(patch.NotCheckedOut) || !strings.Contains(err.Error(), c.Path) {
				t.Errorf("%s: %s: %v", name, c.Path, err)
			}
		}
		if now := listing(t, root, false); now != was {
			t.Errorf("%s: the tree is\n%s", name, now)
		}
		// Once it is checked out, the same is applied.
		if name != "skip-worktree by hand" {
			git(t, root, "sparse-checkout", "disable")
		} else {
			git(t, root, "update-index", "--no-skip-worktree", "far/a")
			write(t, root, "far/a", "100644 far\n")
		}
		_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: cases[:1]})
		must(t, err)
	}
}

// A commit to a branch that is checked out nowhere does not ask what the work
// tree leaves out; one to the branch of a sparse checkout does.
func TestCommitOfNotCheckedOut(t *testing.T) {
	root := gitStates["sparse, by folders"](t, gitRepo(t, farFiles))
	git(t, root, "branch", "side")
	c := commits(change("far/a", "100644 far\n", "100644 x\n"))
	w := open(t, root, repo.Options{Commit: true, Branch: "side"})
	must(t, w.CheckedOut(ctx(t), []string{"far/a"}))
	_, err := w.Apply(ctx(t), "TX-1", 1, c)
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-1", 1))
	if got := git(t, root, "show", "side:far/a"); got != "x" {
		t.Errorf("far/a is %q", got)
	}
	w = open(t, root, repo.Options{Commit: true})
	was := git(t, root, "rev-parse", "HEAD")
	if _, err := w.Apply(ctx(t), "TX-2", 1, c); fault.CodeOf(err) != string(patch.NotCheckedOut) {
		t.Errorf("got %v", err)
	}
	if now := git(t, root, "rev-parse", "HEAD"); now != was {
		t.Errorf("HEAD is at %s", now)
	}
}
