package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/oklog/ulid/v2"
)

// jobFailpoints are around the log, in the order in which an apply meets them.
var jobFailpoints = []string{"intent", "queued", "leased", "plan", "marked", "report", "reported", "look", "close", "closed"}

// TestKilledAtFailpoints: a process dies at each point of an apply. The next
// one settles the tree before it does anything else, and brings the
// transaction to its one end.
func TestKilledAtFailpoints(t *testing.T) {
	t.Run("around", func(t *testing.T) {
		for _, name := range jobFailpoints {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				if !dieAt(t, "apply:"+name) {
					t.Error("an apply does not come there")
				}
			})
		}
	})
	t.Run("steps", func(t *testing.T) {
		stride, n := 41, 5
		if long() {
			stride, n = 1, 1
		}
		for killed := 3; killed == 3; {
			killed = dieAtSteps(t, 3, &n, stride)
		}
		if n < 50 {
			t.Errorf("an apply of every kind has fewer than %d steps", n)
		}
	})
}

// dieAtSteps kills count applies, each some steps later than the one before,
// and returns how many came so far.
func dieAtSteps(t *testing.T, count int, n *int, stride int) int {
	var killed atomic.Int64
	t.Run("from "+strconv.Itoa(*n), func(t *testing.T) {
		for range count {
			point := fmt.Sprint("apply:step:", *n)
			*n += stride
			t.Run(point, func(t *testing.T) {
				t.Parallel()
				if dieAt(t, point) {
					killed.Add(1)
				}
			})
		}
	})
	return int(killed.Load())
}

// TestKilledWhileTakingBack: dying in the recovery is no different.
func TestKilledWhileTakingBack(t *testing.T) {
	a := newApply(t, "apply:sync")
	if !a.die(t) {
		t.Fatal("not killed")
	}
	a.taken = true
	kills, stride := 0, 9
	if long() {
		stride = 1
	}
	for n := 1; ; n += stride {
		s := start(t, a.data, failpointVar+fmt.Sprint("=recover:step:", n))
		if s.at != "" {
			s.stop(t)
			break
		}
		s.dead(t)
		kills++
	}
	if kills < 3 {
		t.Errorf("only %d kills", kills)
	}
	a.ends(t)
}

// dieAt says whether the apply came to the failpoint.
func dieAt(t *testing.T, point string) bool {
	a := newApply(t, point)
	if !a.die(t) {
		return false
	}
	mixed := a.tree(t) == "mixed"
	if mixed || point == "apply:marked" || long() && point != "apply:closed" {
		start(t, a.data, failpointVar+"=apply:leased").dead(t) // so that nothing but settling happens
	}
	a.taken = a.taken || mixed
	if is := a.tree(t); is == "mixed" {
		t.Errorf("settled, and half applied:\n%s", lies(t, a.root))
	}
	a.ends(t)
	return true
}

// TestKilledWithoutSettling is the control: the same kills leave a tree that
// is half applied where nothing settles it.
func TestKilledWithoutSettling(t *testing.T) {
	a := newApply(t, "apply:replace:2")
	if !a.die(t) {
		t.Fatal("not killed")
	}
	s := serving(t, a.data, failpointVar+"=recover:off")
	if _, err := a.send(t, s.at, "ada", "POST", a.applyPath(), a.key, args{}); err != nil {
		t.Error(err)
	}
	s.stop(t)
	if is := a.tree(t); is != "mixed" {
		t.Errorf("the tree is %s: the check would not see what it is for", is)
	}
}

// An apply is a site where nothing is missing but the apply.
type apply struct {
	*site
	before, after string
	proposal, key string
	first         *server // that dies
	taken         bool    // back, by a recovery
}

// newApply has it served by a process with a failpoint.
func newApply(t *testing.T, point string) *apply {
	t.Helper()
	return newApplyBy(t, "worktree", point)
}

// newApplyBy is newApply by an apply mode.
func newApplyBy(t *testing.T, mode, point string) *apply {
	t.Helper()
	a := &apply{key: ulid.Make().String()}
	patch, before, after := everyKindPatch(t)
	a.site = found(t, func(root string) { everyKind(t, root, false) })
	writeFile(t, filepath.Join(a.data, "config.yaml"), "apply_mode: "+mode+"\n")
	untracked := "untracked.txt -rw------- " + digest("not in git\n") + "\n"
	a.before, a.after = before+untracked, after+untracked
	a.first = serving(t, a.data, failpointVar+"="+point)
	a.people(t, a.first.at, "coder")
	a.proposal = a.appliable(t, a.first.at, patch)
	if is := a.tree(t); is != "before" {
		t.Fatalf("the tree is %s:\n%s\nand should be\n%s", is, lies(t, a.root), a.before)
	}
	return a
}

func (a *apply) applyPath() string { return a.here("/proposals/" + a.proposal + "/apply") }

// tree is "before", "after" or "mixed".
func (a *apply) tree(t *testing.T) string {
	t.Helper()
	switch lies(t, a.root) {
	case a.before:
		return "before"
	case a.after:
		return "after"
	}
	return "mixed"
}

// die applies, and says whether the process died of it. The answer may have
// been sent before.
func (a *apply) die(t *testing.T) bool {
	t.Helper()
	_, err := a.do(t, a.first.at, "ada", "POST", a.applyPath(), a.key, args{})
	if err != nil {
		a.first.dead(t)
		return true
	}
	return a.first.dies(t)
}

// dies asks the process to end, and says whether it died instead.
func (s *server) dies(t *testing.T) bool {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Fatal(err)
	}
	s.ended(t)
	return s.cmd.ProcessState.ExitCode() != 0
}

// ends checks that the transaction comes to its one end, which answers the
// call that began it, and that nothing else is amiss.
func (a *apply) ends(t *testing.T) {
	t.Helper()
	s := serving(t, a.data)
	out, err := a.do(t, s.at, "ada", "POST", a.applyPath(), a.key, args{})
	if err != nil || text(out, "transaction", "state") != "applied" {
		t.Fatalf("the repeated apply: %v, %v: %s", out, err, s.said())
	}
	a.remembered(t, s.at)
	a.idle(t)
	s.stop(t)
	if is := a.tree(t); is != "after" {
		t.Errorf("applied, and the tree is %s:\n%s", is, lies(t, a.root))
	}
	a.sound(t)
	back := 0
	for _, p := range a.rows(t, "views.db", "SELECT status, recovery_state, attempt FROM phases WHERE phase = 'recover'") {
		if p["recovery_state"] == "rolled_back" {
			back++
		}
	}
	if a.taken && back != 1 || back > 1 {
		t.Errorf("%d recoveries are said to have taken something back", back)
	}
}
