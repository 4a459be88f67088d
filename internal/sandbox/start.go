package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A Command is one that was started. Its methods may be called at once
// by several goroutines.
type Command struct {
	backend Backend
	network bool
	cmd     *exec.Cmd
	report  *os.File // the supervisor's report arrives here
	info    *os.File // bwrap says here which process is pid 1; else nil
	done    chan struct{}

	status Status // valid when done is closed
	err    error

	mu      sync.Mutex
	control *os.File // nil once the supervisor has ended
}

// Start starts a command by a backend that Probe has found to work. It
// returns when the supervisor has been started: that the command itself could
// not be is told by Wait. An error is the machine's or the caller's fault and
// never the command's. The caller must Wait.
func Start(b Backend, s Spec) (*Command, error) {
	if err := s.check(b); err != nil {
		return nil, err
	}
	o, err := s.order(b)
	if err != nil {
		return nil, err
	}
	config, err := o.file()
	if err != nil {
		return nil, err
	}
	defer config.Close()
	c := &Command{backend: b, network: s.Network, done: make(chan struct{})}
	theirs, err := c.pipes()
	if err == nil {
		c.cmd, err = command(b, o)
	}
	if err == nil {
		c.cmd.Env = append([]string{}, s.Env...) // nil would be ours
		c.cmd.Dir = "/"
		c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = reader(s.Stdin), writer(s.Stdout), writer(s.Stderr)
		c.cmd.ExtraFiles = append([]*os.File{config}, theirs...)
		if c.info != nil {
			// Should this process end first, bwrap must not by SIGPIPE.
			c.cmd.ExtraFiles = append(c.cmd.ExtraFiles, c.info)
		}
		started := make(chan error)
		go c.own(started)
		err = <-started
	}
	closeAll(theirs...)
	if err != nil {
		closeAll(c.control, c.report, c.info)
		return nil, fmt.Errorf("sandbox: start %s: %w", b, err)
	}
	return c, nil
}

// pipes makes the pipes to and from the supervisor and returns its ends, to be
// inherited as controlFD, statusFD and infoFD.
func (c *Command) pipes() (theirs []*os.File, err error) {
	add := func(ours **os.File, write bool) {
		if err != nil {
			return
		}
		var r, w *os.File
		if r, w, err = os.Pipe(); err != nil {
			return
		}
		if write {
			r, w = w, r
		}
		*ours = r
		theirs = append(theirs, w)
	}
	add(&c.control, true)
	add(&c.report, false)
	if c.backend == Bubblewrap {
		add(&c.info, false)
	}
	return theirs, err
}

func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			f.Close()
		}
	}
}

// reader and writer keep a nil file from becoming a non-nil interface.
func reader(f *os.File) io.Reader {
	if f == nil {
		return nil
	}
	return f
}

func writer(f *os.File) io.Writer {
	if f == nil {
		return nil
	}
	return f
}

// check refuses a Spec that can not be run.
func (s Spec) check(b Backend) error {
	switch {
	case b.Level() == None:
		return fmt.Errorf("sandbox: no backend %q", b)
	case len(s.Argv) == 0:
		return errors.New("sandbox: no command")
	case len(s.Overlays) > 0 && b != UserNS:
		return fmt.Errorf("sandbox: %s cannot make an overlay", b)
	}
	for _, v := range s.Overlays {
		if err := overlayable(v); err != nil {
			return err
		}
	}
	for _, p := range s.paths() {
		if !filepath.IsAbs(p) || filepath.Clean(p) != p || strings.ContainsRune(p, 0) {
			return fmt.Errorf("sandbox: %q is no clean absolute path", p)
		}
	}
	// A link would lead elsewhere in the sandbox than here.
	for _, p := range append(slices.Clone(s.ReadOnly), s.ReadWrite...) {
		if real, err := filepath.EvalSymlinks(p); err != nil {
			return fmt.Errorf("sandbox: %w", err)
		} else if real != p {
			return fmt.Errorf("sandbox: %q leads through a symbolic link, to %q", p, real)
		}
	}
	return nil
}

// paths lists all paths of s.
func (s Spec) paths() []string {
	list := append([]string{s.Path, s.Dir}, s.ReadWrite...)
	list = append(list, s.ReadOnly...)
	for _, v := range s.Overlays {
		list = append(list, v.Lower, v.Scratch, v.At)
	}
	return list
}

// own starts the supervisor and waits for it. One thread does both, and does
// nothing else: the kernel ends the supervisor with the thread that started
// it.
func (c *Command) own(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := c.cmd.Start(); err != nil {
		started <- err
		return
	}
	started <- nil
	defer close(c.done)
	first, err := c.first()
	if err == nil && first >= 0 {
		defer unix.Close(first)
	}
	waitErr := errors.Join(err, c.cmd.Wait())
	c.mu.Lock()
	c.control.Close()
	c.control = nil
	c.mu.Unlock()

	defer c.report.Close()
	var rep report
	late := time.AfterFunc(endWait, func() { c.report.SetReadDeadline(time.Unix(1, 0)) })
	defer late.Stop()
	if waitErr != nil {
		c.gone(first) // or its report could be waited for in vain
	}
	if err = json.NewDecoder(io.LimitReader(c.report, 1<<20)).Decode(&rep); err != nil {
		c.status = Status{Code: -1, Backend: c.backend, Level: None, TreeEnded: c.gone(first)}
		c.err = fmt.Errorf("sandbox: %s: the supervisor ended without a report (%v, %v)", c.backend, waitErr, err)
		return
	}
	c.status, c.err = c.judge(rep)
}

// first returns a descriptor of the process that bwrap made pid 1, and -1 if
// it is not bwrap that was started or it made none.
func (c *Command) first() (int, error) {
	if c.info == nil {
		return -1, nil
	}
	defer c.info.Close()
	var info struct {
		PID int `json:"child-pid"`
	}
	if err := json.NewDecoder(io.LimitReader(c.info, 1<<16)).Decode(&info); err != nil {
		return -1, nil // bwrap failed before; its status and its words say why
	}
	fd, err := unix.PidfdOpen(info.PID, 0)
	if err != nil {
		return -1, fmt.Errorf("pidfd_open: %w", err)
	}
	if parent, _ := parentOf(info.PID); parent != c.cmd.Process.Pid {
		unix.Close(fd)
		return -1, nil // it has ended, and its number may be another's
	}
	return fd, nil
}

// gone reports whether nothing of the command is left after its supervisor
// ended without a report. Of a PID namespace nothing outlives pid 1.
func (c *Command) gone(first int) bool {
	switch {
	case c.backend == UserNS:
		return true // that was pid 1
	case c.backend == Bubblewrap && first >= 0:
		// bwrap may have been killed, which by itself does not end pid 1.
		if err := unix.PidfdSendSignal(first, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
			return false
		}
		return awaitEnd(first) == nil
	}
	return false
}

// judge makes a status of what the supervisor said.
func (c *Command) judge(rep report) (Status, error) {
	st := Status{Code: -1, Backend: c.backend, Level: None}
	if rep.StartError != "" {
		st.TreeEnded = true
		return st, &StartError{Backend: c.backend, Reason: rep.StartError}
	}
	here, err := namespaces()
	if err != nil {
		return st, fmt.Errorf("sandbox: %w", err)
	}
	st.Level, st.Network = c.observed(rep, here)
	st.Code, st.TreeEnded, st.Exceeded = rep.Code, rep.TreeEnded, rep.Exceeded
	if rep.Signal != 0 {
		st.Code, st.Signal = -1, unix.SignalName(syscall.Signal(rep.Signal))
	}
	return st, nil
}

// observed returns the level and the network that a run really had.
func (c *Command) observed(rep report, here map[string]string) (Level, string) {
	own := func(kind string) bool { return rep.Namespaces[kind] != "" && rep.Namespaces[kind] != here[kind] }
	network := "shared"
	switch {
	case own("net"):
		network = "own"
	case rep.Landlocked && !c.network:
		network = "tcp_refused"
	}
	switch {
	case own("user") && own("pid") && own("mnt") && own("ipc") && own("uts") && (c.network || network == "own"):
		return Namespace, network
	case rep.Landlocked:
		return Landlock, network
	}
	return Process, network
}

// A StartError says why a command could not be started inside its sandbox.
type StartError struct {
	Backend Backend
	Reason  string
}

func (e *StartError) Error() string { return fmt.Sprintf("sandbox: %s: %s", e.Backend, e.Reason) }

// Terminate asks the command to end, by SIGTERM to its process group.
func (c *Command) Terminate() error { return c.tell(askToEnd) }

// Kill ends every process that the command started.
func (c *Command) Kill() error { return c.tell(killTree) }

// tell sends a control byte. A supervisor that has ended needs none.
func (c *Command) tell(b byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control == nil {
		return nil
	}
	if _, err := c.control.Write([]byte{b}); err != nil && !errors.Is(err, unix.EPIPE) {
		return fmt.Errorf("sandbox: tell the supervisor: %w", err)
	}
	return nil
}

// Destroy ends the supervisor itself, for when Kill had no effect: the command
// may have stopped it, where the two share a PID namespace.
func (c *Command) Destroy() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.control == nil {
		return nil
	}
	// Stopped, it starts nothing behind our back, and does not end: its number
	// stays its own.
	err := c.cmd.Process.Signal(unix.SIGSTOP)
	if err == nil && c.backend != UserNS {
		err = killDescendants(c.cmd.Process.Pid)
	}
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	if kill := c.cmd.Process.Kill(); kill != nil && !errors.Is(kill, os.ErrProcessDone) {
		err = errors.Join(err, kill)
	}
	return err
}

// Done is closed when the command and, so far as it can be known, its whole
// tree have ended.
func (c *Command) Done() <-chan struct{} { return c.done }

// Wait waits for Done. An error, a *StartError among them, means that how the
// command ended is not known or that it never ran; Status.TreeEnded is right
// in any case.
func (c *Command) Wait() (Status, error) {
	<-c.done
	return c.status, c.err
}
