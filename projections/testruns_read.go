package projections

import (
	"database/sql"
	"time"

	"roundtable/internal/op"
	"roundtable/internal/wire"
)

func testRunView() view[wire.TestRun] {
	return view[wire.TestRun]{
		name: "test_run", missing: absent("test_run_not_found", "test run"), plural: "test_runs", from: testRuns, source: "test_runs",
		columns: `seq, id, workspace, proposal, revision, task, command, argv, state, reason, candidate_tree, patch_digest, exit_code, signal,
			isolation, environment_digest, log_digest, output_bytes, summary, timeout_seconds, requested_by, requested_at, started_at,
			ended_at, duration_ms`, created: "requested_at",
		scan: func(s scanner) (seq int64, t wire.TestRun, err error) {
			var exit sql.Null[int]
			err = s.Scan(&seq, &t.ID, &t.Workspace, &t.Proposal, &t.Revision, &t.Task, &t.Command, decoded{&t.Argv}, &t.State, &t.Reason,
				&t.Tree, &t.PatchDigest, &exit, &t.Signal, &t.Isolation, &t.Environment, &t.LogDigest, &t.OutputBytes, &t.Summary,
				&t.Timeout, &t.RequestedBy, stamp{&t.RequestedAt}, stampOrNil{&t.StartedAt}, stampOrNil{&t.EndedAt}, &t.DurationMS)
			if exit.Valid {
				t.ExitCode = &exit.V
			}
			return seq, t, err
		},
	}
}

type testRunList struct {
	Page
	State       string `json:"state,omitempty" jsonschema:"queued, running, passed, failed, error, timed_out, cancelled or interrupted"`
	Proposal    string `json:"proposal_id,omitempty"`
	Task        string `json:"task_id,omitempty"`
	RequestedBy string `json:"requested_by,omitempty" jsonschema:"a principal's id"`
}

func (r *Reader) testRunOps() []op.Op {
	return []op.Op{
		listOp(r, op.Op{
			Name: "test_run.list", Route: inWorkspace("test-runs"), May: op.May{Any: true},
			Doc: "List test runs, to see what was tested with what outcome.",
		}, always(testRunView()), func(c op.Call, in testRunList, _ time.Time) (where, error) {
			w := here(c)
			w.is("state", in.State)
			w.is("proposal", in.Proposal)
			w.is("task", in.Task)
			w.is("requested_by", in.RequestedBy)
			return w, oneOf("/state", in.State, "queued", "running", "passed", "failed", "error", "timed_out", "cancelled", "interrupted")
		}),
	}
}
