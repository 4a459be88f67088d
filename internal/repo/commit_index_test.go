package repo_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/repo"
)

// commitNow tries to commit what is staged, as a person does.
func commitNow(root string) (string, error) {
	cmd := exec.Command("git", "-c", "user.name=P", "-c", "user.email=p@example.invalid", "commit", "-q", "-m", "theirs")
	cmd.Dir = root
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// commitAt applies, and somebody with another file staged tries to commit just
// before a step that comes after the branch has moved. It says whether they
// could, and whether their commit, then or afterwards, has reverted ours.
func (k committing) commitAt(t *testing.T, step string, late bool) (could, reverted bool) {
	t.Helper()
	write(t, k.root, "other", "100644 other\n")
	git(t, k.root, "add", "other")
	tried := false
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Commit: true, Step: func(s repo.Step) {
		if s.Name != step || tried {
			return
		}
		tried = true
		out, err := commitNow(k.root)
		if could = err == nil; !could && !strings.Contains(out, "index.lock") {
			t.Errorf("before %s: %v: %s", step, err, out)
		}
	}})
	if late {
		w.Late()
	}
	_, err := w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: commitKinds, Commit: wish()})
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-K", 1))
	if !tried {
		t.Fatalf("there is no step %s", step)
	}
	if !could {
		if out, err := commitNow(k.root); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	return could, git(t, k.root, "diff", "--name-only", "main~1", "main") != "other"
}

// Nobody commits between the move of the branch and that of the index, and who
// does afterwards takes nothing back. With the lock taken only afterwards they
// do.
func TestCommitWhileTheBranchMoves(t *testing.T) {
	for _, step := range []string{"ref_sync", "index_name"} {
		k := newCommitting(t)
		if could, reverted := k.commitAt(t, step, false); could || reverted {
			t.Errorf("before %s: their commit was made: %v, ours reverted: %v", step, could, reverted)
		}
		if status := git(t, k.root, "status", "--porcelain"); status != "" {
			t.Errorf("before %s: status %s", step, status)
		}
	}
	if could, reverted := newCommitting(t).commitAt(t, "ref_sync", true); !could || !reverted {
		t.Errorf("without the lock their commit was made: %v, ours reverted: %v", could, reverted)
	}
}

// From the answer on a person may commit, also while the rest is done; and
// no lock is taken any more.
func TestCommitAfterTheAnswer(t *testing.T) {
	k := newCommitting(t)
	write(t, k.root, "other", "100644 other\n")
	git(t, k.root, "add", "other")
	answered, after := false, []string{}
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Commit: true, Step: func(s repo.Step) {
		if answered && strings.HasPrefix(s.Name, "index") {
			after = append(after, s.Name)
		}
	}})
	_, err := w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: commitKinds, Commit: wish()})
	must(t, err)
	answered = true
	for _, p := range []string{"text.txt", "wasfile/in/it", "link"} { // by stat data alone
		if got := git(t, k.root, "diff-files", "--name-only", "--", p); got != "" {
			t.Errorf("behind the index: %s", got)
		}
	}
	if out, err := commitNow(k.root); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	lock := filepath.Join(k.root, ".git/index.lock")
	must(t, os.WriteFile(lock, []byte(theirs), 0o600))
	must(t, w.Finish(ctx(t), "TX-K", 1))
	must(t, os.Remove(lock))
	if len(after) > 0 {
		t.Errorf("after the answer: %v", after)
	}
	if got := git(t, k.root, "diff", "--name-only", "HEAD~1", "HEAD"); got != "other" {
		t.Errorf("their commit changes %s", got)
	}
	nothingLeft(t, k.root)
}

// What the owner stages between the plan and the lock refuses the apply.
func TestStagedBeforeTheLock(t *testing.T) {
	k := newCommitting(t)
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Commit: true, Step: func(s repo.Step) {
		if s.Name == "index_lock" {
			git(t, k.root, "rm", "-q", "--cached", "text.txt")
		}
	}})
	if _, err := w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: commitKinds, Commit: wish()}); fault.CodeOf(err) != "state.dirty" {
		t.Errorf("got %v", err)
	}
	if s := k.state(t); s != "before" {
		t.Error(s)
	}
	nothingLeft(t, k.root)
}

// heldDeaths are steps between the lock and the index's new name.
var heldDeaths = []string{"journal_sync", "index_write", "ref", "ref_sync", "index_name"}

// After a kill the lock stays and keeps everybody from committing, until
// recovery has made it the index or removed it; before Finish.
func TestKilledWithTheIndexLocked(t *testing.T) {
	for _, at := range heldDeaths {
		k := newCommitting(t)
		write(t, k.root, "other", "100644 other\n")
		git(t, k.root, "add", "other")
		j := k.apply(0)
		j.KillStep = at
		if killed, _ := j.run(t); !killed {
			t.Fatalf("there is no step %s", at)
		}
		if out, err := commitNow(k.root); err == nil || !strings.Contains(out, "index.lock") {
			t.Errorf("killed before %s somebody could commit: %v %s", at, err, out)
		}
		w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Commit: true})
		found, err := w.Recover(ctx(t))
		must(t, err)
		if status := git(t, k.root, "status", "--porcelain"); status != "A  other" {
			t.Errorf("killed before %s, recovered: status %s", at, status)
		}
		leftNothing(t, k.root)
		if out, err := commitNow(k.root); err != nil {
			t.Errorf("recovered from %s: %v %s", at, err, out)
		}
		for _, r := range found {
			if r.Marker == repo.Committed {
				must(t, w.Finish(ctx(t), r.Tx, r.Attempt))
			}
		}
		if got := git(t, k.root, "diff", "--name-only", "HEAD~1", "HEAD"); got != "other" {
			t.Errorf("killed before %s: their commit changes %s", at, got)
		}
		nothingLeft(t, k.root)
	}
}

// Recovery is killed at each of its system calls, with the index locked.
func TestKilledRecoveryWithTheIndexLocked(t *testing.T) {
	for i, at := range heldDeaths {
		more := true
		for m := 1 + i*3; more; m += every(31) {
			k := newCommitting(t)
			j := k.apply(0)
			j.KillStep = at
			if killed, _ := j.run(t); !killed {
				t.Fatalf("there is no step %s", at)
			}
			r := k.recovery(0)
			r.KillCall = m
			more, _ = r.run(t)
			k.recovery(0).run(t)
			k.settled(t, fmt.Sprintf("killed before %s, and before call %d of recovery", at, m))
		}
	}
}

// Where somebody has removed the lock of a dead process by hand, Finish brings
// the index up with a late lock, wherever it is killed in turn.
func TestLockRemovedByHand(t *testing.T) {
	for _, at := range []string{"", "index_late_lock", "index_link", "index_late_write", "index_name", "index_name_sync"} {
		k := newCommitting(t)
		j := k.apply(0)
		j.KillStep = "ref_sync"
		if killed, _ := j.run(t); !killed {
			t.Fatal("not killed")
		}
		must(t, os.Remove(filepath.Join(k.root, ".git/index.lock")))
		if at != "" {
			r := k.recovery(0)
			r.KillStep = at
			if killed, _ := r.run(t); !killed {
				t.Fatalf("recovery has no step %s", at)
			}
		}
		k.recovery(0).run(t)
		if s := k.settled(t, "late, killed before "+at); s != "after" {
			t.Error(s)
		}
	}
}
