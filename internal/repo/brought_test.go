package repo_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

const payload = "#!/bin/sh\ntouch ran\n"

// forge writes a journal as a stranger would: of a deletion of a path whose
// content lies in the slot, for recovery to put back.
func forge(t *testing.T, root, path, origin string) {
	t.Helper()
	before, _ := stateOf("100755 " + payload)
	line, err := json.Marshal(map[string]any{"version": 1, "transaction_id": "evil", "attempt": 1, "origin": origin,
		"operations": []any{map[string]any{"kind": "delete", "path": path, "before": before, "after": none}}})
	must(t, err)
	line = append(line, '\n')
	sum := sha256.Sum256(line)
	write(t, root, ".roundtable/tx/evil.1/journal", "100644 "+string(line)+hex.EncodeToString(sum[:])+"\n")
	write(t, root, ".roundtable/tx/evil.1/000000", "100755 "+payload)
}

// origin is what a folder's own journal would say.
func origin(t *testing.T, w *repo.Workspace, dir string) string {
	t.Helper()
	s, err := w.Origin(dir)
	must(t, err)
	return s
}

// A journal that lies in the workspace and was not written there is told,
// moves nothing, and hinders nothing once it is moved away.
func TestForeignJournal(t *testing.T) {
	for _, path := range []string{".git/hooks/post-checkout", "x"} {
		for _, marker := range []string{"", "commit", "aborted"} {
			root := gitRepo(t, map[string]spec{"a": "100644 a\n"})
			forge(t, root, path, "")
			if marker != "" {
				write(t, root, ".roundtable/tx/evil.1/"+marker, "100644 {}\n")
			}
			untouched(t, root, path, "was not written here")
		}
	}
}

// untouched has a journal of path found, that must not be acted on, and then
// settled by a person.
func untouched(t *testing.T, root, path, why string) {
	t.Helper()
	w := open(t, root, repo.Options{})
	was := listing(t, root, true)
	found, err := w.Recover(ctx(t))
	must(t, err)
	if len(found) != 1 || found[0].Marker != repo.Attention || len(found[0].Stuck) != 1 || !strings.Contains(found[0].Stuck[0].Reason, why) ||
		!strings.Contains(found[0].Stuck[0].Reason, ".roundtable/tx/evil.1") {
		t.Errorf("%s: found %+v", path, found)
	}
	if seen, err := w.Unfinished(ctx(t)); err != nil || len(seen) != 1 || seen[0].Marker != repo.Attention {
		t.Errorf("seen %+v %v", seen, err)
	}
	if m, err := w.Outcome("evil", 1); err != nil || m == repo.Committed || m == repo.Aborted {
		t.Errorf("outcome %v %v", m, err)
	}
	p := repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "100644 b\n")}}
	if _, err := w.Apply(ctx(t), "TX-1", 1, p); fault.CodeOf(err) != "state.needs_attention" {
		t.Errorf("an apply beside it: %v", err)
	}
	if err := w.Finish(ctx(t), "evil", 1); err == nil {
		t.Error("it was finished")
	}
	if now := listing(t, root, true); withoutLock(now) != withoutLock(was) {
		t.Errorf("was\n%s\nis\n%s", was, now)
	}
	if _, err := os.Lstat(filepath.Join(root, path)); !os.IsNotExist(err) {
		t.Errorf("%s: %v", path, err)
	}
	_, err = w.Resolve(ctx(t), "evil", 1)
	must(t, err)
	_, err = w.Apply(ctx(t), "TX-1", 1, p)
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-1", 1))
	if _, err := os.Lstat(filepath.Join(root, path)); !os.IsNotExist(err) {
		t.Errorf("%s after the decision: %v", path, err)
	}
}

// withoutLock leaves out the lock, which is written at each look.
func withoutLock(listing string) string {
	lines := strings.Split(listing, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, ".roundtable/lock ") {
			lines[i] = ""
		}
	}
	return strings.Join(lines, "")
}

// A journal with the right origin that names what no plan can name is damaged;
// with a path that one can, it is believed: else the check above would prove
// nothing.
func TestJournalPaths(t *testing.T) {
	for _, path := range []string{".git/hooks/post-checkout", "sub/.GIT/x", ".roundtable/x", ".Roundtable/x", "../x", "/x", "b//c", "own/x"} {
		root := gitRepo(t, map[string]spec{"a": "100644 a\n"})
		forge(t, root, path, "")
		w := open(t, root, repo.Options{Reserved: []string{"own"}})
		forge(t, root, path, origin(t, w, filepath.Join(root, ".roundtable/tx/evil.1")))
		found, err := w.Recover(ctx(t))
		if err != nil || len(found) != 1 || found[0].Marker != repo.Attention || !strings.Contains(fmt.Sprint(found[0].Stuck), "is damaged") {
			t.Errorf("%s: %+v %v", path, found, err)
		}
		if _, err := os.Lstat(filepath.Join(root, path)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	root := gitRepo(t, map[string]spec{"a": "100644 a\n"})
	forge(t, root, "x", "")
	w := open(t, root, repo.Options{})
	forge(t, root, "x", origin(t, w, filepath.Join(root, ".roundtable/tx/evil.1")))
	if found, err := w.Recover(ctx(t)); err != nil || len(found) != 1 || found[0].Marker != repo.Aborted {
		t.Errorf("%+v %v", found, err)
	}
	if b, err := os.ReadFile(filepath.Join(root, "x")); string(b) != payload {
		t.Errorf("%q %v", b, err)
	}
}

// What is copied of a workspace in the middle of an apply is not believed in
// the copy.
func TestCopiedJournal(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 a\n")
	to := t.TempDir()
	w := open(t, root, repo.Options{Step: func(s repo.Step) {
		if s.Name == "verify" {
			must(t, os.CopyFS(to, os.DirFS(root)))
		}
	}})
	_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "100644 b\n")}})
	must(t, err)
	found, err := open(t, to, repo.Options{}).Recover(ctx(t))
	if err != nil || len(found) != 1 || found[0].Marker != repo.Attention || !strings.Contains(found[0].Stuck[0].Reason, "not written here") {
		t.Errorf("%+v %v", found, err)
	}
}

// A repository that tracks the state folder, in any spelling, is not opened, at
// HEAD or in the index; one that comes to do so by a branch is left alone.
func TestTrackedState(t *testing.T) {
	for _, dir := range []string{".roundtable", ".Roundtable", ".roundtable.", ".round\u200ctable"} {
		for _, where := range []string{"both", "index", "HEAD"} {
			root := gitRepo(t, map[string]spec{"a": "100644 a\n", dir + "/tx/evil.1/journal": "100644 x\n", "z": "100644 z\n"})
			switch where {
			case "index":
				git(t, root, "update-ref", "-d", "HEAD")
			case "HEAD":
				git(t, root, "rm", "-q", "-r", "--cached", dir)
			}
			was := listing(t, root, true)
			for _, o := range []repo.Options{{}, {Scratch: t.TempDir()}} {
				o.Path = os.Getenv("PATH")
				if _, err := repo.Open(ctx(t), root, o); fault.CodeOf(err) != "state.tracked" {
					t.Errorf("%s in %s: %v", dir, where, err)
				}
			}
			if err := repo.CheckData(ctx(t), filepath.Join(root, ".roundtable"), repo.Options{}); fault.CodeOf(err) != "state.tracked" {
				t.Errorf("the data folder %s in %s: %v", dir, where, err)
			}
			if now := listing(t, root, true); now != was {
				t.Errorf("was\n%s\nis\n%s", was, now)
			}
		}
	}
}

// A branch that brings a state folder into a governed work tree: git writes
// over ignored files without a word.
func TestBranchBringsState(t *testing.T) {
	root := gitRepo(t, map[string]spec{"a": "100644 a\n"})
	git(t, root, "checkout", "-q", "-b", "bad")
	forge(t, root, ".git/hooks/post-checkout", "")
	git(t, root, "add", "-f", ".roundtable")
	git(t, root, "commit", "-q", "-m", "bad")
	git(t, root, "checkout", "-q", "main")
	w := open(t, root, repo.Options{})
	must(t, w.InitExclude(ctx(t)))
	p := repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "100644 b\n")}}
	git(t, root, "checkout", "-q", "bad")
	if _, err := w.Apply(ctx(t), "TX-1", 1, p); fault.CodeOf(err) != "state.tracked" {
		t.Errorf("apply: %v", err)
	}
	if _, err := w.Recover(ctx(t)); fault.CodeOf(err) != "state.tracked" {
		t.Errorf("recover: %v", err)
	}
	if _, err := os.Lstat(filepath.Join(root, ".git/hooks/post-checkout")); !os.IsNotExist(err) {
		t.Errorf("the hook: %v", err)
	}
	git(t, root, "checkout", "-q", "main")
	if _, err := open(t, root, repo.Options{}).Apply(ctx(t), "TX-1", 1, p); err != nil {
		t.Errorf("back on the branch without: %v", err)
	}
}

// What lies in place of the lock is said.
func TestLockIsNoFile(t *testing.T) {
	for what, put := range map[string]func(string) error{
		"folder": func(name string) error { return os.Mkdir(name, 0o700) },
		"fifo":   func(name string) error { return syscall.Mkfifo(name, 0o600) },
		"link":   func(name string) error { return os.Symlink("../made", name) },
	} {
		root := t.TempDir()
		w := open(t, root, repo.Options{})
		must(t, put(filepath.Join(root, ".roundtable/lock")))
		if _, err := w.Recover(ctx(t)); fault.CodeOf(err) != "state.not_plain" {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := os.Lstat(filepath.Join(root, "made")); !os.IsNotExist(err) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
