package domain

import (
	"slices"

	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
)

// The words of a vote.
var votes = []string{"approve", "approve_with_notes", "revise", "reject", "veto", "abstain"}

// An Approval is a request for people to decide something. The zero value is
// none.
type Approval struct {
	ID, Workspace, Proposal, Task string
	Revision                      int
	Decisions                     []events.ApprovalDecided // in order
	Filed                         string                   // the proposal in whose stream it is really found
}

// Evolve returns a after e has happened.
func (a Approval) Evolve(e events.Payload) Approval {
	switch e := e.(type) {
	case events.ApprovalRequested:
		return Approval{ID: e.Approval, Workspace: e.Workspace, Proposal: e.Proposal, Task: e.Task, Revision: e.Revision}
	case events.ApprovalFiled:
		return Approval{ID: e.Approval, Workspace: e.Workspace, Filed: e.Proposal}
	case events.ApprovalDecided:
		a.Decisions = append(slices.Clip(a.Decisions), e)
	default:
		foreign("approval", e)
	}
	return a
}

// review folds what reviewers and people gave on a proposal.
func (p Proposal) review(e events.Payload) Proposal {
	switch e := e.(type) {
	case events.VoteCast:
		p.Votes = append(slices.Clip(p.Votes), e)
	case events.DecisionRecorded:
	case events.ApprovalRequested:
		p.Approvals = append(slices.Clip(p.Approvals), Approval{}.Evolve(e))
	case events.ApprovalDecided:
		p.Decisions = append(slices.Clip(p.Decisions), e)
		p.Approvals = slices.Clone(p.Approvals)
		for i, a := range p.Approvals {
			if a.ID == e.Approval {
				p.Approvals[i] = a.Evolve(e)
			}
		}
	default:
		foreign("proposal", e)
	}
	return p
}

// Eligible says why a principal's vote would not count for p, or "".
func (p Proposal) Eligible(who auth.Principal, d Directory) string {
	author := d.Principals[p.Author]
	switch {
	case slices.Contains(p.Authors(), who.ID):
		return "an author of the proposal"
	case !who.Has(p.Workspace, auth.Reviewer, auth.Security, auth.Operator, auth.Admin):
		return "without one of the roles reviewer, security, operator, admin"
	case who.Kind != auth.Human && d.SameOwner(who, author):
		return "of the same owner as the author"
	}
	return ""
}

// Vote takes a reviewer's word on a revision; 0 stands for the newest. While
// open, the transaction that p waits for, is being applied it would come too
// late.
func (p Proposal) Vote(e events.VoteCast, who auth.Principal, d Directory, open Transaction) ([]events.Payload, error) {
	now := p.Current()
	switch err := firstOf(oneOf("vote", e.Choice, votes...), text("reason_md", e.Reason, MaxReason, true)); {
	case err != nil:
		return nil, err
	case e.Confidence != nil && (*e.Confidence < 0 || *e.Confidence > 1):
		return nil, fault.Errorf(fault.Invalid, "invalid_field", "confidence is from 0 to 1").At("/confidence", "out of bounds")
	case p.Terminal():
		return nil, p.illegal("vote.cast", "it has come to its end")
	case p.Busy && open.State == TxApplying:
		return nil, p.busy()
	case e.Revision != 0 && e.Revision != now.Number:
		return nil, p.stale(e.Revision)
	}
	if why := p.Eligible(who, d); why != "" {
		return nil, fault.Errorf(fault.Forbidden, "not_eligible", "%s cannot vote on %s: %s", who.Name, p.ID, why)
	}
	e.Proposal, e.Revision, e.Voter = p.ID, now.Number, who.ID
	e.PatchDigest, e.PathsDigest = now.PatchDigest, now.Base.PathsDigest
	out := []events.Payload{e}
	if e.Choice == "revise" && p.Status == InReview {
		out = append(out, events.ProposalRevisionRequested{Proposal: p.ID, Revision: now.Number, By: who.ID, Cause: "vote"})
	}
	return out, nil
}

// stale refuses what names a revision that is not the newest.
func (p Proposal) stale(revision int) error {
	return fault.Errorf(fault.Conflict, "stale_revision", "revision %d of %s is not the newest, which is %d", revision, p.ID, p.Current().Number).
		With("revision", p.Current().Number).
		Then("proposal.get", map[string]any{"proposal_id": p.ID}, "you", "read the newest revision")
}

// RequestApproval asks people to decide about p.
func (p Proposal) RequestApproval(e events.ApprovalRequested) ([]events.Payload, error) {
	if err := approvalTexts(e); err != nil {
		return nil, err
	}
	if p.Terminal() {
		return nil, p.illegal("human.request_approval", "it has come to its end")
	}
	e.Proposal, e.Workspace, e.Revision = p.ID, p.Workspace, p.Current().Number
	return []events.Payload{e, events.ApprovalFiled{Approval: e.Approval, Workspace: e.Workspace, Proposal: p.ID}}, nil
}

// Request asks people to decide something that is no proposal.
func (a Approval) Request(e events.ApprovalRequested) ([]events.Payload, error) {
	if err := approvalTexts(e); err != nil {
		return nil, err
	}
	return []events.Payload{e}, nil
}

func approvalTexts(e events.ApprovalRequested) error {
	return firstOf(line("subject", e.Subject, MaxTitle, true), text("reason_md", e.Reason, MaxReason, true))
}

// In checks that a is an approval of workspace.
func (a Approval) In(workspace, id string) error {
	if a.ID == "" || a.Workspace != workspace {
		return fault.Errorf(fault.NotFound, "approval_not_found", "there is no approval %s in this workspace", id)
	}
	return nil
}

// Decide takes a person's word on a; of one about a proposal, p is that one.
// Nobody decides about a proposal they wrote, or that is being applied by open.
func (a Approval) Decide(e events.ApprovalDecided, p Proposal, open Transaction) ([]events.Payload, error) {
	err := text("reason_md", e.Reason, MaxReason, e.Verdict != "approved")
	if err != nil {
		return nil, err
	}
	e.Approval, e.Proposal = a.ID, a.Proposal
	if a.Proposal == "" {
		return []events.Payload{e}, nil
	}
	now := p.Current()
	switch {
	case p.Terminal():
		return nil, p.illegal("approval.decide", "it has come to its end")
	case p.Busy && open.State == TxApplying:
		return nil, p.busy()
	case slices.Contains(p.Authors(), e.By):
		return nil, fault.Errorf(fault.Forbidden, "own_proposal", "nobody decides about a proposal they wrote")
	case e.Revision != 0 && e.Revision != now.Number, e.Revision == 0 && a.Revision != now.Number:
		return nil, p.stale(max(e.Revision, a.Revision))
	}
	e.Revision, e.PatchDigest = now.Number, now.PatchDigest
	out := []events.Payload{e}
	if e.Verdict == "changes_requested" && p.Status == InReview {
		out = append(out, events.ProposalRevisionRequested{Proposal: p.ID, Revision: now.Number, By: e.By, Cause: "approval"})
	}
	return out, nil
}

// Approval returns the approval of p with this id; the zero Approval if there
// is none.
func (p Proposal) Approval(id string) Approval {
	for _, a := range p.Approvals {
		if a.ID == id {
			return a
		}
	}
	return Approval{}
}
