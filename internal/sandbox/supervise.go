package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// The names under which this program is run again.
const (
	superviseArg = "roundtable-sandbox-supervise"
	execArg      = "roundtable-sandbox-exec"
	probeArg     = "roundtable-sandbox-probe"
)

// Main does the work of this program when it was started by this package, and
// reports that it did and the status to exit with. The program's main, and
// TestMain of a test that runs commands, must call it first with os.Args.
func Main(args []string) (status int, handled bool) {
	if len(args) < 2 {
		return 0, false
	}
	switch args[1] {
	case superviseArg:
		status = supervise()
	case execArg:
		status = execute()
	case probeArg:
		status = observe(os.Stdout, args[2:])
	default:
		return 0, false
	}
	// At once: somebody waits for it, and what a runtime does at an orderly exit
	// (the race detector takes a second) is of no use to anyone here.
	unix.Exit(status)
	return status, true
}

// A supervisor is the process between the one that ordered a command and the
// command: pid 1 of its namespace, or a subreaper.
type supervisor struct {
	order order

	mu    sync.Mutex
	child int // 0 once it has been reaped: its number may then be another's

	exceeded atomic.Value // string: the limit that was passed
}

// supervise runs the order it inherited and reports on statusFD. The exit
// status says nothing.
func supervise() int {
	status := os.NewFile(statusFD, "status")
	var rep report
	err := closeFrom(configFD)
	if err == nil {
		rep, err = superviseOrder()
	}
	if err != nil {
		rep.StartError = err.Error()
	}
	if err := json.NewEncoder(status).Encode(rep); err != nil {
		return 1
	}
	return 0
}

func superviseOrder() (report, error) {
	var rep report
	o, err := readOrder(configFD)
	if err != nil {
		return rep, fmt.Errorf("read the order: %w", err)
	}
	// Nobody inside may look into this process, or report in its name.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return rep, fmt.Errorf("prctl(dumpable): %w", err)
	}
	if rep.Namespaces, err = namespaces(); err != nil {
		return rep, err
	}
	if o.Backend == UserNS {
		if err := o.mount(); err != nil {
			return rep, err
		}
	}
	if os.Getpid() != 1 {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return rep, fmt.Errorf("prctl(subreaper): %w", err)
		}
	}
	s := &supervisor{order: o}
	// Caught, so that they do not end this process, and not ignored, which the
	// command would inherit.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
	if err := s.start(); err != nil {
		return rep, err
	}
	rep.Landlocked = o.Backend == LandlockLSM
	go s.obey(os.NewFile(controlFD, "control"), caught)
	stop, watching := make(chan struct{}), sync.WaitGroup{}
	watching.Go(func() { s.watch(stop) })
	ws, err := s.await()
	close(stop)
	watching.Wait()
	if err != nil {
		return rep, err
	}
	rep.Exceeded, _ = s.exceeded.Load().(string)
	rep.Code = ws.ExitStatus()
	if ws.Signaled() {
		rep.Signal = int(ws.Signal())
	}
	rep.TreeEnded = s.endTree()
	return rep, nil
}

// start starts the command and returns when it runs, or why it does not.
func (s *supervisor) start() error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	defer r.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"sandbox", execArg}, &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{0, 1, 2, configFD, w.Fd()},
		Sys:   &syscall.SysProcAttr{Setsid: true},
	})
	w.Close()
	if err != nil {
		return fmt.Errorf("start the command's process: %w", err)
	}
	s.child = pid
	// The output ends when the command's ends of it do.
	null, err := os.OpenFile("/dev/null", os.O_RDWR, 0)
	if err != nil {
		return err
	}
	for fd := range 3 {
		if err := unix.Dup3(int(null.Fd()), fd, 0); err != nil {
			return fmt.Errorf("dup: %w", err)
		}
	}
	said, err := io.ReadAll(r)
	why, attempted := strings.CutPrefix(string(said), ready)
	switch {
	case err != nil:
		return fmt.Errorf("read whether the command runs: %w", err)
	case why != "":
		return errors.New(why)
	case !attempted:
		return errors.New("the command's process ended before it became the command")
	}
	return nil
}

// obey does what control says until it ends, which means: kill.
func (s *supervisor) obey(control io.Reader, caught <-chan os.Signal) {
	go func() {
		<-caught // this process's parent died, or somebody wants it to end
		s.killAll()
	}()
	for b := []byte{0}; ; {
		if _, err := io.ReadFull(control, b); err != nil || b[0] == killTree {
			s.killAll()
			return
		}
		s.mu.Lock()
		if s.child != 0 {
			unix.Kill(-s.child, unix.SIGTERM) // ESRCH: it has just ended
		}
		s.mu.Unlock()
	}
}

// await reaps until the command itself has ended.
func (s *supervisor) await() (syscall.WaitStatus, error) {
	for {
		var ws syscall.WaitStatus
		// Look first and reap under the lock, so that obey never signals a
		// number that is no longer the command's.
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return ws, fmt.Errorf("wait: %w", err)
		}
		s.mu.Lock()
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		if pid == s.child && err == nil {
			s.child = 0
		}
		done := s.child == 0
		s.mu.Unlock()
		if err != nil && err != syscall.EINTR {
			return ws, fmt.Errorf("wait: %w", err)
		}
		if done {
			return ws, nil
		}
	}
}

// endTree kills what is left and reports whether nothing is.
func (s *supervisor) endTree() bool {
	for {
		if err := s.killAll(); err != nil {
			return false
		}
		for options := 0; ; options = syscall.WNOHANG {
			pid, err := syscall.Wait4(-1, nil, options, nil)
			if err == syscall.ECHILD {
				return true
			}
			if pid == 0 || err != nil && err != syscall.EINTR {
				break // the rest has not ended yet, or is new
			}
		}
	}
}

// killAll kills every process that this one is the root of.
func (s *supervisor) killAll() error {
	if os.Getpid() == 1 && s.order.Backend.Level() == Namespace {
		// All of the namespace but this process, in one step.
		if err := unix.Kill(-1, unix.SIGKILL); err != nil && err != unix.ESRCH {
			return err
		}
		return nil
	}
	return killDescendants(os.Getpid())
}
