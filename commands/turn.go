package commands

import (
	"context"
	"errors"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
)

// The commands of this file are the service's own: no op offers them.

// TakeTurn gives the turn of the caller's workspace to whoever waits for it.
// Transactions that nobody asked to apply are staged; if there are none, the
// first is judged, and begins or fails by the request that asked for it. What
// follows upon that is another command's: the line has moved.
type TakeTurn struct{}

// Name is the command's in the log of outcomes.
func (TakeTurn) Name() string { return "transaction.take_turn" }

func (c TakeTurn) decide(ctx context.Context, u *unit) (out []events.Payload, err error) {
	tree, err := u.turns(ctx)
	if err != nil {
		return nil, err
	}
	for next := tree.Next(); next != ""; next = tree.Next() {
		t, err := load[domain.Transaction](ctx, u, events.TransactionStream(next))
		if err != nil {
			return nil, err
		}
		does, wish := t.Turn(tree, u.now)
		switch {
		case wish != nil && len(out) > 0:
			return out, nil
		case wish != nil:
			u.request = wish.Request
			return u.turn(ctx, t, *wish)
		}
		// What follows is written by follow; here only the line moves on.
		tree = tree.Evolve(events.WorkspaceTransactionUnqueued{Workspace: t.Workspace, Transaction: next})
		out = append(out, does...)
	}
	return out, nil
}

// turn begins the apply that was asked for while others were before it, or
// ends the transaction if that may not be now. What the service cannot find
// out is no failure of the transaction: it keeps its place.
func (u *unit) turn(ctx context.Context, t domain.Transaction, by domain.Asker) ([]events.Payload, error) {
	p, err := load[domain.Proposal](ctx, u, events.ProposalStream(t.Proposal))
	if err != nil {
		return nil, err
	}
	e, err := u.judgedNow(ctx, t, p, by)
	if err == nil {
		return t.Apply(e, p, by), nil
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Kind == fault.Internal || f.Kind == fault.Unavailable {
		return nil, err
	}
	return t.Unmet(f), nil
}

// judgedNow is judged for someone who may have lost the right since they asked.
func (u *unit) judgedNow(ctx context.Context, t domain.Transaction, p domain.Proposal, by domain.Asker) (e events.TransactionApplyRequested, err error) {
	d, err := load[domain.Directory](ctx, u, events.DirectoryStream)
	if err != nil {
		return e, err
	}
	if who := d.Principals[by.ID]; by.ID != events.System && !who.Has(t.Workspace, auth.Orchestrator) {
		return e, fault.Errorf(fault.Forbidden, "forbidden", "%s, who asked for it, may no longer apply anything here", by.ID)
	}
	return u.judged(ctx, p, by.ID)
}

// AdoptApply notes whose turn it is in a history that began before turns were
// kept.
type AdoptApply struct {
	Transaction string
}

// Name is the command's in the log of outcomes.
func (AdoptApply) Name() string { return "transaction.adopt" }

func (c AdoptApply) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.Transaction](ctx, u, events.TransactionStream(c.Transaction))
	if err != nil {
		return nil, err
	}
	tree, err := u.turns(ctx)
	return tree.Adopt(t), err
}

// Tree returns who changes a workspace's files, who waits to, and what was left.
func (h *Handler) Tree(ctx context.Context, workspace string) (domain.Tree, error) {
	return load[domain.Tree](ctx, h.question(auth.Principal{}, workspace), events.TreeStream(workspace))
}
