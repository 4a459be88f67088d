package repo_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/repo"
)

// whole says what is wrong with the tree: it must be as was answered, without
// recovery where the answer says so, and after it in any case; and nothing may
// be left behind.
func (k killing) whole(t *testing.T, answer error) error {
	t.Helper()
	now := k.state(t)
	code := fault.CodeOf(answer)
	open := code == "state.unknown" || code == "state.needs_attention"
	switch {
	case answer == nil && now != "after":
		return fmt.Errorf("the tree is %s", now)
	case answer != nil && !open && now != "before":
		return fmt.Errorf("the tree is %s, not before:\n%s", now, listing(t, k.root, true))
	}
	if err := k.recovered(t); err != nil {
		return err
	}
	now = k.state(t)
	switch {
	case answer == nil && now != "after", answer != nil && code != "state.unknown" && now != "before", now == "mixed":
		return fmt.Errorf("after recovery the tree is %s:\n%s", now, listing(t, k.root, true))
	}
	return nil
}

// recovered settles what is left as the next process would, and says what that
// leaves behind.
func (k killing) recovered(t *testing.T) error {
	t.Helper()
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs)})
	all, err := w.Recover(ctx(t))
	for _, r := range all {
		switch {
		case err != nil:
		case r.Marker == repo.Committed:
			err = w.Finish(ctx(t), r.Tx, r.Attempt)
		case len(r.Stuck) > 0:
			err = fmt.Errorf("stuck: %v", r.Stuck)
		}
	}
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	left, err := os.ReadDir(filepath.Join(k.root, ".roundtable/tx"))
	if err != nil || len(left) > 0 {
		return fmt.Errorf("left behind: %v %v", left, err)
	}
	return nil
}

// opened is a workspace on the tree, going on as on a file system that cannot
// exchange where the killing says so.
func (k killing) opened(t *testing.T, step func(repo.Step)) *repo.Workspace {
	t.Helper()
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Step: step})
	if k.aside {
		w.ForgetExchange()
	}
	return w
}

func everyApply(w *repo.Workspace, t *testing.T) error {
	_, err := w.Apply(ctx(t), "TX-F", 1, repo.Plan{Changes: everyKind.changes})
	return err
}

func TestFaultInApply(t *testing.T) {
	for _, aside := range []bool{false, true} {
		volley(t, 50, func(t *testing.T, s shot) (o outcome) {
			k := newKilling(t, aside)
			w := k.opened(t, nil)
			o.hit, o.made, o.err = s.fire(func() error { return everyApply(w, t) })
			o.bad = k.whole(t, o.err)
			return o
		})
	}
}

// The same shots, with the error swallowed on the way to the caller, or
// without recovery, are seen: the test can fail.
func TestFaultsAreSeen(t *testing.T) {
	swallowed, unrecovered := 0, 0
	for n := 5; n < 2000 && (swallowed == 0 || unrecovered == 0); n += 40 {
		t.Run("", func(t *testing.T) {
			k := newKilling(t, false)
			w := k.opened(t, nil)
			_, _, err := shot{unix.EIO, n, true}.fire(func() error { return everyApply(w, t) })
			if k.state(t) == "mixed" {
				unrecovered++
			}
			if err != nil && k.whole(t, nil) != nil {
				swallowed++
			}
		})
	}
	if swallowed == 0 || unrecovered == 0 {
		t.Errorf("%d swallowed errors and %d missing recoveries were seen", swallowed, unrecovered)
	}
}

// What a process leaves that dies at one of these steps.
var deaths = []func(s repo.Step) bool{
	func(s repo.Step) bool { return s.Phase == repo.Prepare && s.Name == "images" },
	func(s repo.Step) bool { return s.Phase == repo.Prepare && s.Name == "journal_sync" },
	func(s repo.Step) bool { return s.Phase == repo.Moving && s.Path == "text.txt" },
	func(s repo.Step) bool { return s.Phase == repo.Verify && s.Name == "verify" },
	func(s repo.Step) bool { return s.Phase == repo.Verify && s.Name == "name_sync" },
}

// dead leaves what a process leaves that dies at a step.
func (k killing) dead(t *testing.T, at func(repo.Step) bool) {
	t.Helper()
	w, err := repo.Open(ctx(t), k.root, repo.Options{Blobs: blobs(t, k.blobs), Step: func(s repo.Step) {
		if at(s) {
			panic("dies")
		}
	}})
	must(t, err)
	if k.aside {
		w.ForgetExchange()
	}
	defer func() {
		must(t, w.Close())
		if recover() == nil {
			t.Fatal("it did not die")
		}
	}()
	must(t, everyApply(w, t))
}

func TestFaultInRecovery(t *testing.T) {
	for i, at := range deaths {
		volley(t, 10, func(t *testing.T, s shot) (o outcome) {
			k := newKilling(t, i%2 == 1)
			k.dead(t, at)
			w := k.opened(t, nil)
			committed := false
			o.hit, o.made, o.err = s.fire(func() error {
				all, err := w.Recover(ctx(t))
				for _, r := range all {
					committed = committed || r.Marker == repo.Committed
					if len(r.Stuck) > 0 {
						err = errors.Join(err, fault.Errorf(fault.Conflict, "state.needs_attention", "stuck: %v", r.Stuck))
					}
				}
				return err
			})
			now := k.state(t)
			switch {
			case o.err == nil && committed && now != "after", o.err == nil && !committed && now != "before":
				o.bad = fmt.Errorf("committed is %v, and the tree is %s", committed, now)
				return o
			}
			if o.bad = k.recovered(t); o.bad == nil && k.state(t) == "mixed" {
				o.bad = errors.New("mixed after recovery")
			}
			return o
		})
	}
}

func TestFaultInFinish(t *testing.T) {
	for _, aside := range []bool{false, true} {
		volley(t, 20, func(t *testing.T, s shot) (o outcome) {
			k := newKilling(t, aside)
			w := k.opened(t, nil)
			must(t, everyApply(w, t))
			o.hit, o.made, o.err = s.fire(func() error { return w.Finish(ctx(t), "TX-F", 1) })
			left, err := os.ReadDir(filepath.Join(k.root, ".roundtable/tx"))
			must(t, err)
			if o.err == nil && len(left) > 0 {
				o.bad = fmt.Errorf("left behind: %v", left)
				return o
			}
			o.bad = k.whole(t, nil)
			return o
		})
	}
}

func TestFaultInResolve(t *testing.T) {
	volley(t, 50, func(t *testing.T, s shot) (o outcome) {
		k := newKilling(t, false)
		w := k.opened(t, func(s repo.Step) {
			if s.Phase == repo.Verify && s.Name == "verify" {
				write(t, k.root, "text.txt", "100644 "+theirs)
				write(t, k.root, "gone.txt", "100644 more of "+theirs)
			}
		})
		if err := everyApply(w, t); fault.CodeOf(err) != "state.needs_attention" {
			t.Fatal(err)
		}
		o.hit, o.made, o.err = s.fire(func() error { _, err := w.Resolve(ctx(t), "TX-F", 1); return err })
		_, err := w.Resolve(ctx(t), "TX-F", 1)
		if code := fault.CodeOf(err); err != nil && code != "transaction_not_found" && code != "state.no_attention" {
			o.bad = fmt.Errorf("resolved again: %w", err)
			return o
		}
		if o.bad = k.recovered(t); o.bad == nil {
			o.bad = k.holdsTheirs(t)
		}
		return o
	})
}

// holdsTheirs says what is wrong where somebody else has written text.txt and
// gone.txt: both stay in place, what they had held before is in the blob
// store, and every other path is before.
func (k killing) holdsTheirs(t *testing.T) error {
	t.Helper()
	want := map[string]spec{}
	for p, s := range everyKind.files {
		want[p] = s
	}
	want["text.txt"], want["gone.txt"] = "100644 "+theirs, "100644 more of "+theirs
	other := killing{root: memory(t)}
	for p, s := range want {
		write(t, other.root, p, s)
	}
	must(t, os.Chmod(other.root, 0o755))
	must(t, os.Chmod(filepath.Join(other.root, "empties/deep"), 0o750))
	if got := listing(t, k.root, false); got != listing(t, other.root, false) {
		return fmt.Errorf("the tree is\n%s", got)
	}
	store := blobs(t, k.blobs)
	for _, p := range []string{"text.txt", "gone.txt"} {
		s, _ := stateOf(everyKind.files[p])
		if has, err := store.Has(s.SHA256); err != nil || !has {
			return fmt.Errorf("what %s held is lost: %w", p, err)
		}
	}
	return nil
}

// Somebody else writes to two paths while the tree is moved, and then a call
// fails: not a byte of theirs is lost, wherever that is.
func TestFaultBesideThirdParty(t *testing.T) {
	volley(t, 40, func(t *testing.T, s shot) (o outcome) {
		k := newKilling(t, false)
		made := 0
		w := k.opened(t, func(st repo.Step) {
			if st.Phase == repo.Verify && st.Name == "verify" {
				write(t, k.root, "text.txt", "100644 "+theirs)
				write(t, k.root, "gone.txt", "100644 more of "+theirs)
				made++
			}
		})
		o.hit, o.made, o.err = s.fire(func() error { return everyApply(w, t) })
		if made == 0 { // it had given up before
			o.bad = k.whole(t, o.err)
			return o
		}
		if o.err == nil {
			o.bad = errors.New("answered as done")
			return o
		}
		if fault.CodeOf(o.err) == "state.needs_attention" && (s.n == 0 || s.errno == unix.EINTR) {
			o.err = nil // so it is to be
		}
		w2 := k.opened(t, nil)
		_, err := w2.Recover(ctx(t))
		if err == nil {
			_, err = w2.Resolve(ctx(t), "TX-F", 1)
		}
		if err != nil && fault.CodeOf(err) != "transaction_not_found" {
			o.bad = err
			return o
		}
		if o.bad = k.recovered(t); o.bad == nil {
			o.bad = k.holdsTheirs(t)
		}
		return o
	})
}
