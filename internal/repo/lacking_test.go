package repo_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// without has a system call answer as on a kernel or a file system that does
// not know it.
func without(t *testing.T, what string, answer error) {
	t.Helper()
	restore := calls.Inject(func(c calls.Call) error {
		if c.What == what {
			return answer
		}
		return nil
	})
	t.Cleanup(restore)
}

// Where renameat2 is not there, or takes its flags and ignores them, the probe
// says so, by what the files are, and an apply does without.
func TestWithoutExchange(t *testing.T) {
	for says, answer := range map[string]error{
		"invalid argument":         unix.EINVAL,
		"function not implemented": unix.ENOSYS,
		"does not exchange":        calls.ErrFlagsIgnored,
	} {
		t.Run(says, func(t *testing.T) {
			k := newKilling(t, false)
			without(t, "renameat2", answer)
			w := k.opened(t, nil)
			for range 2 {
				r, err := w.Probe(ctx(t))
				if err != nil || r.AtomicDetect || !strings.Contains(r.Detail, says) {
					t.Errorf("the probe found %+v, %v", r, err)
				}
			}
			r, err := w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: everyKind.changes})
			must(t, err)
			if !slices.Contains(r.Notes, repo.Note{Note: repo.NoAtomicDetect}) {
				t.Errorf("notes %v", r.Notes)
			}
			must(t, w.Finish(ctx(t), "TX-K", 1))
			if s := k.settled(t, "applied"); s != "after" {
				t.Errorf("the tree is %s", s)
			}
		})
	}
}

// A full or broken disk says nothing about the flags: the probe fails, and
// finds out the next time.
func TestProbeFails(t *testing.T) {
	w := open(t, t.TempDir(), repo.Options{})
	restore := calls.Inject(func(c calls.Call) error {
		if c.What == "renameat2" {
			return unix.ENOSPC
		}
		return nil
	})
	_, err := w.Probe(ctx(t))
	restore()
	if fault.CodeOf(err) != "state.no_space" {
		t.Errorf("probed: %v", err)
	}
	if r, err := w.Probe(ctx(t)); err != nil || !r.AtomicDetect {
		t.Errorf("probed again: %+v %v", r, err)
	}
}

// Without openat2 paths are walked: the same is done, and the same refused.
func TestWithoutOpenat2(t *testing.T) {
	for _, answer := range []error{unix.ENOSYS, unix.EPERM} { // the latter from sandboxes
		k := newKilling(t, false)
		outside := memory(t)
		write(t, outside, "f", "100644 outside\n")
		must(t, os.Symlink(outside, filepath.Join(k.root, "out")))
		must(t, os.Symlink("kept", filepath.Join(k.root, "in")))
		k.before, k.after = listing(t, k.root, false), ""
		without(t, "openat2", answer)
		w := k.opened(t, nil)
		if r, err := w.Probe(ctx(t)); err != nil || r.Openat2 {
			t.Errorf("the probe found %+v, %v", r, err)
		}
		for _, c := range []patch.Change{
			change("out/f", "100644 outside\n", "100644 x\n"),
			change("out/new", "", "100644 x\n"),
			change("in/left.txt", "100644 left\n", "100644 x\n"),
			change("in/new", "", "100644 x\n"),
		} {
			_, err := w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: []patch.Change{c}})
			if fault.CodeOf(err) != "state.stale" {
				t.Errorf("%s: %v", c.Path, err)
			}
		}
		if s := k.state(t); s != "before" {
			t.Errorf("the tree is %s", s)
		}
		_, err := w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: everyKind.changes})
		must(t, err)
		must(t, w.Finish(ctx(t), "TX-K", 1))
		must(t, os.Remove(filepath.Join(k.root, "out")))
		must(t, os.Remove(filepath.Join(k.root, "in")))
		k.after = allAfter
		if s := k.settled(t, "applied"); s != "after" {
			t.Errorf("the tree is %s", s)
		}
	}
}
