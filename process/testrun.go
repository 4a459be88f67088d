package process

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
	"roundtable/internal/redact"
	"roundtable/internal/runner"
	"roundtable/internal/world"
)

// testManager: a test run was requested, so run it.
var testManager = Manager{
	Name: "test",
	React: func(e events.Event) []Job {
		if r, ok := e.Payload.(events.TestRunRequested); ok {
			return []Job{{Kind: "test", Data: r}}
		}
		return nil
	},
}

// A Tester runs tests on trees of their own.
type Tester struct {
	Handler *commands.Handler
	World   *world.World
	Runner  *runner.Runner
	Dir     string // trees are made below it and removed
	Slots   int
	Log     *slog.Logger
	Now     func() time.Time
}

// Worker returns the worker for jobs of kind test.
func (t Tester) Worker() Worker { return Worker{Kind: "test", Slots: t.Slots, Do: t.do} }

// do runs a test once. One that a dead process had begun is interrupted: it is
// not begun again, since nobody knows what it did.
func (t Tester) do(ctx context.Context, j eventlog.Job) error {
	var r events.TestRunRequested
	if err := json.Unmarshal(j.Data, &r); err != nil {
		return err
	}
	run, err := t.Handler.TestRun(ctx, r.TestRun)
	switch {
	case err != nil:
		return err
	case run.Done():
		return os.RemoveAll(t.dir(r))
	case run.State == domain.Running:
		return t.finish(ctx, j, r, events.TestRunFinished{State: domain.Interrupted, Reason: "the service stopped while it ran", Tree: run.Tree, Summary: domain.NoOutput})
	}
	tree, err := t.prepare(ctx, r)
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal && f.Kind != fault.Unavailable {
		return t.finish(ctx, j, r, events.TestRunFinished{State: "error", Reason: "there is no candidate tree: " + f.Detail, Summary: domain.NoOutput})
	} else if err != nil {
		return err
	}
	res, err := t.Handler.Do(ctx, report(j, "start"), commands.StartTest{TestRunStarted: events.TestRunStarted{TestRun: r.TestRun, Tree: tree}})
	if err != nil {
		return err
	}
	if res.IDs["begun"] == "" || res.Repeated {
		return os.RemoveAll(t.dir(r)) // cancelled meanwhile
	}
	return t.run(ctx, j, r, tree)
}

func (t Tester) dir(r events.TestRunRequested) string { return filepath.Join(t.Dir, r.TestRun) }

// prepare makes the tree in an empty folder of its own.
func (t Tester) prepare(ctx context.Context, r events.TestRunRequested) (tree string, err error) {
	root, err := t.Handler.Root(ctx, r.Workspace)
	if err != nil {
		return "", err
	}
	var data []byte
	if r.PatchDigest != "" {
		if data, err = t.Handler.World.Kept(ctx, r.PatchDigest); err != nil {
			return "", err
		}
	}
	if err := os.RemoveAll(t.dir(r)); err != nil {
		return "", err
	}
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return "", err
	}
	return t.World.Materialise(ctx, root, data, t.dir(r))
}

// run runs the command until it ends, is cancelled, or the service stops.
func (t Tester) run(ctx context.Context, j eventlog.Job, r events.TestRunRequested, tree string) error {
	running, stop := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { t.cancelled(running, stop, r.TestRun) })
	out := t.Runner.Run(running, runner.Spec{Argv: r.Argv, Tree: t.dir(r), Timeout: time.Duration(r.Timeout) * time.Second})
	stop()
	watch.Wait()
	e := finished(out, tree)
	if out.State == runner.Cancelled && ctx.Err() != nil {
		e.State, e.Reason = domain.Interrupted, "the service was stopped, or gave the run up, while it ran"
	}
	after := context.WithoutCancel(ctx)
	log := redact.Bytes(out.Output.Bytes())
	if len(log) > 0 {
		var err error
		if e.LogDigest, err = t.Handler.World.Keep(after, log); err != nil {
			t.Log.ErrorContext(ctx, "test log not kept", "test_run", r.TestRun, "err", err)
			e.Reason = "its log could not be kept. " + e.Reason
		}
	}
	return t.finish(after, j, r, e)
}

func finished(out runner.Result, tree string) events.TestRunFinished {
	e := events.TestRunFinished{State: string(out.State), Reason: out.Reason, Tree: tree, Signal: out.Signal, DurationMS: out.Duration.Milliseconds(),
		Isolation: string(out.Isolation.Level), Environment: out.EnvDigest, OutputBytes: out.Output.Total, Summary: redact.Text(out.Summary)}
	if e.Summary == "" {
		e.Summary = domain.NoOutput
	}
	if out.ExitCode >= 0 && (out.State == runner.Passed || out.State == runner.Failed) {
		e.ExitCode = new(out.ExitCode)
	}
	if !out.Started.IsZero() {
		e.StartedAt, e.EndedAt = new(out.Started.UTC()), new(out.Ended.UTC())
	}
	return e
}

// cancelled stops the run once the log says that somebody wants it.
func (t Tester) cancelled(ctx context.Context, stop context.CancelFunc, id string) {
	for {
		changed := t.Handler.Log.Changed()
		if run, err := t.Handler.TestRun(ctx, id); err == nil && run.Cancelled {
			stop()
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// finish reports how the run ended and removes its tree.
func (t Tester) finish(ctx context.Context, j eventlog.Job, r events.TestRunRequested, e events.TestRunFinished) error {
	e.TestRun = r.TestRun
	ctx = context.WithoutCancel(ctx)
	if _, err := t.Handler.Do(ctx, report(j, "finish"), commands.FinishTest{TestRunFinished: e}); err != nil {
		return err
	}
	return os.RemoveAll(t.dir(r))
}
