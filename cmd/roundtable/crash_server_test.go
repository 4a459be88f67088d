package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A server is a process of its own that serves a data folder.
type server struct {
	at   string // its address
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
	mu   sync.Mutex
	log  bytes.Buffer // what it said on standard error
}

// Write takes what the process says.
func (s *server) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p)
}

func (s *server) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// program is the test binary as the program.
func program(ctx context.Context, args, env []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, os.Args[0], args...)
	cmd.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0") // else each takes a second to end
	cmd.Env = append(cmd.Env, env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return cmd
}

// start starts a server and returns once it serves, or has ended before: at is
// then "". It is killed with the test.
func start(t *testing.T, data string, env ...string) *server {
	t.Helper()
	s := &server{done: make(chan struct{})}
	s.cmd = program(context.WithoutCancel(t.Context()), []string{"serve", "--data", data, "--addr", "127.0.0.1:0", "--allow-unsandboxed", "--rate", "0", "--log-level", "warn"}, env)
	s.cmd.Stderr = s
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan string, 1)
	go func() { // ends with the process; whoever started it waits for done
		defer close(s.done)
		r := bufio.NewReader(out)
		line, err := r.ReadString('\n')
		if err == nil {
			ready <- strings.TrimSpace(strings.TrimPrefix(line, "listening on "))
			_, err = io.Copy(io.Discard, r)
		}
		close(ready)
		if err := errors.Join(s.cmd.Wait(), err); err != nil {
			fmt.Fprintln(s, "ended:", err)
		}
	}()
	t.Cleanup(func() { s.kill(t) })
	s.at = <-ready
	return s
}

// serving is start of a server that must serve.
func serving(t *testing.T, data string, env ...string) *server {
	t.Helper()
	s := start(t, data, env...)
	if s.at == "" {
		<-s.done
		t.Fatalf("the server did not start: %s", s.said())
	}
	return s
}

// kill ends the process at once.
func (s *server) kill(t *testing.T) {
	if err := s.cmd.Process.Signal(syscall.SIGKILL); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-s.done
}

// stop asks the process to end and fails the test unless it does, well.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatalf("%v: %s", err, s.said())
	}
	s.ended(t)
	if code := s.cmd.ProcessState.ExitCode(); code != 0 {
		t.Fatalf("exit %d: %s", code, s.said())
	}
}

// ended waits for the process to end by itself.
func (s *server) ended(t *testing.T) {
	t.Helper()
	select {
	case <-s.done:
	case <-time.After(time.Minute):
		t.Fatalf("does not end: %s", s.said())
	}
}

// dead waits for the process to have killed itself.
func (s *server) dead(t *testing.T) {
	t.Helper()
	s.ended(t)
	if ws, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || ws.Signal() != syscall.SIGKILL {
		t.Fatalf("%v, not killed: %s", s.cmd.ProcessState, s.said())
	}
}

// offlineRun runs a command of the program in this process and returns what it
// printed.
func offlineRun(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, said bytes.Buffer
	if code := run(t.Context(), args, terminal{in: strings.NewReader(""), out: &out, err: &said, env: func(string) string { return "" }}); code != 0 {
		t.Fatalf("%s: exit %d: %s%s", strings.Join(args, " "), code, out.String(), said.String())
	}
	return out.Bytes()
}

// write writes a file of a repository.
func write(t *testing.T, root, name, text string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}
