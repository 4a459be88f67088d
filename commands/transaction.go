package commands

import (
	"context"
	"slices"
	"strings"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
)

// OpenTransaction opens and stages a transaction of a proposal's newest
// revision, and starts the expected tests that no run has answered.
type OpenTransaction struct {
	Proposal string `json:"proposal_id"`
}

// Name is the command's on the wire.
func (OpenTransaction) Name() string { return "transaction.open" }

func (c OpenTransaction) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	p, err := u.proposal(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	o, err := u.open(ctx, p)
	if err != nil {
		return nil, err
	}
	if p.Terminal() {
		return o.happened, nil
	}
	tests, err := u.startTests(ctx, p)
	return append(o.happened, tests...), err
}

// An opening is a transaction that is open, with the line it may stand in.
type opening struct {
	happened []events.Payload // what opened it just now; none if it was open
	tx       domain.Transaction
	tree     domain.Tree
}

// open opens a transaction, or returns the one that is open.
func (u *unit) open(ctx context.Context, p domain.Proposal) (o opening, err error) {
	if o.tree, err = u.turns(ctx); err != nil {
		return o, err
	}
	if p.Busy || p.Status == domain.Accepted {
		o.tx, err = load[domain.Transaction](ctx, u, events.TransactionStream(p.Transaction))
		u.ids["transaction"] = p.Transaction
		return o, err
	}
	id := u.id("TX")
	u.ids["transaction"] = id
	o.tx = begin[domain.Transaction](u, events.TransactionStream(id))
	if o.happened, err = p.Open(id, u.asker(""), o.tree); err != nil {
		return o, err
	}
	for _, e := range o.happened {
		switch e.Stream() {
		case events.TransactionStream(id):
			o.tx = o.tx.Evolve(e)
		case events.TreeStream(p.Workspace):
			o.tree = o.tree.Evolve(e)
		}
	}
	return o, nil
}

// asker is the command's caller as one who wants something of a transaction.
func (u *unit) asker(reason string) domain.Asker {
	return domain.Asker{ID: u.caller.Who.ID, Request: u.caller.Request, Reason: reason, Now: u.now}
}

func (u *unit) turns(ctx context.Context) (domain.Tree, error) {
	t, err := load[domain.Tree](ctx, u, events.TreeStream(u.caller.Workspace))
	if err != nil {
		return t, err
	}
	ws, err := load[domain.Workspaces](ctx, u, events.WorkspacesStream)
	t.Room, t.Asks = u.h.MaxWaiting, u.mode(ws.ByID[u.caller.Workspace].Kind)
	return t, err
}

// follow adds what becomes of the workspace's turn by what happens to its
// transactions.
func (u *unit) follow(ctx context.Context, happened []events.Payload) ([]events.Payload, error) {
	if !domain.Touched(happened) {
		return happened, nil
	}
	t, err := u.turns(ctx)
	return append(happened, t.Follow(u.caller.Workspace, happened)...), err
}

// StageTransaction makes a transaction ready.
type StageTransaction struct {
	Transaction string `json:"transaction_id"`
	Reason      string `json:"reason,omitempty"`
}

// Name is the command's on the wire.
func (StageTransaction) Name() string { return "transaction.stage" }

func (c StageTransaction) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := u.transaction(ctx, c.Transaction)
	if err != nil {
		return nil, err
	}
	tree, err := u.turns(ctx)
	if err != nil {
		return nil, err
	}
	return t.Stage(u.asker(c.Reason), tree)
}

func (u *unit) transaction(ctx context.Context, id string) (domain.Transaction, error) {
	t, err := load[domain.Transaction](ctx, u, events.TransactionStream(id))
	if err != nil {
		return t, err
	}
	u.ids["transaction"] = id
	return t, t.In(u.caller.Workspace, id)
}

// ApplyTransaction asks for a staged transaction to change the repository now.
type ApplyTransaction struct {
	Transaction string `json:"transaction_id"`
	Reason      string `json:"reason,omitempty"`
	Wait        *int   `json:"wait_seconds,omitempty" min:"0" max:"300" jsonschema:"how long to wait for the outcome; default 30, at most 300"`
}

// Name is the command's on the wire.
func (ApplyTransaction) Name() string { return "transaction.apply" }

func (c ApplyTransaction) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := u.transaction(ctx, c.Transaction)
	if err != nil {
		return nil, err
	}
	p, err := u.proposal(ctx, t.Proposal)
	if err != nil {
		return nil, err
	}
	tree, err := u.turns(ctx)
	if err != nil {
		return nil, err
	}
	return u.apply(ctx, opening{tx: t, tree: tree}, p, c.Reason)
}

// wish is what a repeat must match: how long somebody waits is no part of it.
func (c ApplyTransaction) wish() any {
	c.Wait = nil
	return c
}

// ApplyPatch opens, stages and applies a proposal's newest revision.
type ApplyPatch struct {
	Proposal string `json:"proposal_id"`
	Reason   string `json:"reason,omitempty"`
	Wait     *int   `json:"wait_seconds,omitempty" min:"0" max:"300" jsonschema:"how long to wait for the outcome; default 30, at most 300"`
}

// Name is the command's on the wire.
func (ApplyPatch) Name() string { return "patch.apply" }

func (c ApplyPatch) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	p, err := u.proposal(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	o, err := u.open(ctx, p)
	if err != nil {
		return nil, err
	}
	asked, err := u.apply(ctx, o, p, c.Reason)
	return append(o.happened, asked...), err
}

// wish is what a repeat must match: how long somebody waits is no part of it.
func (c ApplyPatch) wish() any {
	c.Wait = nil
	return c
}

// apply asks for the next attempt, or refuses with all that stands in the way.
// Behind another transaction the wish is kept, and judged when the turn comes.
func (u *unit) apply(ctx context.Context, o opening, p domain.Proposal, reason string) ([]events.Payload, error) {
	by := u.asker(reason)
	out, now, err := o.tx.Ask(by, o.tree)
	if err != nil {
		return nil, err
	}
	if len(out) > 0 {
		return out, u.mayApply(p, by.ID)
	}
	if !now {
		return nil, nil
	}
	e, err := u.judged(ctx, p, by.ID)
	if err != nil {
		return nil, err
	}
	return o.tx.Apply(e, p, by), nil
}

func (u *unit) mayApply(p domain.Proposal, by string) error {
	if slices.Contains(p.Authors(), by) && !u.h.Policy.AuthorMayApply {
		return fault.Errorf(fault.Forbidden, "author_may_not_apply", "an author of %s cannot apply it", p.ID).
			Then("patch.apply", map[string]any{"proposal_id": p.ID}, "orchestrator", "another orchestrator or operator can")
	}
	return nil
}

// judged returns the request for an attempt by someone, on gates that all
// pass, or what stands in the way.
func (u *unit) judged(ctx context.Context, p domain.Proposal, by string) (e events.TransactionApplyRequested, err error) {
	if err := u.mayApply(p, by); err != nil {
		return e, err
	}
	f, err := u.facts(ctx, p)
	if err != nil {
		return e, err
	}
	gates := domain.Gates(f)
	if !domain.Appliable(gates) {
		return e, unmet(p, gates)
	}
	rests := domain.Rests(f)
	e = events.TransactionApplyRequested{PolicyDigest: u.h.Policy.Digest(), Fences: domain.Fences(f),
		Votes: rests.Votes, Approvals: rests.Approvals, TestRuns: rests.TestRuns}
	if f.Patch.Tree != "" {
		e.Tested = []string{f.Patch.Tree}
	}
	for _, g := range gates {
		e.Gates = append(e.Gates, events.GateResult{Gate: g.Gate, Status: g.Status, Because: g.Because})
	}
	return e, nil
}

// unmet names every gate that did not pass, and what would open it.
func unmet(p domain.Proposal, gates []domain.Gate) error {
	var names []string
	f := fault.Errorf(fault.Conflict, "gates_not_met", "")
	for _, g := range gates {
		if g.Status == "passed" || g.Status == "not_applicable" {
			continue
		}
		names = append(names, g.Gate+" "+g.Status+" ("+strings.Join(g.Because, "; ")+")")
		f.Next = fault.Steps(f.Next, g.Next)
	}
	f.Detail = p.ID + " cannot be applied yet: " + strings.Join(names, ", ")
	return f.With("gates", wireGates(gates, p.Current().PatchDigest)).With("applied", "no")
}
