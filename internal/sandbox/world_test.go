package sandbox_test

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"roundtable/internal/sandbox"
)

func TestProbe(t *testing.T) {
	dir := realDir(t)
	r, err := sandbox.Probe(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
	// What other programs can do here, and so this package must: without this, a
	// fault of ours would make tests be skipped.
	must := map[sandbox.Backend]bool{
		sandbox.Bubblewrap:  exec.Command("bwrap", "--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "true").Run() == nil,
		sandbox.UserNS:      exec.Command("unshare", "-Urmpfn", "--mount-proc", "true").Run() == nil,
		sandbox.LandlockLSM: r.LandlockABI >= 6,
		sandbox.Subreaper:   true,
	}
	best := sandbox.None
	for _, a := range r.Abilities {
		if must[a.Backend] && !a.Works {
			t.Errorf("%s could work here: %s", a.Backend, a.Detail)
		}
		if a.Detail == "" || a.Level != a.Backend.Level() {
			t.Errorf("%+v", a)
		}
		if a.Works && !best.AtLeast(a.Level) {
			best = a.Level
		}
	}
	if r.Level != best || len(r.Abilities) != len(sandbox.Backends()) {
		t.Errorf("level %s, want %s", r.Level, best)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Error("left behind:", left, err)
	}
}

func TestChoose(t *testing.T) {
	with := func(bs ...sandbox.Backend) (r sandbox.Report) {
		for _, b := range sandbox.Backends() {
			r.Abilities = append(r.Abilities, sandbox.Ability{Backend: b, Level: b.Level(), Works: slices.Contains(bs, b)})
		}
		return r
	}
	all := with(sandbox.Backends()...)
	for _, c := range []struct {
		name    string
		report  sandbox.Report
		most    sandbox.Level
		overlay bool
		want    sandbox.Backend
	}{
		{"best", all, sandbox.Namespace, false, sandbox.Bubblewrap},
		{"best with overlays", all, sandbox.Namespace, true, sandbox.UserNS},
		{"overlays are no reason to be weaker", with(sandbox.Bubblewrap, sandbox.Subreaper), sandbox.Namespace, true, sandbox.Bubblewrap},
		{"no bubblewrap", with(sandbox.UserNS, sandbox.LandlockLSM), sandbox.Namespace, false, sandbox.UserNS},
		{"at most landlock", all, sandbox.Landlock, true, sandbox.LandlockLSM},
		{"at most process", all, sandbox.Process, false, sandbox.Subreaper},
		{"nothing asked", all, sandbox.None, false, ""},
		{"nothing works", with(), sandbox.Namespace, false, ""},
	} {
		if got, ok := c.report.Choose(c.most, c.overlay); got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q %v, want %q", c.name, got, ok, c.want)
		}
	}
}

func TestLevels(t *testing.T) {
	order := []sandbox.Level{sandbox.None, sandbox.Process, sandbox.Landlock, sandbox.Namespace}
	for i, a := range order {
		for j, b := range order {
			if a.AtLeast(b) != (i >= j) {
				t.Errorf("%s at least %s: %v", a, b, a.AtLeast(b))
			}
		}
		if got, err := sandbox.ParseLevel(string(a)); got != a || err != nil {
			t.Error(got, err)
		}
		if a.AtLeast("vm") || sandbox.Level("vm").AtLeast(a) {
			t.Error("an unknown level compares")
		}
	}
	if _, err := sandbox.ParseLevel("vm"); err == nil {
		t.Error("an unknown level is read")
	}
}

// TestWorld: what a command sees and may do.
func TestWorld(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		confined := b.Level().AtLeast(sandbox.Landlock)
		secret := filepath.Join(realDir(t), "secret")
		given := filepath.Join(realDir(t), "given")
		if err := errors.Join(os.WriteFile(secret, []byte("secret\n"), 0o600), os.WriteFile(given, []byte("given\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
		var script, want string
		for _, c := range []struct {
			name, script, want string
			when               bool
		}{
			{"environment", "/usr/bin/env | grep -v -e ^PWD= -e ^_= -e ^SHLVL=", "PATH=/usr/bin:/bin\n", true},
			{"descriptors", "for f in /proc/$$/fd/*; do [ ${f##*/} -le 2 ] || readlink $f; done; readlink /proc/$$/fd/0", "/dev/null\n", true},
			{"capabilities", "grep -E 'Cap(Inh|Prm|Eff|Amb)' /proc/self/status | grep -v 0000000000000000; grep NoNewPrivs /proc/self/status", "NoNewPrivs:\t1\n", true},
			{"user", "id -u; id -g", strconv.Itoa(os.Getuid()) + "\n" + strconv.Itoa(os.Getgid()) + "\n", true},
			{"its directory", "echo x >new && mkdir d && mv new d/old && cat d/old", "x\n", true},
			{"a given file", "cat " + given + "; echo x 2>/dev/null >>" + given + " || echo kept", "given\nkept\n", confined},
			{"a file outside", "cat " + secret + " 2>/dev/null || echo hidden", "hidden\n", confined},
			{"a file outside, written", "echo x 2>/dev/null >" + secret + " || echo kept; mkdir " + filepath.Dir(secret) + "/d 2>/dev/null || echo kept", "kept\nkept\n", confined},
			{"the system", "for d in /usr /etc / /bin /opt; do : 2>/dev/null >$d/roundtable-test && echo $d; done; :", "", confined || os.Getuid() != 0},
			{"kernel settings", "for f in kernel/panic vm/swappiness kernel/core_pattern; do v=$(cat /proc/sys/$f); (echo \"$v\" >/proc/sys/$f) 2>/dev/null && echo wrote $f; done; [ -w /proc/sysrq-trigger ] && echo sysrq; :", "", confined || os.Getuid() != 0},
			{"password hashes", "cat /etc/shadow 2>/dev/null || echo hidden", "hidden\n", confined || os.Getuid() != 0},
			{"other processes", "[ $(ls /proc | grep -c '^[0-9]') -le 9 ] && echo few", "few\n", b.Level() == sandbox.Namespace},
			{"devices", "echo x >/dev/null; head -c 3 /dev/zero | wc -c; [ -c /dev/urandom ] && [ $(ls /dev | wc -l) -lt 30 ] && echo few", "3\nfew\n", b.Level() == sandbox.Namespace},
			{"shared memory", "echo x >/dev/shm/roundtable-test && cat /dev/shm/roundtable-test && rm /dev/shm/roundtable-test", "x\n", true},
		} {
			if c.when {
				script += "echo '== " + c.name + "'\n(" + c.script + ")\n"
				want += "== " + c.name + "\n" + c.want
			}
		}
		s := shell(t, script)
		s.ReadOnly = []string{given}
		out, st, err := run(t, b, s)
		if out != want || err != nil || st.Level != b.Level() || st.Backend != b {
			t.Errorf("%v %+v\n%s", err, st, cmp.Diff(want, out))
		}
	})
}

// TestNetwork: nothing beyond the loopback of its own.
func TestNetwork(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		want := map[sandbox.Level]string{sandbox.Namespace: "own", sandbox.Landlock: "tcp_refused", sandbox.Process: "shared"}[b.Level()]
		for _, allowed := range []bool{false, true} {
			s := helper(t, "dial", l.Addr().String())
			s.Network = allowed
			out, st, err := run(t, b, s)
			if err != nil || st.Level != b.Level() {
				t.Fatal(out, st, err)
			}
			reached := st.Code == 0
			if allowed && (!reached || st.Network != "shared") || !allowed && (reached != (want == "shared") || st.Network != want) {
				t.Errorf("allowed %v: reached %v: %s %+v", allowed, reached, out, st)
			}
		}
		if b.Level() == sandbox.Namespace {
			if out, st, err := run(t, b, helper(t, "serve")); err != nil || st.Code != 0 {
				t.Error("no loopback of its own:", out, st, err)
			}
		}
	})
}

// dial connects to an address.
func dial(args []string) error {
	c, err := net.DialTimeout("tcp", args[0], 5*time.Second)
	if err != nil {
		return err
	}
	return c.Close()
}

// serve connects to itself.
func serve([]string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer l.Close()
	return dial([]string{l.Addr().String()})
}

func TestLimits(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		t.Run("file size", func(t *testing.T) {
			s := shell(t, "exec head -c 100000 /dev/zero >file")
			s.Limits.FileSize = 4096
			if out, st, err := run(t, b, s); err != nil || st.Signal != "SIGXFSZ" && st.Code != 1 {
				t.Error(out, st, err)
			}
			if fi, err := os.Stat(filepath.Join(s.Dir, "file")); err != nil || fi.Size() != 4096 {
				t.Error(fi, err)
			}
		})
		t.Run("open files", func(t *testing.T) {
			s := shell(t, "ulimit -n; ulimit -Hn; ulimit -c")
			s.Limits.OpenFiles = 77
			if out, st, err := run(t, b, s); out != "77\n77\n0\n" || err != nil {
				t.Error(out, st, err)
			}
		})
		t.Run("processes", func(t *testing.T) {
			s := helper(t, "bomb", "90")
			if os.Getuid() == 0 {
				s.Argv = append(s.Argv, "stay")
			}
			s.Limits.Processes = 60
			out, st, err := run(t, b, s)
			n, scanErr := strconv.Atoi(strings.TrimSpace(out))
			switch {
			case err != nil || !st.TreeEnded:
				t.Error(out, st, err)
			case os.Getuid() == 0 && st.Exceeded != sandbox.ExceededProcesses:
				t.Error(out, st)
			case os.Getuid() != 0 && (scanErr != nil || n == 0 || n > 60 || st.Code != 0):
				t.Error(out, st, scanErr)
			}
		})
		t.Run("memory", func(t *testing.T) {
			s := helper(t, "hog", "100000000")
			s.Limits.Memory = 50 << 20
			if out, st, err := run(t, b, s); err != nil || st.Exceeded != sandbox.ExceededMemory || st.Signal != "SIGKILL" || !st.TreeEnded {
				t.Error(out, st, err)
			}
		})
		t.Run("fork bomb", func(t *testing.T) {
			if os.Getuid() == 0 {
				t.Skip("the kernel does not count root's")
			}
			s := helper(t, "fork", "lock")
			s.Limits.Processes = 60
			c, _ := start(t, b, s, "full")
			if err := c.Kill(); err != nil {
				t.Fatal(err)
			}
			if st, err := c.Wait(); err != nil || !st.TreeEnded {
				t.Error(st, err)
			}
			free(t, filepath.Join(s.Dir, "lock"))
		})
		t.Run("processor time", func(t *testing.T) {
			if b != sandbox.Subreaper || os.Getuid() == nobody {
				t.Skip("takes a second and is the same everywhere")
			}
			s := shell(t, "while :; do :; done")
			s.Limits.CPU = time.Millisecond // rounded up to a second
			if out, st, err := run(t, b, s); err != nil || st.Signal != "SIGKILL" && st.Signal != "SIGXCPU" {
				t.Error(out, st, err)
			}
		})
		t.Run("temporary files", func(t *testing.T) {
			if b.Level() != sandbox.Namespace {
				t.Skip("has no /tmp of its own")
			}
			s := shell(t, "head -c 100000 /dev/zero >/tmp/file 2>/dev/null; wc -c </tmp/file")
			s.Limits.Temp = 16 << 10
			if out, st, err := run(t, b, s); out != "16384\n" || err != nil {
				t.Error(out, st, err)
			}
		})
	})
}

func TestOverlay(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		lower := realDir(t)
		if err := errors.Join(os.WriteFile(filepath.Join(lower, "old"), []byte("old"), 0o600), os.WriteFile(filepath.Join(lower, "gone"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		s := shell(t, "cd cache && cat old && echo -n more >>old && cat old && rm gone && echo new >new && ls")
		t.Cleanup(func() { os.Chmod(filepath.Join(s.Dir, "scratch", "work", "work"), 0o700) }) // nobody may enter it
		s.Overlays = []sandbox.Overlay{{Lower: lower, Scratch: filepath.Join(s.Dir, "scratch"), At: filepath.Join(s.Dir, "cache")}}
		out, st, err := run(t, b, s)
		if !b.Overlays() {
			if err == nil {
				t.Error("a backend that cannot make overlays did:", out, st)
			}
			return
		}
		if out != "oldoldmorenew\nold\n" || err != nil {
			t.Error(out, st, err)
		}
		left, err := os.ReadDir(lower)
		if text, _ := os.ReadFile(filepath.Join(lower, "old")); err != nil || len(left) != 2 || string(text) != "old" {
			t.Errorf("the lower directory was changed: %v %q", left, text)
		}
	})
}

// TestNotStarted: what can not be run is told apart from a command that fails.
func TestNotStarted(t *testing.T) {
	works(t, func(t *testing.T, b sandbox.Backend) {
		for name, change := range map[string]func(*sandbox.Spec){
			"no such executable": func(s *sandbox.Spec) { s.Path = "/usr/bin/no-such-program" },
			"not executable":     func(s *sandbox.Spec) { s.Path = "/etc/passwd" },
			"no such directory":  func(s *sandbox.Spec) { s.Dir += "/none" },
		} {
			t.Run(name, func(t *testing.T) {
				s := shell(t, "echo ran")
				change(&s)
				out, st, err := run(t, b, s)
				if _, ok := errors.AsType[*sandbox.StartError](err); !ok || out != "" || !st.TreeEnded {
					t.Error(out, st, err)
				}
			})
		}
		link := filepath.Join(realDir(t), "link")
		if err := os.Symlink("/", link); err != nil {
			t.Fatal(err)
		}
		for name, change := range map[string]func(*sandbox.Spec){
			"no command":    func(s *sandbox.Spec) { s.Argv = nil },
			"relative path": func(s *sandbox.Spec) { s.Path = "sh" },
			"dots":          func(s *sandbox.Spec) { s.Dir += "/../x" },
			"NUL":           func(s *sandbox.Spec) { s.Dir += "\x00" },
			"link":          func(s *sandbox.Spec) { s.ReadWrite = append(s.ReadWrite, link) },
			"missing":       func(s *sandbox.Spec) { s.ReadOnly = append(s.ReadOnly, link+"2") },
		} {
			t.Run(name, func(t *testing.T) {
				s := shell(t, "echo ran")
				change(&s)
				if _, err := sandbox.Start(b, s); err == nil {
					t.Error("started")
				}
			})
		}
	})
	if _, err := sandbox.Start("vm", shell(t, "echo ran")); err == nil {
		t.Error("an unknown backend started it")
	}
}
