package projections

import (
	"context"
	"database/sql"
	"time"

	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// transactionView shows transactions with all phases.
func transactionView() view[wire.Transaction] {
	return view[wire.Transaction]{
		name: "transaction", missing: absent("transaction_not_found", "transaction"), plural: "transactions", from: transactions, source: "transactions",
		columns: `seq, id, workspace, proposal, revision, patch_digest, policy_digest, state, attempt, behind, asked_by, reason, candidate_tree, before_paths, after_paths,
			before_tree, after_tree, ref, commit_id, parent, gates, relied, files, failure, resolution, compensates, compensated_by, opened_by, opened_at, updated_at`, created: "opened_at",
		scan: func(s scanner) (seq int64, t wire.Transaction, err error) {
			t.Phases = []wire.Phase{}
			err = s.Scan(&seq, &t.ID, &t.Workspace, &t.Proposal, &t.Revision, &t.PatchDigest, &t.PolicyDigest, &t.State, &t.Attempt,
				&t.Behind, &t.AskedBy, &t.Reason, &t.CandidateTree, &t.BeforePaths, &t.AfterPaths, &t.BeforeTree, &t.AfterTree, &t.Ref, &t.Commit, &t.Parent, decoded{&t.Gates}, decoded{&t.Relied},
				decoded{&t.Files}, decoded{&t.Failure}, decoded{&t.Resolution}, &t.Compensates, &t.CompensatedBy, &t.OpenedBy, stamp{&t.OpenedAt}, stamp{&t.UpdatedAt})
			t.Applied = isApplied(t)
			t.Before, t.After = wire.TxDigests{Paths: t.BeforePaths, Tree: t.BeforeTree}, wire.TxDigests{Paths: t.AfterPaths, Tree: t.AfterTree}
			return seq, t, err
		},
		fill: func(ctx context.Context, tx *sql.Tx, ts []wire.Transaction) error {
			at, ids := indexBy(ts, func(t wire.Transaction) string { return t.ID })
			return each(ctx, tx, `SELECT transaction_id, seq, `+phaseColumns+` FROM phases
				WHERE transaction_id IN (SELECT value FROM json_each(?)) ORDER BY seq`, []any{ids}, func(s scanner) error {
				var id string
				var seq int64
				var p wire.Phase
				err := s.Scan(append([]any{&id, &seq}, phaseFields(&p)...)...)
				p.LogRef = seq
				ts[at[id]].Phases = append(ts[at[id]].Phases, p)
				return err
			})
		},
	}
}

// isApplied says whether the repository holds the change. While it is being
// made nobody knows; where a person had to decide what stays, only what was
// looked at then.
func isApplied(t wire.Transaction) string {
	switch {
	case t.State == "applied":
		return "yes"
	case t.State == "applying", t.Failure != nil && t.Failure.Code == "state.unknown":
		return "unknown"
	case t.Failure != nil && t.Failure.Code == "state.needs_attention" && (t.Resolution == nil || t.Resolution.Repository != "before"):
		return "unknown"
	}
	return "no"
}

const phaseColumns = `phase, status, attempt, actor, reason, request, inputs, outputs, failure_code, recovery_state, started_at, ended_at`

func phaseFields(p *wire.Phase) []any {
	return []any{&p.Phase, &p.Status, &p.Attempt, &p.Actor, &p.Reason, &p.Request, decoded{&p.Inputs}, decoded{&p.Outputs},
		&p.FailureCode, &p.RecoveryState, stamp{&p.StartedAt}, stamp{&p.EndedAt}}
}

func phaseView() view[wire.Phase] {
	return view[wire.Phase]{
		name: "phase", plural: "phases", from: transactions, source: "phases", columns: "seq, " + phaseColumns, created: "ended_at", oldestFirst: true,
		scan: func(s scanner) (seq int64, p wire.Phase, err error) {
			err = s.Scan(append([]any{&seq}, phaseFields(&p)...)...)
			p.LogRef = seq
			return seq, p, err
		},
	}
}

type transactionID struct {
	ID string `json:"transaction_id"`
}

type transactionList struct {
	Page
	State       string `json:"state,omitempty" jsonschema:"pending, staged, applying, applied, failed or cancelled"`
	Proposal    string `json:"proposal_id,omitempty"`
	Principal   string `json:"principal_id,omitempty" jsonschema:"who opened it or wants it applied"`
	OpenedBy    string `json:"opened_by,omitempty" jsonschema:"a principal's id"`
	Compensates string `json:"compensates_transaction_id,omitempty"`
}

type phaseList struct {
	Page
	Transaction string `json:"transaction_id"`
	Phase       string `json:"phase,omitempty" jsonschema:"stage, validate, prepare, apply, verify, finish or recover"`
	Actor       string `json:"actor,omitempty" jsonschema:"a principal's id, or system"`
}

func (r *Reader) transactionOps() []op.Op {
	v := always(transactionView())
	return []op.Op{
		listOp(r, op.Op{
			Name: "transaction.list", Route: inWorkspace("transactions"), Tool: true, May: op.May{Any: true},
			Doc: "List transactions, to see what was applied, failed or is going on.",
		}, v, func(c op.Call, in transactionList, _ time.Time) (where, error) {
			w := here(c)
			w.is("state", in.State)
			w.is("proposal", in.Proposal)
			w.is("opened_by", in.OpenedBy)
			if in.Principal != "" {
				w.add("opened_by = ? OR asked_by = ?", in.Principal, in.Principal)
			}
			w.is("compensates", in.Compensates)
			return w, oneOf("/state", in.State, "pending", "staged", "applying", "applied", "failed", "cancelled")
		}),
		getOp(r, op.Op{
			Name: "transaction.get", Route: inWorkspace("transactions/{transaction_id}"), Tool: true, May: op.May{Any: true},
			Doc: "Show one transaction: whether it is applied, its files, gates and phases.",
		}, v, func(_ op.Call, in transactionID) string { return in.ID }),
		r.phasesOp(),
	}
}

func (r *Reader) phasesOp() op.Op {
	o := op.Op{
		Name: "transaction.phases", Route: inWorkspace("transactions/{transaction_id}/phases"), May: op.May{Any: true},
		Doc: "List the steps of all attempts of one transaction, and what was recovered of them, oldest first unless asked otherwise.",
		Out: op.ListOf[wire.Phase]("phases"),
	}
	return op.Of(o, func(ctx context.Context, c op.Call, in phaseList) (op.Answer, error) {
		if err := oneOf("/phase", in.Phase, "stage", "validate", "prepare", "apply", "verify", "finish", "recover"); err != nil {
			return op.Answer{}, err
		}
		w := where{}
		w.add("transaction_id = ?", in.Transaction)
		w.is("phase", in.Phase)
		w.is("actor", in.Actor)
		return pageOf(ctx, r, o.Name, c, in, phaseView(), w, func(tx *sql.Tx) error {
			_, err := transactionView().one(ctx, tx, c.Workspace, in.Transaction)
			return err
		})
	})
}
