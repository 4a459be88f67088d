package commands

import (
	"context"

	"roundtable/domain"
	"roundtable/events"
)

// CastVote gives a reviewer's word on a revision.
type CastVote struct {
	Proposal   string   `json:"proposal_id"`
	Vote       string   `json:"vote" enum:"approve,approve_with_notes,revise,reject,veto,abstain"`
	Reason     string   `json:"reason_md"`
	Confidence *float64 `json:"confidence,omitempty" min:"0" max:"1"`
	Revision   int      `json:"revision,omitempty" jsonschema:"default: the newest"`
}

// Name is the command's on the wire.
func (CastVote) Name() string { return "vote.cast" }

func (c CastVote) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	p, err := u.proposal(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	d, err := load[domain.Directory](ctx, u, events.DirectoryStream)
	if err != nil {
		return nil, err
	}
	open, err := u.opened(ctx, p)
	if err != nil {
		return nil, err
	}
	u.ids["vote"] = u.id("V")
	return p.Vote(events.VoteCast{Vote: u.ids["vote"], Choice: c.Vote, Reason: c.Reason, Confidence: c.Confidence, Revision: c.Revision,
		PolicyDigest: u.h.Policy.Digest()}, u.caller.Who, d, open)
}

// RequestApproval asks people to decide something.
type RequestApproval struct {
	Subject  string `json:"subject"`
	Reason   string `json:"reason_md"`
	Proposal string `json:"proposal_id,omitempty"`
	Task     string `json:"task_id,omitempty"`
}

// Name is the command's on the wire.
func (RequestApproval) Name() string { return "human.request_approval" }

func (c RequestApproval) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	if err := u.checkTask(ctx, c.Task); err != nil {
		return nil, err
	}
	u.ids["approval"] = u.id("H")
	a := begin[domain.Approval](u, events.ApprovalStream(u.ids["approval"]))
	e := events.ApprovalRequested{Approval: u.ids["approval"], Workspace: u.caller.Workspace, Task: c.Task, Subject: c.Subject, Reason: c.Reason, By: u.caller.Who.ID}
	if c.Proposal == "" {
		return a.Request(e)
	}
	p, err := u.proposal(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	return p.RequestApproval(e)
}

// A verdict is a person's word on an approval. The verbs of the four commands
// say which.
type verdict struct {
	Approval string `json:"approval_id"`
	Reason   string `json:"reason_md,omitempty"`
	Revision int    `json:"revision,omitempty" jsonschema:"default: that the request was opened for"`
}

type (
	// Approve says yes.
	Approve struct{ verdict }
	// Reject says no.
	Reject struct{ verdict }
	// RequestChanges wants another revision first.
	RequestChanges struct{ verdict }
	// Defer puts the decision off.
	Defer struct{ verdict }
)

// Name is the command's on the wire.
func (Approve) Name() string { return "approval.approve" }

// Name is the command's on the wire.
func (Reject) Name() string { return "approval.reject" }

// Name is the command's on the wire.
func (RequestChanges) Name() string { return "approval.request_changes" }

// Name is the command's on the wire.
func (Defer) Name() string { return "approval.defer" }

func (c Approve) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	return c.is(ctx, u, "approved")
}
func (c Reject) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	return c.is(ctx, u, "rejected")
}
func (c RequestChanges) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	return c.is(ctx, u, "changes_requested")
}
func (c Defer) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	return c.is(ctx, u, "deferred")
}

func (c verdict) is(ctx context.Context, u *unit, word string) ([]events.Payload, error) {
	a, err := load[domain.Approval](ctx, u, events.ApprovalStream(c.Approval))
	if err != nil {
		return nil, err
	}
	var p domain.Proposal
	if a.Filed != "" {
		if p, err = u.proposal(ctx, a.Filed); err != nil {
			return nil, err
		}
		a = p.Approval(c.Approval)
	}
	if err := a.In(u.caller.Workspace, c.Approval); err != nil {
		return nil, err
	}
	open, err := u.opened(ctx, p)
	if err != nil {
		return nil, err
	}
	u.ids["approval"] = c.Approval
	return a.Decide(events.ApprovalDecided{Verdict: word, Reason: c.Reason, Revision: c.Revision, By: u.caller.Who.ID, PolicyDigest: u.h.Policy.Digest()}, p, open)
}
