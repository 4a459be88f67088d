package process

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
	"roundtable/internal/repo"
	"roundtable/internal/world"
)

// applyManager: an apply was requested, so apply.
var applyManager = Manager{
	Name: "apply",
	React: func(e events.Event) []Job {
		if r, ok := e.Payload.(events.TransactionApplyRequested); ok {
			return []Job{{Kind: "apply", Data: r}}
		}
		return nil
	},
}

// maxTries is how often an apply that fails by the service's own fault is
// tried before the transaction fails with it.
const maxTries = 5

// An Applier changes repositories.
type Applier struct {
	Handler *commands.Handler
	World   *world.World
	Steps   *Steps
	Log     *slog.Logger
	Now     func() time.Time
	Torn    bool // settle nothing: for the tests that show what settling is for
	Slots   int  // workspaces in which something is applied at once; 0 is 1
}

// Worker returns the worker for jobs of kind apply. Those of one workspace
// never meet: a job is made when its transaction has the turn.
func (a Applier) Worker() Worker { return Worker{Kind: "apply", Slots: a.Slots, Do: a.do} }

// Workers returns all workers that a's work needs.
func (a Applier) Workers() []Worker { return []Worker{a.Worker(), a.turnWorker(), a.resolveWorker()} }

// do looks how far the attempt is, in the log and then in the workspace, and
// goes on from there. While the workspace cannot be looked at, its outcome is
// not known and the job waits: a failure that was reported then could turn out
// to be an applied change.
func (a Applier) do(ctx context.Context, j eventlog.Job) error {
	var r events.TransactionApplyRequested
	if err := json.Unmarshal(j.Data, &r); err != nil {
		return err
	}
	if r.Request == "" { // of a version that did not note it
		r.Request = j.Meta.Correlation
	}
	t, err := a.Handler.Transaction(ctx, r.Transaction)
	if err != nil {
		return err
	}
	if t.State == domain.TxApplying && t.Attempt == r.Attempt {
		if err := a.hasTurn(ctx, j, r); err != nil {
			return err
		}
	}
	root, err := a.Handler.Root(ctx, r.Workspace)
	if err != nil {
		return err
	}
	space, err := a.World.Workspace(ctx, root)
	if err != nil {
		return err
	}
	if t.State != domain.TxApplying || t.Attempt != r.Attempt {
		return a.finish(ctx, space, t, r) // the outcome is in the log
	}
	marker, err := a.marker(ctx, r, space)
	switch {
	case err != nil:
		return err
	case marker == repo.Attention:
		defer a.Steps.end(r)
		return a.fail(ctx, j, r, a.Steps.begin(r, "finish", a.Now), attention())
	}
	return a.attempt(ctx, j, r, root, space, marker == repo.Committed)
}

// attempt plans and applies, or, of one that was committed before a crash,
// only reports.
func (a Applier) attempt(ctx context.Context, j eventlog.Job, r events.TransactionApplyRequested, root string, space *repo.Workspace, marked bool) error {
	begins := "validate"
	if marked {
		begins = "finish"
	}
	steps := a.Steps.begin(r, begins, a.Now)
	defer a.Steps.end(r)
	var plan repo.Plan
	var trees treeIDs
	if !marked {
		var err error
		if plan, trees, err = a.plan(ctx, r, root, space); err != nil {
			return a.giveUp(ctx, j, r, err)
		}
	}
	// From here on the attempt goes on to its end, whatever happens to ctx.
	ctx = context.WithoutCancel(ctx)
	receipt, err := space.Apply(ctx, r.Transaction, r.Attempt, plan)
	if err != nil && marked {
		return err // it is applied, whatever keeps the receipt from being read: never a failure
	}
	if err != nil {
		return a.giveUp(ctx, j, r, err)
	}
	done := events.TransactionApplied{Transaction: r.Transaction, Attempt: r.Attempt, BeforePaths: receipt.BeforeDigest, AfterPaths: receipt.AfterDigest,
		BeforeTree: trees.before, AfterTree: trees.after, Files: world.ChangedPaths(receipt.Before, receipt.After)}
	if receipt.Commit != "" {
		err = committed(ctx, space, receipt, &done)
	} else if marked {
		done.AfterTree, err = afterCrash(ctx, r, space)
	}
	if err != nil {
		return err
	}
	steps.to("finish")
	recovery := ""
	if marked {
		recovery = "recovered: it was committed before the service stopped"
	}
	steps.outcome(done)
	if _, err := a.Handler.Do(ctx, report(j, "applied"), commands.RecordApplied{TransactionApplied: done, Phases: steps.all(recovery)}); err != nil {
		return err
	}
	return a.finish(ctx, space, domain.Transaction{State: domain.TxApplied}, r)
}

// plan judges once more, on the files as they are now, what the gates judged:
// nobody else may have come to hold the resources, the paths must have the
// base's states, and the tree must be one that was tested.
func (a Applier) plan(ctx context.Context, r events.TransactionApplyRequested, root string, space *repo.Workspace) (plan repo.Plan, trees treeIDs, err error) {
	if err := a.Handler.Fenced(ctx, r); err != nil {
		return plan, trees, err
	}
	data, err := a.Handler.World.Kept(ctx, r.PatchDigest)
	if err != nil {
		return plan, trees, err
	}
	parent, err := space.Head(ctx)
	if err != nil {
		return plan, trees, err
	}
	if plan.Changes, err = a.World.Plan(ctx, root, data); err != nil {
		return plan, trees, err
	}
	// After the plan: what it read, sources of copies too, was as it was judged.
	now, err := a.Handler.World.Inspect(ctx, root, data)
	if err != nil {
		return plan, trees, err
	}
	if now.Base.PathsDigest != r.PathsDigest {
		return plan, trees, a.moved(ctx, r, now.Base)
	}
	tree, err := space.Candidate(ctx, plan.Changes)
	if err != nil {
		return plan, trees, err
	}
	if len(r.Tested) > 0 && !slices.Contains(r.Tested, tree.ID) {
		return plan, trees, fault.Errorf(fault.Conflict, "state.untested", "the tree would be %s, which is not the one that was tested", tree.ID)
	}
	trees.after = tree.ID
	if plan.Commit, err = a.commit(ctx, r, space, parent, tree.ID); err != nil {
		return plan, trees, err
	}
	was, err := space.Candidate(ctx, nil)
	trees.before = was.ID
	return plan, trees, err
}

// treeIDs are the ids of the whole tree before an attempt and, as it was
// planned and tested, after it.
type treeIDs struct{ before, after string }

// afterCrash gives the id of the tree after an attempt that was committed before
// the service stopped: the tested one, if there is just one, else the tree as it
// lies now, with what others have done in other paths since.
func afterCrash(ctx context.Context, r events.TransactionApplyRequested, space *repo.Workspace) (string, error) {
	if len(r.Tested) == 1 {
		return r.Tested[0], nil
	}
	tree, err := space.Candidate(ctx, nil)
	return tree.ID, err
}

// giveUp ends the attempt with err if it says something about the repository
// or the proposal; else the job stays and is tried again, a bounded number of
// times.
func (a Applier) giveUp(ctx context.Context, j eventlog.Job, r events.TransactionApplyRequested, err error) error {
	f, isFault := errors.AsType[*fault.Error](err)
	waits := isFault && (f.Code == "state.locked" || f.Code == "state.unknown")
	switch {
	case isFault && f.Kind != fault.Internal && !waits:
		if other, _ := f.Context["transaction_id"].(string); f.Code == domain.NeedsAttention && other != "" && other != r.Transaction {
			f = fault.Errorf(fault.Conflict, "state.closed", "these paths are closed until a person settles transaction %s", other).With("paths", f.Context["paths"])
		}
		return a.fail(ctx, j, r, a.Steps.of(r), f)
	case j.Attempt < maxTries || ctx.Err() != nil:
		return err
	}
	switch m, err2 := a.left(ctx, r); {
	case err2 != nil || m == repo.Committed:
		return errors.Join(err, err2) // what is in the repository is not known, or must be reported
	case m == repo.Attention:
		return a.fail(ctx, j, r, a.Steps.of(r), attention())
	}
	a.Log.ErrorContext(ctx, "apply given up", "transaction", r.Transaction, "attempt", r.Attempt, "err", err)
	code := "service_fault"
	if isFault {
		code = f.Code
	}
	return a.fail(ctx, j, r, a.Steps.of(r), fault.Errorf(fault.Unavailable, code, "the service could not do it; job %s in its log says why", j.ID))
}

func attention() *fault.Error {
	return fault.Errorf(fault.Conflict, "state.needs_attention", "some paths wait for a person: both versions are kept")
}

// left takes back what the newest try could not end, and returns what its
// marker then says.
func (a Applier) left(ctx context.Context, r events.TransactionApplyRequested) (repo.Marker, error) {
	root, err := a.Handler.Root(ctx, r.Workspace)
	if err != nil {
		return repo.None, err
	}
	space, err := a.World.Workspace(ctx, root)
	if err != nil {
		return repo.None, err
	}
	return a.marker(ctx, r, space)
}

// marker settles the workspace and returns how the attempt stands: Attention
// also where its journal cannot be read.
func (a Applier) marker(ctx context.Context, r events.TransactionApplyRequested, space *repo.Workspace) (repo.Marker, error) {
	found, err := a.settle(ctx, r.Workspace, space, "before_apply")
	if err != nil {
		return repo.None, err
	}
	for _, f := range found {
		if f.Tx == r.Transaction && f.Attempt == r.Attempt && f.Marker == repo.Attention {
			return repo.Attention, nil
		}
	}
	return space.Outcome(r.Transaction, r.Attempt)
}

// fail reports that the attempt ended without the change.
func (a Applier) fail(ctx context.Context, j eventlog.Job, r events.TransactionApplyRequested, s *steps, f *fault.Error) error {
	paths, _ := f.Context["paths"].([]string)
	e := events.TransactionFailed{Transaction: r.Transaction, Attempt: r.Attempt, Code: f.Code, Detail: f.Detail, Paths: paths}
	ctx = context.WithoutCancel(ctx)
	_, err := a.Handler.Do(ctx, report(j, "failed"), commands.RecordFailed{TransactionFailed: e, Phases: s.failed(e), Sight: a.met(ctx, r, f)})
	return err
}

// finish removes what the writer kept for recovery, once the outcome is in the
// log.
func (a Applier) finish(ctx context.Context, space *repo.Workspace, t domain.Transaction, r events.TransactionApplyRequested) error {
	if t.State != domain.TxApplied {
		return nil
	}
	err := space.Finish(context.WithoutCancel(ctx), r.Transaction, r.Attempt)
	if fault.CodeOf(err) == "state.needs_attention" {
		a.Log.WarnContext(ctx, "somebody wrote into a displaced file: both versions are kept", "transaction", r.Transaction, "err", err)
		return a.held(context.WithoutCancel(ctx), space, r)
	}
	return err
}

// Recover settles, in every workspace, what a dead process left, before any
// worker begins. A workspace that cannot be opened is reported and left.
func (a Applier) Recover(ctx context.Context) error {
	roots, err := a.Handler.Roots(ctx)
	if err != nil {
		return err
	}
	for id, root := range roots {
		space, err := a.World.Workspace(ctx, root)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			a.Log.ErrorContext(ctx, "workspace cannot be opened", "workspace", id, "root", root, "err", err)
			continue
		}
		if _, err := a.settle(ctx, id, space, "start"); err != nil {
			a.Log.ErrorContext(ctx, "workspace cannot be recovered", "workspace", id, "root", root, "err", err)
			continue
		}
		if _, err := a.Handler.Do(ctx, commands.System(id, "take_mode."+a.Handler.NewID()), commands.TakeMode{}); err != nil {
			a.Log.ErrorContext(ctx, "what is known of the paths was seen in another apply mode, and they cannot be looked at in this one", "workspace", id, "root", root, "err", err)
			continue
		}
		if p, err := space.Probe(ctx); err == nil && !p.AtomicDetect {
			a.Log.WarnContext(ctx, "the file system cannot exchange two files: one that somebody else puts in the place of another in the moment of its replacement may be lost",
				"workspace", id, "root", root, "atomic_detect", false, "detail", p.Detail)
		}
	}
	return nil
}
