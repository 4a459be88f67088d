// Package proc runs an agent as a child process and ends it for certain.
//
// What always holds: a process started here has been reaped when [Process.Stop]
// returns, and so have all of its descendants that could be found: those of its
// process group, those below it in the process tree, and those that still carry
// the mark that was put into its environment. Standard error is always drained,
// and its tail is kept. No goroutine and no file descriptor is left.
package proc

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// tailSize is how much of standard error is kept, in bytes.
const tailSize = 64 << 10

// markName is the variable by which descendants are found.
const markName = "ROUNDTABLE_ACP_PROCESS"

// A Command is what to start.
type Command struct {
	Argv   []string
	Dir    string    // "" means that of this process
	Env    []string  // nil means that of this process
	Stderr io.Writer // gets a copy; may be nil
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // -1 if a signal ended it
	Signal string // "" if none did
}

// String is the code or the signal in words.
func (e Exit) String() string {
	if e.Signal != "" {
		return "signal " + e.Signal
	}
	return fmt.Sprintf("exit code %d", e.Code)
}

// Step is the last step that was needed to end a process.
type Step string

// The steps, from the gentlest.
const (
	StepNone  Step = "none"  // it had ended by itself
	StepStdin Step = "stdin" // closing its input was enough
	StepTerm  Step = "term"  // SIGTERM was needed
	StepKill  Step = "kill"  // SIGKILL was needed
)

// A Report says how a stop went.
type Report struct {
	Step      Step
	Exit      Exit
	Survivors int // descendants that were still there after the process, and were killed
}

// A Process is a running agent.
type Process struct {
	Stdin  io.WriteCloser
	Stdout io.ReadCloser

	cmd    *exec.Cmd
	mark   string
	stderr *os.File
	tail   tail
	done   chan struct{} // closed when the process has been reaped
	exit   Exit          // set before done is closed
	quiet  chan struct{} // closed when standard error has been read to its end
	work   sync.WaitGroup

	once   sync.Once
	report Report
}

// Start starts a command in a process group of its own.
func Start(c Command) (*Process, error) {
	if len(c.Argv) == 0 {
		return nil, errors.New("no command")
	}
	p := &Process{mark: markName + "=" + rand.Text(), done: make(chan struct{}), quiet: make(chan struct{})}
	p.cmd = exec.Command(c.Argv[0], c.Argv[1:]...) //nolint:noctx // Stop ends it, by a ladder
	p.cmd.Dir, p.cmd.Env = c.Dir, c.Env
	p.cmd.Env = append(p.cmd.Environ(), p.mark)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var theirs []*os.File
	var ours []*os.File
	closeAll := func(files []*os.File) {
		for _, f := range files {
			f.Close()
		}
	}
	for _, to := range []func(r, w *os.File) (their, our *os.File){
		func(r, w *os.File) (*os.File, *os.File) { p.cmd.Stdin, p.Stdin = r, w; return r, w },
		func(r, w *os.File) (*os.File, *os.File) { p.cmd.Stdout, p.Stdout = w, r; return w, r },
		func(r, w *os.File) (*os.File, *os.File) { p.cmd.Stderr, p.stderr = w, r; return w, r },
	} {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(append(theirs, ours...))
			return nil, err
		}
		their, our := to(r, w)
		theirs, ours = append(theirs, their), append(ours, our)
	}
	err := p.cmd.Start()
	closeAll(theirs)
	if err != nil {
		closeAll(ours)
		return nil, fmt.Errorf("start %s: %w", c.Argv[0], err)
	}
	p.work.Go(p.wait)
	p.work.Go(func() { p.drain(c.Stderr) })
	return p, nil
}

func (p *Process) wait() {
	defer close(p.done)
	err := p.cmd.Wait() // all streams are files: it waits for the process only
	p.exit = Exit{Code: p.cmd.ProcessState.ExitCode()}
	if status, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.exit.Signal = signalName(status.Signal())
	}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.exit = Exit{Code: -1, Signal: err.Error()}
	}
}

// drain ends when everybody who has standard error is gone, or with Stop.
func (p *Process) drain(to io.Writer) {
	defer close(p.quiet)
	buf := make([]byte, 16<<10)
	for {
		n, err := p.stderr.Read(buf)
		p.tail.write(buf[:n])
		if to != nil && n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				to = nil
			}
		}
		if err != nil {
			return
		}
	}
}

// PID is the process id, which is that of its group too.
func (p *Process) PID() int { return p.cmd.Process.Pid }

// Mark is the environment variable by which descendants are found. What runs
// on behalf of the process carries it too, and ends with it.
func (p *Process) Mark() string { return p.mark }

// Done is closed when the process has ended and has been reaped.
func (p *Process) Done() <-chan struct{} { return p.done }

// Exit is how it ended; valid once Done is closed.
func (p *Process) Exit() Exit { return p.exit }

// Tail is the end of what it wrote to standard error, at most 64 KiB. Of a
// process that has ended it is complete, unless another one keeps writing.
func (p *Process) Tail() string {
	if p.ended() {
		p.hush()
	}
	return p.tail.String()
}

// hush waits a little for the end of standard error.
func (p *Process) hush() {
	timer := time.NewTimer(200 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-p.quiet:
	case <-timer.C:
	}
}

// Stop ends the process: it closes its input, waits for grace, sends SIGTERM to
// its group, waits as long again but at most two seconds, and kills its group
// and all descendants. A ctx that ends shortens the waits to nothing. Only the
// first call does anything; all return its report.
func (p *Process) Stop(ctx context.Context, grace time.Duration) Report {
	p.once.Do(func() { p.report = p.stop(ctx, grace) })
	return p.report
}

func (p *Process) stop(ctx context.Context, grace time.Duration) Report {
	r := Report{Step: StepNone}
	descendants := p.descendants() // while their parents are there to be followed
	if !p.ended() {
		r.Step = StepStdin
	}
	p.Stdin.Close()
	if !p.within(ctx, grace) {
		r.Step = StepTerm
		descendants = append(descendants, p.descendants()...)
		p.signal(syscall.SIGTERM)
		if !p.within(ctx, min(grace, 2*time.Second)) {
			r.Step = StepKill
		}
	}
	r.Survivors = p.killAll(descendants)
	<-p.done
	p.Stdout.Close()
	p.hush()
	p.stderr.Close() // whoever else has it must not hold us up
	p.work.Wait()
	r.Exit = p.exit
	return r
}

func (p *Process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

func (p *Process) within(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return p.ended()
}

// signal reaches the whole group; that the group is gone is no error.
func (p *Process) signal(s syscall.Signal) bool { return syscall.Kill(-p.PID(), s) == nil }

// tail keeps the end of what is written to it.
type tail struct {
	mu  sync.Mutex
	buf []byte
}

func (t *tail) write(b []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*tailSize {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailSize:]...)
	}
}

// String is what was kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf[max(0, len(t.buf)-tailSize):])
}
