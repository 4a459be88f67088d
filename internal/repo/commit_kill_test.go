package repo_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// commitKinds is less than everyKind: git makes each run slow.
var commitKinds = []patch.Change{
	change("text.txt", "100644 one\n", "100644 two\n"),
	change("link", "120000 text.txt", "100644 was a link\n"),
	change("wasfile", "100644 a file\n", ""),
	change("wasfile/in/it", "", "100755 new\n"),
	change("empties/deep/er/only.txt", "100644 only\n", ""),
}

// A committing is one repository that processes are killed on: a copy of a
// template, since to make one takes git longer than to change it.
type committing struct {
	root, blobs, old, tree string
	before, after          string
}

var template committing

func newCommitting(t *testing.T) committing {
	t.Helper()
	if template.root == "" {
		dir, err := os.MkdirTemp("/dev/shm", "repo-template-")
		if err != nil {
			dir, err = os.MkdirTemp("", "repo-template-")
		}
		must(t, err)
		leftToRemove = append(leftToRemove, dir)
		made := gitRepo(t, everyKind.files)
		git(t, made, "config", "gc.auto", "0")
		write(t, made, ".git/info/exclude", "100644 /.roundtable/\n")
		git(t, made, "worktree", "prune")
		template.root = filepath.Join(dir, "repo")
		copyTree(t, made, template.root)
		template.old = git(t, made, "rev-parse", "HEAD")
		template.tree = treeWith(t, made, template.old, commitKinds)
	}
	k := template
	k.root, k.blobs = filepath.Join(memory(t), "repo"), memory(t)
	copyTree(t, template.root, k.root)
	k.before = listing(t, k.root, false)
	want := filepath.Join(memory(t), "want")
	must(t, os.Mkdir(want, 0o755))
	for p, s := range after(everyKind.files, commitKinds) {
		write(t, want, p, s)
	}
	k.after = listing(t, want, false)
	return k
}

// leftToRemove are folders that outlive their test.
var leftToRemove []string

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func (k committing) apply(killAt int) job {
	return job{Root: k.root, Blobs: k.blobs, Apply: commitKinds, Commit: true, KillAt: killAt}
}

func (k committing) recovery(killAt int) job {
	return job{Root: k.root, Blobs: k.blobs, Commit: true, KillAt: killAt}
}

// state is "before", "after" or what is wrong.
func (k committing) state(t *testing.T) string {
	t.Helper()
	files, head := "mixed", git(t, k.root, "rev-parse", "main")
	switch listing(t, k.root, false) {
	case k.before:
		files = "before"
	case k.after:
		files = "after"
	}
	branch := "elsewhere"
	switch {
	case head == k.old:
		branch = "before"
	case git(t, k.root, "rev-parse", "main^") == k.old && git(t, k.root, "rev-parse", "main^{tree}") == k.tree:
		branch = "after"
	}
	if files != branch {
		return fmt.Sprintf("mixed: the files are %s, the branch is %s", files, branch)
	}
	return files
}

// settled fails the test unless files, branch and index agree and nothing is
// left behind.
func (k committing) settled(t *testing.T, what string) string {
	t.Helper()
	leftNothing(t, k.root, "tmp")
	return k.agrees(t, what)
}

// agrees is settled but for what the next opening sweeps up.
func (k committing) agrees(t *testing.T, what string) string {
	t.Helper()
	s := k.state(t)
	if status := git(t, k.root, "status", "--porcelain"); s != "before" && s != "after" || status != "" {
		t.Fatalf("%s: %s; status\n%s", what, s, status)
	}
	if got := git(t, k.root, "diff-files", "--name-only", "--", "text.txt", "wasfile"); s == "after" && got != "" {
		t.Fatalf("%s: the index is behind at %s", what, got)
	}
	leftNothing(t, k.root, "tx")
	return s
}

// A process is killed before each system call of an apply that is committed,
// and of its finish.
func TestKilledCommit(t *testing.T) {
	ended, n := map[string]int{}, 1
	for ; ; n += every(37) {
		k := newCommitting(t)
		j := k.apply(0)
		j.KillCall = n
		if killed, _ := j.run(t); !killed {
			break
		}
		k.recovery(0).run(t)
		ended[k.settled(t, fmt.Sprint("killed before call ", n))]++
		if n%10 == 1 {
			k.recovery(0).run(t) // again: nothing to do
			k.settled(t, "recovered twice")
		}
	}
	t.Logf("%d calls: %v", n-1, ended)
	if ended["before"] == 0 || ended["after"] == 0 {
		t.Errorf("the kills did not reach both sides of the commit point: %v", ended)
	}
}

// commitSteps are those around and after the commit point.
var commitSteps = []string{"objects", "commit", "objects_sync", "index_lock", "index_link", "journal_sync", "index_write", "ref", "ref_sync", "index_name", "index_name_sync", "marked"}

// Killed at the steps that matter most, each of which must be there.
func TestKilledCommitSteps(t *testing.T) {
	for _, name := range commitSteps {
		k := newCommitting(t)
		j := k.apply(0)
		j.KillStep = name
		if killed, _ := j.run(t); !killed {
			t.Fatalf("there is no step %s", name)
		}
		k.recovery(0).run(t)
		want := "after"
		if slices.Index(commitSteps, name) <= slices.Index(commitSteps, "ref") {
			want = "before"
		}
		if got := k.settled(t, name); got != want {
			t.Errorf("killed before %s, recovered it is %s", name, got)
		}
	}
}

// Recovery that does not look at the branch takes back files of a commit that
// is made: the test can fail.
func TestKilledCommitBlind(t *testing.T) {
	k := newCommitting(t)
	j := k.apply(0)
	j.KillStep = "ref_sync"
	if killed, _ := j.run(t); !killed {
		t.Fatal("not killed")
	}
	r := k.recovery(0)
	r.Blind = true
	r.run(t)
	if s := k.state(t); s != "mixed: the files are before, the branch is after" {
		t.Errorf("recovery without a look at the branch leaves %s", s)
	}
}

func TestKilledCommitRecovery(t *testing.T) {
	kills := 0
	for n := 12; ; n += every(13) {
		more := true
		for m := 1; more; m += every(7) {
			k := newCommitting(t)
			if killed, _ := k.apply(n).run(t); !killed {
				t.Logf("%d kills in recovery", kills)
				return
			}
			more, _ = k.recovery(m).run(t)
			k.recovery(0).run(t)
			k.settled(t, fmt.Sprintf("killed before step %d, and before step %d of recovery", n, m))
			kills++
		}
	}
}

// A killed service leaves a git behind that has not moved the branch yet: it
// holds the lock of the workspace, and nobody decides before it has ended.
func TestKilledWhileGitMovesTheBranch(t *testing.T) {
	k := newCommitting(t)
	dir := memory(t)
	begun, go_ := filepath.Join(dir, "begun"), filepath.Join(dir, "go")
	must(t, syscall.Mkfifo(go_, 0o600))
	slow := filepath.Join(dir, "git")
	write(t, dir, "git", "100755 #!/bin/sh\nif [ \"$1\" = update-ref ]; then echo $$ > "+begun+"; read x < "+go_+"; fi\nexec git \"$@\"\n")
	j := k.apply(0)
	j.Git = slow
	cmd := j.command(t)
	must(t, cmd.Start())
	eventually(t, "git update-ref begins", func() bool { b, err := os.ReadFile(begun); return err == nil && len(b) > 1 })
	must(t, cmd.Process.Kill())
	_ = cmd.Wait() // killed
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Commit: true})
	if _, err := w.Recover(ctx(t)); fault.CodeOf(err) != "state.locked" {
		t.Errorf("recovery beside a git that still runs: %v", err)
	}
	must(t, os.WriteFile(go_, []byte("\n"), 0))
	var found []repo.Recovered
	eventually(t, "git has ended", func() bool {
		var err error
		found, err = w.Recover(ctx(t))
		if fault.CodeOf(err) == "state.locked" {
			return false
		}
		must(t, err)
		return true
	})
	if len(found) != 1 || found[0].Marker != repo.Committed {
		t.Fatalf("recovered %+v", found)
	}
	must(t, w.Finish(ctx(t), "TX-K", 1))
	if s := k.settled(t, "recovered"); s != "after" {
		t.Error(s)
	}
}

// eventually waits, within bounds, until something is so.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("in vain: %s", what)
		}
	}
}
