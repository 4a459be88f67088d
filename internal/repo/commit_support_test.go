package repo_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// wish is how the tests commit.
func wish() *repo.Commit {
	return &repo.Commit{Author: repo.Identity{Name: "Ada", Email: "PR-1@roundtable.invalid"}, Committer: repo.Identity{Name: "Roundtable", Email: "roundtable@roundtable.invalid"},
		Message: "Title\n\nText.\n\nRoundtable-Transaction: TX-1\nRoundtable-Proposal: P-1\nRoundtable-Patch: abc\n", Time: time.Unix(1_700_000_000, 0).UTC()}
}

func commits(changes ...patch.Change) repo.Plan { return repo.Plan{Changes: changes, Commit: wish()} }

// treeWith is the tree that git itself makes of a commit's files with changes
// on top, in a repository of its own.
func treeWith(t testing.TB, root, commit string, changes []patch.Change) string {
	t.Helper()
	dir := memory(t)
	git(t, dir, "init", "-q", "--object-format="+git(t, root, "rev-parse", "--show-object-format"))
	if commit != "" {
		git(t, dir, "fetch", "-q", root, commit+":refs/heads/base")
		git(t, dir, "checkout", "-q", "base")
	}
	for _, c := range changes {
		if c.After.Kind == patch.Absent {
			must(t, os.RemoveAll(filepath.Join(dir, c.Path)))
		}
	}
	for _, c := range changes {
		if c.After.Kind != patch.Absent {
			must(t, os.RemoveAll(filepath.Join(dir, c.Path)))
			write(t, dir, c.Path, c.After.Mode+" "+string(c.Content))
		}
	}
	git(t, dir, "add", "-A")
	return git(t, dir, "write-tree")
}

// A site is a repository in one of the ways in which git lays it out.
type site struct {
	name string
	make func(t *testing.T, files map[string]spec) (root string)
}

var sites = []site{
	{"plain", func(t *testing.T, files map[string]spec) string { return gitRepoIn(t, memory(t), files) }},
	{"sha256", func(t *testing.T, files map[string]spec) string {
		root := memory(t)
		git(t, root, "init", "-q", "--object-format=sha256")
		return gitRepoIn(t, root, files)
	}},
	{"linked worktree", func(t *testing.T, files map[string]spec) string {
		root := filepath.Join(memory(t), "linked")
		git(t, gitRepoIn(t, memory(t), files), "worktree", "add", "-q", "-b", "topic/linked", root)
		return root
	}},
	{"packed refs", func(t *testing.T, files map[string]spec) string {
		root := gitRepoIn(t, memory(t), files)
		git(t, root, "pack-refs", "--all")
		git(t, root, "gc", "-q")
		return root
	}},
	{"submodule", func(t *testing.T, files map[string]spec) string {
		super := gitRepoIn(t, memory(t), map[string]spec{"f": "100644 f"})
		git(t, super, "-c", "protocol.file.allow=always", "submodule", "add", "-q", gitRepoIn(t, memory(t), files), "sub")
		return filepath.Join(super, "sub")
	}},
	{"split index", func(t *testing.T, files map[string]spec) string {
		root := gitRepoIn(t, memory(t), files)
		git(t, root, "update-index", "--split-index", "--untracked-cache")
		return root
	}},
}

// everySite runs a test in each layout; in the ordinary run, in some.
func everySite(t *testing.T, some int, files map[string]spec, f func(t *testing.T, root string)) {
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		some = len(sites)
	}
	for _, s := range sites[:some] {
		t.Run(s.name, func(t *testing.T) { f(t, s.make(t, files)) })
	}
}

// nothingLeft fails the test if the writer has left anything behind.
func nothingLeft(t *testing.T, root string) {
	t.Helper()
	leftNothing(t, root, "tx", "tmp")
}

// leftNothing looks at some of the writer's folders, and at git's.
func leftNothing(t *testing.T, root string, dirs ...string) {
	t.Helper()
	for _, dir := range dirs {
		if left, err := os.ReadDir(filepath.Join(root, ".roundtable", dir)); err != nil || len(left) > 0 {
			t.Errorf("left behind in %s: %v %v", dir, left, err)
		}
	}
	all, err := os.ReadDir(git(t, root, "rev-parse", "--absolute-git-dir"))
	must(t, err)
	for _, e := range all {
		if strings.HasPrefix(e.Name(), "roundtable-") || strings.HasSuffix(e.Name(), ".lock") {
			t.Errorf("left behind in git's folder: %s", e.Name())
		}
	}
}

// reversed are the changes that take others back.
func reversed(files map[string]spec, changes []patch.Change) (out []patch.Change) {
	for _, c := range changes {
		_, content := stateOf(files[c.Path])
		out = append(out, patch.Change{Path: c.Path, Before: c.After, After: c.Before, Content: content})
	}
	return out
}
