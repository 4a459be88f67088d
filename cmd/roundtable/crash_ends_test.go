package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/oklog/ulid/v2"
)

// TestSecondProcess: whoever comes second is told who is there, and changes
// nothing.
func TestSecondProcess(t *testing.T) {
	l := newLoad(t)
	s := serving(t, l.data)
	for _, args := range [][]string{{"serve", "--data", l.data, "--addr", "127.0.0.1:0"}, {"rebuild", "--data", l.data},
		{"token", "issue", "--data", l.data, "--principal", "ada"}} {
		out, err := program(t.Context(), args, nil).CombinedOutput()
		if want := fmt.Sprintf("process %d uses the data folder", s.cmd.Process.Pid); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v: %s", args[0], err, out)
		}
	}
	l.head(t, s.at)
	s.stop(t)
	l.sound(t)
}

// TestStopWhileWorking: a process that is asked to stop while it tests and
// applies ends well; the test is interrupted or has its result, and the
// transaction comes to its end at the next start.
func TestStopWhileWorking(t *testing.T) {
	s := found(t, func(root string) {
		everyKind(t, root, false)
		write(t, root, "go.mod", "module example.org/slow\n\ngo 1.21\n", 0o644)
		write(t, root, "slow_test.go", "package slow\n\nimport (\n\t\"testing\"\n)\n\nfunc TestSlow(t *testing.T) { select {} }\n", 0o644)
	})
	patch, _, _ := everyKindPatch(t)
	v := serving(t, s.data)
	s.people(t, v.at, "coder")
	proposal := s.appliable(t, v.at, patch)
	run := text(s.must(t, v.at, "ada", "POST", s.here("/test-runs"), args{"command": "go test ./..."}), "test_run", "test_run_id")
	s.started(t, v.at, run)
	key := ulid.Make().String()
	if _, err := s.do(t, v.at, "ada", "POST", s.here("/proposals/"+proposal+"/apply"), key, args{"wait_seconds": 0}); err != nil {
		t.Fatal(err)
	}
	v.stop(t)
	v = serving(t, s.data)
	if _, err := s.do(t, v.at, "ada", "POST", s.here("/proposals/"+proposal+"/apply"), key, args{"reason": "another wish"}); err == nil {
		t.Error("another input under the same key was taken")
	}
	if _, err := s.do(t, v.at, "ada", "POST", s.here("/proposals/"+proposal+"/apply"), key, args{"wait_seconds": 30}); err != nil {
		t.Errorf("the same wish, waiting longer: %v", err)
	}
	s.idle(t)
	s.head(t, v.at)
	got := s.must(t, v.at, "ada", "GET", s.here("/test-runs/"+run), nil)
	if state := text(got, "test_run", "state"); state != "interrupted" {
		t.Errorf("the test run is %s: %v", state, got)
	}
	txs := list(s.must(t, v.at, "ada", "GET", s.here("/transactions"), nil), "transactions")
	if len(txs) != 1 || text(txs[0], "state") != "applied" {
		t.Errorf("%v", txs)
	}
	s.remembered(t, v.at)
	v.stop(t)
	s.sound(t)
}

// started waits on the live stream until a test run has begun.
func (s *site) started(t *testing.T, at, run string) {
	t.Helper()
	p := newPerson(at, s.ws, s.tokens["ada"])
	events, err := p.follow(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer events.close()
	got := s.must(t, at, "ada", "GET", s.here("/test-runs/"+run), nil)
	if text(got, "test_run", "state") == "queued" {
		if _, err := events.await(t.Context(), "test_run.started", func(map[string]any) string { return "" }); err != nil {
			t.Fatal(err)
		}
	}
}

// nobody is a user who owns nothing.
const nobody = 65534

// TestReadOnlyData: a data folder that cannot be written is said so at start.
func TestReadOnlyData(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can become nobody")
	}
	l := newLoad(t)
	bin := filepath.Join(t.TempDir(), "roundtable")
	for _, dir := range []string{filepath.Dir(l.data), filepath.Dir(filepath.Dir(l.data)), filepath.Dir(bin), l.data} {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(bin, self, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, own := range []struct {
		what string
		do   func() error
	}{
		{"owned by another", func() error { return nil }},
		{"log not writable", func() error { return exec.Command("chmod", "-R", "a+rX", l.data).Run() }},
		{"folder not writable", func() error {
			return exec.Command("sh", "-c", "chown -R "+strconv.Itoa(nobody)+" "+l.data+" && chmod -R a-w "+l.data).Run()
		}},
	} {
		if err := own.do(); err != nil {
			t.Fatal(own.what, err)
		}
		cmd := program(t.Context(), []string{"serve", "--data", l.data, "--addr", "127.0.0.1:0"}, []string{"HOME=/nonexistent"})
		cmd.Path = bin
		cmd.Dir = "/"
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() <= 0 || !strings.Contains(string(out), l.data) || !strings.Contains(string(out), "denied") {
			t.Errorf("%s: %v: %s", own.what, err, out)
		}
	}
}
