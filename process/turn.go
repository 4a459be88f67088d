package process

import (
	"context"
	"fmt"
	"slices"

	"roundtable/commands"
	"roundtable/events"
	"roundtable/events/eventlog"
)

// turnManager: the turn to change a workspace is free, or the line has moved,
// so see whose turn it is.
var turnManager = Manager{
	Name: "turn",
	React: func(e events.Event) []Job {
		switch e.Payload.(type) {
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
