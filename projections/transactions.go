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
		on(opened),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionStaged) error {
			return r.set(ctx, `UPDATE transactions SET state = 'staged', behind = '', failure = 'null', updated_at = ? WHERE id = ?`, nanos(e.Time), p.Transaction)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.WorkspaceTransactionQueued) error {
			return r.set(ctx, `UPDATE transactions SET behind = ?, updated_at = ? WHERE id = ?`, p.Behind, nanos(e.Time), p.Transaction)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionApplyQueued) error {
			return r.set(ctx, `UPDATE transactions SET state = 'pending', asked_by = ?, reason = ?, updated_at = ? WHERE id = ?`, p.By, p.Reason, nanos(e.Time), p.Transaction)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionRetried) error {
			return r.set(ctx, `UPDATE transactions SET state = 'pending', failure = 'null', asked_by = '', reason = ?, updated_at = ? WHERE id = ?`, p.Reason, nanos(e.Time), p.Transaction)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionCancelled) error {
			return r.set(ctx, `UPDATE transactions SET state = 'cancelled', behind = '', reason = ?, updated_at = ? WHERE id = ?`, p.Reason, nanos(e.Time), p.Transaction)
		}),
		on(resolved),
		on(applyRequested),
		on(phaseCompleted),
		on(recovered),
		on(applied),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionFailed) error {
			failure, err := document(wire.Failure{Code: p.Code, Detail: p.Detail, Paths: p.Paths})
			if err != nil {
				return err
			}
			return r.set(ctx, `UPDATE transactions SET state = 'failed', behind = '', attempt = max(attempt, ?), failure = ?, updated_at = ? WHERE id = ?`,
				p.Attempt, failure, nanos(e.Time), p.Transaction)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionCompensated) error {
			return r.set(ctx, `UPDATE transactions SET compensated_by = ?, updated_at = ? WHERE id = ?`, p.By, nanos(e.Time), p.Transaction)
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionRestored) error {
			return r.set(ctx, `UPDATE transactions SET compensated_by = '', updated_at = ? WHERE id = ?`, nanos(e.Time), p.Transaction)
		}),
	),
}

func opened(ctx context.Context, r *rows, e events.Event, p events.TransactionOpened) error {
	files := make([]wire.TxFile, len(p.Before))
	for i, s := range p.Before {
		files[i] = wire.TxFile{Path: s.Path, BeforeKind: s.Kind, BeforeMode: s.Mode, BeforeSHA256: s.SHA256}
	}
	stored, err := listed(files)
	if err != nil {
		return err
	}
	relied, err := document(wire.Relied{})
	if err != nil {
		return err
	}
	return r.exec(ctx, `INSERT INTO transactions (seq, id, workspace, proposal, revision, patch_digest, policy_digest, state, attempt, behind,
		asked_by, reason, candidate_tree, before_paths, after_paths, before_tree, after_tree, gates, relied, files, failure, resolution, compensates, compensated_by,
		opened_by, opened_at, updated_at) VALUES (?,?,?,?,?,?,'','pending',0,'','','','',?,'','','','[]',?,?,'null','null',?,'',?,?,?)`,
		e.Position, p.Transaction, p.Workspace, p.Proposal, p.Revision, p.PatchDigest, p.PathsDigest, relied, stored, p.Compensates,
		p.By, nanos(e.Time), nanos(e.Time))
}

func resolved(ctx context.Context, r *rows, e events.Event, p events.TransactionResolved) error {
	res := wire.Resolution{Repository: p.Repository, Paths: []wire.PathNow{}, Kept: []wire.PathNow{}}
	for _, s := range p.Paths {
		res.Paths = append(res.Paths, wire.PathNow{Path: s.Path, Kind: s.Kind, Mode: s.Mode, SHA256: s.SHA256})
	}
	for _, s := range p.Kept {
		res.Kept = append(res.Kept, wire.PathNow{Path: s.Path, Kind: s.Kind, Mode: s.Mode, SHA256: s.SHA256})
	}
	stored, err := document(res)
	if err != nil {
		return err
	}
	return r.set(ctx, `UPDATE transactions SET resolution = ?, updated_at = ? WHERE id = ?`, stored, nanos(e.Time), p.Transaction)
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
	relied, err := document(wire.Relied{Votes: p.Votes, Approvals: p.Approvals, TestRuns: p.TestRuns})
	if err != nil {
		return err
	}
	return r.set(ctx, `UPDATE transactions SET state = 'applying', attempt = ?, policy_digest = ?, before_paths = ?, gates = ?, relied = ?, asked_by = ?, reason = ?,
		behind = '', failure = 'null', resolution = 'null', updated_at = ? WHERE id = ?`,
		p.Attempt, p.PolicyDigest, p.PathsDigest, stored, relied, p.By, p.Reason, nanos(e.Time), p.Transaction)
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

// recovered shows a recovery as a phase of the attempt that it found.
func recovered(ctx context.Context, r *rows, e events.Event, p events.TransactionRecovered) error {
	out := map[string]any{"found_at": p.FoundAt}
	if len(p.Stuck) > 0 {
		out["stuck"] = p.Stuck
	}
	if len(p.Kept) > 0 {
		out["kept"] = p.Kept
	}
	if p.More > 0 {
		out["more"] = p.More
	}
	return phaseCompleted(ctx, r, e, events.TransactionPhaseCompleted{Transaction: p.Transaction, Attempt: p.Attempt, Phase: "recover", Status: "completed",
		Actor: e.Actor, Outputs: out, RecoveryState: p.Found, StartedAt: e.Time, EndedAt: e.Time})
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
		before_tree = ?, after_tree = ?, ref = ?, commit_id = ?, parent = ?, files = ?, failure = 'null', updated_at = ? WHERE id = ?`,
		p.Attempt, p.AfterTree, p.BeforePaths, p.AfterPaths, p.BeforeTree, p.AfterTree, p.Ref, p.Commit, p.Parent, stored, nanos(e.Time), p.Transaction)
}
