package commands

import (
	"context"
	"fmt"

	"roundtable/domain"
	"roundtable/events"
)

// RecordRecovered reports what a recovery found of a transaction in the
// workspace.
type RecordRecovered struct{ events.TransactionRecovered }

// Name is the command's in the log of outcomes.
func (RecordRecovered) Name() string { return "transaction.record_recovered" }

func (c RecordRecovered) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.Transaction](ctx, u, c.Stream())
	if err != nil || t.Workspace != u.caller.Workspace {
		return nil, err
	}
	return t.RecordRecovered(c.TransactionRecovered), nil
}

// Recovered writes down what a recovery found in a workspace, if the log does
// not say it yet. Recoveries of one workspace do not meet.
func (h *Handler) Recovered(ctx context.Context, workspace string, e events.TransactionRecovered) error {
	t, err := h.Transaction(ctx, e.Transaction)
	if err != nil || t.Workspace != workspace || len(t.RecordRecovered(e)) == 0 {
		return err
	}
	by := System(workspace, fmt.Sprintf("recovered.%s.%d", t.ID, t.Recoveries+1))
	by.Correlation = t.Request.Request
	_, err = h.Do(ctx, by, RecordRecovered{e})
	return err
}
