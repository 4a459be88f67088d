package repo_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/repo"
)

// meddling does something at one step of an apply and says what came of it.
func (k committing) meddling(t *testing.T, n int, meddle func()) (reached bool, err error) {
	t.Helper()
	steps := 0
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Commit: true, LockWait: 20 * time.Millisecond, Step: func(repo.Step) {
		if steps++; steps == n {
			meddle()
		}
	}})
	_, err = w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: commitKinds, Commit: wish()})
	if err == nil {
		err = w.Finish(ctx(t), "TX-K", 1)
	}
	return steps >= n, err
}

// everyStep calls f with the number of each step, or of a spread of them,
// until it says that there is no such step.
func everyStep(stride int, f func(n int) (reached bool)) {
	for n := 1; f(n); n += every(stride) {
	}
}

// Somebody else commits to the branch at every step: their commit is never
// lost, and ours is on the branch with its files or neither is there.
func TestBranchMovedByOthers(t *testing.T) {
	outcome := map[string]int{}
	everyStep(5, func(n int) bool {
		k := newCommitting(t)
		theirs := ""
		reached, err := k.meddling(t, n, func() {
			theirs = git(t, k.root, "commit-tree", "-p", "main", "-m", "theirs", "main^{tree}")
			git(t, k.root, "update-ref", "refs/heads/main", theirs)
		})
		if !reached {
			return false
		}
		what := fmt.Sprint("their commit before step ", n)
		git(t, k.root, "merge-base", "--is-ancestor", theirs, "main")
		log := git(t, k.root, "log", "--format=%s", "main")
		ours, files := strings.Contains(log, "Title"), listing(t, k.root, false)
		switch code := fault.CodeOf(err); {
		case err == nil && (!ours || files != k.after), err != nil && (ours || files != k.before || code != "state.ref_moved"):
			t.Fatalf("%s: %v; the branch has\n%s\nfiles\n%s", what, err, log, files)
		}
		if status := git(t, k.root, "status", "--porcelain"); status != "" {
			t.Fatalf("%s: %v; status %s", what, err, status)
		}
		nothingLeft(t, k.root)
		if err == nil {
			outcome["applied"]++
		} else {
			outcome[fault.CodeOf(err)]++
		}
		return true
	})
	t.Log(outcome)
	if outcome["state.ref_moved"] == 0 || outcome["applied"] == 0 {
		t.Errorf("outcomes %v", outcome)
	}
}

// Somebody else goes to another branch at every step.
func TestBranchLeft(t *testing.T) {
	everyStep(5, func(n int) bool {
		k := newCommitting(t)
		reached, err := k.meddling(t, n, func() { git(t, k.root, "symbolic-ref", "HEAD", "refs/heads/left") })
		if !reached {
			return false
		}
		files := listing(t, k.root, false)
		main := git(t, k.root, "rev-parse", "main")
		if err == nil && (files != k.after || main == k.old) && git(t, k.root, "for-each-ref", "refs/heads/left") == "" ||
			err != nil && (files != k.before || main != k.old || !slices.Contains([]string{"state.ref_moved", "state.dirty"}, fault.CodeOf(err))) {
			t.Fatalf("left before step %d: %v; main is at %s\n%s", n, err, main, files)
		}
		nothingLeft(t, k.root)
		return true
	})
}

// A lock that somebody else holds on the index is waited for and never taken:
// past the bound nothing is moved.
func TestIndexLocked(t *testing.T) {
	root := gitRepo(t, map[string]spec{"a": "100644 a\n", "b": "100644 b\n"})
	lock := filepath.Join(root, ".git/index.lock")
	must(t, os.WriteFile(lock, []byte(theirs), 0o600))
	moved := false
	w := open(t, root, repo.Options{Commit: true, LockWait: 30 * time.Millisecond, Step: func(s repo.Step) { moved = moved || s.Phase == repo.Moving }})
	must(t, w.InitExclude(ctx(t)))
	head := git(t, root, "rev-parse", "HEAD")
	plan := commits(change("a", "100644 a\n", "100644 A\n"))
	if _, err := w.Apply(ctx(t), "TX-1", 1, plan); fault.CodeOf(err) != "state.index_locked" {
		t.Errorf("applied: %v", err)
	}
	if now, err := os.ReadFile(filepath.Join(root, "a")); err != nil || string(now) != "a\n" || git(t, root, "rev-parse", "HEAD") != head || moved {
		t.Errorf("a holds %q, %v; something was moved: %v", now, err, moved)
	}
	if b, err := os.ReadFile(lock); err != nil || string(b) != theirs {
		t.Errorf("their lock holds %q, %v", b, err)
	}
	go func() {
		time.Sleep(10 * time.Millisecond)
		_ = os.Remove(lock)
	}()
	eventually(t, "the lock is free", func() bool { _, err := w.Apply(ctx(t), "TX-1", 1, plan); return err == nil })
	must(t, w.Finish(ctx(t), "TX-1", 1))
	if got := git(t, root, "status", "--porcelain"); got != "" {
		t.Errorf("status %s", got)
	}
	nothingLeft(t, root)
}

// A lock on the branch is somebody else's too: everything goes back.
func TestBranchLocked(t *testing.T) {
	k := newCommitting(t)
	lock := filepath.Join(k.root, ".git/refs/heads/main.lock")
	must(t, os.WriteFile(lock, nil, 0o600))
	if _, err := k.meddling(t, 0, nil); fault.CodeOf(err) != "state.locked" {
		t.Errorf("got %v", err)
	}
	must(t, os.Remove(lock))
	if s := k.settled(t, "locked"); s != "before" {
		t.Error(s)
	}
}

// What the owner staged between the commit and the index stays.
func TestStagedMeanwhile(t *testing.T) {
	k := newCommitting(t)
	w := open(t, k.root, repo.Options{Commit: true, Step: func(s repo.Step) {
		if s.Name == "marked" {
			write(t, k.root, "text.txt", "100644 mine\n")
			git(t, k.root, "add", "text.txt")
		}
	}})
	_, err := w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: commitKinds, Commit: wish()})
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-K", 1))
	if got := git(t, k.root, "status", "--porcelain"); got != "M  text.txt" {
		t.Errorf("status %s", got)
	}
	if got := git(t, k.root, "show", ":text.txt"); got != "mine" {
		t.Errorf("staged is %q", got)
	}
}
