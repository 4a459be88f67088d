package projections

import (
	"context"

	"roundtable/events"
)

func voteCast(ctx context.Context, r *rows, e events.Event, p events.VoteCast) error {
	var confidence any
	if p.Confidence != nil {
		confidence = *p.Confidence
	}
	if err := r.exec(ctx, `INSERT INTO votes (seq, id, proposal, voter, revision, vote, reason, confidence, cast_at) VALUES (?,?,?,?,?,?,?,?,?)`,
		e.Position, p.Vote, p.Proposal, p.Voter, p.Revision, p.Choice, p.Reason, confidence, nanos(e.Time)); err != nil {
		return err
	}
	return touch(ctx, r, e, p.Proposal)
}

func approvalRequested(ctx context.Context, r *rows, e events.Event, p events.ApprovalRequested) error {
	if err := r.exec(ctx, `INSERT INTO approvals (seq, id, workspace, proposal, task, subject, reason, revision, status, requested_by, requested_at)
		VALUES (?,?,?,?,?,?,?,?,'requested',?,?)`,
		e.Position, p.Approval, p.Workspace, p.Proposal, p.Task, p.Subject, p.Reason, p.Revision, p.By, nanos(e.Time)); err != nil {
		return err
	}
	return touchIfAny(ctx, r, e, p.Proposal)
}

func approvalDecided(ctx context.Context, r *rows, e events.Event, p events.ApprovalDecided) error {
	if err := r.exec(ctx, `INSERT INTO approval_decisions (seq, approval, decided_by, verdict, reason, revision, decided_at) VALUES (?,?,?,?,?,?,?)`,
		e.Position, p.Approval, p.By, p.Verdict, p.Reason, p.Revision, nanos(e.Time)); err != nil {
		return err
	}
	if err := r.set(ctx, `UPDATE approvals SET status = ? WHERE id = ?`, p.Verdict, p.Approval); err != nil {
		return err
	}
	return touchIfAny(ctx, r, e, p.Proposal)
}

// touchIfAny is touch of what may be about no proposal.
func touchIfAny(ctx context.Context, r *rows, e events.Event, proposal string) error {
	if proposal == "" {
		return nil
	}
	return touch(ctx, r, e, proposal)
}
