package projections

import (
	"context"
	"database/sql"
	"time"

	"roundtable/internal/op"
	"roundtable/internal/wire"
)

func validationView() view[wire.StagedValidation] {
	return view[wire.StagedValidation]{
		name: "validation", missing: absent("validation_not_found", "validation"), plural: "validations", from: validations, source: "validations",
		columns: `seq, id, workspace, proposal, revision, patch_digest, paths_digest, policy_digest, candidate_tree, status, requested_by,
			started_at, finished_at`, created: "started_at",
		scan: func(s scanner) (seq int64, v wire.StagedValidation, err error) {
			v.Stages = []wire.ValidationStage{}
			err = s.Scan(&seq, &v.ID, &v.Workspace, &v.Proposal, &v.Revision, &v.PatchDigest, &v.PathsDigest, &v.PolicyDigest, &v.Tree, &v.Status,
				&v.RequestedBy, stamp{&v.StartedAt}, stampOrNil{&v.FinishedAt})
			return seq, v, err
		},
		fill: fillValidations,
	}
}

// fillValidations adds the stages of validations.
func fillValidations(ctx context.Context, tx *sql.Tx, vs []wire.StagedValidation) error {
	at, ids := indexBy(vs, func(v wire.StagedValidation) string { return v.ID })
	return each(ctx, tx, `SELECT validation, stage, status, detail, test_runs, output, cut, exit_code, started_at, finished_at, duration_ms
		FROM validation_stages WHERE validation IN (SELECT value FROM json_each(?)) ORDER BY validation, place`, []any{ids}, func(s scanner) error {
		var id string
		var g wire.ValidationStage
		var exit sql.Null[int]
		err := s.Scan(&id, &g.Stage, &g.Status, &g.Detail, decoded{&g.TestRuns}, &g.Output, &g.Cut, &exit, stampOrNil{&g.StartedAt}, stampOrNil{&g.FinishedAt}, &g.DurationMS)
		if exit.Valid {
			g.ExitCode = &exit.V
		}
		v := &vs[at[id]]
		v.Stages = append(v.Stages, g)
		return err
	})
}

type validationList struct {
	Page
	Proposal    string `json:"proposal_id"`
	Status      string `json:"status,omitempty" jsonschema:"running, passed, failed or error"`
	RequestedBy string `json:"requested_by,omitempty" jsonschema:"a principal's id"`
}

func (r *Reader) validationOps() []op.Op {
	return []op.Op{
		listOp(r, op.Op{
			Name: "validation.list", Route: inWorkspace("proposals/{proposal_id}/validations"), May: op.May{Any: true},
			Doc: "List the validations of a proposal, of all of its revisions, with their stages.",
		}, always(validationView()), func(c op.Call, in validationList, _ time.Time) (where, error) {
			w := here(c)
			w.is("proposal", in.Proposal)
			w.is("status", in.Status)
			w.is("requested_by", in.RequestedBy)
			return w, oneOf("/status", in.Status, "running", "passed", "failed", "error")
		}),
	}
}
