package runner_test

import (
	"os"
	"testing"
	"time"

	"roundtable/internal/runner"
	"roundtable/internal/sandbox"
)

func TestMain(m *testing.M) {
	if status, ok := sandbox.Main(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// machine probes once per test: it takes a tenth of a second.
func machine(t *testing.T) sandbox.Report {
	t.Helper()
	r, err := sandbox.Probe(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// newRunner returns a runner that uses this machine's best.
func newRunner(t *testing.T, change func(*runner.Options)) *runner.Runner {
	t.Helper()
	o := runner.Options{Dir: t.TempDir(), Clock: time.Now, Report: machine(t), Grace: 100 * time.Millisecond, DiskMargin: 1 << 20}
	if change != nil {
		change(&o)
	}
	r, err := runner.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sh runs a shell script.
func sh(t *testing.T, r *runner.Runner, script string, change func(*runner.Spec)) runner.Result {
	t.Helper()
	s := runner.Spec{Argv: []string{"sh", "-c", script}, Tree: t.TempDir(), Timeout: 20 * time.Second}
	if change != nil {
		change(&s)
	}
	return r.Run(t.Context(), s)
}

func TestStates(t *testing.T) {
	r := newRunner(t, nil)
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
	} {
		t.Run(c.name, func(t *testing.T) {
			res := sh(t, r, c.script, nil)
			if res.State != c.state || res.ExitCode != c.code || res.Signal != c.signal || res.Summary != c.summary {
				t.Errorf("%+v", res)
			}
			if !res.Isolation.TreeEnded || res.Isolation.Level != machine(t).Level || res.EnvDigest == "" || res.Duration <= 0 {
				t.Errorf("%+v", res)
			}
		})
	}
}
