package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// A spawned is the program serving, as a process of its own.
type spawned struct {
	cmd  *exec.Cmd
	told string // what it printed before it listened
	at   string
	errs output
	said chan struct{} // closed when what it prints has been read to its end
}

// spawn starts `roundtable serve` and waits until it listens.
func spawn(dir string, env []string, args ...string) (*spawned, error) {
	s := &spawned{cmd: exec.Command("roundtable", append([]string{"serve"}, args...)...), said: make(chan struct{})}
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = dir, env, &s.errs
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
			s.at = at
			break
		}
		s.told += lines.Text() + "\n"
	}
	go func() { // ends with the process
		defer close(s.said)
		io.Copy(io.Discard, out) //nolint:errcheck // nothing more is of interest
	}()
	if s.at == "" {
		code, err := s.wait()
		return nil, errors.Join(err, fmt.Errorf("serve ended with %d: %s", code, &s.errs))
	}
	return s, nil
}

func (s *spawned) wait() (code int, err error) {
	<-s.said
	err = s.cmd.Wait()
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		err = nil
	}
	return s.cmd.ProcessState.ExitCode(), err
}

// term tells the process to end and returns its exit code.
func (s *spawned) term() (code int, err error) {
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return 0, err
	}
	return s.wait()
}

// A scripted is the server of one script.
type scripted struct{ *spawned }

// TestScripts plays testdata/script: the command line as people and scripts
// use it, each command a process of its own.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script", RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			s := &scripted{}
			env.Values["server"] = s
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("ROUNDTABLE_SERVER", "http://127.0.0.1:1") // nobody's
			env.Defer(func() {
				if s.spawned != nil {
					if _, err := s.term(); err != nil {
						t.Error(err)
					}
				}
			})
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve": scriptServe, "stop": scriptStop, "exits": scriptExits, "field": scriptField, "until": scriptUntil,
		},
	})
}

// scriptServe starts a server: serve [flags].
func scriptServe(ts *testscript.TestScript, neg bool, args []string) {
	var env []string
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "GORACE"} {
		env = append(env, name+"="+ts.Getenv(name))
	}
	s, err := spawn(ts.MkAbs("."), env, append([]string{"--addr", "127.0.0.1:0", "--allow-unsandboxed", "--log-level", "error"}, args...)...)
	ts.Check(err)
	ts.Value("server").(*scripted).spawned = s
	ts.Setenv("ROUNDTABLE_SERVER", s.at)
}

// scriptStop ends it; it must end well.
func scriptStop(ts *testscript.TestScript, neg bool, args []string) {
	s := ts.Value("server").(*scripted)
	code, err := s.term()
	ts.Check(err)
	if code != 0 {
		ts.Fatalf("serve ended with %d: %s", code, &s.errs)
	}
	s.spawned = nil
	ts.Setenv("ROUNDTABLE_SERVER", "http://127.0.0.1:1")
}

// scriptExits runs a command that must end with a code: exits CODE command.
func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		got = e.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// scriptField takes a value out of the JSON that was printed: field VARIABLE
// member….
func scriptField(ts *testscript.TestScript, neg bool, args []string) {
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &v))
	got := text(v, args[1:]...)
	if got == "" {
		ts.Fatalf("there is no %v in %v", args[1:], v)
	}
	ts.Setenv(args[0], got)
}

// scriptUntil repeats a command until it prints a text: until TEXT command.
func scriptUntil(ts *testscript.TestScript, neg bool, args []string) {
	for range 1000 { // each is a process, and takes its time
		ts.Check(ts.Exec(args[1], args[2:]...))
		if strings.Contains(ts.ReadFile("stdout"), args[0]) {
			return
		}
	}
	ts.Fatalf("%v did not print %s", args[1:], args[0])
}

// TestDemo: the play ends well, and says each thing it shows.
func TestDemo(t *testing.T) {
	t.Parallel()
	var out, errs output
	if code := run(t.Context(), []string{"demo"}, terminal{out: &out, err: &errs, env: environment(nil)}); code != 0 {
		t.Fatalf("%d\n%s%s", code, &out, &errs)
	}
	for _, want := range []string{"Every step was as it should be.", "one chain, no gap", "byte for byte as at the start"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, &out)
		}
	}
	if errs.String() != "" {
		t.Errorf("it complains: %s", &errs)
	}
}

// TestDemoOnRepository: a repository that is shown the play stays as it was,
// with what is not committed in it.
func TestDemoOnRepository(t *testing.T) {
	t.Parallel()
	root := repository(t)
	writeFile(t, filepath.Join(root, "a.txt"), "not committed\n")
	before := sh(t, root, "git", "status", "--porcelain=v2", "--branch") + sh(t, root, "git", "diff") + sh(t, root, "git", "for-each-ref") + listing(t, root)
	var out, errs output
	if code := run(t.Context(), []string{"demo", "--repo", root}, terminal{out: &out, err: &errs, env: environment(nil)}); code != 0 {
		t.Fatalf("%d\n%s%s", code, &out, &errs)
	}
	if after := sh(t, root, "git", "status", "--porcelain=v2", "--branch") + sh(t, root, "git", "diff") + sh(t, root, "git", "for-each-ref") + listing(t, root); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
}

// listing names every file below dir.
func listing(t *testing.T, dir string) string {
	t.Helper()
	return sh(t, dir, "find", ".", "-type", "f", "-printf", "%P %s %m\n")
}
