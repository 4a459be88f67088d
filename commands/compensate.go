package commands

import (
	"context"
	"strings"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
)

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
