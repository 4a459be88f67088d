package repo_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"roundtable/internal/blob"
	"roundtable/internal/calls"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// A job is what a process of its own does before it is killed.
type job struct {
	Root, Blobs string
	Apply       []patch.Change // apply, then finish; else recover, then finish what is committed
	KillAt      int            // the step, from 1, before which the process kills itself; 0 is never
	KillCall    int            // instead: the system call
	StopAt      int            // the step before which it stops itself, and waits to be killed
	Lax         bool           // without syncing staged files
	KillMove    string         // instead: before the file of this path is moved
	Aside       bool           // as on a file system that cannot exchange
	Commit      bool           // commit the changes
	Blind       bool           // recover without a look at the branch
	KillStep    string         // instead: before the step of this name, or phase and name
	StopStep    string         // instead of StopAt, likewise
	Git         string         // the program that is taken for git
}

// jobEnv names the file with the job.
const jobEnv = "ROUNDTABLE_REPO_TEST_JOB"

func TestMain(m *testing.M) {
	if j := os.Getenv(jobEnv); j != "" {
		os.Exit(child(j))
	}
	code := m.Run()
	for _, dir := range leftToRemove {
		if err := os.RemoveAll(dir); err != nil {
			fmt.Println(err)
			code = 1
		}
	}
	os.Exit(code)
}

func child(file string) int {
	var j job
	b, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(b, &j)
	}
	if err == nil {
		err = j.do()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

func (j job) do() error {
	ctx := context.Background()
	store, err := blob.Open(j.Blobs, blob.Options{})
	if err != nil {
		return err
	}
	steps := 0
	w, err := repo.Open(ctx, j.Root, repo.Options{Blobs: store, Git: j.Git, Path: os.Getenv("PATH"), Commit: j.Commit, Step: func(s repo.Step) {
		if steps++; steps == j.KillAt || s.Phase == repo.Moving && s.Path != "" && s.Path == j.KillMove || j.KillStep != "" && named(s, j.KillStep) {
			err := syscall.Kill(os.Getpid(), syscall.SIGKILL)
			panic(fmt.Sprint("still alive: ", err))
		}
		if steps == j.StopAt || j.StopStep != "" && named(s, j.StopStep) {
			if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
				panic(err)
			}
			select {}
		}
	}})
	if err != nil {
		return err
	}
	if j.Lax {
		w.Lax()
	}
	if j.Aside {
		w.ForgetExchange()
	}
	if j.Blind {
		w.Blind()
	}
	made := 0
	calls.Inject(func(calls.Call) error {
		if made++; made == j.KillCall {
			err := syscall.Kill(os.Getpid(), syscall.SIGKILL)
			panic(fmt.Sprint("still alive: ", err))
		}
		return nil
	})
	if j.Apply != nil {
		plan := repo.Plan{Changes: j.Apply}
		if j.Commit {
			plan.Commit = wish()
		}
		_, err = w.Apply(ctx, "TX-K", 1, plan)
		return errors.Join(err, w.Finish(ctx, "TX-K", 1))
	}
	all, err := w.Recover(ctx)
	for _, r := range all {
		fmt.Println(r.Marker)
		if len(r.Stuck) > 0 {
			err = errors.Join(err, fmt.Errorf("stuck: %v", r.Stuck))
		} else if r.Marker == repo.Committed {
			err = errors.Join(err, w.Finish(ctx, r.Tx, r.Attempt))
		}
	}
	return err
}

func named(s repo.Step, name string) bool {
	return s.Name == name || string(s.Phase)+"/"+s.Name == name
}

// run runs the job in a process and says whether that was killed.
func (j job) run(t *testing.T) (killed bool, out string) {
	t.Helper()
	cmd := j.command(t)
	text, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
			return true, string(text)
		}
	}
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return false, string(text)
}

func (j job) command(t *testing.T) *exec.Cmd {
	t.Helper()
	b, err := json.Marshal(j)
	must(t, err)
	file := filepath.Join(memory(t), "job")
	must(t, os.WriteFile(file, b, 0o600))
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), jobEnv+"="+file, "GORACE=atexit_sleep_ms=0") // else each takes a second to end
	return cmd
}

// A killing is one workspace that processes are killed on.
type killing struct {
	aside         bool
	root, blobs   string
	before, after string
}

func newKilling(t *testing.T, aside bool) killing {
	t.Helper()
	k := killing{root: memory(t), blobs: memory(t), aside: aside}
	for p, s := range everyKind.files {
		write(t, k.root, p, s)
	}
	must(t, os.Chmod(k.root, 0o755))
	must(t, os.Chmod(filepath.Join(k.root, "empties/deep"), 0o750)) // a folder that goes and comes back with its bits
	k.before = listing(t, k.root, false)
	if allAfter == "" {
		allAfter = tree(t, after(everyKind.files, everyKind.changes))
	}
	k.after = allAfter
	return k
}

// allAfter is the listing after the changes of every kind, once it is known.
var allAfter string

func (k killing) apply(killAt int) job {
	return job{Root: k.root, Blobs: k.blobs, Apply: everyKind.changes, KillAt: killAt, Aside: k.aside}
}

func (k killing) recovery(killAt int) job {
	return job{Root: k.root, Blobs: k.blobs, KillAt: killAt, Aside: k.aside}
}

// die applies and is killed when some of the files are moved.
func (k killing) die(t *testing.T) {
	t.Helper()
	j := k.apply(0)
	j.KillMove = "text.txt"
	if killed, _ := j.run(t); !killed || k.state(t) != "mixed" {
		t.Fatal("not killed in the middle")
	}
}

// state is "before", "after" or "mixed".
func (k killing) state(t *testing.T) string {
	t.Helper()
	switch listing(t, k.root, false) {
	case k.before:
		return "before"
	case k.after:
		return "after"
	}
	return "mixed"
}

// settled fails the test unless the tree is whole and nothing is left behind.
func (k killing) settled(t *testing.T, what string) string {
	t.Helper()
	s := k.state(t)
	if s == "mixed" {
		t.Fatalf("%s: mixed:\n%s", what, listing(t, k.root, true))
	}
	for _, dir := range []string{"tx", "tmp"} {
		left, err := os.ReadDir(filepath.Join(k.root, ".roundtable", dir))
		if err != nil || len(left) > 0 {
			t.Fatalf("%s: left behind in %s: %v %v\n%s", what, dir, left, err, listing(t, k.root, true))
		}
	}
	return s
}

// every is how far apart the cases of a test are: 1 in the long run.
func every(n int) int {
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		return 1
	}
	return n
}

// A process is killed before each system call of an apply and of its finish.
func TestKilledApply(t *testing.T) {
	for _, aside := range []bool{false, true} {
		ended := map[string]int{}
		n := 1
		for ; ; n += every(13) {
			k := newKilling(t, aside)
			j := k.apply(0)
			j.KillCall = n
			if killed, _ := j.run(t); !killed {
				break
			}
			k.recovery(0).run(t)
			ended[k.settled(t, fmt.Sprint("killed before call ", n))]++
			if n%10 == 0 {
				k.recovery(0).run(t) // again: nothing to do
				k.settled(t, "recovered twice")
			}
		}
		t.Logf("%d calls: %v", n-1, ended)
		if ended["before"] == 0 || ended["after"] == 0 {
			t.Errorf("the kills did not reach both sides of the marker: %v", ended)
		}
	}
}

// Without recovery the same kills leave mixed trees: the test can fail.
func TestKilledApplyWithoutRecovery(t *testing.T) {
	mixed := 0
	for n := 40; mixed == 0; n += 10 {
		k := newKilling(t, false)
		killed, _ := k.apply(n).run(t)
		if k.state(t) == "mixed" {
			mixed++
		}
		if !killed {
			break
		}
	}
	if mixed == 0 {
		t.Error("no kill left a mixed tree")
	}
}

// A process is killed before each system call of a recovery, of what others
// leave that die at telling steps.
func TestKilledRecoveryAtCalls(t *testing.T) {
	kills := 0
	for i, at := range deaths {
		more := true
		for m := 1; more; m += every(29) {
			k := newKilling(t, (i+m)%2 == 1)
			k.dead(t, at)
			j := k.recovery(0)
			j.KillCall = m
			more, _ = j.run(t)
			k.recovery(0).run(t)
			k.settled(t, fmt.Sprintf("killed before call %d of the recovery from death %d", m, i))
			kills++
		}
	}
	t.Logf("%d kills in recovery", kills)
}

// A process is killed at each step, and the next at each step of its recovery.
func TestKilledRecovery(t *testing.T) {
	kills := 0
	for n := 10; ; n += every(17) {
		more := true
		for m := 1; more; m += every(9) {
			k := newKilling(t, n%4 == 3)
			if killed, _ := k.apply(n).run(t); !killed {
				t.Logf("%d kills in recovery", kills)
				if kills == 0 {
					t.Error("recovery was never killed")
				}
				return
			}
			more, _ = k.recovery(m).run(t)
			k.recovery(0).run(t)
			k.settled(t, fmt.Sprintf("killed before step %d, and before step %d of recovery", n, m))
			kills++
		}
	}
}

// Many processes die in turn on one workspace; the next apply settles each.
func TestApplySettlesWhatWasLeft(t *testing.T) {
	k := newKilling(t, false)
	k.die(t)
	if killed, out := k.apply(0).run(t); killed || strings.Contains(out, "stuck") {
		t.Fatal(out)
	}
	if s := k.settled(t, "applied after a kill"); s != "after" {
		t.Errorf("the tree is %s", s)
	}
}
