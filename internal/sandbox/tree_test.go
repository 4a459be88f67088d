package sandbox_test

import (
	"bufio"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundtable/internal/sandbox"
)

// free fails unless the lock can be had: unless whoever held it has ended.
func free(t *testing.T, path string) {
	t.Helper()
	if err := lock(path, unix.LOCK_NB); err != nil {
		t.Errorf("a process of the command is left: %v", err)
	}
}

// TestDaemonOutlivesItsGroup is the control of the tests below: without a
// sandbox, to kill the process group is not enough.
func TestDaemonOutlivesItsGroup(t *testing.T) {
	file := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command("/proc/self/exe", "test-helper", "daemon", file, "stay")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "staying\n" {
		t.Fatal(line, err)
	}
	if err := unix.Kill(-cmd.Process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	cmd.Wait()
	if err := lock(file, unix.LOCK_NB); err != unix.EWOULDBLOCK {
		t.Fatalf("the daemon has gone: %v", err)
	}
	unix.Kill(holder(t, file), unix.SIGKILL)
	if err := lock(file, 0); err != nil {
		t.Fatal(err)
	}
}

// holder returns the process that has the lock of a file.
func holder(t *testing.T, path string) int {
	t.Helper()
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		t.Fatal(err)
	}
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(locks)) {
		f := strings.Fields(line) // 1: FLOCK ADVISORY WRITE pid major:minor:inode start end
		if len(f) > 5 && strings.HasSuffix(f[5], ":"+strconv.FormatUint(st.Ino, 10)) {
			pid, err := strconv.Atoi(f[4])
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatal("no holder")
	return 0
}

func TestTreeEnds(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		t.Run("with the command", func(t *testing.T) {
			s := helper(t, "daemon", "lock", "twice")
			out, st, err := run(t, b, s)
			if err != nil || st.Code != 0 || !st.TreeEnded {
				t.Fatal(out, st, err)
			}
			free(t, filepath.Join(s.Dir, "lock"))
		})
		for name, end := range map[string]func(*sandbox.Command) error{
			"by Terminate": (*sandbox.Command).Terminate, "by Kill": (*sandbox.Command).Kill, "by Destroy": (*sandbox.Command).Destroy,
		} {
			t.Run(name, func(t *testing.T) {
				s := helper(t, "daemon", "lock", "stay")
				c, out := start(t, b, s, "staying")
				if err := end(c); err != nil {
					t.Fatal(err)
				}
				st, err := c.Wait()
				if name != "by Destroy" && (err != nil || st.Signal == "") || b.Level() == sandbox.Namespace && !st.TreeEnded {
					t.Error(st, err)
				}
				if _, err := io.ReadAll(out); err != nil {
					t.Error(err)
				}
				free(t, filepath.Join(s.Dir, "lock"))
				if err := errors.Join(c.Terminate(), c.Kill(), c.Destroy()); err != nil {
					t.Error("after its end:", err)
				}
			})
		}
	})
}

// start starts s and waits until it has printed a line.
func start(t *testing.T, b sandbox.Backend, s sandbox.Spec, line string) (*sandbox.Command, io.Reader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	s.Stdout, s.Stderr = w, w
	c, err := sandbox.Start(b, s)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Destroy(); c.Wait() })
	if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewReader(r)
	if got, err := out.ReadString('\n'); got != line+"\n" {
		t.Fatal(got, err)
	}
	return c, out
}

// TestServiceDies kills the process that started a command.
func TestServiceDies(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		dir := realDir(t)
		cmd := exec.Command("/proc/self/exe", "test-helper", "service", string(b), dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "staying\n" {
			t.Fatal(line, err)
		}
		file := filepath.Join(dir, "lock")
		if err := lock(file, unix.LOCK_NB); err != unix.EWOULDBLOCK {
			t.Fatal("the daemon is not there:", err)
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		got := make(chan error, 1)
		go func() { got <- lock(file, 0) }()
		select {
		case err := <-got:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(patience):
			t.Error("the command outlived the service")
		}
	})
}

// TestServiceDiesEarly kills it at any moment of a start. Nothing may be left
// that holds the command's output open, not even something that waits.
func TestServiceDiesEarly(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		times := 3
		if b == sandbox.Bubblewrap {
			times = 8 // a helper program of its own, with moments of its own
		}
		if os.Getenv("ROUNDTABLE_LONG") != "" {
			times = 200
		}
		for range times {
			moment := rand.N(40 * time.Millisecond)
			cmd := exec.Command("/proc/self/exe", "test-helper", "service", string(b), realDir(t))
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			w.Close()
			kill := time.AfterFunc(moment, func() { cmd.Process.Kill() })
			defer kill.Stop()
			if err := r.SetReadDeadline(time.Now().Add(patience)); err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(r); err != nil {
				t.Errorf("killed %v after its start: %v", moment, err)
			}
			cmd.Wait()
		}
	})
}

// TestSupervisorAttacked: a command that ends or stops its supervisor gets no
// good result by it, and where it cannot be told whether its processes ended,
// that is said.
func TestSupervisorAttacked(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		t.Run("killed", func(t *testing.T) {
			out, st, err := run(t, b, shell(t, "kill -KILL $PPID 2>/dev/null; exit 0"))
			if b == sandbox.Subreaper {
				if err == nil || st.TreeEnded {
					t.Error(out, st, err)
				}
				return
			}
			if err != nil || st.Code != 0 || !st.TreeEnded {
				t.Error(out, st, err)
			}
		})
		t.Run("terminated", func(t *testing.T) {
			script := "for s in TERM INT HUP; do kill -$s $PPID 2>/dev/null || exit 0; done; while :; do sleep 60; done"
			out, st, err := run(t, b, shell(t, script))
			if refused := b == sandbox.LandlockLSM; err != nil || !st.TreeEnded || refused != (st.Signal == "") {
				t.Error(out, st, err)
			}
		})
		t.Run("stopped", func(t *testing.T) {
			s := shell(t, "trap '' TERM; kill -STOP $PPID 2>/dev/null; echo stopped; while :; do sleep 60; done")
			c, _ := start(t, b, s, "stopped")
			if err := errors.Join(c.Kill(), c.Destroy()); err != nil {
				t.Fatal(err)
			}
			if st, err := c.Wait(); err == nil && st.Signal == "" {
				t.Error(st)
			}
		})
		t.Run("impersonated", func(t *testing.T) {
			script := `for f in /proc/$PPID/fd/* /proc/$PPID/environ /proc/$PPID/mem; do (: <$f) 2>/dev/null && echo read $f; (: >>$f) 2>/dev/null && echo wrote $f; done; :`
			out, st, err := run(t, b, shell(t, script))
			if out != "" || err != nil || st.Code != 0 {
				t.Error(out, st, err)
			}
		})
	})
}

// TestNothingKept: commands leave no descriptors behind in this process.
func TestNothingKept(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		count := func() int {
			open, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Fatal(err)
			}
			return len(open)
		}
		before := 0
		for i := range 3 {
			s := shell(t, "exit 0")
			if i == 2 {
				s.Path = "/no/such/program"
			}
			if _, _, err := run(t, b, s); (err == nil) != (i < 2) {
				t.Fatal(err)
			}
			if i == 0 {
				before = count() // the runtime opens some of its own once
			}
		}
		if after := count(); after > before {
			t.Errorf("%d descriptors open, %d before", after, before)
		}
	})
}
