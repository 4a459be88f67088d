package repo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// oldest is the first git that can be told to read no configuration but the
// repository's own (GIT_CONFIG_GLOBAL).
var oldest = [2]int{2, 32}

// hardened are the settings of every call: nothing that the repository's own
// configuration names is run, and what is written is synced.
var hardened = []setting{
	{"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"core.untrackedCache", "false"}, {"core.splitIndex", "false"},
	{"core.protectHFS", "true"}, {"core.protectNTFS", "true"}, {"core.fsync", "all"}, {"apply.whitespace", "nowarn"},
	{"core.quotePath", "true"}, {"core.fileMode", "true"}, {"core.symlinks", "true"}, {"gc.auto", "0"}, {"maintenance.auto", "false"},
	{"submodule.recurse", "false"}, {"protocol.allow", "never"},
}

// A setting is one of git's configuration. It goes by the environment: on the
// command line a name with an equals sign in it could not be spelled.
type setting struct{ name, value string }

// A call is one run of git.
type call struct {
	dir    string
	args   []string
	config []setting // after the hardened ones
	env    []string  // besides the hardened ones
	user   bool      // under the person's own configuration: only for calls that run and write nothing
	bare   bool      // without what is carried over from that configuration
	stdin  []byte
	ok     []int       // exit codes besides 0 that are answers
	holds  *calls.File // kept open by git: what it locks stays locked until git ends, also when this process does not live to see it
}

// run runs git and returns its standard output. What git writes to standard
// error is in the error.
func (o Options) run(ctx context.Context, c call) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, o.Git, c.args...)
	cmd.Dir = c.dir
	cmd.Env = o.environment(c)
	cmd.Stdin = bytes.NewReader(c.stdin)
	out, errs := &capped{left: o.MaxOutput}, &tail{}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := c.start(cmd)
	var exit *exec.ExitError
	switch {
	case err == nil, errors.As(err, &exit) && slices.Contains(c.ok, exit.ExitCode()):
		return out.b.Bytes(), nil
	case ctx.Err() != nil:
		return nil, fmt.Errorf("git %s: %w", c.args[0], ctx.Err())
	case out.left < 0:
		return nil, fault.Errorf(fault.TooLarge, "too_large", "git %s answers more than %d bytes", c.args[0], o.MaxOutput)
	case strings.Contains(string(errs.b), "No space left on device"):
		return nil, fault.Errorf(fault.Unavailable, "state.no_space", "the disk is full (git %s)", c.args[0])
	}
	return nil, fmt.Errorf("git %s: %w: %s", c.args[0], err, bytes.TrimSpace(errs.b))
}

// start runs the command to its end.
func (c call) start(cmd *exec.Cmd) error {
	if c.holds == nil {
		return cmd.Run()
	}
	fd, err := calls.Dup(c.holds.Fd())
	if err != nil {
		return err
	}
	held := os.NewFile(uintptr(fd), c.holds.Name())
	cmd.ExtraFiles = []*os.File{held}
	err = calls.Run(c.args[0], cmd.Run)
	return errors.Join(err, held.Close())
}

func (o Options) environment(c call) []string {
	env := []string{
		"PATH=" + o.Path, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_REPLACE_OBJECTS=1",
		"GIT_CEILING_DIRECTORIES=" + filepath.Dir(c.dir),
	}
	config := slices.Concat(hardened, c.config)
	env = append(env, fmt.Sprintf("GIT_CONFIG_COUNT=%d", len(config)))
	for i, s := range config {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.name), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.value))
	}
	if c.user {
		for _, kv := range o.UserEnv {
			name, _, _ := strings.Cut(kv, "=")
			if slices.Contains([]string{"HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"}, name) {
				env = append(env, kv)
			}
		}
		return append(env, c.env...)
	}
	return append(append(env, "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null"), c.env...)
}

// GitVersion returns the version of the git program, such as "2.39.5". It is a
// fault git_too_old below the oldest that can be called safely, 2.32, and
// git_missing where there is none.
func GitVersion(ctx context.Context, o Options) (string, error) {
	o = o.withDefaults()
	out, err := o.run(ctx, call{dir: "/", args: []string{"version"}})
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return "", fault.Errorf(fault.Unavailable, "git_missing", "git is not installed (%s)", o.Git)
	}
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(out)) // git version 2.39.5 (Apple Git-154)
	if len(fields) < 3 {
		return "", fmt.Errorf("git version answers %q", out)
	}
	parts := strings.Split(fields[2], ".")
	if len(parts) < 2 {
		return "", fmt.Errorf("git version answers %q", out)
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	if err := errors.Join(err1, err2); err != nil {
		return "", fmt.Errorf("git version answers %q: %w", out, err)
	}
	if major < oldest[0] || major == oldest[0] && minor < oldest[1] {
		return "", fault.Errorf(fault.Unavailable, "git_too_old", "git %s is too old; 2.32 is the oldest that works", fields[2])
	}
	return fields[2], nil
}

// git runs git in the workspace, on its repository and no other. A folder that
// the call names stands for the work tree. Where the repository is gone, or is
// none any more, that is a fault workspace_unavailable.
func (w *Workspace) git(ctx context.Context, c call) ([]byte, error) {
	if !c.bare {
		carried, err := w.configured(ctx)
		if err != nil {
			return nil, err
		}
		c.config = append(slices.Clone(carried), c.config...)
	}
	out, err := w.o.run(ctx, w.call(c))
	return out, w.usable(ctx, err)
}

// call is a run of git on the workspace's repository and no other.
func (w *Workspace) call(c call) call {
	c.dir = cmp.Or(c.dir, w.root)
	c.config = slices.Concat(w.settings, c.config)
	c.env = append([]string{"GIT_DIR=" + w.gitDir, "GIT_WORK_TREE=" + c.dir}, c.env...) // of two, the later one counts
	return c
}

// records splits output whose records end in NUL.
func records(out []byte) []string {
	if len(out) == 0 {
		return nil
	}
	return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
}

// A capped writer fails past its bound, so that the process ends.
type capped struct {
	b    bytes.Buffer
	left int64
}

func (c *capped) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, errors.New("too much output")
	}
	return c.b.Write(p)
}

// A tail keeps the last of what is written.
type tail struct{ b []byte }

func (t *tail) Write(p []byte) (int, error) {
	const most = 4096
	t.b = append(t.b, p...)
	if len(t.b) > most {
		t.b = slices.Clone(t.b[len(t.b)-most:])
	}
	return len(p), nil
}
