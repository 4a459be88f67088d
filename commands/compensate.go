package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/wire"
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
	of, err := load[domain.Proposal](ctx, u, events.ProposalStream(t.Proposal))
	if err != nil {
		return nil, err
	}
	m, err := fact(u, "reverse "+t.ID, func() (Merging, error) { return u.h.World.Reverse(ctx, root, t.Files, movedBack(of, t.Revision)) })
	switch {
	case err != nil:
		return nil, err
	case len(m.Conflicts) > 0:
		return nil, u.laterWork(ctx, t, m)
	case len(m.Patch) == 0:
		return nil, fault.Errorf(fault.Conflict, "nothing_to_compensate", "every path is as it was before %s, or as it would be after taking it back", t.ID).
			Then("transaction.recovery", map[string]any{"transaction_id": t.ID}, "you", "see what lies there")
	}
	first, err := u.merged(ctx, m, nil)
	if err != nil {
		return nil, err
	}
	return u.proposeReverse(ctx, t, of, first, reason)
}

// movedBack gives what taking back a revision moves, from where it lies to
// where it was.
func movedBack(p domain.Proposal, revision int) map[string]string {
	back := map[string]string{}
	for _, r := range p.Revisions {
		for _, f := range r.Files {
			if r.Number == revision && f.Op == "rename" {
				back[f.Path] = f.OldPath
			}
		}
	}
	return back
}

// merged makes a revision of what a merge gives. It must meet the tree as the
// merge did.
func (u *unit) merged(ctx context.Context, m Merging, resources []string) (events.ProposalRevisionAttached, error) {
	e, err := u.revision(ctx, PatchInput{Patch: string(m.Patch), Resources: resources})
	if err != nil {
		return e, err
	}
	for _, s := range e.Base.Paths {
		if s.Kind == "dir" { // which leaves the path free, for what takes all out of it
			s = events.PathState{Path: s.Path, Kind: "absent"}
		}
		if !slices.Contains(m.Base, s) {
			return e, fault.Errorf(fault.Conflict, "state.stale", "the files changed while they were merged; send it again")
		}
	}
	e.Merged = m.Merged
	return e, nil
}

// maxNamed is how many paths one sentence names.
const maxNamed = 20

func named(paths []string) string {
	if n := len(paths); n > maxNamed {
		return fmt.Sprintf("%s and %d more", strings.Join(paths[:maxNamed], ", "), n-maxNamed)
	}
	return strings.Join(paths, ", ")
}

// laterWork refuses to take t back, with what stands in the way and who put it
// there.
func (u *unit) laterWork(ctx context.Context, t domain.Transaction, m Merging) error {
	var shown []string
	for _, c := range m.Conflicts {
		shown = append(shown, c.Path)
	}
	f := fault.Errorf(fault.Conflict, "compensation_conflict", "later work stands in the way of taking back %s, at %s; nothing is done", t.ID, named(shown)).
		With("paths", m.Paths).With("conflicts", m.Conflicts)
	if u.h.Later != nil {
		head, _, err := u.h.Log.Head(ctx)
		if err != nil {
			return err
		}
		changes, err := u.h.Later(ctx, u.caller.Workspace, t.ID, m.Paths, head)
		if err != nil {
			return err
		}
		later, outside := after(m, changes)
		f.With("later_transactions", later).With("changed_outside", outside)
		for _, l := range slices.Backward(later[max(0, len(later)-maxNamed):]) {
			f.Then("transaction.get", map[string]any{"transaction_id": l.Transaction}, "you", "it has changed "+named(l.Paths)+" since; taken back first, it is no longer in the way")
		}
		if len(outside) > 0 {
			f.Detail += "; changed by no transaction: " + named(outside)
		}
	}
	return f.Then("transaction.recovery", map[string]any{"transaction_id": t.ID}, "you", "see what lies there").With("applied", "yes")
}

// after groups what transactions have left at the paths of a conflict, the
// oldest first, and names the paths that hold something else by now.
func after(m Merging, changes []wire.LaterChange) (later []wire.LaterTransaction, outside []string) {
	later, outside = []wire.LaterTransaction{}, []string{}
	last := map[string]wire.LaterChange{}
	for _, c := range changes {
		i := slices.IndexFunc(later, func(l wire.LaterTransaction) bool { return l.Transaction == c.Transaction })
		if i < 0 {
			i = len(later)
			later = append(later, wire.LaterTransaction{Transaction: c.Transaction})
		}
		later[i].Paths = append(later[i].Paths, c.Path)
		last[c.Path] = c
	}
	for _, s := range m.Base {
		l, touched := last[s.Path]
		if slices.Contains(m.Paths, s.Path) && (!touched || l.Kind != s.Kind || l.Mode != s.Mode || l.SHA256 != s.SHA256) {
			outside = append(outside, s.Path)
		}
	}
	return later, outside
}

func (u *unit) proposeReverse(ctx context.Context, t domain.Transaction, of domain.Proposal, first events.ProposalRevisionAttached, reason string) ([]events.Payload, error) {
	id := u.id("P")
	u.ids["proposal"] = id
	p := begin[domain.Proposal](u, events.ProposalStream(id))
	if reason == "" {
		reason = "Takes back " + t.ID + "."
	}
	if len(first.Merged) > 0 {
		reason += "\n\nMerged with later work, so read these closely: " + named(first.Merged)
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
		found, seen, err := u.claimed(ctx, root, res, claims)
		if err != nil {
			return nil, err
		}
		granted, err := claims.Grant(domain.ClaimWish{ID: u.id("C"), Workspace: u.caller.Workspace, Holder: u.caller.Who.ID, Resource: res, Type: "write", Base: base, Seen: seen}, u.now)
		if err != nil {
			return nil, err
		}
		granted = append(found, granted...)
		for _, e := range granted {
			if e.Stream() == events.ClaimsStream(u.caller.Workspace) {
				claims = claims.Evolve(e)
			}
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
