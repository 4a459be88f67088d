package runner_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/runner"
	"roundtable/internal/sandbox"
)

// smallDisk returns a directory on a file system of its own of 4 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("cannot make a small disk: %v", err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	return dir
}

// goEnv returns a setting of the go command that runs this test.
func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Skipf("no go command: %v", err)
	}
	return strings.TrimSpace(string(out))
}

// TestGo runs a module's tests offline, with the host's caches and with a
// module of them: by an overlay of the build cache, and without one.
func TestGo(t *testing.T) {
	caches := runner.GoCaches{Root: goEnv(t, "GOROOT"), ModCache: goEnv(t, "GOMODCACHE"), BuildCache: goEnv(t, "GOCACHE")}
	for _, backend := range []sandbox.Backend{sandbox.UserNS, sandbox.Bubblewrap, sandbox.LandlockLSM} {
		t.Run(string(backend), func(t *testing.T) {
			report := only(t, backend)
			r := newRunner(t, func(o *runner.Options) { o.Go, o.Report = caches, known(report) })
			tree := module(t)
			before := count(t, caches.BuildCache)
			for _, c := range []struct {
				args  []string
				state runner.State
				says  string
			}{
				{[]string{"go", "test", "./..."}, runner.Passed, "ok  \texample.com/m"},
				{[]string{"go", "test", "-run", "Fails", "-args", "fail"}, runner.Failed, "FAIL"},
				{[]string{"go", "get", "example.com/none@v1.0.0"}, runner.Failed, "GOPROXY=off"},
			} {
				if c.state == runner.Failed && backend != sandbox.UserNS {
					continue // takes a second and is the same everywhere
				}
				res := r.Run(t.Context(), runner.Spec{Argv: c.args, Tree: tree})
				t.Logf("%q: %v", c.args, res.Duration)
				if res.State != c.state || !strings.Contains(res.Summary, c.says) || res.Isolation.Backend != backend {
					t.Errorf("%q: %+v\n%s", c.args, res, res.Output.Bytes())
				}
			}
			if after := count(t, caches.BuildCache); after > before+300 { // others may be building too
				t.Errorf("the host's build cache has %d more entries", after-before)
			}
		})
	}
}

// only returns what this machine can do by one backend.
func only(t *testing.T, b sandbox.Backend) sandbox.Report {
	t.Helper()
	report, err := machine()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range report.Abilities {
		if a.Backend == b && a.Works {
			return sandbox.Report{Level: a.Level, Abilities: []sandbox.Ability{a}}
		}
	}
	t.Skipf("this machine does not have %s: %+v", b, report)
	return report
}

// TestClean removes what a killed service left, as a user who may not enter it.
func TestClean(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, func(o *runner.Options) { o.Dir = dir })
	if os.Getuid() == 0 {
		const nobody = 65534
		if err := errors.Join(os.Chown(dir, nobody, nobody), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
			t.Fatal(err)
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		defer unix.SetfsuidRetUid(0)
		unix.SetfsuidRetUid(nobody) // for files, this thread is nobody, and has no rights over others'
	}
	locked := filepath.Join(dir, "run-1", "work", "work")
	if err := os.MkdirAll(filepath.Join(locked, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(locked, 0); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(dir + "/run-1"); err == nil {
		t.Fatal("nothing is in the way")
	}
	if err := r.Clean(); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Error(left, err)
	}
}

// module returns a small module that needs another.
func module(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	sum, err := os.ReadFile("../../go.sum")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.26.0\n\nrequire github.com/google/go-cmp v0.7.0\n",
		"go.sum": string(sum),
		"m_test.go": `package m

import (
	"net"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPasses(t *testing.T) {
	if cmp.Diff(1, 1) != "" {
		t.Error("differs")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
}

func TestFails(t *testing.T) {
	if len(os.Args) > 1 && os.Args[len(os.Args)-1] == "fail" {
		t.Error("told to")
	}
}
`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func count(t *testing.T, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(string, os.DirEntry, error) error { n++; return nil })
	if err != nil {
		t.Fatal(err)
	}
	return n
}
