package projections

import (
	"context"

	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/wire"
)

var transactions = Projector{
	Name:   "transactions",
	Tables: []string{"transactions", "phases"},
	on: when(
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionOpened) error {
			return r.exec(ctx, `INSERT INTO transactions (seq, id, workspace, proposal, revision, patch_digest, policy_digest, state, attempt,
				candidate_tree, before_paths, after_paths, before_tree, after_tree, gates, files, failure, compensates, compensated_by,
				opened_by, opened_at, updated_at) VALUES (?,?,?,?,?,?,'','pending',0,'',?,'','','','[]','[]','null',?,'',?,?,?)`,
				e.Position, p.Transaction, p.Workspace, p.Proposal, p.Revision, p.PatchDigest, p.PathsDigest, p.Compensates,
				p.By, nanos(e.Time), nanos(e.Time))
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionStaged) error {
			return r.set(ctx, `UPDATE transactions SET state = 'staged', failure = 'null', updated_at = ? WHERE id = ?`, nanos(e.Time), p.Transaction)
		}),
		on(applyRequested),
		on(phaseCompleted),
		on(applied),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionFailed) error {
			failure, err := document(wire.Failure{Code: p.Code, Detail: p.Detail, Paths: p.Paths})
			if err != nil {
				return err
			}
			return r.set(ctx, `UPDATE transactions SET state = 'failed', attempt = max(attempt, ?), failure = ?, updated_at = ? WHERE id = ?`,
				p.Attempt, failure, nanos(e.Time), p.Transaction)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionCompensated) error {
			return r.set(ctx, `UPDATE transactions SET compensated_by = ?, updated_at = ? WHERE id = ?`, p.By, nanos(e.Time), p.Transaction)
		}),
	),
}

func applyRequested(ctx context.Context, r *rows, e events.Event, p events.TransactionApplyRequested) error {
	gates := make([]wire.Gate, len(p.Gates))
	for i, g := range p.Gates {
		gates[i] = wire.Gate{Gate: g.Gate, Status: g.Status, Because: append([]string{}, g.Because...), Needs: []string{}, Next: []fault.Step{}, BoundTo: p.PatchDigest}
	}
	stored, err := listed(gates)
	if err != nil {
		return err
	}
	return r.set(ctx, `UPDATE transactions SET state = 'applying', attempt = ?, policy_digest = ?, before_paths = ?, gates = ?, failure = 'null', updated_at = ? WHERE id = ?`,
		p.Attempt, p.PolicyDigest, p.PathsDigest, stored, nanos(e.Time), p.Transaction)
}

func phaseCompleted(ctx context.Context, r *rows, e events.Event, p events.TransactionPhaseCompleted) error {
	in, err := object(p.Inputs)
	if err != nil {
		return err
	}
	out, err := object(p.Outputs)
	if err != nil {
		return err
	}
	if err := r.exec(ctx, `INSERT INTO phases (seq, transaction_id, attempt, phase, status, actor, reason, request, inputs, outputs,
		failure_code, recovery_state, started_at, ended_at) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		e.Position, p.Transaction, p.Attempt, p.Phase, p.Status, p.Actor, p.Reason, p.Request, in, out,
		p.FailureCode, p.RecoveryState, nanos(p.StartedAt), nanos(p.EndedAt)); err != nil {
		return err
	}
	return r.set(ctx, `UPDATE transactions SET updated_at = ? WHERE id = ?`, nanos(e.Time), p.Transaction)
}

func applied(ctx context.Context, r *rows, e events.Event, p events.TransactionApplied) error {
	files := make([]wire.TxFile, len(p.Files))
	for i, f := range p.Files {
		files[i] = wire.TxFile{
			Path:       f.Path,
			BeforeKind: f.Before.Kind, BeforeMode: f.Before.Mode, BeforeSHA256: f.Before.SHA256,
			AfterKind: f.After.Kind, AfterMode: f.After.Mode, AfterSHA256: f.After.SHA256,
		}
	}
	stored, err := listed(files)
	if err != nil {
		return err
	}
	return r.set(ctx, `UPDATE transactions SET state = 'applied', attempt = ?, candidate_tree = ?, before_paths = ?, after_paths = ?,
		before_tree = ?, after_tree = ?, files = ?, failure = 'null', updated_at = ? WHERE id = ?`,
		p.Attempt, p.AfterTree, p.BeforePaths, p.AfterPaths, p.BeforeTree, p.AfterTree, stored, nanos(e.Time), p.Transaction)
}
