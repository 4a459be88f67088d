package runner_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"roundtable/internal/runner"
	"roundtable/internal/sandbox"
)

func TestMain(m *testing.M) {
	if status, ok := runner.Main(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

var machine = sync.OnceValues(func() (sandbox.Report, error) {
	return sandbox.Probe(context.Background(), os.TempDir())
})

// known is a machine of which is known what it can do.
func known(r sandbox.Report) func(context.Context) (sandbox.Report, error) {
	return func(context.Context) (sandbox.Report, error) { return r, nil }
}

// newRunner returns a runner that uses this machine's best.
func newRunner(t *testing.T, change func(*runner.Options)) *runner.Runner {
	t.Helper()
	report, err := machine()
	if err != nil {
		t.Fatal(err)
	}
	if report.Level == sandbox.None {
		t.Skipf("this machine cannot run anything: %+v", report)
	}
	o := runner.Options{Dir: t.TempDir(), Clock: time.Now, Report: known(report), Grace: 50 * time.Millisecond, DiskMargin: 1 << 20}
	if change != nil {
		change(&o)
	}
	r, err := runner.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(o.Dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v %v", left, err)
		}
	})
	return r
}

// sh runs a shell script.
func sh(t *testing.T, r *runner.Runner, script string, change func(*runner.Spec)) runner.Result {
	t.Helper()
	s := runner.Spec{Argv: []string{"sh", "-c", script}, Tree: t.TempDir(), Timeout: 30 * time.Second}
	if change != nil {
		change(&s)
	}
	return r.Run(t.Context(), s)
}

func TestStates(t *testing.T) {
	r := newRunner(t, nil)
	report, _ := machine()
	for _, c := range []struct {
		name, script string
		state        runner.State
		code         int
		signal       string
		summary      string
	}{
		{"passes", "echo a; echo b >&2", runner.Passed, 0, "", "a\nb"},
		{"fails", "echo no; exit 3", runner.Failed, 3, "", "no"},
		{"high exit status", "exit 137", runner.Failed, 137, "", runner.NoOutput},
		{"signal", "kill -KILL $$", runner.Failed, -1, "SIGKILL", runner.NoOutput},
		{"blank output", "echo; echo '  '", runner.Passed, 0, "", runner.NoOutput},
		{"more than six lines", "seq 9; echo; echo last; echo", runner.Passed, 0, "", "6\n7\n8\n9\n\nlast"},
		{"closes its output and goes on", "echo out; exec >&- 2>&-; for i in 1 2 3; do /bin/true; done; exit 4", runner.Failed, 4, "", "out"},
		{"daemon keeps the output open", "setsid sleep 1000 & echo done", runner.Passed, 0, "", "done"},
		{"colours and bad bytes", `printf '\033[1;31mred\033[0m \001\377x\r\n10%%\r100%%'`, runner.Passed, 0, "", "red \uFFFDx\n100%"},
		{"unreadable leftovers", "mkdir -p $HOME/a/b && touch $HOME/a/b/c && chmod 0 $HOME/a/b $HOME/a", runner.Passed, 0, "", runner.NoOutput},
	} {
		t.Run(c.name, func(t *testing.T) {
			res := sh(t, r, c.script, nil)
			if res.State != c.state || res.ExitCode != c.code || res.Signal != c.signal || res.Summary != c.summary {
				t.Errorf("%+v", res)
			}
			if (res.Reason == "") != (c.state == runner.Passed) || res.Code != "" || res.Output.Incomplete {
				t.Errorf("%+v", res)
			}
			if !res.Isolation.TreeEnded || res.Isolation.Level != report.Level || len(res.EnvDigest) != 64 || res.Duration <= 0 {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestErrors: what the service or the machine could not do is never failed.
func TestErrors(t *testing.T) {
	r := newRunner(t, nil)
	for name, c := range map[string]struct {
		r      *runner.Runner
		change func(*runner.Spec)
		code   string
	}{
		"no command":          {r, func(s *runner.Spec) { s.Argv = nil }, "command_empty"},
		"missing executable":  {r, func(s *runner.Spec) { s.Argv = []string{"no-such-program"} }, "executable_missing"},
		"missing in the tree": {r, func(s *runner.Spec) { s.Argv = []string{"./check"} }, "executable_missing"},
		"missing tree":        {r, func(s *runner.Spec) { s.Tree += "/none" }, "tree_missing"},
		"relative tree":       {r, func(s *runner.Spec) { s.Tree = "." }, "tree_missing"},
		"directory missing":   {r, func(s *runner.Spec) { s.WorkDir = "none" }, "working_dir_invalid"},
		"directory outside":   {r, func(s *runner.Spec) { s.WorkDir = ".." }, "working_dir_invalid"},
		"directory absolute":  {r, func(s *runner.Spec) { s.WorkDir = "/tmp" }, "working_dir_invalid"},
		"directory by a link": {r, func(s *runner.Spec) { os.Symlink("/tmp", s.Tree+"/link"); s.WorkDir = "link" }, "working_dir_invalid"},
		"directory is a file": {r, func(s *runner.Spec) { os.WriteFile(s.Tree+"/file", nil, 0o600); s.WorkDir = "file" }, "working_dir_invalid"},
		"no isolation":        {newRunner(t, func(o *runner.Options) { o.Report = known(sandbox.Report{}) }), nil, "isolation_unavailable"},
		"isolation unknown": {newRunner(t, func(o *runner.Options) {
			o.Report = func(context.Context) (sandbox.Report, error) { return sandbox.Report{}, errors.New("no probe") }
		}), nil, "isolation_unavailable"},
		"not enough isolation": {newRunner(t, func(o *runner.Options) { o.MinLevel, o.MaxLevel = sandbox.Namespace, sandbox.Process }), nil, "isolation_unavailable"},
		"disk full":            {newRunner(t, func(o *runner.Options) { o.DiskMargin = 1 << 60 }), nil, "disk_full"},
		"sandbox broken": {newRunner(t, func(o *runner.Options) {
			o.Report = known(sandbox.Report{Abilities: []sandbox.Ability{{Backend: "vm", Level: sandbox.Namespace, Works: true}}})
			o.MinLevel = sandbox.None
		}), nil, "sandbox_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			res := sh(t, c.r, "echo ran", c.change)
			if res.State != runner.Error || res.Code != c.code || res.Reason == "" || res.ExitCode != -1 {
				t.Errorf("%+v", res)
			}
			if res.Output.Total != 0 || res.Output.SHA256 == "" || res.Summary != runner.NoOutput || res.Ended.Before(res.Started) {
				t.Errorf("%+v", res)
			}
		})
	}
}

// TestDiskFills: a command that fails because the disk is full says nothing
// about the tree.
func TestDiskFills(t *testing.T) {
	tree := smallDisk(t)
	r := newRunner(t, nil)
	res := sh(t, r, "head -c 100000000 /dev/zero >big", func(s *runner.Spec) { s.Tree = tree })
	if res.State != runner.Error || res.Code != "disk_full" {
		t.Errorf("%+v", res)
	}
}

func TestWorkDirAndTreePath(t *testing.T) {
	r := newRunner(t, nil)
	res := sh(t, r, "", func(s *runner.Spec) {
		os.MkdirAll(filepath.Join(s.Tree, "a/b"), 0o755)
		os.WriteFile(filepath.Join(s.Tree, "check"), []byte("#!/bin/sh\necho checked in ${PWD##*/a/}"), 0o755)
		s.Argv, s.WorkDir = []string{"./check"}, "a/b"
	})
	if res.State != runner.Passed || res.Summary != "checked in b" {
		t.Errorf("%+v", res)
	}
}

func TestEnds(t *testing.T) {
	r := newRunner(t, nil)
	scripts := map[string]string{
		"obeys":         "echo ready; while :; do sleep 60; done",
		"ignores TERM":  "trap '' TERM; echo ready; while :; do sleep 60; done",
		"closed output": "echo ready; exec >&- 2>&-; while :; do sleep 60; done",
		"daemon":        "setsid sh -c \"trap '' TERM; echo ready; while :; do sleep 60; done\" & wait",
	}
	for name, script := range scripts {
		t.Run("cancelled/"+name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s := runner.Spec{Argv: []string{"sh", "-c", script}, Tree: t.TempDir(), Live: func([]byte) { cancel() }}
			res := r.Run(ctx, s)
			if res.State != runner.Cancelled || !res.Isolation.TreeEnded || res.Summary != "ready" {
				t.Errorf("%+v", res)
			}
		})
		t.Run("timed out/"+name, func(t *testing.T) {
			res := sh(t, r, script, func(s *runner.Spec) { s.Timeout = 200 * time.Millisecond })
			if res.State != runner.TimedOut || !res.Isolation.TreeEnded || res.Duration < 200*time.Millisecond {
				t.Errorf("%+v", res)
			}
		})
	}
	t.Run("last words", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s := runner.Spec{
			Argv: []string{"sh", "-c", "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 60 & wait; done"},
			Tree: t.TempDir(), Live: func([]byte) { cancel() },
		}
		slow := newRunner(t, func(o *runner.Options) { o.Grace = 20 * time.Second })
		if res := slow.Run(ctx, s); res.State != runner.Cancelled || res.Summary != "ready\nbye" || res.ExitCode != 0 {
			t.Errorf("%+v", res)
		}
	})
	t.Run("before its start", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if res := r.Run(ctx, runner.Spec{Argv: []string{"printf"}, Tree: t.TempDir()}); res.State != runner.Cancelled || res.Output.Total != 0 {
			t.Errorf("%+v", res)
		}
	})
}

// TestMuchOutput: memory does not grow with what a command prints.
func TestMuchOutput(t *testing.T) {
	const size, keep = 200_000_000, 1 << 20
	r := newRunner(t, nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	live := int64(0)
	res := sh(t, r, "head -c 200000000 /dev/zero", func(s *runner.Spec) {
		s.MaxOutput = keep
		s.Live = func(b []byte) { live += int64(len(b)) }
	})
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8*keep {
		t.Errorf("%d bytes allocated", got)
	}
	o := res.Output
	if res.State != runner.Passed || o.Total != size || live != size || len(o.Head)+len(o.Tail) != keep || o.Omitted != size-keep {
		t.Errorf("%s %d %d %d %d", res.State, o.Total, live, len(o.Head), len(o.Tail))
	}
	h := sha256.New()
	for range size / 1_000_000 {
		h.Write(make([]byte, 1_000_000))
	}
	if o.SHA256 != hex.EncodeToString(h.Sum(nil)) {
		t.Error("the digest is not of all the output")
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("ROUNDTABLE_TOKEN", "secret")
	r := newRunner(t, nil)
	res := sh(t, r, "env | cut -d= -f1 | sort; for d in $HOME $TMPDIR $XDG_CACHE_HOME; do touch $d/x || exit 1; done", func(s *runner.Spec) {
		s.Env = map[string]string{"EXTRA": "x y", "TZ": "Asia/Tokyo"}
	})
	var got []string
	for name := range strings.Lines(string(res.Output.Bytes())) {
		if name = strings.TrimSpace(name); name != "_" && name != "PWD" && name != "SHLVL" && name != "OLDPWD" {
			got = append(got, name)
		}
	}
	if res.State != runner.Passed || !slices.Equal(got, res.EnvNames) || !slices.Contains(got, "EXTRA") || slices.Contains(got, "ROUNDTABLE_TOKEN") {
		t.Errorf("%v %q, want %q", res.State, got, res.EnvNames)
	}
	again := sh(t, r, "exit 1", func(s *runner.Spec) { s.Env = map[string]string{"EXTRA": "x y", "TZ": "Asia/Tokyo"} })
	other := sh(t, r, "exit 1", nil)
	if res.EnvDigest != again.EnvDigest || res.EnvDigest == other.EnvDigest {
		t.Error("the digest is not of the environment:", res.EnvDigest, again.EnvDigest, other.EnvDigest)
	}
}

func TestAtOnce(t *testing.T) {
	r := newRunner(t, nil)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if res := sh(t, r, "echo $$ >file; cat file >/dev/null", nil); res.State != runner.Passed {
				t.Errorf("%+v", res)
			}
		})
	}
	all.Wait()
}

// TestReportOnce: what the machine can do is asked before the first run, again
// as long as there is no answer, and not once it is known.
func TestReportOnce(t *testing.T) {
	asked := 0
	r := newRunner(t, func(o *runner.Options) {
		report := o.Report
		o.Report = func(ctx context.Context) (sandbox.Report, error) {
			if asked++; asked == 1 {
				return sandbox.Report{}, errors.New("not yet")
			}
			return report(ctx)
		}
	})
	var states []runner.State
	for range 3 {
		states = append(states, sh(t, r, "true", nil).State)
	}
	if want := []runner.State{runner.Error, runner.Passed, runner.Passed}; !slices.Equal(states, want) || asked != 2 {
		t.Errorf("asked %d times, the runs were %v", asked, states)
	}
}
