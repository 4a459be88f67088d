package projections

import (
	"context"
	"strings"

	"roundtable/events"
	"roundtable/internal/wire"
)

// proposals keeps all that one answer about a proposal shows. The review half
// of its handlers is in reviews.go.
var proposals = Projector{
	Name:   "proposals",
	Tables: []string{"proposals", "revisions", "proposal_paths", "votes", "approvals", "approval_decisions"},
	on: when(
		on(proposalCreated),
		on(revisionAttached),
		on(func(ctx context.Context, r *rows, e events.Event, p events.ProposalReviewRequested) error {
			return setStatus(ctx, r, e, p.Proposal, "in_review")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.ProposalRevisionRequested) error {
			return setStatus(ctx, r, e, p.Proposal, "revision_requested")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.ProposalRejected) error {
			return setStatus(ctx, r, e, p.Proposal, "rejected")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.ProposalWithdrawn) error {
			return setStatus(ctx, r, e, p.Proposal, "withdrawn")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.ProposalAccepted) error {
			return setStatus(ctx, r, e, p.Proposal, "accepted")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.ProposalTested) error {
			if p.Tree == "" { // the run ended before there was a tree
				return touch(ctx, r, e, p.Proposal)
			}
			return setTree(ctx, r, e, p.Proposal, p.Revision, p.Tree)
		}),
		on(voteCast), on(approvalRequested), on(approvalDecided),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionOpened) error {
			return r.set(ctx, `UPDATE proposals SET transaction_id = ?, transaction_state = 'pending', transaction_of = ?, updated_at = ? WHERE id = ?`,
				p.Transaction, p.Revision, nanos(e.Time), p.Proposal)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionRetried) error {
			return r.set(ctx, `UPDATE proposals SET transaction_id = ?, transaction_state = 'pending', transaction_of = ?, updated_at = ? WHERE id = ?`,
				p.Transaction, p.Revision, nanos(e.Time), p.Proposal)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionApplyQueued) error {
			return setTransaction(ctx, r, e, p.Transaction, "pending")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionCancelled) error {
			return setTransaction(ctx, r, e, p.Transaction, "cancelled")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionStaged) error {
			return setTransaction(ctx, r, e, p.Transaction, "staged")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionApplyRequested) error {
			return setTransaction(ctx, r, e, p.Transaction, "applying")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionApplied) error {
			if err := r.exec(ctx, `UPDATE revisions SET candidate_tree = ?1 WHERE ?1 <> '' AND proposal = ?2
				AND number = (SELECT transaction_of FROM proposals WHERE id = ?2 AND transaction_id = ?3)`, p.AfterTree, p.Proposal, p.Transaction); err != nil {
				return err
			}
			return setTransaction(ctx, r, e, p.Transaction, "applied")
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionFailed) error {
			return setTransaction(ctx, r, e, p.Transaction, "failed")
		}),
	),
}

func proposalCreated(ctx context.Context, r *rows, e events.Event, p events.ProposalCreated) error {
	tests, err := listed(p.ExpectedTests)
	if err != nil {
		return err
	}
	return r.exec(ctx, `INSERT INTO proposals (seq, id, workspace, task, author, title, summary, search, risk, effective_risk, status,
		expected_tests, rollback_notes, compensates, revision, transaction_id, transaction_state,
		transaction_of, created_at, updated_at) VALUES (?,?,?,?,?,?,?,?,?,?,'pending',?,?,?,0,'','not_started',0,?,?)`,
		e.Position, p.Proposal, p.Workspace, p.Task, p.Author, p.Title, p.Summary, strings.ToLower(p.Title+"\n"+p.Summary), p.Risk, p.Risk,
		tests, p.RollbackNotes, p.Compensates, nanos(e.Time), nanos(e.Time))
}

// revisionAttached adds a revision; one that was asked for makes the proposal
// pending again.
func revisionAttached(ctx context.Context, r *rows, e events.Event, p events.ProposalRevisionAttached) error {
	files := make([]wire.File, len(p.Files))
	for i, f := range p.Files {
		files[i] = wire.File(f)
	}
	stored, err := listed(files)
	if err != nil {
		return err
	}
	resources, err := listed(p.Resources)
	if err != nil {
		return err
	}
	merged, err := listed(p.Merged)
	if err != nil {
		return err
	}
	if err := r.exec(ctx, `INSERT INTO revisions (seq, proposal, number, patch_digest, patch_bytes, base_commit, paths_digest,
		candidate_tree, files, resources, attached_by, attached_at, rebased_from, merged_paths) VALUES (?,?,?,?,?,?,?,'',?,?,?,?,?,?)`,
		e.Position, p.Proposal, p.Number, p.PatchDigest, p.PatchBytes, p.Base.Commit, p.Base.PathsDigest,
		stored, resources, p.AttachedBy, nanos(e.Time), p.RebasedFrom, merged); err != nil {
		return err
	}
	if err := r.exec(ctx, `DELETE FROM proposal_paths WHERE proposal = ?`, p.Proposal); err != nil {
		return err
	}
	for _, f := range p.Files {
		for _, path := range []string{f.Path, f.OldPath} {
			if path == "" {
				continue
			}
			if err := r.exec(ctx, `INSERT INTO proposal_paths (proposal, path) VALUES (?,?) ON CONFLICT DO NOTHING`, p.Proposal, path); err != nil {
				return err
			}
		}
	}
	return r.set(ctx, `UPDATE proposals SET revision = ?, effective_risk = CASE ?2 WHEN '' THEN effective_risk ELSE ?2 END, updated_at = ?,
		status = CASE status WHEN 'revision_requested' THEN 'pending' ELSE status END WHERE id = ?`, p.Number, p.Risk, nanos(e.Time), p.Proposal)
}

func setStatus(ctx context.Context, r *rows, e events.Event, proposal, status string) error {
	return r.set(ctx, `UPDATE proposals SET status = ?, updated_at = ? WHERE id = ?`, status, nanos(e.Time), proposal)
}

func touch(ctx context.Context, r *rows, e events.Event, proposal string) error {
	return r.set(ctx, `UPDATE proposals SET updated_at = ? WHERE id = ?`, nanos(e.Time), proposal)
}

// setTree notes the tree that was made of a revision. That of a later run may
// differ, since the workspace around the patch moves on.
func setTree(ctx context.Context, r *rows, e events.Event, proposal string, revision int, tree string) error {
	if err := r.set(ctx, `UPDATE revisions SET candidate_tree = ? WHERE proposal = ? AND number = ?`, tree, proposal, revision); err != nil {
		return err
	}
	return touch(ctx, r, e, proposal)
}

// setTransaction moves the proposal whose newest transaction this is; of an
// older one nothing is shown.
func setTransaction(ctx context.Context, r *rows, e events.Event, transaction, state string) error {
	return r.exec(ctx, `UPDATE proposals SET transaction_state = ?, updated_at = ? WHERE transaction_id = ? AND transaction_id <> ''`,
		state, nanos(e.Time), transaction)
}
