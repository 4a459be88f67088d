package repo_test

import (
	"os"
	"path/filepath"
	"testing"

	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// gitTree is what git itself makes of a folder's files.
func gitTree(t *testing.T, files map[string]spec) string {
	t.Helper()
	return git(t, gitRepo(t, files), "rev-parse", "HEAD^{tree}")
}

func TestCandidateIsGitsTree(t *testing.T) {
	root := gitRepo(t, everyKind.files)
	w := open(t, root, repo.Options{})
	got, err := w.Candidate(ctx(t), everyKind.changes)
	must(t, err)
	want := gitTree(t, after(everyKind.files, everyKind.changes))
	if got != (repo.CandidateTree{ID: want, Kind: "git"}) {
		t.Fatalf("got %v, git says %s", got, want)
	}
	dst := filepath.Join(t.TempDir(), "tree")
	again, err := w.Materialise(ctx(t), everyKind.changes, dst)
	must(t, err)
	if again != got {
		t.Errorf("materialised %v", again)
	}
	if a, b := listing(t, dst, true), tree(t, after(everyKind.files, everyKind.changes)); !sameButRoot(a, b) {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
}

// sameButRoot compares listings without their first line, the folder itself.
func sameButRoot(a, b string) bool { return cutLine(a) == cutLine(b) }

func cutLine(s string) string {
	for i := range s {
		if s[i] == '\n' {
			return s[i:]
		}
	}
	return ""
}

// A second proposal on top of one that is applied and not committed is judged
// and tested with the first one's changes in place.
func TestCandidateOnUncommitted(t *testing.T) {
	files := map[string]spec{"a.txt": "100644 a\n", "b.txt": "100644 b\n", ".gitignore": "100644 *.log\n"}
	root := gitRepo(t, files)
	w := open(t, root, repo.Options{})
	must(t, w.InitExclude(ctx(t)))
	one := []patch.Change{change("a.txt", "100644 a\n", "100644 a by one\n"), change("new.txt", "", "100644 by one\n")}
	_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: one})
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-1", 1))
	write(t, root, "note.md", "100644 untracked\n")
	write(t, root, "x.log", "100644 ignored\n")
	must(t, os.Remove(filepath.Join(root, ".gitignore")))
	write(t, root, ".git/info/exclude", "100644 *.log\n/.roundtable/\n")

	before := git(t, root, "status", "--porcelain", "--ignored")
	index, err := os.ReadFile(filepath.Join(root, ".git", "index"))
	must(t, err)
	objects := git(t, root, "count-objects", "-v")

	two := []patch.Change{change("b.txt", "100644 b\n", "100644 b by two\n"), change("new.txt", "100644 by one\n", "100644 by both\n")}
	got, err := w.Candidate(ctx(t), two)
	must(t, err)
	want := map[string]spec{"a.txt": "100644 a by one\n", "b.txt": "100644 b by two\n", "new.txt": "100644 by both\n", "note.md": "100644 untracked\n"}
	if tree := gitTree(t, want); got.ID != tree {
		t.Errorf("got %s, want %s", got.ID, tree)
	}
	dst := t.TempDir()
	_, err = w.Materialise(ctx(t), two, dst)
	must(t, err)
	if a, b := listing(t, dst, true), tree(t, want); !sameButRoot(a, b) {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
	if now := git(t, root, "status", "--porcelain", "--ignored"); now != before {
		t.Errorf("status was\n%s\nis\n%s", before, now)
	}
	if now, err := os.ReadFile(filepath.Join(root, ".git", "index")); err != nil || string(now) != string(index) {
		t.Error("the user's index changed")
	}
	if now := git(t, root, "count-objects", "-v"); now != objects {
		t.Errorf("objects were\n%s\nare\n%s", objects, now)
	}
	if left, err := os.ReadDir(filepath.Join(root, ".roundtable", "tmp")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

func TestCandidateOfPlainFolder(t *testing.T) {
	root := t.TempDir()
	for p, s := range everyKind.files {
		write(t, root, p, s)
	}
	w := open(t, root, repo.Options{})
	got, err := w.Candidate(ctx(t), everyKind.changes)
	must(t, err)
	dst := t.TempDir()
	again, err := w.Materialise(ctx(t), everyKind.changes, dst)
	must(t, err)
	if got != again || got.Kind != "manifest" || len(got.ID) != 64 {
		t.Errorf("%v and %v", got, again)
	}
	if a, b := listing(t, dst, true), tree(t, after(everyKind.files, everyKind.changes)); !sameButRoot(a, b) {
		t.Errorf("got\n%s\nwant\n%s", a, b)
	}
	// The same files have the same id, however they came to be.
	other, err := open(t, dst, repo.Options{}).Candidate(ctx(t), nil)
	must(t, err)
	if other.ID != got.ID {
		t.Errorf("the folder itself has %s", other.ID)
	}
	if _, err := w.Materialise(ctx(t), nil, dst); err == nil {
		t.Error("wrote into a folder that is not empty")
	}
	if _, err := w.Materialise(ctx(t), nil, filepath.Join(root, "inside")); err == nil {
		t.Error("wrote into the workspace")
	}
}

// A tracked file where now a folder lies, and a tracked folder where now a link
// or a file lies, are taken as they lie.
func TestCandidateOfOtherKinds(t *testing.T) {
	root := gitRepo(t, map[string]spec{"a": "100644 a\n", "b": "100644 b\n", "d/x": "100644 x\n", "e/x": "100644 x\n", "e/y": "100644 y\n", "to/x": "100644 x\n"})
	w := open(t, root, repo.Options{})
	for _, p := range []string{"a", "b", "d", "e"} {
		must(t, os.RemoveAll(filepath.Join(root, p)))
	}
	must(t, os.MkdirAll(filepath.Join(root, "a/b"), 0o755))
	must(t, os.WriteFile(filepath.Join(root, "a/b/c"), []byte("c\n"), 0o644))
	must(t, os.Mkdir(filepath.Join(root, "b"), 0o755))
	must(t, os.Symlink("to", filepath.Join(root, "d")))
	must(t, os.WriteFile(filepath.Join(root, "e"), []byte("e\n"), 0o644))
	got, err := w.Candidate(ctx(t), nil)
	must(t, err)
	if want := gitTree(t, map[string]spec{"a/b/c": "100644 c\n", "d": "120000 to", "e": "100644 e\n", "to/x": "100644 x\n"}); got.ID != want {
		t.Fatalf("got %v, git says %s", got, want)
	}
}
