package projections

import (
	"context"

	"roundtable/events"
)

var testRuns = Projector{
	Name:   "test_runs",
	Tables: []string{"test_runs"},
	on: when(
		on(func(ctx context.Context, r *rows, e events.Event, p events.TestRunRequested) error {
			argv, err := listed(p.Argv)
			if err != nil {
				return err
			}
			return r.exec(ctx, `INSERT INTO test_runs (seq, id, workspace, proposal, revision, task, command, argv, state, reason, candidate_tree,
				patch_digest, exit_code, signal, isolation, environment_digest, log_digest, output_bytes, summary, timeout_seconds,
				requested_by, requested_at, started_at, ended_at, duration_ms)
				VALUES (?,?,?,?,?,?,?,?,'queued','','',?,NULL,'','','','',0,'',?,?,?,0,0,0)`,
				e.Position, p.TestRun, p.Workspace, p.Proposal, p.Revision, p.Task, p.Command, argv, p.PatchDigest, p.Timeout, p.By, nanos(e.Time))
		}),
		on(func(ctx context.Context, r *rows, e events.Event, p events.TestRunStarted) error {
			return r.set(ctx, `UPDATE test_runs SET state = 'running', candidate_tree = ?, started_at = ? WHERE id = ?`, p.Tree, nanos(e.Time), p.TestRun)
		}),
		on(testRunFinished),
	),
}

// testRunFinished writes the end of a run. One that never began has no start;
// of one that did, the runner's own times count.
func testRunFinished(ctx context.Context, r *rows, e events.Event, p events.TestRunFinished) error {
	var exit any
	if p.ExitCode != nil {
		exit = *p.ExitCode
	}
	ended := nanosOf(p.EndedAt)
	if ended == 0 {
		ended = nanos(e.Time)
	}
	return r.set(ctx, `UPDATE test_runs SET state = ?, reason = ?, candidate_tree = CASE ?3 WHEN '' THEN candidate_tree ELSE ?3 END,
		exit_code = ?, signal = ?, isolation = ?, environment_digest = ?, log_digest = ?, output_bytes = ?, summary = ?,
		started_at = CASE ?11 WHEN 0 THEN started_at ELSE ?11 END, ended_at = ?, duration_ms = ? WHERE id = ?`,
		p.State, p.Reason, p.Tree, exit, p.Signal, p.Isolation, p.Environment, p.LogDigest, p.OutputBytes, p.Summary,
		nanosOf(p.StartedAt), ended, p.DurationMS, p.TestRun)
}
