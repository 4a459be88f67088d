package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"roundtable/commands"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
)

// turnManager: the turn to change a workspace is free, or the line has moved,
// so see whose turn it is; a person has decided what stays, so keep it.
var turnManager = Manager{
	Name: "turn",
	React: func(e events.Event) []Job {
		switch e.Payload.(type) {
		case events.TransactionResolveRequested:
			return []Job{{Kind: "resolve", Data: e.Payload}}
		case events.WorkspaceApplyEnded, events.WorkspaceTransactionUnqueued:
			return []Job{{Kind: "turn", Data: struct{}{}}}
		}
		return nil
	},
}

// turnWorker gives turns. A workspace whose gates cannot be judged now keeps
// its line as it is, and the job is tried again.
func (a Applier) turnWorker() Worker {
	return Worker{Kind: "turn", Slots: a.Slots, Do: func(ctx context.Context, j eventlog.Job) error {
		_, err := a.Handler.Do(ctx, report(j, "taken"), commands.TakeTurn{})
		return err
	}}
}

// hasTurn checks that the transaction is the one that may change the workspace.
// One that began before turns were kept gets its place now, and comes after
// those that began before it.
func (a Applier) hasTurn(ctx context.Context, j eventlog.Job, r events.TransactionApplyRequested) error {
	tree, err := a.Handler.Tree(ctx, r.Workspace)
	if err == nil && !slices.Contains(tree.Applying, r.Transaction) {
		if _, err = a.Handler.Do(ctx, report(j, "adopted"), commands.AdoptApply{Transaction: r.Transaction}); err == nil {
			tree, err = a.Handler.Tree(ctx, r.Workspace)
		}
	}
	if err == nil && slices.Index(tree.Applying, r.Transaction) > 0 {
		err = fmt.Errorf("%s comes after %s", r.Transaction, tree.Applying[0])
	}
	return err
}

// resolveWorker keeps what people decided to keep.
func (a Applier) resolveWorker() Worker { return Worker{Kind: "resolve", Slots: 1, Do: a.resolve} }

// resolve does it once. Where a process before this one has done it and not
// said so, what the intent had looked at is what was kept.
func (a Applier) resolve(ctx context.Context, j eventlog.Job) error {
	var r events.TransactionResolveRequested
	if err := json.Unmarshal(j.Data, &r); err != nil {
		return err
	}
	t, err := a.Handler.Transaction(ctx, r.Transaction)
	if err != nil || t.Resolving.Transaction == "" {
		return err
	}
	root, err := a.Handler.Root(ctx, r.Workspace)
	if err != nil {
		return err
	}
	files, err := a.Handler.PathsOf(ctx, t)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	var outcome events.Payload
	done, err := a.World.Resolve(ctx, root, r.Transaction, r.Attempt, files)
	switch f, ok := errors.AsType[*fault.Error](err); {
	case err == nil:
		outcome = done
	case ok && f.Code == "transaction_not_found":
		look, err := a.World.Lies(ctx, root, r.Transaction, r.Attempt, files)
		if err != nil {
			return err
		}
		said := events.TransactionResolved{Transaction: r.Transaction, Attempt: r.Attempt, Repository: look.Repository, Kept: r.Keeps}
		for _, p := range look.Paths {
			said.Paths = append(said.Paths, p.Now)
		}
		outcome = said
	case ok && f.Kind != fault.Internal && f.Kind != fault.Unavailable:
		paths, _ := f.Context["paths"].([]string)
		outcome = events.TransactionResolveFailed{Transaction: r.Transaction, Attempt: r.Attempt, Code: f.Code, Detail: f.Detail, Paths: paths}
	default:
		return err
	}
	_, err = a.Handler.Do(ctx, report(j, "resolved"), commands.RecordResolved{Outcome: outcome})
	return err
}
