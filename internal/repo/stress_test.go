package repo_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// upset applies while something goes wrong before step n, recovers in the same
// process, and says whether the step was reached. The tree must be whole, and
// as the answer says.
func upset(t *testing.T, k killing, n int, wrong func(), right func()) (reached bool) {
	t.Helper()
	t.Run("", func(t *testing.T) { reached = upsetAt(t, k, n, wrong, right) })
	return reached
}

func upsetAt(t *testing.T, k killing, n int, wrong func(), right func()) bool {
	t.Helper()
	steps, armed := 0, true
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Step: func(repo.Step) {
		if steps++; steps == n && armed {
			if wrong == nil {
				cancel()
				return
			}
			wrong()
		}
	}})
	err := func() (err error) {
		defer func() {
			if r := recover(); r != nil {
				err = errPanic
			}
		}()
		_, err = w.Apply(ctx, "TX-U", 1, repo.Plan{Changes: everyKind.changes})
		return err
	}()
	reached := steps >= n
	armed = false
	if right != nil {
		right()
	}
	if !errors.Is(err, errPanic) && fault.CodeOf(err) != "state.unknown" {
		want := "before"
		if err == nil {
			want = "after"
		}
		if got := k.state(t); got != want {
			t.Errorf("upset before step %d: %v, and the tree is %s", n, err, got)
		}
	}
	all, err := w.Recover(t.Context())
	must(t, err)
	for _, r := range all {
		if r.Marker == repo.Committed {
			must(t, w.Finish(t.Context(), r.Tx, r.Attempt))
		}
	}
	k.settled(t, fmt.Sprint("upset before step ", n))
	return reached
}

var errPanic = errors.New("panicked")

func TestPanicAtSteps(t *testing.T) {
	n := 1
	for upset(t, newKilling(t, false), n, func() { panic("in a step") }, nil) {
		n += stride()
	}
	if n < 50 {
		t.Errorf("only %d steps", n)
	}
}

func TestCancelAtSteps(t *testing.T) {
	n := 1
	for upset(t, newKilling(t, n%3 == 0), n, nil, nil) {
		n += stride()
	}
}

// At one step after the other the disk fills up: no blocks, no inodes.
func TestFullDiskAtSteps(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	for n := 1; ; n += stride() {
		k := newKilling(t, n%3 == 0)
		must(t, os.RemoveAll(k.root))
		must(t, os.Mkdir(k.root, 0o755))
		if err := unix.Mount("tmpfs", k.root, "tmpfs", 0, "size=512k,nr_inodes=200,mode=755"); err != nil {
			t.Skipf("mounting a small file system: %v", err)
		}
		t.Cleanup(func() { must(t, unix.Unmount(k.root, unix.MNT_DETACH)) })
		for p, s := range everyKind.files {
			write(t, k.root, p, s)
		}
		must(t, os.Chmod(filepath.Join(k.root, "empties/deep"), 0o750))
		fill := func() {
			must(t, os.Mkdir(filepath.Join(k.root, "filler"), 0o755))
			for i := 0; ; i++ {
				f, err := os.Create(filepath.Join(k.root, "filler", fmt.Sprint(i)))
				if err != nil {
					break
				}
				for err == nil && i == 0 {
					_, err = f.Write(make([]byte, 4096))
				}
				must(t, f.Close())
			}
		}
		free := func() { must(t, os.RemoveAll(filepath.Join(k.root, "filler"))) }
		if !upset(t, k, n, fill, free) {
			break
		}
	}
}

func TestDamagedJournal(t *testing.T) {
	k := newKilling(t, false)
	k.die(t)
	journal := filepath.Join(k.root, ".roundtable/tx/TX-K.1/journal")
	b, err := os.ReadFile(journal)
	must(t, err)
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs)})
	was := listing(t, k.root, true)
	for _, bad := range [][]byte{nil, b[:len(b)/2], append([]byte("x"), b...), append(b[:len(b):len(b)], '\n'), []byte("{}\n")} {
		must(t, os.WriteFile(journal, bad, 0o600))
		for range 2 {
			all, err := w.Recover(ctx(t))
			if err != nil || len(all) != 1 || all[0].Marker != repo.Attention || len(all[0].Stuck) != 1 {
				t.Fatalf("%+v %v", all, err)
			}
		}
		must(t, os.WriteFile(journal, b, 0o600))
		if now := listing(t, k.root, true); now != was {
			t.Fatalf("something was touched:\n%s\nwas\n%s", now, was)
		}
	}
	must(t, os.WriteFile(journal, b[:10], 0o600))
	one := []patch.Change{change("unrelated", "", "100644 x")}
	if _, err := w.Apply(ctx(t), "TX-2", 1, repo.Plan{Changes: one}); fault.CodeOf(err) != "state.needs_attention" {
		t.Errorf("applied beside a damaged journal: %v", err)
	}
	r, err := w.State(ctx(t), "TX-K", 1, nil, nil)
	if err != nil || r.Marker != repo.Attention || r.CanRecover || !r.CanResolve {
		t.Errorf("report %+v %v", r, err)
	}
	kept, err := w.Resolve(ctx(t), "TX-K", 1)
	if err != nil || len(kept) == 0 {
		t.Errorf("kept %v %v", kept, err)
	}
	_, err = w.Apply(ctx(t), "TX-2", 1, repo.Plan{Changes: one})
	must(t, err)
}

func TestState(t *testing.T) {
	k := newKilling(t, false)
	k.die(t)
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs)})
	r, err := w.State(ctx(t), "TX-K", 1, nil, nil)
	must(t, err)
	if r.Repository != "mixed" || !r.CanRecover || r.CanFinish || r.CanResolve || len(r.Paths) != len(everyKind.changes) {
		t.Errorf("killed: %+v", r)
	}
	write(t, k.root, "gone.txt", "100644 put there by somebody else")
	if r, err = w.State(ctx(t), "TX-K", 1, nil, nil); err != nil || r.Repository != "diverged" {
		t.Errorf("edited: %+v %v", r, err)
	}
	all, err := w.Recover(ctx(t))
	must(t, err)
	if len(all) != 1 || all[0].Marker != repo.Attention || len(all[0].Stuck) != 1 || all[0].Stuck[0].Path != "gone.txt" {
		t.Errorf("recovered %+v", all)
	}
	r, err = w.State(ctx(t), "TX-K", 1, nil, nil)
	must(t, err)
	if r.Repository != "diverged" || !r.CanResolve || r.Marker != repo.Attention {
		t.Errorf("stuck: %+v", r)
	}
	for _, p := range r.Paths {
		if (p.Path == "gone.txt") != (p.Is == repo.AtOther) || (p.Path == "gone.txt") != (p.Stuck != "") {
			t.Errorf("stuck: %+v", p)
		}
	}
	// Somebody makes room: recovery then finishes by itself.
	must(t, os.Remove(filepath.Join(k.root, "gone.txt")))
	all, err = w.Recover(ctx(t))
	if err != nil || len(all) != 1 || all[0].Marker != repo.Aborted {
		t.Errorf("recovered %+v %v", all, err)
	}
	k.settled(t, "after room was made")
	before, after := map[string]patch.State{}, map[string]patch.State{}
	for _, c := range everyKind.changes {
		before[c.Path], after[c.Path] = c.Before, c.After
	}
	if r, err = w.State(ctx(t), "TX-K", 1, before, after); err != nil || r.Repository != "before" || r.Marker != repo.None {
		t.Errorf("by the log: %+v %v", r, err)
	}
}

// stride is how many steps a quick run passes over.
func stride() int {
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		return 1
	}
	return 2
}
