package commands

import (
	"context"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// ValidateTransaction runs every check on a transaction's revision and moves
// nothing.
type ValidateTransaction struct {
	Transaction string `json:"transaction_id"`
	Reason      string `json:"reason,omitempty"`
}

// Name is the command's on the wire.
func (ValidateTransaction) Name() string { return "transaction.validate" }

func (c ValidateTransaction) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	_, err := u.transaction(ctx, c.Transaction)
	return nil, err
}

// checked answers a transaction with the checks of its revision. Those of
// another revision would say nothing about it.
func (h *Handler) checked(ctx context.Context, c op.Call, t wire.Transaction) (map[string]any, error) {
	v, err := h.validate(ctx, c, proposalQuestion{t.Proposal})
	if err != nil {
		return nil, err
	}
	current := wire.Check{Check: "revision", Status: "passed", Detail: "its revision is the newest of its proposal", Ran: true, Next: []fault.Step{}}
	if v.Revision != t.Revision {
		current.Status, current.Detail = "failed", "stale_revision: the proposal has a newer revision"
		for i := range v.Checks {
			v.Checks[i] = wire.Check{Check: v.Checks[i].Check, Status: "skipped", Detail: "the transaction's revision is not the newest", Next: []fault.Step{}}
		}
		v.Valid, v.Appliable = false, false
	}
	return map[string]any{"checks": append([]wire.Check{current}, v.Checks...), "valid": v.Valid, "appliable": v.Appliable}, nil
}

// RetryTransaction opens a transaction again that has failed.
type RetryTransaction struct {
	Transaction string `json:"transaction_id"`
	Reason      string `json:"reason,omitempty"`
}

// Name is the command's on the wire.
func (RetryTransaction) Name() string { return "transaction.retry" }

func (c RetryTransaction) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, p, err := u.transactionOf(ctx, c.Transaction)
	if err != nil {
		return nil, err
	}
	tree, err := u.turns(ctx)
	if err != nil {
		return nil, err
	}
	return t.Retry(u.asker(c.Reason), p, tree)
}

// transactionOf loads a transaction with its proposal.
func (u *unit) transactionOf(ctx context.Context, id string) (t domain.Transaction, p domain.Proposal, err error) {
	if t, err = u.transaction(ctx, id); err != nil {
		return t, p, err
	}
	p, err = u.proposal(ctx, t.Proposal)
	return t, p, err
}

// CancelTransaction ends a transaction before it changes anything.
type CancelTransaction struct {
	Transaction string `json:"transaction_id"`
	Reason      string `json:"reason,omitempty"`
}

// Name is the command's on the wire.
func (CancelTransaction) Name() string { return "transaction.cancel" }

func (c CancelTransaction) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, p, err := u.transactionOf(ctx, c.Transaction)
	if err != nil {
		return nil, err
	}
	return t.Cancel(u.asker(c.Reason), p)
}

// ResolveTransaction keeps what lies at paths that an apply left to a person.
type ResolveTransaction struct {
	Transaction string `json:"transaction_id"`
	Reason      string `json:"reason"`
	Wait        *int   `json:"wait_seconds,omitempty" min:"0" max:"300" jsonschema:"how long to wait for the outcome; default 30, at most 300"`
}

// Name is the command's on the wire.
func (ResolveTransaction) Name() string { return "transaction.resolve" }

// wish is what a repeat must match: how long somebody waits is no part of it.
func (c ResolveTransaction) wish() any {
	c.Wait = nil
	return c
}

// decide looks first: the versions that are to be kept stand in the intent, so
// that they are known whatever happens to the process that moves them.
func (c ResolveTransaction) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, p, err := u.transactionOf(ctx, c.Transaction)
	if err != nil {
		return nil, err
	}
	wants, err := t.Resolve(u.asker(c.Reason))
	if err != nil || len(wants) == 0 {
		return nil, err
	}
	look, err := u.look(ctx, t, p)
	switch {
	case err != nil:
		return nil, err
	case !look.CanResolve && t.Stuck(): // somebody made room, and the rest went back by itself
		return append(wants, events.TransactionResolved{Transaction: t.ID, Attempt: t.Attempt, Repository: look.Repository, Paths: look.now()}), nil
	case !look.CanResolve:
		return nil, fault.Errorf(fault.Conflict, "state.no_attention", "no path of %s waits for a person", t.ID).
			Then("transaction.recovery", map[string]any{"transaction_id": t.ID}, "you", "see what lies in the repository and what can be done")
	}
	for i, e := range wants {
		if r, ok := e.(events.TransactionResolveRequested); ok {
			for _, l := range look.Paths {
				if l.Held != nil {
					r.Keeps = append(r.Keeps, *l.Held)
				}
			}
			wants[i] = r
		}
	}
	return wants, nil
}

// RecordResolved reports how a resolving ended: by TransactionResolved or
// TransactionResolveFailed.
type RecordResolved struct{ Outcome events.Payload }

// Name is the command's in the log of outcomes.
func (RecordResolved) Name() string { return "transaction.record_resolved" }

func (c RecordResolved) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.Transaction](ctx, u, c.Outcome.Stream())
	if err != nil {
		return nil, err
	}
	return t.RecordResolved(c.Outcome), nil
}

// resolved answers a transaction whose resolving was asked for, once that has
// ended or the time is over; if it did not work out it says why.
func (h *Handler) resolved(ctx context.Context, c op.Call, cmd ResolveTransaction, r Result) (op.Answer, error) {
	a, err := h.awaited(ctx, c, cmd.Wait, r, func(t domain.Transaction) bool { return t.Resolving.Transaction == "" })
	if err != nil {
		return a, err
	}
	t, err := h.Transaction(ctx, cmd.Transaction)
	if f := t.Unresolved; err == nil && f.Code != "" && t.Resolving.Transaction == "" {
		return a, fault.Errorf(fault.Conflict, f.Code, "%s", f.Detail).With("paths", f.Paths).
			Then("transaction.recovery", map[string]any{"transaction_id": t.ID}, "you", "see what lies in the repository and what can be done")
	}
	return a, err
}
