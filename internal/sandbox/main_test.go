package sandbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"roundtable/internal/sandbox"
)

// TestMain is also what tests run inside sandboxes, under the names below.
func TestMain(m *testing.M) {
	if status, ok := sandbox.Main(os.Args); ok {
		os.Exit(status)
	}
	if len(os.Args) > 2 && os.Args[1] == "test-helper" {
		if err := helpers[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			unix.Exit(1)
		}
		unix.Exit(0) // and not os.Exit, for which the race detector takes a second
	}
	os.Exit(m.Run())
}

var helpers = map[string]func([]string) error{
	"daemon":  daemon,
	"hold":    hold,
	"service": service,
	"bomb":    bomb,
	"fork":    forkBomb,
	"hog":     hog,
	"dial":    dial,
	"serve":   serve,
}

// helper returns a Spec that runs a helper in a directory of its own.
func helper(t *testing.T, args ...string) sandbox.Spec {
	t.Helper()
	dir := realDir(t)
	return sandbox.Spec{
		Path: "/proc/self/exe", Argv: append([]string{"helper", "test-helper"}, args...),
		Dir: dir, ReadWrite: []string{dir}, Env: []string{"PATH=/usr/bin:/bin"},
	}
}

// shell returns a Spec that runs a script in a directory of its own.
func shell(t *testing.T, script string) sandbox.Spec {
	t.Helper()
	dir := realDir(t)
	return sandbox.Spec{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script},
		Dir: dir, ReadWrite: []string{dir}, Env: []string{"PATH=/usr/bin:/bin"},
	}
}

func realDir(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// patience bounds what takes no time on a healthy machine.
const patience = 30 * time.Second

// run runs s to its end and returns what it printed.
func run(t *testing.T, b sandbox.Backend, s sandbox.Spec) (string, sandbox.Status, error) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s.Stdout, s.Stderr = w, w
	c, err := sandbox.Start(b, s)
	w.Close()
	if err != nil {
		return "", sandbox.Status{}, err
	}
	late := time.AfterFunc(patience, func() {
		t.Error("the command takes too long")
		c.Destroy()
	})
	defer late.Stop()
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.Wait()
	return string(out), st, err
}

var machine = sync.OnceValues(func() (sandbox.Report, error) {
	return sandbox.Probe(context.Background(), os.TempDir())
})

// works runs a test for each backend that works here, and names those that do
// not.
func works(t *testing.T, f func(t *testing.T, b sandbox.Backend)) {
	r, err := machine()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range r.Abilities {
		t.Run(string(a.Backend), func(t *testing.T) {
			if !a.Works {
				t.Skipf("this machine cannot: %s", a.Detail)
			}
			f(t, a.Backend)
		})
	}
}

const nobody = 65534

// TestAsNobody runs the tests in which the user matters again as uid nobody, in
// a copy of this program that this user can reach.
func TestAsNobody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("not root: all tests ran as an unprivileged user")
	}
	dir, err := os.MkdirTemp("", "nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	exe, temp := filepath.Join(dir, "test"), filepath.Join(dir, "tmp")
	err = errors.Join(err, os.Chmod(dir, 0o755), os.WriteFile(exe, self, 0o755), os.Mkdir(temp, 0o755), os.Chown(temp, nobody, nobody))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^Test(Probe|TreeEnds|World|Limits|Network|Overlay)$", "-test.v")
	cmd.Env = append(os.Environ(), "TMPDIR="+temp, "HOME="+temp)
	cmd.Dir = temp
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil || !strings.Contains(string(out), "--- PASS: TestWorld/") {
		t.Fatal(err)
	}
}

// lock takes the lock of a file, or says that another process has it.
func lock(path string, flags int) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|flags); err != nil {
		f.Close()
		return err
	}
	locked = append(locked, f)
	return nil
}

var locked []*os.File // not to be collected, and closed

// hold takes a lock, says so and keeps it for ever, deaf to all that can be
// ignored and without any of the standard files.
func hold(args []string) error {
	if err := lock(args[0], 0); err != nil {
		return err
	}
	fmt.Println("held")
	for fd := range 3 {
		unix.Close(fd)
	}
	time.Sleep(time.Hour)
	return nil
}

// daemon starts hold in a session of its own, orphaned, and goes on for ever
// itself if told so.
func daemon(args []string) error {
	if len(args) == 2 && args[1] == "twice" {
		return spawn("daemon", args[0], "once")
	}
	if err := spawn("hold", args[0]); err != nil {
		return err
	}
	if len(args) == 2 && args[1] == "stay" {
		fmt.Println("staying")
		time.Sleep(time.Hour)
	}
	return nil
}

// spawn starts a helper in a session of its own and returns when it has said
// something, or has ended.
func spawn(args ...string) error {
	cmd := exec.Command("/proc/self/exe", append([]string{"test-helper"}, args...)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	_, err = out.Read(make([]byte, 100))
	if args[0] == "daemon" && err == io.EOF {
		err = cmd.Wait()
	}
	return err
}

// service runs a command by a backend until it is killed.
func service(args []string) error {
	dir := args[1]
	c, err := sandbox.Start(sandbox.Backend(args[0]), sandbox.Spec{
		Path: "/proc/self/exe", Argv: []string{"helper", "test-helper", "daemon", filepath.Join(dir, "lock"), "stay"},
		Dir: dir, ReadWrite: []string{dir}, Stdout: os.Stdout, Stderr: os.Stderr,
	})
	if err != nil {
		return err
	}
	_, err = c.Wait()
	return err
}

// bomb starts children until it may not, at most as many as it is told, and
// says how many it could.
func bomb(args []string) error {
	var most, n int
	if _, err := fmt.Sscan(args[0], &most); err != nil {
		return err
	}
	for n = 0; n < most; n++ {
		err := exec.Command("/bin/sleep", "60").Start()
		if errors.Is(err, unix.EAGAIN) {
			break
		}
		if err != nil {
			return err
		}
	}
	fmt.Println(n)
	if len(args) > 1 {
		time.Sleep(time.Hour)
	}
	return nil
}

// hog takes so much memory and keeps it.
func hog(args []string) error {
	var size int
	if _, err := fmt.Sscan(args[0], &size); err != nil {
		return err
	}
	taken := bytes.Repeat([]byte{1}, size)
	time.Sleep(time.Hour)
	runtime.KeepAlive(taken)
	return nil
}

// forkBomb forks until it may not, says so and goes on. All its processes hold
// the lock.
func forkBomb(args []string) error {
	if err := lock(args[0], 0); err != nil {
		return err
	}
	cmd := exec.Command("/bin/sh", "-c", "f() { while :; do f & done; }; f")
	cmd.ExtraFiles = locked
	complaints, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if _, err := complaints.Read(make([]byte, 100)); err != nil {
		return err
	}
	fmt.Println("full")
	_, err = io.Copy(io.Discard, complaints)
	return err
}
