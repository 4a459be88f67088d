package projections

import (
	"context"
	"database/sql"
	"time"

	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// voteView shows votes. Current is a voter's newest, stale is one on a
// revision that is no longer the newest.
func voteView() view[wire.Vote] {
	return view[wire.Vote]{
		name: "vote", missing: absent("vote_not_found", "vote"), plural: "votes", from: proposals,
		source: `(SELECT v.*, p.workspace, v.revision <> p.revision AS stale,
			NOT EXISTS (SELECT 1 FROM votes n WHERE n.proposal = v.proposal AND n.voter = v.voter AND n.seq > v.seq) AS current
			FROM votes v JOIN proposals p ON p.id = v.proposal)`,
		columns: "seq, id, proposal, voter, revision, vote, reason, confidence, cast_at, current, stale", created: "cast_at", oldestFirst: true,
		scan: func(s scanner) (seq int64, v wire.Vote, err error) {
			var confidence sql.NullFloat64
			err = s.Scan(&seq, &v.ID, &v.Proposal, &v.Voter, &v.Revision, &v.Vote, &v.Reason, &confidence, stamp{&v.CastAt}, &v.Current, &v.Stale)
			if confidence.Valid {
				v.Confidence = &confidence.Float64
			}
			return seq, v, err
		},
	}
}

// objects reports whether a vote holds a proposal up. It does so, on whatever
// revision it was cast, until its voter votes again.
func objects(vote string) bool { return vote == "revise" || vote == "reject" || vote == "veto" }

func supports(vote string) bool { return vote == "approve" || vote == "approve_with_notes" }

// counts reports whether a vote has a say now.
func counts(v wire.Vote) bool { return v.Current && (!v.Stale || objects(v.Vote)) }

// voteState is what the votes on one proposal say together. Who may vote, and
// how many are needed, is the rules' affair.
func voteState(votes []wire.Vote) string {
	state := "pending"
	for _, v := range votes {
		switch {
		case !counts(v):
		case objects(v.Vote):
			return "blocked"
		case supports(v.Vote):
			state = "approved"
		}
	}
	return state
}

// approvalState is what people have decided about one proposal, from each
// person's newest decision. A refusal stands, on whatever revision, until that
// person decides again; all else is about the newest revision. A request that
// was granted for an earlier one only is pending again.
func approvalState(approvals []wire.Approval, revision int) string {
	if len(approvals) == 0 {
		return "not_required"
	}
	newest := map[string]wire.ApprovalDecision{}
	for _, a := range approvals {
		for _, d := range a.Decisions {
			if !d.At.Before(newest[d.By].At) {
				newest[d.By] = d
			}
		}
	}
	said := map[string]bool{}
	for _, d := range newest {
		if refuses := d.Verdict == "rejected" || d.Verdict == "changes_requested"; refuses || d.Revision == revision {
			said[d.Verdict] = true
		}
	}
	for _, verdict := range []string{"rejected", "changes_requested", "deferred", "approved"} {
		if said[verdict] {
			return verdict
		}
	}
	return "pending"
}

// approvalView shows requests for approval with all decisions.
func approvalView() view[wire.Approval] {
	return view[wire.Approval]{
		name: "approval", missing: absent("approval_not_found", "approval"), plural: "approvals", from: proposals, source: "approvals",
		columns: "seq, id, workspace, proposal, task, subject, reason, revision, status, requested_by, requested_at", created: "requested_at",
		scan: func(s scanner) (seq int64, a wire.Approval, err error) {
			a.Decisions = []wire.ApprovalDecision{}
			err = s.Scan(&seq, &a.ID, &a.Workspace, &a.Proposal, &a.Task, &a.Subject, &a.Reason, &a.Revision, &a.Status, &a.RequestedBy, stamp{&a.RequestedAt})
			return seq, a, err
		},
		fill: func(ctx context.Context, tx *sql.Tx, as []wire.Approval) error {
			at, ids := indexBy(as, func(a wire.Approval) string { return a.ID })
			return each(ctx, tx, `SELECT approval, decided_by, verdict, reason, revision, decided_at FROM approval_decisions
				WHERE approval IN (SELECT value FROM json_each(?)) ORDER BY seq`, []any{ids}, func(s scanner) error {
				var id string
				var d wire.ApprovalDecision
				err := s.Scan(&id, &d.By, &d.Verdict, &d.Reason, &d.Revision, stamp{&d.At})
				as[at[id]].Decisions = append(as[at[id]].Decisions, d)
				return err
			})
		},
	}
}

type voteList struct {
	Page
	Proposal string `json:"proposal_id"`
	Voter    string `json:"voter,omitempty" jsonschema:"a principal's id"`
	Vote     string `json:"vote,omitempty" jsonschema:"approve, approve_with_notes, revise, reject, veto or abstain"`
}

type approvalID struct {
	ID string `json:"approval_id"`
}

type approvalList struct {
	Page
	Status      string `json:"status,omitempty" jsonschema:"requested, approved, rejected, changes_requested or deferred"`
	Proposal    string `json:"proposal_id,omitempty"`
	Task        string `json:"task_id,omitempty"`
	RequestedBy string `json:"requested_by,omitempty" jsonschema:"a principal's id"`
}

func (r *Reader) reviewOps() []op.Op {
	approvals := always(approvalView())
	return []op.Op{
		r.voteListOp(),
		getOp(r, op.Op{
			Name: "human.approval_status", Route: inWorkspace("approvals/{approval_id}"), Tool: true, May: op.May{Any: true},
			Doc: "Show what people have decided on one request for approval; use it after human.request_approval.",
		}, approvals, func(_ op.Call, in approvalID) string { return in.ID }),
		listOp(r, op.Op{
			Name: "approval.list", Route: inWorkspace("approvals"), May: op.May{Any: true},
			Doc: "List requests for approval, to find those that wait for a person.",
		}, approvals, func(c op.Call, in approvalList, _ time.Time) (where, error) {
			w := here(c)
			w.is("status", in.Status)
			w.is("proposal", in.Proposal)
			w.is("task", in.Task)
			w.is("requested_by", in.RequestedBy)
			return w, oneOf("/status", in.Status, "requested", "approved", "rejected", "changes_requested", "deferred")
		}),
	}
}

// choices are the votes there are.
func choices() []string {
	return []string{"approve", "approve_with_notes", "revise", "reject", "veto", "abstain"}
}

// voteListOp lists the votes on a proposal, with how many have a say.
func (r *Reader) voteListOp() op.Op {
	o := op.Op{
		Name: "vote.list", Route: inWorkspace("proposals/{proposal_id}/votes"), Tool: true, May: op.May{Any: true},
		Doc: "List all votes on a proposal; counts has those that have a say now: each voter's newest on the newest revision, and objections to any.",
		Out: op.ListOf[wire.Vote]("votes"),
	}
	o.Out.Properties["counts"] = op.SchemaOf[map[string]int]()
	o.Out.Required = append(o.Out.Required, "counts")
	return op.Of(o, func(ctx context.Context, c op.Call, in voteList) (op.Answer, error) {
		if err := oneOf("/vote", in.Vote, choices()...); err != nil {
			return op.Answer{}, err
		}
		w := here(c)
		w.add("proposal = ?", in.Proposal)
		w.is("voter", in.Voter)
		w.is("vote", in.Vote)
		var tally map[string]int
		a, err := pageOf(ctx, r, o.Name, c, in, voteView(), w, func(tx *sql.Tx) (err error) {
			tally, err = r.tally(ctx, tx, c.Workspace, in.Proposal)
			return err
		})
		a.More = map[string]any{"counts": tally}
		return a, err
	})
}

// tally counts, for each choice, the votes on a proposal that have a say.
func (r *Reader) tally(ctx context.Context, tx *sql.Tx, workspace, proposal string) (map[string]int, error) {
	p, err := proposalView().one(ctx, tx, workspace, proposal)
	if err != nil {
		return nil, err
	}
	n := map[string]int{}
	for _, choice := range choices() {
		n[choice] = 0
	}
	for _, v := range p.Votes {
		if counts(v) {
			n[v.Vote]++
		}
	}
	return n, nil
}
