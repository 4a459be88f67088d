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
	out, _, err := u.open(ctx, p)
	if err != nil {
		return nil, err
	}
	if p.Terminal() {
		return out, nil
	}
	tests, err := u.startTests(ctx, p)
	return append(out, tests...), err
}

// open opens a transaction, or returns the one that is open.
func (u *unit) open(ctx context.Context, p domain.Proposal) (out []events.Payload, t domain.Transaction, err error) {
	if p.Busy || p.Status == domain.Accepted {
		t, err = load[domain.Transaction](ctx, u, events.TransactionStream(p.Transaction))
		u.ids["transaction"] = p.Transaction
		return nil, t, err
	}
	u.ids["transaction"] = u.id("TX")
	t = begin[domain.Transaction](u, events.TransactionStream(u.ids["transaction"]))
	if out, err = p.Open(u.ids["transaction"], u.caller.Who.ID, u.now); err != nil {
		return nil, t, err
	}
	for _, e := range out {
		if e.Stream() == events.TransactionStream(u.ids["transaction"]) {
			t = t.Evolve(e)
		}
	}
	return out, t, nil
}

// StageTransaction makes a transaction ready.
type StageTransaction struct {
	Transaction string `json:"transaction_id"`
}

// Name is the command's on the wire.
func (StageTransaction) Name() string { return "transaction.stage" }

func (c StageTransaction) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := u.transaction(ctx, c.Transaction)
	if err != nil {
		return nil, err
	}
	return t.Stage(u.caller.Who.ID, u.now)
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
	return u.apply(ctx, t, p, c.Reason)
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
	opened, t, err := u.open(ctx, p)
	if err != nil {
		return nil, err
	}
	asked, err := u.apply(ctx, t, p, c.Reason)
	return append(opened, asked...), err
}

// wish is what a repeat must match: how long somebody waits is no part of it.
func (c ApplyPatch) wish() any {
	c.Wait = nil
	return c
}

// apply judges the gates and asks for the next attempt, or refuses with all
// that stands in the way.
func (u *unit) apply(ctx context.Context, t domain.Transaction, p domain.Proposal, reason string) ([]events.Payload, error) {
	if t.State != domain.TxStaged { // repeated, or never possible any more
		return t.Apply(events.TransactionApplyRequested{Reason: reason}, p)
	}
	if slices.Contains(p.Authors(), u.caller.Who.ID) && !u.h.Policy.AuthorMayApply {
		return nil, fault.Errorf(fault.Forbidden, "author_may_not_apply", "an author of %s cannot apply it", p.ID).
			Then("patch.apply", map[string]any{"proposal_id": p.ID}, "orchestrator", "another orchestrator or operator can")
	}
	f, err := u.facts(ctx, p)
	if err != nil {
		return nil, err
	}
	gates := domain.Gates(f)
	if !domain.Appliable(gates) {
		return nil, unmet(p, gates)
	}
	e := events.TransactionApplyRequested{PolicyDigest: u.h.Policy.Digest(), Fences: domain.Fences(f), By: u.caller.Who.ID, Reason: reason}
	if f.Patch.Tree != "" {
		e.Tested = []string{f.Patch.Tree}
	}
	for _, g := range gates {
		e.Gates = append(e.Gates, events.GateResult{Gate: g.Gate, Status: g.Status, Because: g.Because})
	}
	return t.Apply(e, p)
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
		f.Next = append(f.Next, g.Next...)
	}
	f.Detail = p.ID + " cannot be applied yet: " + strings.Join(names, ", ")
	return f.With("gates", wireGates(gates, p.Current().PatchDigest)).With("applied", "no")
}

// Compensate proposes the exact reverse of an applied transaction.
type Compensate struct {
	Transaction string `json:"transaction_id"`
	Reason      string `json:"reason,omitempty"`
}

// Name is the command's on the wire.
func (Compensate) Name() string { return "transaction.compensate" }

func (c Compensate) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := u.transaction(ctx, c.Transaction)
	if err != nil {
		return nil, err
	}
	if t.Compensation != "" {
		p, err := u.proposal(ctx, t.Compensation)
		if err != nil {
			return nil, err
		}
		if !p.Terminal() {
			return nil, nil // the same open proposal
		}
	}
	if err := t.Compensate(); err != nil {
		return nil, err
	}
	return u.reverse(ctx, t, c.Reason)
}

// reverse makes the proposal and takes a write claim on each of its paths.
func (u *unit) reverse(ctx context.Context, t domain.Transaction, reason string) ([]events.Payload, error) {
	root, err := u.root(ctx)
	if err != nil {
		return nil, err
	}
	type reversed struct {
		patch   []byte
		changed []string
	}
	r, err := fact(u, "reverse "+t.ID, func() (r reversed, err error) {
		r.patch, r.changed, err = u.h.World.Reverse(ctx, root, t.Files)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	if len(r.changed) > 0 {
		return nil, fault.Errorf(fault.Conflict, "compensation_conflict", "these paths are no longer as %s left them: %s", t.ID, strings.Join(r.changed, ", ")).
			With("paths", r.changed).Then("transaction.recovery", map[string]any{"transaction_id": t.ID}, "you", "see what lies there")
	}
	of, err := load[domain.Proposal](ctx, u, events.ProposalStream(t.Proposal))
	if err != nil {
		return nil, err
	}
	first, err := u.revision(ctx, PatchInput{Patch: string(r.patch)})
	if err != nil {
		return nil, err
	}
	return u.proposeReverse(ctx, t, of, first, reason)
}

func (u *unit) proposeReverse(ctx context.Context, t domain.Transaction, of domain.Proposal, first events.ProposalRevisionAttached, reason string) ([]events.Payload, error) {
	id := u.id("P")
	u.ids["proposal"] = id
	p := begin[domain.Proposal](u, events.ProposalStream(id))
	if reason == "" {
		reason = "Takes back " + t.ID + "."
	}
	risk, _ := domain.EffectiveRisk(of, u.h.Policy)
	out, err := p.Create(events.ProposalCreated{Proposal: id, Workspace: u.caller.Workspace, Author: u.caller.Who.ID, Title: limited("Take back: "+of.Title, domain.MaxTitle),
		Summary: reason, Risk: risk, Compensates: t.ID}, first)
	if err != nil {
		return nil, err
	}
	claims, err := u.claims(ctx)
	if err != nil {
		return nil, err
	}
	granted, err := u.claimAll(ctx, claims.Clone(), first)
	out = append(out, granted...)
	return append(out, events.TransactionCompensationProposed{Transaction: t.ID, Proposal: id}), err
}

// claimAll takes a write claim on every resource of a revision for the caller.
func (u *unit) claimAll(ctx context.Context, claims domain.Claims, r events.ProposalRevisionAttached) (out []events.Payload, err error) {
	root, err := u.root(ctx)
	if err != nil {
		return nil, err
	}
	for _, id := range r.Resources {
		res, err := domain.ParseResource(id)
		if err != nil {
			return nil, err
		}
		base, err := fact(u, "digest "+root+" "+id, func() (events.BaseHash, error) { return u.h.World.Digest(ctx, root, res) })
		if err != nil {
			return nil, err
		}
		granted, err := claims.Grant(domain.ClaimWish{ID: u.id("C"), Workspace: u.caller.Workspace, Holder: u.caller.Who.ID, Resource: res, Type: "write", Base: base}, u.now)
		if err != nil {
			return nil, err
		}
		for _, e := range granted {
			claims = claims.Evolve(e)
		}
		out = append(out, granted...)
	}
	return out, nil
}

// limited cuts s at a character so that it has at most limit bytes.
func limited(s string, limit int) string {
	for len(s) > limit {
		r := []rune(s)
		s = string(r[:len(r)-1])
	}
	return s
}
