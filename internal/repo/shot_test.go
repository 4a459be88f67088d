package repo_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// A shot is a system call that fails.
type shot struct {
	errno  unix.Errno
	n      int  // which one, from 1
	onward bool // and every one after it, but for close
}

// fire does f while the shot is in force. It says which call was the first to
// fail and how many were made.
func (s shot) fire(f func() error) (hit calls.Call, made int, err error) {
	restore := calls.Inject(func(c calls.Call) error {
		made++
		switch {
		case made == s.n:
			hit = c
			return s.errno
		case made > s.n && s.n > 0 && s.onward && c.What != "close" && s.errno != unix.EINTR:
			return s.errno
		}
		return nil
	})
	defer restore()
	err = f()
	return hit, made, err
}

// answers are what each errno may be answered as; EINTR is as if it had not
// been.
var answers = map[unix.Errno][]string{
	unix.ENOSPC: {"state.no_space"},
	unix.EDQUOT: {"state.no_space"},
	unix.EIO:    {"state.io"},
	unix.EACCES: {"state.permission"},
	unix.EINTR:  nil,
}

// An outcome is what came of one shot.
type outcome struct {
	hit  calls.Call
	made int
	err  error // what was answered
	bad  error // what must not be
}

// volley has every call fail with every errno, and with two of them every call
// from there on, in the long run; else a spread of as many shots as are asked
// for.
func volley(t *testing.T, spread int, one func(t *testing.T, s shot) outcome) {
	t.Helper()
	open := descriptors(t)
	var o outcome
	t.Run("none", func(t *testing.T) { o = one(t, shot{}) })
	if o.err != nil || o.bad != nil {
		t.Fatalf("without a fault: %v; %v", o.err, o.bad)
	}
	var shots []shot
	for n := 1; n <= o.made; n++ {
		for _, e := range []unix.Errno{unix.ENOSPC, unix.EIO, unix.EACCES, unix.EDQUOT, unix.EINTR} {
			shots = append(shots, shot{e, n, false})
			if e == unix.ENOSPC || e == unix.EIO {
				shots = append(shots, shot{e, n, true})
			}
		}
	}
	step := 1
	if os.Getenv("ROUNDTABLE_LONG") == "" {
		step = max(1, len(shots)/spread)
		for step%7 == 0 { // else every shot would be of one kind
			step++
		}
	}
	failed, succeeded := 0, 0
	for i := 0; i < len(shots); i += step {
		s := shots[i]
		t.Run("", func(t *testing.T) {
			o := one(t, s)
			if o.err != nil {
				failed++
			} else {
				succeeded++
			}
			if o.bad == nil {
				o.bad = s.judge(o)
			}
			if o.bad != nil {
				t.Errorf("%v at call %d (onward %v), %s %q; answered %v (%s): %v", s.errno, s.n, s.onward, o.hit.What, o.hit.Name, o.err, fault.CodeOf(o.err), o.bad)
			}
		})
	}
	if now := descriptors(t); now > open {
		t.Errorf("%d descriptors were open, now %d", open, now)
	}
	t.Logf("%d calls; of %d shots %d failed the answer, %d did not", o.made, failed+succeeded, failed, succeeded)
}

// judge says what is wrong with an answer by itself.
func (s shot) judge(o outcome) error {
	code := fault.CodeOf(o.err)
	lasting := slices.Contains([]string{"fsync", "syncfs", "write", "rename", "renameat", "renameat2"}, o.hit.What)
	switch {
	case s.errno == unix.EINTR && o.err != nil:
		return errors.New("an interrupted call was not made again")
	case s.errno == unix.EINTR:
	case o.err == nil && lasting:
		return errors.New("answered as done")
	case o.err != nil && !slices.Contains(answers[s.errno], code) && code != "state.unknown" && code != "state.needs_attention":
		return fmt.Errorf("answered as %s", code)
	}
	return nil
}
