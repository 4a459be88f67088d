package projections

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// proposalView shows proposals with all revisions, votes and approvals.
func proposalView() view[wire.Proposal] {
	v := briefProposalView()
	v.fill = func(ctx context.Context, tx *sql.Tx, ps []wire.Proposal) error {
		return fillProposals(ctx, tx, ps, "")
	}
	return v
}

// briefProposalView shows, of a proposal's revisions, only the newest.
func briefProposalView() view[wire.Proposal] {
	return view[wire.Proposal]{
		name: "proposal", missing: absent("proposal_not_found", "proposal"), plural: "proposals", from: proposals, source: "proposals",
		columns: `seq, id, workspace, task, author, title, summary, risk, effective_risk, status, expected_tests, rollback_notes, compensates,
			revision, transaction_id, transaction_state, created_at, updated_at`, created: "created_at",
		scan: func(s scanner) (seq int64, p wire.Proposal, err error) {
			p.Revisions, p.Votes, p.Approvals = []wire.Revision{}, []wire.Vote{}, []wire.Approval{}
			err = s.Scan(&seq, &p.ID, &p.Workspace, &p.Task, &p.Author, &p.Title, &p.Summary, &p.Risk, &p.EffectiveRisk, &p.Status, decoded{&p.ExpectedTests},
				&p.RollbackNotes, &p.Compensates, &p.Revision, &p.Transaction, &p.TxState, stamp{&p.CreatedAt}, stamp{&p.UpdatedAt})
			return seq, p, err
		},
		fill: func(ctx context.Context, tx *sql.Tx, ps []wire.Proposal) error {
			return fillProposals(ctx, tx, ps, ` AND number = (SELECT p.revision FROM proposals p WHERE p.id = proposal)`)
		},
	}
}

// fillProposals adds what was given on proposals, and what follows from it.
// Of their revisions it adds those that meet a further condition.
func fillProposals(ctx context.Context, tx *sql.Tx, ps []wire.Proposal, revisions string) error {
	at, ids := indexBy(ps, func(p wire.Proposal) string { return p.ID })
	const those = ` WHERE proposal IN (SELECT value FROM json_each(?))`
	err := each(ctx, tx, `SELECT proposal, number, patch_digest, patch_bytes, base_commit, paths_digest, candidate_tree, files, resources,
		attached_by, attached_at, rebased_from, merged_paths FROM revisions`+those+revisions+` ORDER BY seq`, []any{ids}, func(s scanner) error {
		var id string
		var r wire.Revision
		err := s.Scan(&id, &r.Number, &r.PatchDigest, &r.PatchBytes, &r.Base.Commit, &r.Base.PathsDigest, &r.CandidateTree,
			decoded{&r.Files}, decoded{&r.Resources}, &r.AttachedBy, stamp{&r.AttachedAt}, &r.RebasedFrom, decoded{&r.Merged})
		ps[at[id]].Revisions = append(ps[at[id]].Revisions, r)
		return err
	})
	if err != nil {
		return err
	}
	votes := voteView()
	err = each(ctx, tx, "SELECT "+votes.columns+" FROM "+votes.source+those+" ORDER BY seq", []any{ids}, func(s scanner) error {
		_, v, err := votes.scan(s)
		ps[at[v.Proposal]].Votes = append(ps[at[v.Proposal]].Votes, v)
		return err
	})
	if err != nil {
		return err
	}
	w := where{}
	w.add("proposal IN (SELECT value FROM json_each(?))", ids)
	approvals, _, err := approvalView().find(ctx, tx, w, "ASC", -1)
	if err != nil {
		return err
	}
	for _, a := range approvals {
		ps[at[a.Proposal]].Approvals = append(ps[at[a.Proposal]].Approvals, a)
	}
	for i := range ps {
		ps[i].VoteState = voteState(ps[i].Votes)
		ps[i].ApprovalState = approvalState(ps[i].Approvals, ps[i].Revision)
	}
	return nil
}

type proposalList struct {
	Page
	Task   string `json:"task_id,omitempty"`
	Status string `json:"status,omitempty" jsonschema:"pending, in_review, revision_requested, accepted, rejected or withdrawn"`
	Author string `json:"author,omitempty" jsonschema:"a principal's id"`
	Path   string `json:"path,omitempty" jsonschema:"a file or directory that the newest revision touches"`
	Risk   string `json:"risk,omitempty" jsonschema:"low, normal, high or critical"`
	Text   string `json:"text,omitempty" jsonschema:"found in title or summary, in any case"`
}

func (r *Reader) proposalOps() []op.Op {
	return []op.Op{
		listOp(r, op.Op{
			Name: "proposal.list", Route: inWorkspace("proposals"), Tool: true, May: op.May{Any: true},
			Doc: "List proposals, each with its newest revision only, to find what is open, yours, or touches a path.",
		}, always(briefProposalView()), func(c op.Call, in proposalList, _ time.Time) (where, error) {
			w := here(c)
			w.is("task", in.Task)
			w.is("status", in.Status)
			w.is("author", in.Author)
			w.is("effective_risk", in.Risk)
			if in.Text != "" {
				w.add("instr(search, ?) > 0", strings.ToLower(in.Text))
			}
			if path := strings.TrimSuffix(in.Path, "/"); path != "" {
				// '0' is the character after '/': all that lies beneath.
				w.add(`EXISTS (SELECT 1 FROM proposal_paths WHERE proposal = proposals.id AND (path = ? OR path >= ? AND path < ?))`,
					path, path+"/", path+"0")
			}
			return w, errorsOf(
				oneOf("/status", in.Status, "pending", "in_review", "revision_requested", "accepted", "rejected", "withdrawn"),
				oneOf("/risk", in.Risk, risks()...))
		}),
	}
}
