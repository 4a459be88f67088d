package projections

import (
	"context"

	"roundtable/events"
)

var validations = Projector{
	Name:   "validations",
	Tables: []string{"validations", "validation_stages"},
	on: when(
		on(func(ctx context.Context, r *rows, e events.Event, p events.ValidationStarted) error {
			for i, stage := range p.Stages {
				if err := r.exec(ctx, `INSERT INTO validation_stages (validation, place, stage, status, detail, test_runs, output, cut, exit_code,
					started_at, finished_at, duration_ms) VALUES (?,?,?,'running','','[]','',0,NULL,0,0,0)`, p.Validation, i, stage); err != nil {
					return err
				}
			}
			return r.exec(ctx, `INSERT INTO validations (seq, id, workspace, proposal, revision, patch_digest, paths_digest, policy_digest,
				candidate_tree, status, requested_by, started_at, finished_at) VALUES (?,?,?,?,?,?,?,?,?,'running',?,?,0)`,
				e.Position, p.Validation, p.Workspace, p.Proposal, p.Revision, p.PatchDigest, p.PathsDigest, p.PolicyDigest, p.Tree, p.By, nanos(p.StartedAt))
		}),
		on(func(ctx context.Context, r *rows, _ events.Event, p events.ValidationTestsRequested) error {
			runs, err := listed(p.TestRuns)
			if err != nil {
				return err
			}
			return r.set(ctx, `UPDATE validation_stages SET test_runs = ?, started_at = ?, detail = 'it waits for its test runs' WHERE validation = ? AND stage = 'tests'`,
				runs, nanos(p.At), p.Validation)
		}),
		on(stageFinished),
		on(func(ctx context.Context, r *rows, _ events.Event, p events.ValidationFinished) error {
			return r.set(ctx, `UPDATE validations SET status = ?, finished_at = ? WHERE id = ?`, p.Status, nanos(p.FinishedAt), p.Validation)
		}),
	),
}

func stageFinished(ctx context.Context, r *rows, _ events.Event, p events.ValidationStageFinished) error {
	runs, err := listed(p.TestRuns)
	if err != nil {
		return err
	}
	var exit any
	if p.ExitCode != nil {
		exit = *p.ExitCode
	}
	return r.set(ctx, `UPDATE validation_stages SET status = ?, detail = ?, test_runs = ?, output = ?, cut = ?, exit_code = ?, started_at = ?,
		finished_at = ?, duration_ms = ? WHERE validation = ? AND stage = ?`,
		p.Status, p.Detail, runs, p.Output, p.Cut, exit, nanos(p.StartedAt), nanos(p.FinishedAt), p.DurationMS, p.Validation, p.Stage)
}
