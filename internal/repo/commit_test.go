package repo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

func TestCommit(t *testing.T) {
	files := after(everyKind.files, nil)
	files["staged"], files["edited"], files["both"] = "100644 s\n", "100644 e\n", "100644 b\n"
	everySite(t, len(sites), files, func(t *testing.T, root string) {
		write(t, root, "staged", "100644 staged\n")
		write(t, root, "both", "100644 staged\n")
		write(t, root, "added", "100644 added\n")
		git(t, root, "add", "staged", "both", "added")
		write(t, root, "both", "100644 and edited\n")
		write(t, root, "edited", "100644 edited\n")
		write(t, root, "untracked", "100644 u\n")
		status, old := git(t, root, "status", "--porcelain"), git(t, root, "rev-parse", "HEAD")
		want := treeWith(t, root, old, everyKind.changes)
		w := open(t, root, repo.Options{Commit: true})
		must(t, w.InitExclude(ctx(t)))
		c, err := w.Candidate(ctx(t), everyKind.changes)
		must(t, err)
		if c.ID != want {
			t.Errorf("the candidate is %s, want %s", c.ID, want)
		}
		plan := commits(everyKind.changes...)
		plan.Commit.Tree, plan.Commit.Parent = want, old
		r, err := w.Apply(ctx(t), "TX-1", 1, plan)
		must(t, err)
		again, err := w.Apply(ctx(t), "TX-1", 1, plan)
		must(t, err)
		must(t, w.Finish(ctx(t), "TX-1", 1))
		if len(r.Notes) > 0 || again.Commit != r.Commit || again.PlanDigest != r.PlanDigest || r.Parent != old {
			t.Errorf("receipts %+v and %+v", r, again)
		}
		if head := git(t, root, "rev-parse", "HEAD"); head != r.Commit || git(t, root, "symbolic-ref", "HEAD") != r.Ref {
			t.Errorf("HEAD is %s, the receipt says %s", head, r.Commit)
		}
		if tree := git(t, root, "rev-parse", "HEAD^{tree}"); tree != want {
			t.Errorf("the tree is %s, want %s", tree, want)
		}
		if got := git(t, root, "log", "-1", "--format=%P|%an|%ae|%cn|%ce|%at|%s|%b"); got != old+"|Ada|PR-1@roundtable.invalid|Roundtable|roundtable@roundtable.invalid|1700000000|Title|"+
			"Text.\n\nRoundtable-Transaction: TX-1\nRoundtable-Proposal: P-1\nRoundtable-Patch: abc\n" {
			t.Errorf("the commit is %q", got)
		}
		if got := git(t, root, "diff-files", "--name-only"); got != "both\nedited" { // as the index itself has it, unrefreshed
			t.Errorf("behind the index: %q", got)
		}
		if got := git(t, root, "status", "--porcelain"); got != status {
			t.Errorf("the status was\n%s\nis\n%s", status, got)
		}
		if got := git(t, root, "show", ":both"); got != "staged" {
			t.Errorf("the entry of what was staged is now %q", got)
		}
		git(t, root, "fsck", "--strict", "--no-dangling")
		nothingLeft(t, root)
	})
}

// The first commit of a repository has no parent.
func TestCommitUnborn(t *testing.T) {
	root := t.TempDir()
	git(t, root, "init", "-q")
	w := open(t, root, repo.Options{Commit: true})
	must(t, w.InitExclude(ctx(t)))
	tree, err := w.Tree(ctx(t))
	must(t, err)
	if names, err := tree.Names(""); len(names) > 0 || err != nil {
		t.Errorf("%v %v", names, err)
	}
	r, err := w.Apply(ctx(t), "TX-1", 1, commits(change("d/f", "", "100644 f\n")))
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-1", 1))
	if got := git(t, root, "log", "--format=%H %P"); got != r.Commit+" " || r.Parent != "" {
		t.Errorf("%q, %+v", got, r)
	}
	if got := git(t, root, "status", "--porcelain"); got != "" {
		t.Errorf("status %s", got)
	}
}

// A branch that is checked out nowhere moves, and nothing else does.
func TestCommitElsewhere(t *testing.T) {
	everySite(t, 3, everyKind.files, func(t *testing.T, root string) {
		git(t, root, "branch", "release/1")
		git(t, root, "rm", "-q", "-r", "wasdir", "text.txt")
		write(t, root, "text.txt", "100644 uncommitted\n")
		index, err := os.ReadFile(git(t, root, "rev-parse", "--path-format=absolute", "--git-path", "index"))
		must(t, err)
		was, head, old := listing(t, root, false), git(t, root, "rev-parse", "HEAD"), git(t, root, "rev-parse", "release/1")
		w := open(t, root, repo.Options{Commit: true, Branch: "release/1"})
		base, err := w.Snapshot(ctx(t), []string{"text.txt"})
		must(t, err)
		if want, _ := stateOf("100644 one\n"); base.Commit != old || base.States["text.txt"] != want {
			t.Errorf("base %+v", base)
		}
		r, err := w.Apply(ctx(t), "TX-1", 1, commits(everyKind.changes...))
		must(t, err)
		must(t, w.Finish(ctx(t), "TX-1", 1))
		if got := git(t, root, "rev-parse", "release/1^{tree}"); got != treeWith(t, root, old, everyKind.changes) || git(t, root, "rev-parse", "release/1^") != old {
			t.Errorf("the branch has tree %s", got)
		}
		again, err := os.ReadFile(git(t, root, "rev-parse", "--path-format=absolute", "--git-path", "index"))
		must(t, err)
		if listing(t, root, false) != was || git(t, root, "rev-parse", "HEAD") != head || !slices.Equal(index, again) {
			t.Error("the work tree, HEAD or the index has changed")
		}
		if s, err := w.State(ctx(t), "TX-1", 1, r.Before, r.After); err != nil || s.Repository != "after" {
			t.Errorf("state %+v %v", s, err)
		}
		back, err := w.Apply(ctx(t), "TX-2", 1, commits(reversed(everyKind.files, everyKind.changes)...))
		must(t, err)
		if got := git(t, root, "rev-parse", back.Commit+"^{tree}"); got != git(t, root, "rev-parse", old+"^{tree}") {
			t.Errorf("taken back, the tree is %s", got)
		}
		must(t, w.Finish(ctx(t), "TX-2", 1))
		nothingLeft(t, root)
	})
}

// What cannot be committed is refused, and nothing has changed.
func TestCommitRefused(t *testing.T) {
	files := map[string]spec{"a": "100644 a\n", "b": "100644 b\n", "dir/in": "100644 in\n"}
	toA := change("a", "100644 a\n", "100644 A\n")
	cases := map[string]struct {
		code    string
		branch  string
		prepare func(t *testing.T, root string)
		plan    repo.Plan
	}{
		"edited": {"state.dirty", "", func(t *testing.T, root string) { write(t, root, "a", "100644 mine\n") }, commits(toA)},
		"staged": {"state.dirty", "", func(t *testing.T, root string) {
			write(t, root, "a", "100644 m\n")
			git(t, root, "add", "a")
			write(t, root, "a", "100644 a\n")
		}, commits(toA)},
		"staged removal": {"state.dirty", "", func(t *testing.T, root string) { git(t, root, "rm", "-q", "--cached", "a") }, commits(toA)},
		"mode":           {"state.dirty", "", func(t *testing.T, root string) { must(t, os.Chmod(filepath.Join(root, "a"), 0o755)) }, commits(toA)},
		"staged in the way": {"state.dirty", "", func(t *testing.T, root string) {
			write(t, root, "new/x", "100644 x")
			git(t, root, "add", "-A")
			must(t, os.RemoveAll(filepath.Join(root, "new")))
		}, commits(change("new", "", "100644 n\n"))},
		"untracked in the way": {"state.stale", "", func(t *testing.T, root string) { write(t, root, "new", "100644 n\n") }, commits(change("new", "", "100644 n\n"))},
		"detached":             {"state.no_branch", "", func(t *testing.T, root string) { git(t, root, "checkout", "-q", "--detach") }, commits(toA)},
		"no such branch":       {"state.no_branch", "none", nil, commits(toA)},
		"bad name":             {"state.no_branch", "a..b", nil, commits(toA)},
		"full name":            {"state.no_branch", "refs/heads/main", nil, commits(toA)},
		"symbolic":             {"state.no_branch", "alias", func(t *testing.T, root string) { git(t, root, "symbolic-ref", "refs/heads/alias", "refs/heads/main") }, commits(toA)},
		"in another work tree": {"state.checked_out_elsewhere", "other", func(t *testing.T, root string) {
			git(t, root, "worktree", "add", "-q", "-b", "other", filepath.Join(t.TempDir(), "o"))
		}, commits(toA)},
		"here and there": {"state.checked_out_elsewhere", "", func(t *testing.T, root string) {
			git(t, root, "worktree", "add", "-q", "-f", filepath.Join(t.TempDir(), "o"), "main")
		}, commits(toA)},
		"stale there":         {"state.stale", "topic", func(t *testing.T, root string) { git(t, root, "branch", "topic") }, commits(change("a", "100644 other\n", "100644 A\n"))},
		"below a file there":  {"path.dir_conflict", "topic", func(t *testing.T, root string) { git(t, root, "branch", "topic") }, commits(change("a/x", "", "100644 A\n"))},
		"over a folder there": {"path.dir_conflict", "topic", func(t *testing.T, root string) { git(t, root, "branch", "topic") }, commits(change("dir", "", "100644 A\n"))},
	}
	moved, other := commits(toA), commits(toA)
	moved.Commit.Parent, other.Commit.Tree = strings.Repeat("1", 40), strings.Repeat("2", 40)
	cases["another parent"] = struct {
		code    string
		branch  string
		prepare func(t *testing.T, root string)
		plan    repo.Plan
	}{"state.ref_moved", "", nil, moved}
	cases["another tree"] = struct {
		code    string
		branch  string
		prepare func(t *testing.T, root string)
		plan    repo.Plan
	}{"state.untested", "", nil, other}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			root := gitRepoIn(t, memory(t), files)
			if c.prepare != nil {
				c.prepare(t, root)
			}
			was, refs, status := listing(t, root, false), git(t, root, "for-each-ref"), git(t, root, "status", "--porcelain")
			w := open(t, root, repo.Options{Commit: true, Branch: c.branch})
			must(t, w.InitExclude(ctx(t)))
			if _, err := w.Apply(ctx(t), "TX-1", 1, c.plan); fault.CodeOf(err) != c.code {
				t.Errorf("got %v, want %s", err, c.code)
			}
			if now := listing(t, root, false); now != was || git(t, root, "for-each-ref") != refs || git(t, root, "status", "--porcelain") != status {
				t.Errorf("something has changed:\n%s\n%s", was, now)
			}
			nothingLeft(t, root)
		})
	}
}

// A branch of a work tree whose folder is gone is not checked out.
func TestCommitPrunableWorktree(t *testing.T) {
	root := gitRepo(t, map[string]spec{"a": "100644 a\n"})
	gone := filepath.Join(t.TempDir(), "gone")
	git(t, root, "worktree", "add", "-q", "-b", "other", gone)
	must(t, os.RemoveAll(gone))
	w := open(t, root, repo.Options{Commit: true, Branch: "other"})
	_, err := w.Apply(ctx(t), "TX-1", 1, commits(change("a", "100644 a\n", "100644 A\n")))
	must(t, err)
}

// A file that the person keeps out of the work tree is not made there; on a
// branch that is checked out nowhere it changes as any other.
func TestCommitSparse(t *testing.T) {
	root := gitRepo(t, map[string]spec{"out/a": "100644 a\n", "in/b": "100644 b\n"})
	git(t, root, "branch", "release")
	git(t, root, "sparse-checkout", "set", "in")
	toA := change("out/a", "100644 a\n", "100644 A\n")
	w := open(t, root, repo.Options{Commit: true})
	must(t, w.InitExclude(ctx(t)))
	if _, err := w.Apply(ctx(t), "TX-1", 1, commits(toA)); fault.KindOf(err) != fault.Refused {
		t.Errorf("got %v", err)
	}
	_, err := w.Apply(ctx(t), "TX-2", 1, commits(change("in/b", "100644 b\n", "100644 B\n")))
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-2", 1))
	if got := git(t, root, "status", "--porcelain"); got != "" || git(t, root, "show", "main:out/a") != "a" {
		t.Errorf("status %s", got)
	}
	there := open(t, root, repo.Options{Commit: true, Branch: "release"})
	must(t, there.CheckedOut(ctx(t), []string{"out/a"}))
	_, err = there.Apply(ctx(t), "TX-3", 1, commits(toA))
	must(t, err)
	if got := git(t, root, "show", "release:out/a"); got != "A" {
		t.Errorf("release has %q", got)
	}
}

// Nothing that the repository names runs, and no signature is asked for.
func TestCommitRunsNothing(t *testing.T) {
	root := gitRepo(t, map[string]spec{"f.txt": "100644 f", "g.md": "100644 g"})
	ran := filepath.Join(t.TempDir(), "ran")
	evil := "touch " + ran + "; cat"
	for _, kv := range [][2]string{{"core.fsmonitor", evil}, {"gpg.program", evil}, {"commit.gpgSign", "true"}, {"filter.evil.clean", evil}, {"i18n.commitEncoding", "latin1"}} {
		git(t, root, "config", kv[0], kv[1])
	}
	write(t, root, ".git/info/attributes", "100644 *.md filter=evil\n")
	write(t, root, "g.md", "100644 edited")
	for _, hook := range []string{"pre-commit", "commit-msg", "post-commit", "reference-transaction", "post-index-change", "prepare-commit-msg", "post-checkout"} {
		write(t, root, ".git/hooks/"+hook, "100755 #!/bin/sh\n"+evil+"\n")
	}
	w := open(t, root, repo.Options{Commit: true})
	_, err := w.Apply(ctx(t), "TX-1", 1, commits(change("f.txt", "100644 f", "100644 F\n")))
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-1", 1))
	if _, err := os.Stat(ran); err == nil {
		t.Error("a program of the repository ran")
	}
	if raw := git(t, root, "cat-file", "commit", "HEAD"); strings.Contains(raw, "gpgsig") || strings.Contains(raw, "encoding") {
		t.Error(raw)
	}
}

// Changes are in the bytes that the branch has; the work tree gets what a
// checkout writes of them, also where a person's file had other line ends.
func TestCommitLineEnds(t *testing.T) {
	for _, lies := range []spec{"100644 a\r\nb\r\n", "100644 a\nb\n", "100644 a\r\nb\n"} {
		root := gitRepo(t, map[string]spec{".gitattributes": "100644 *.crlf text eol=crlf\n", "a.crlf": lies, "a.raw": "100644 a\r\n", "gone.crlf": lies})
		w := open(t, root, repo.Options{Commit: true})
		must(t, w.InitExclude(ctx(t)))
		changes := []patch.Change{change("a.crlf", "100644 a\nb\n", "100755 c\n"), change("a.raw", "100644 a\r\n", "100644 b\r\n"),
			change("new.crlf", "", "100644 n\n"), change("gone.crlf", "100644 a\nb\n", "")}
		clone := filepath.Join(t.TempDir(), "clone")
		git(t, root, "clone", "-q", root, clone)
		r, err := w.Apply(ctx(t), "TX-1", 1, commits(changes...))
		must(t, err)
		report := func() {
			t.Helper()
			if s, err := w.State(ctx(t), "TX-1", 1, r.Before, r.After); err != nil || s.Repository != "after" {
				t.Errorf("state %+v, %v", s, err)
			}
		}
		report()
		must(t, w.Finish(ctx(t), "TX-1", 1))
		report()
		for _, c := range changes {
			if r.Before[c.Path] != c.Before || r.After[c.Path] != c.After {
				t.Errorf("the receipt has %s as %v and %v", c.Path, r.Before[c.Path], r.After[c.Path])
			}
		}
		git(t, clone, "pull", "-q")
		for path, want := range map[string]string{"a.crlf": "c", "a.raw": "b\r", "new.crlf": "n"} {
			if got := git(t, root, "cat-file", "blob", "HEAD:"+path); got != want {
				t.Errorf("%s is kept as %q", path, got)
			}
			theirs, err := os.ReadFile(filepath.Join(clone, path))
			must(t, err)
			if b, err := os.ReadFile(filepath.Join(root, path)); err != nil || string(b) != string(theirs) {
				t.Errorf("%s lies as %q, %v; git writes %q", path, b, err, theirs)
			}
		}
		if got := git(t, root, "status", "--porcelain"); got != "" {
			t.Errorf("status %s", got)
		}
		nothingLeft(t, root)
	}
}

// Where the attributes on disk are others than the branch's, nobody can say
// what a checkout would write.
func TestCommitOtherAttributes(t *testing.T) {
	root := gitRepo(t, map[string]spec{"d/a.txt": "100644 a\n", "b.txt": "100644 b\n"})
	write(t, root, "d/.gitattributes", "100644 * text eol=crlf\n")
	w := open(t, root, repo.Options{Commit: true})
	must(t, w.InitExclude(ctx(t)))
	_, err := w.Apply(ctx(t), "TX-1", 1, commits(change("d/a.txt", "100644 a\n", "100644 A\n")))
	if fault.CodeOf(err) != "state.dirty" || !strings.Contains(err.Error(), ".gitattributes") {
		t.Errorf("%v", err)
	}
	_, err = w.Apply(ctx(t), "TX-2", 1, commits(change("b.txt", "100644 b\n", "100644 B\n")))
	must(t, err)
}

// The branch's tree reads as git says it is.
func TestBranchTree(t *testing.T) {
	everySite(t, 3, everyKind.files, func(t *testing.T, root string) {
		for p := range everyKind.files {
			must(t, os.RemoveAll(filepath.Join(root, strings.Split(p, "/")[0]))) // so that nothing is read from the disk
		}
		w := open(t, root, repo.Options{Commit: true})
		tree, err := w.Tree(ctx(t))
		must(t, err)
		for p, s := range everyKind.files {
			want, content := stateOf(s)
			b, err := tree.Read(p)
			st, err2 := tree.Stat(p)
			if err != nil || err2 != nil || string(b) != string(content) || st.Kind != want.Kind || st.Mode != want.Mode || st.Size != want.Size {
				t.Errorf("%s: %q %v %v %v", p, b, st, err, err2)
			}
		}
		for p, kind := range map[string]patch.Kind{"": patch.Dir, "wasdir/b": patch.Dir, "text.txt/x": patch.Absent, "none": patch.Absent, "link/x": patch.Absent, ".git/config": patch.Special} {
			if st, err := tree.Stat(p); err != nil || st.Kind != kind {
				t.Errorf("%q is %v, %v", p, st, err)
			}
		}
		if names, err := tree.Names("wasdir"); err != nil || fmt.Sprint(names) != "[a b]" {
			t.Errorf("%v %v", names, err)
		}
		files, err := w.Files(ctx(t), "wasdir")
		if err != nil || fmt.Sprint(files) != "[wasdir/a wasdir/b/c]" {
			t.Errorf("%v %v", files, err)
		}
		if r, err := w.ReadFile(ctx(t), "wasdir/b/c", 1, 9); err != nil || string(r.Data) != "\n" {
			t.Errorf("%q %v", r.Data, err)
		}
		dst := t.TempDir()
		c, err := w.Materialise(ctx(t), nil, dst)
		if err != nil || c.ID != git(t, root, "rev-parse", "HEAD^{tree}") {
			t.Errorf("%v %v", c, err)
		}
	})
}
