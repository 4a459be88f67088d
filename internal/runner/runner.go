// Package runner runs one command of a test on one tree, isolated and bounded,
// and says how it ended.
//
// What always holds:
//
//   - A Result is passed only if the command ran and exited 0, and failed only
//     if it ran and did not: whatever this service or this machine could not do
//     is an error, with the reason.
//   - The command gets no shell, no variable of this process's environment, and
//     none of its descriptors; its home, temporary files and caches are its own
//     and are gone when Run returns.
//   - Memory is bounded by the output to be kept, whatever the command prints.
//   - When Run returns, the command's process tree has ended, or
//     Isolation.TreeEnded is false.
package runner

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/sandbox"
)

// A State is how a run ended.
type State string

// The states.
const (
	Passed    State = "passed"    // exited 0
	Failed    State = "failed"    // exited otherwise, or was ended by a signal that is not this package's
	Error     State = "error"     // could not be run, or how it ended is not known: says nothing about the tree
	TimedOut  State = "timed_out" // ended because its time was up
	Cancelled State = "cancelled" // ended because the context was
)

// The defaults of a Spec.
const (
	DefaultTimeout   = 10 * time.Minute
	DefaultMaxOutput = 10 << 20
)

// DefaultLimits returns the limits of a run where the service's settings do not
// say otherwise.
func DefaultLimits() sandbox.Limits {
	return sandbox.Limits{FileSize: 2 << 30, OpenFiles: 4096, Processes: 1024, Memory: 4 << 30, CPU: time.Hour, Temp: 1 << 30}
}

// Options are the service's settings. Dir, Clock and Report are required.
type Options struct {
	Dir   string           // absolute; each run's home, caches and temporary files lie below it while it runs
	Clock func() time.Time // stamps results

	// Report says what the machine can do: see sandbox.Probe. It is asked before
	// the first run, since finding out takes a while, and not again once it has
	// answered.
	Report func(context.Context) (sandbox.Report, error)

	// A command that cannot be run at MinLevel is not run, and its result is an
	// error. MaxLevel, if set, keeps from using more than that.
	MinLevel, MaxLevel sandbox.Level

	Path       []string      // directories of executables; nil is DefaultPath
	ReadOnly   []string      // what every command may read beside the system's files
	Go         GoCaches      // the host's caches of Go to use
	Grace      time.Duration // between SIGTERM and SIGKILL; 0 is 2 s
	DiskMargin uint64        // bytes that must stay free on Dir's and the tree's disks; 0 is 64 MiB
}

// A Spec is one run.
type Spec struct {
	Argv    []string // see Split and Allowed, which the caller has called
	Tree    string   // absolute; the command may change it, so it is a copy
	WorkDir string   // where in the tree it starts; empty is the top

	Env       map[string]string // more variables; see CheckEnv, which the caller has called
	Network   bool
	Timeout   time.Duration // 0 is DefaultTimeout
	MaxOutput int           // bytes of output kept, half of it head and half tail; 0 is DefaultMaxOutput
	Limits    sandbox.Limits

	// Live, if set, gets all output as it comes, from one goroutine, before Run
	// returns. The bytes are only valid during the call, which must not block:
	// the command waits for it.
	Live func(output []byte)
}

// Isolation is what a run really ran under.
type Isolation struct {
	Level     sandbox.Level
	Backend   sandbox.Backend
	Network   string // see sandbox.Status
	TreeEnded bool   // every process of the run is known to have ended
}

// A Result is how a run ended. Fields that nothing is known about are zero.
type Result struct {
	State      State
	Reason     string // for people: why the state is not passed
	Code       string // for programs: of an error, such as executable_missing
	Executable string // absolute path
	ExitCode   int    // -1 if the command did not exit by itself
	Signal     string // that ended it, such as SIGKILL

	Started, Ended time.Time
	Duration       time.Duration

	Output    Output
	Summary   string
	Isolation Isolation

	EnvDigest string   // see environment.digest
	EnvNames  []string // of the variables the command had, sorted
	Limits    sandbox.Limits
	Timeout   time.Duration
	MaxOutput int
}

// A Runner runs commands by one set of options. It may be used by several
// goroutines at once.
type Runner struct {
	o Options

	asking sync.Mutex
	report *sandbox.Report // nil before Report has answered
}

// can returns what the machine can do.
func (r *Runner) can(ctx context.Context) (sandbox.Report, error) {
	r.asking.Lock()
	defer r.asking.Unlock()
	if r.report == nil {
		report, err := r.o.Report(ctx)
		if err != nil {
			return report, problemf("isolation_unavailable", "how this machine can isolate commands could not be found out: %w", err)
		}
		r.report = &report
	}
	return *r.report, nil
}

// New returns a Runner.
func New(o Options) (*Runner, error) {
	switch {
	case !filepath.IsAbs(o.Dir):
		return nil, fmt.Errorf("runner: directory %q is not absolute", o.Dir)
	case o.Clock == nil:
		return nil, errors.New("runner: no clock")
	case o.Report == nil:
		return nil, errors.New("runner: nothing says what the machine can do")
	}
	var err error
	for _, dir := range append(o.Go.paths(), &o.Dir) {
		if *dir == "" {
			continue
		}
		if *dir, err = filepath.EvalSymlinks(*dir); err != nil {
			return nil, fmt.Errorf("runner: %w", err)
		}
	}
	o.ReadOnly = slices.Clone(o.ReadOnly)
	for i := range o.ReadOnly {
		if o.ReadOnly[i], err = filepath.EvalSymlinks(o.ReadOnly[i]); err != nil {
			return nil, fmt.Errorf("runner: %w", err)
		}
	}
	if o.MinLevel == "" {
		o.MinLevel = sandbox.Process
	}
	if o.MaxLevel == "" {
		o.MaxLevel = sandbox.Namespace
	}
	if o.Path == nil {
		o.Path = DefaultPath()
	}
	if o.Go.Root != "" {
		o.Path = append([]string{filepath.Join(o.Go.Root, "bin")}, o.Path...)
	}
	if o.Grace == 0 {
		o.Grace = 2 * time.Second
	}
	if o.DiskMargin == 0 {
		o.DiskMargin = 64 << 20
	}
	return &Runner{o: o}, nil
}

// A problem is why a run is an error.
type problem struct {
	code string
	err  error
}

func (p *problem) Error() string { return p.err.Error() }

func problemf(code, format string, args ...any) *problem {
	return &problem{code, fmt.Errorf(format, args...)}
}

// Run runs one command and returns how it ended. It blocks until then; to
// cancel ctx ends the command.
func (r *Runner) Run(ctx context.Context, s Spec) Result {
	if s.Timeout <= 0 {
		s.Timeout = DefaultTimeout
	}
	if s.MaxOutput <= 0 {
		s.MaxOutput = DefaultMaxOutput
	}
	if s.Limits == (sandbox.Limits{}) {
		s.Limits = DefaultLimits()
	}
	res := Result{
		State: Error, ExitCode: -1, Started: r.o.Clock(), Summary: NoOutput,
		Limits: s.Limits, Timeout: s.Timeout, MaxOutput: s.MaxOutput,
		Isolation: Isolation{Level: sandbox.None, TreeEnded: true},
		Output:    newCollector(s.MaxOutput).output(),
	}
	err := r.run(ctx, s, &res)
	res.Ended = r.o.Clock()
	res.Duration = max(0, res.Ended.Sub(res.Started))
	if p, ok := errors.AsType[*problem](err); ok {
		res.State, res.Code, res.Reason = Error, p.code, p.Error()
	} else if err != nil {
		res.State, res.Code, res.Reason = Error, fault.CodeOf(err), err.Error()
	}
	return res
}

// run does it in a scratch directory.
func (r *Runner) run(ctx context.Context, s Spec, res *Result) (err error) {
	if ctx.Err() != nil {
		res.State, res.Reason = Cancelled, "cancelled before it was started"
		return nil
	}
	job, err := r.prepare(ctx, s, res)
	if err != nil {
		if ctx.Err() != nil {
			res.State, res.Reason = Cancelled, "cancelled before it was started"
			return nil
		}
		return err
	}
	defer func() {
		if gone := job.scratch.remove(); gone != nil && err == nil {
			err = problemf("scratch_left", "the run's own files could not be removed: %v", gone)
		}
	}()
	return r.execute(ctx, s, job, res)
}

// A job is a run that is ready to be started.
type job struct {
	backend sandbox.Backend
	spec    sandbox.Spec
	scratch scratch
}

// prepare finds the executable, the isolation and the room that a run needs.
func (r *Runner) prepare(ctx context.Context, s Spec, res *Result) (job, error) {
	var j job
	if len(s.Argv) == 0 {
		return j, problemf("command_empty", "the command is empty")
	}
	tree, err := filepath.EvalSymlinks(s.Tree)
	if err != nil || !filepath.IsAbs(s.Tree) {
		return j, problemf("tree_missing", "the tree %q to run on cannot be used: %v", s.Tree, err)
	}
	dir, err := workDir(tree, s.WorkDir)
	if err != nil {
		return j, err
	}
	res.Executable, err = resolve(s.Argv[0], r.o.Path, tree)
	if err != nil {
		return j, problemf("executable_missing", "the command cannot be run: %v", err)
	}
	overlay := r.o.Go.overlay()
	report, err := r.can(ctx)
	if err != nil {
		return j, err
	}
	backend, ok := report.Choose(r.o.MaxLevel, overlay)
	if !ok || !backend.Level().AtLeast(r.o.MinLevel) {
		return j, problemf("isolation_unavailable", "this machine cannot isolate commands at level %s (it reaches %s); roundtable doctor says why", r.o.MinLevel, report.Level)
	}
	for _, d := range []string{r.o.Dir, tree} {
		if err := r.roomOn(d); err != nil {
			return j, err
		}
	}
	j.backend = backend
	if j.scratch, err = newScratch(r.o.Dir); err != nil {
		return j, problemf("scratch_failed", "no directory for the run: %v", err)
	}
	j.spec = sandbox.Spec{
		Path: res.Executable, Argv: s.Argv, Dir: dir, Network: s.Network, Limits: s.Limits,
		ReadWrite: []string{tree, j.scratch.dir},
		ReadOnly:  append(r.o.Go.readOnly(), r.o.ReadOnly...),
	}
	env := r.environment(s, j.scratch)
	if err := r.o.Go.cacheInto(env, &j.spec, backend, j.scratch); err != nil {
		return j, errors.Join(problemf("scratch_failed", "no build cache for the run: %v", err), j.scratch.remove())
	}
	j.spec.Env = env.list()
	res.EnvNames = slices.Sorted(maps.Keys(env))
	res.EnvDigest = env.digest(map[string]string{tree: "$TREE", j.scratch.dir: "$RUN"}, res.Executable, backend)
	return j, nil
}

// execute starts the job and follows it to its end.
func (r *Runner) execute(ctx context.Context, s Spec, j job, res *Result) error {
	pr, pw, err := os.Pipe()
	if err != nil {
		return problemf("sandbox_failed", "%w", err)
	}
	defer pr.Close()
	j.spec.Stdout, j.spec.Stderr = pw, pw
	cmd, err := sandbox.Start(j.backend, j.spec)
	pw.Close()
	if err != nil {
		return problemf("sandbox_failed", "the sandbox could not be started: %w", err)
	}
	reading := read(pr, s)
	stopped := r.await(ctx, s.Timeout, cmd)
	st, waitErr := cmd.Wait()
	res.Output = reading.finish()
	res.Summary = res.Output.Summary()
	res.Isolation = Isolation{Level: st.Level, Backend: st.Backend, Network: st.Network, TreeEnded: st.TreeEnded}
	res.ExitCode, res.Signal = st.Code, st.Signal
	return r.judge(s, j, res, st.Exceeded, stopped, waitErr)
}

// judge sets the state.
func (r *Runner) judge(s Spec, j job, res *Result, exceeded string, stopped State, waitErr error) error {
	start, notStarted := errors.AsType[*sandbox.StartError](waitErr)
	switch {
	case stopped == TimedOut:
		res.State, res.Reason = TimedOut, fmt.Sprintf("ended after its time limit of %v", s.Timeout)
	case stopped == Cancelled:
		res.State, res.Reason = Cancelled, "cancelled"
	case notStarted:
		return problemf("sandbox_failed", "the command could not be started: %s", start.Reason)
	case waitErr != nil:
		return problemf("sandbox_failed", "how the command ended is not known: %v", waitErr)
	case !res.Isolation.Level.AtLeast(r.o.MinLevel):
		return problemf("isolation_lost", "the command ran at isolation level %s, below %s", res.Isolation.Level, r.o.MinLevel)
	case res.ExitCode == 0:
		res.State = Passed
	default:
		for _, d := range []string{j.scratch.dir, s.Tree} {
			if err := r.roomOn(d); err != nil {
				return err // what the command made of that says nothing about the tree
			}
		}
		res.State, res.Reason = Failed, failure(res, exceeded)
	}
	return nil
}

func failure(res *Result, exceeded string) string {
	switch exceeded {
	case sandbox.ExceededMemory:
		return fmt.Sprintf("ended: it took more than %d bytes of memory", res.Limits.Memory)
	case sandbox.ExceededProcesses:
		return fmt.Sprintf("ended: it had more than %d processes and threads", res.Limits.Processes)
	}
	switch res.Signal {
	case "":
		return fmt.Sprintf("exit status %d", res.ExitCode)
	case "SIGXFSZ":
		return "ended by SIGXFSZ: a file grew past the limit"
	case "SIGXCPU":
		return "ended by SIGXCPU: its processor time was used up"
	}
	return "ended by " + res.Signal
}
