package projections

import (
	"context"
	"database/sql"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// needs adds to s what waits for the caller: what was sent back to them, then
// what they can vote on, then what they can decide as a person. Whether the
// call is granted in the end is the rules' affair.
func needs(ctx context.Context, tx *sql.Tx, c op.Call, s *State) error {
	var all []Need
	for _, more := range []func(context.Context, *sql.Tx, op.Call) ([]Need, error){revisionsOfMe, votesOfMe, approvalsOfMe} {
		ns, err := more(ctx, tx, c)
		if err != nil {
			return err
		}
		all = append(all, ns...)
	}
	s.NeedsMe = append(s.NeedsMe, few(s, "needs_me", all)...)
	return nil
}

// wrote is the condition that one of a proposal's authors is someone: who made
// it, or attached a revision.
const wrote = "author = ?1 OR id IN (SELECT proposal FROM revisions WHERE attached_by = ?1)"

func revisionsOfMe(ctx context.Context, tx *sql.Tx, c op.Call) ([]Need, error) {
	w := where{}
	w.add(wrote, c.Who.ID)
	w.add("workspace = ?", c.Workspace)
	w.add("status = 'revision_requested'")
	return waiting(ctx, tx, w, func(p wire.Proposal) Need {
		return Need{Kind: "revision", Proposal: p.ID, Title: p.Title, Why: "a reviewer or a person asked for another revision",
			Next: fault.Step{Op: "proposal.get", Args: map[string]any{"proposal_id": p.ID}, Why: "read what was asked for, then attach a revision"}}
	})
}

func votesOfMe(ctx context.Context, tx *sql.Tx, c op.Call) ([]Need, error) {
	if !c.Who.Has(c.Workspace, auth.Reviewer, auth.Security, auth.Operator, auth.Admin) {
		return nil, nil
	}
	w := where{}
	w.add("NOT ("+wrote+")", c.Who.ID)
	w.add("workspace = ?", c.Workspace)
	w.add("status = 'in_review'")
	w.add("NOT EXISTS (SELECT 1 FROM votes v WHERE v.proposal = proposals.id AND v.voter = ?1 AND v.revision = proposals.revision)")
	if c.Who.Kind != auth.Human { // its vote would not count beside its own owner's author
		w.add("NOT EXISTS (SELECT 1 FROM principals a WHERE a.id = author AND a.owner = ? COLLATE NOCASE)", c.Who.Owner)
	}
	return waiting(ctx, tx, w, func(p wire.Proposal) Need {
		return Need{Kind: "vote", Proposal: p.ID, Title: p.Title, Why: "it is in review and you have not voted on its newest revision",
			Next: fault.Step{Op: "vote.cast", Args: map[string]any{"proposal_id": p.ID, "revision": p.Revision}, Why: "read it with proposal.get first"}}
	})
}

// waiting makes needs of the proposals that meet w, the oldest first.
func waiting(ctx context.Context, tx *sql.Tx, w where, need func(wire.Proposal) Need) ([]Need, error) {
	v := briefProposalView()
	v.fill = nil
	ps, _, err := v.find(ctx, tx, w, "ASC", stateMax+1)
	var ns []Need
	for _, p := range ps {
		ns = append(ns, need(p))
	}
	return ns, err
}

// approvalsOfMe are the requests that nobody has granted, nor this person
// decided, for the revision that stands now. Nobody decides about what they
// wrote.
func approvalsOfMe(ctx context.Context, tx *sql.Tx, c op.Call) ([]Need, error) {
	if c.Who.Kind != auth.Human {
		return nil, nil
	}
	w := where{}
	w.add("proposal = '' OR proposal IN (SELECT id FROM proposals WHERE "+open+" AND NOT ("+wrote+"))", c.Who.ID)
	w.add("workspace = ?", c.Workspace)
	w.add(`NOT EXISTS (SELECT 1 FROM approval_decisions d JOIN approvals a ON a.id = d.approval
		WHERE (a.id = approvals.id OR a.proposal = approvals.proposal AND a.proposal <> '')
		AND d.revision = ifnull((SELECT p.revision FROM proposals p WHERE p.id = approvals.proposal), d.revision)
		AND (d.decided_by = ?1 AND d.verdict <> 'deferred' OR d.verdict = 'approved'))`)
	as, _, err := approvalView().find(ctx, tx, w, "ASC", stateMax+1)
	var ns []Need
	for _, a := range as {
		ns = append(ns, Need{Kind: "approval", Proposal: a.Proposal, Approval: a.ID, Title: a.Subject, Why: "a person is asked to decide",
			Next: fault.Step{Op: "human.approval_status", Args: map[string]any{"approval_id": a.ID}, Why: "read the reason, then approve, reject, request changes or defer"}})
	}
	return ns, err
}
