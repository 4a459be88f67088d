package repo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

func TestApplyRefuses(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 a\n")
	write(t, root, "real/f", "100644 f\n")
	write(t, root, "full/g", "100644 g\n")
	write(t, root, "full/ignored.o", "100644 o\n")
	write(t, root, "ld", "120000 real")
	must(t, unix.Mkfifo(filepath.Join(root, "fifo"), 0o644))
	must(t, os.MkdirAll(filepath.Join(root, "nested/.git"), 0o755))
	was := listing(t, root, false)
	w := open(t, root, repo.Options{})
	noContent := change("a", "100644 a\n", "100644 b\n")
	noContent.Content = nil
	badMode := change("n", "", "100644 n")
	badMode.After.Mode = "100666"
	n := "100644 n\n"
	for _, c := range []struct {
		code    string
		changes []patch.Change
	}{
		{"apply.noop", nil},
		{"apply.noop", []patch.Change{change("a", "100644 a\n", "100644 a\n")}},
		{"parse.duplicate_path", []patch.Change{change("n", "", n), change("n", "", n)}},
		{"path.dir_conflict", []patch.Change{change("n", "", n), change("n/m", "", n)}},
		{"path.dir_conflict", []patch.Change{change("a", "100644 a\n", "100644 b\n"), change("a/m", "", n)}},
		{"path.dir_conflict", []patch.Change{change("nested/x", "", n)}},
		{"path.not_canonical", []patch.Change{change("../n", "", n)}},
		{"path.not_canonical", []patch.Change{change("/n", "", n)}},
		{"path.not_canonical", []patch.Change{change("x/../n", "", n)}},
		{"path.not_canonical", []patch.Change{change("n/", "", n)}},
		{"path.not_canonical", []patch.Change{change("", "", n)}},
		{"path.not_canonical", []patch.Change{change("n\x00m", "", n)}},
		{"path.not_canonical", []patch.Change{change(strings.Repeat("a/", 2100)+"n", "", n)}},
		{"path.reserved", []patch.Change{change(".git/hooks/x", "", n)}},
		{"path.reserved", []patch.Change{change("x/.GIT/y", "", n)}},
		{"path.reserved", []patch.Change{change("git~1/y", "", n)}},
		{"path.reserved", []patch.Change{change(".RoundTable/y", "", n)}},
		{"path.special_file", []patch.Change{{Path: "fifo", Before: patch.State{Kind: patch.Special}, After: none}}},
		{"parse.bad_mode", []patch.Change{badMode}},
		{"internal", []patch.Change{noContent}},
		{"state.stale", []patch.Change{change("a", "100644 b\n", "100644 c\n")}},
		{"state.stale", []patch.Change{change("a", "100755 a\n", "100644 c\n")}},
		{"state.stale", []patch.Change{change("a", "", n)}},
		{"state.stale", []patch.Change{change("gone", n, "")}},
		{"state.stale", []patch.Change{change("fifo", n, "100644 m\n")}},
		{"state.stale", []patch.Change{change("ld/f", "100644 f\n", n)}},
		{"state.stale", []patch.Change{change("ld/n", "", n)}},
		{"state.stale", []patch.Change{change("a/n", "", n)}},
		{"state.stale", []patch.Change{change("full", "", n), change("full/g", "100644 g\n", "")}},
	} {
		_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: c.changes})
		if err == nil || fault.CodeOf(err) != c.code {
			t.Errorf("%.60v: %v, want %s", c.changes, err, c.code)
		}
		var e *fault.Error
		if errors.As(err, &e) && e.Code == "state.stale" && len(e.Context["paths"].([]string)) != 1 {
			t.Errorf("%v names %v", err, e.Context)
		}
	}
	for _, id := range []string{"", "../x", "a.b", "a/b", strings.Repeat("x", 65)} {
		if _, err := w.Apply(ctx(t), id, 1, repo.Plan{Changes: everyKind.changes}); fault.CodeOf(err) != "bad_transaction" {
			t.Errorf("%q: %v", id, err)
		}
		if _, err := w.Outcome(id, 1); fault.CodeOf(err) != "bad_transaction" {
			t.Errorf("%q: %v", id, err)
		}
	}
	if now := listing(t, root, false); now != was {
		t.Errorf("the tree is\n%s", now)
	}
	if left, err := os.ReadDir(filepath.Join(root, ".roundtable/tx")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A committed attempt that is applied again gives its receipt again; recovery
// leaves it for its owner to report.
func TestCommittedIsLeftToItsOwner(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 a\n")
	must(t, os.Link(filepath.Join(root, "a"), filepath.Join(root, "other name")))
	w := open(t, root, repo.Options{})
	plan := repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "100644 b\n")}}
	if err := w.Finish(ctx(t), "TX-1", 1); err != nil {
		t.Errorf("finishing what is not there: %v", err)
	}
	first, err := w.Apply(ctx(t), "TX-1", 1, plan)
	must(t, err)
	if !slices.Equal(first.Notes, []repo.Note{{Path: "a", Note: "hardlink_broken"}}) {
		t.Errorf("notes %v", first.Notes)
	}
	again, err := open(t, root, repo.Options{}).Apply(ctx(t), "TX-1", 1, plan)
	must(t, err)
	if again.PlanDigest != first.PlanDigest || again.AfterDigest != first.AfterDigest {
		t.Errorf("%+v and %+v", first, again)
	}
	for range 2 {
		all, err := w.Recover(ctx(t))
		if err != nil || len(all) != 1 || all[0].Marker != repo.Committed || all[0].Tx != "TX-1" || all[0].Attempt != 1 {
			t.Errorf("recovered %+v %v", all, err)
		}
	}
	// Another transaction on the same path does not wait for that report.
	_, err = w.Apply(ctx(t), "TX-2", 1, repo.Plan{Changes: []patch.Change{change("a", "100644 b\n", "100644 c\n")}})
	must(t, err)
	must(t, w.Finish(ctx(t), "TX-1", 1))
	must(t, w.Finish(ctx(t), "TX-2", 1))
	if b, err := os.ReadFile(filepath.Join(root, "a")); err != nil || string(b) != "c\n" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := w.Resolve(ctx(t), "TX-1", 1); fault.CodeOf(err) != "transaction_not_found" {
		t.Errorf("resolved: %v", err)
	}
}

// Of many who want to change one file at once, one does; the others learn why
// not, and nobody's change is lost.
func TestConcurrentApplies(t *testing.T) {
	root := memory(t)
	write(t, root, "a", "100644 0\n")
	w := open(t, root, repo.Options{Blobs: blobs(t, memory(t))})
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 16 {
		wg.Go(func() {
			tx := fmt.Sprint("TX-", i)
			_, err := w.Apply(ctx(t), tx, 1, repo.Plan{Changes: []patch.Change{
				change("a", "100644 0\n", fmt.Sprintf("100644 %d\n", i+1)), change(fmt.Sprint("own/", i), "", "100644 x"),
			}})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
				err = w.Finish(ctx(t), tx, 1)
			}
			if err != nil && fault.CodeOf(err) != "state.stale" {
				t.Error(err)
			}
		})
		wg.Go(func() {
			b, err := w.Candidate(ctx(t), nil)
			if err != nil || b.ID == "" {
				t.Error(b, err)
			}
		})
	}
	wg.Wait()
	if won != 1 {
		t.Errorf("%d won", won)
	}
	if own, err := os.ReadDir(filepath.Join(root, "own")); err != nil || len(own) != 1 {
		t.Errorf("made %v %v", own, err)
	}
}

func TestProbe(t *testing.T) {
	w := open(t, t.TempDir(), repo.Options{})
	r, err := w.Probe(ctx(t))
	must(t, err)
	if !r.AtomicDetect || r.Detail != "" {
		t.Errorf("%+v", r)
	}
	w.ForgetExchange()
	if r, err := w.Probe(ctx(t)); err != nil || r.AtomicDetect {
		t.Errorf("%+v %v", r, err)
	}
}

// What a killed process left of its private indexes goes at the next start,
// unless another process is at work.
func TestSweep(t *testing.T) {
	root := t.TempDir()
	first, err := repo.Open(ctx(t), root, repo.Options{})
	must(t, err)
	stray := filepath.Join(root, ".roundtable/tmp/index-stray")
	write(t, root, ".roundtable/tmp/index-stray/objects/aa/bb", "100644 x")
	second, err := repo.Open(ctx(t), root, repo.Options{})
	must(t, err)
	if _, err := os.Stat(stray); err != nil {
		t.Error("swept under a live workspace")
	}
	must(t, errors.Join(first.Close(), second.Close()))
	open(t, root, repo.Options{})
	if _, err := os.Stat(stray); err == nil {
		t.Error("not swept")
	}
}
