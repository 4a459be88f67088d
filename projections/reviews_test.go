package projections

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"roundtable/events"
	"roundtable/internal/wire"
)

func (s *scene) proposal(id string) wire.Proposal {
	s.Helper()
	s.upToDate()
	v, _, err := s.r.Show(s.Context(), "proposal", "WS-1", id, int64(len(s.log.records)))
	if err != nil {
		s.Fatal(err)
	}
	return v.(wire.Proposal)
}

// TestVoteState follows one proposal through votes and revisions.
func TestVoteState(t *testing.T) {
	s := newScene(t)
	is := func(want string) {
		t.Helper()
		if got := s.proposal("P-1").VoteState; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	is("pending")
	s.vote("V-1", "P-1", "eve", "approve_with_notes", 1)
	is("approved")
	s.vote("V-2", "P-1", "ann", "revise", 1)
	is("blocked")
	s.add(s.revision("P-1", 2, "bot", "a/b.go"))
	is("blocked") // an objection does not wash off
	s.vote("V-3", "P-1", "ann", "abstain", 2)
	is("pending") // and an approval does
	s.vote("V-4", "P-1", "eve", "approve", 2)
	is("approved")
	s.vote("V-5", "P-1", "eves", "veto", 2)
	is("blocked")

	p := s.proposal("P-1")
	var marks []string
	for _, v := range p.Votes {
		marks = append(marks, strings.TrimSpace(v.ID+" "+map[bool]string{true: "current"}[v.Current]+map[bool]string{true: " stale"}[v.Stale]))
	}
	if d := cmp.Diff([]string{"V-1  stale", "V-2  stale", "V-3 current", "V-4 current", "V-5 current"}, marks); d != "" {
		t.Error(d)
	}
	var counts map[string]int
	if err := json.Unmarshal(s.ask("vote.list", "ann", "WS-1", obj{"proposal_id": "P-1", "limit": 1})["counts"], &counts); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[string]int{"approve": 1, "approve_with_notes": 0, "revise": 0, "reject": 0, "veto": 1, "abstain": 1}, counts); d != "" {
		t.Error(d)
	}
}

// TestApprovalState follows one proposal through requests and decisions.
func TestApprovalState(t *testing.T) {
	s := newScene(t)
	is := func(want string) {
		t.Helper()
		if got := s.proposal("P-1").ApprovalState; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	decide := func(id, by, verdict string, revision int) {
		s.add(events.ApprovalDecided{Approval: id, Proposal: "P-1", Verdict: verdict, By: by, Revision: revision})
	}
	is("not_required")
	s.add(events.ApprovalRequested{Approval: "H-1", Workspace: "WS-1", Proposal: "P-1", Subject: "s", Revision: 1, By: "bot"})
	is("pending")
	decide("H-1", "ann", "deferred", 1)
	is("deferred")
	decide("H-1", "ann", "approved", 1)
	is("approved")
	decide("H-1", "eve", "deferred", 1)
	is("deferred")
	decide("H-1", "eve", "rejected", 1)
	is("rejected")
	s.add(s.revision("P-1", 2, "bot", "a/b.go"))
	is("rejected") // a refusal stands until its person decides again
	s.add(events.ApprovalRequested{Approval: "H-2", Workspace: "WS-1", Proposal: "P-1", Subject: "s", Revision: 2, By: "bot"})
	decide("H-2", "eve", "approved", 2)
	is("approved")
	s.add(s.revision("P-1", 3, "bot", "a/b.go"))
	is("pending") // what was granted is stale
	decide("H-2", "ann", "changes_requested", 3)
	is("changes_requested")

	var a struct{ Status string }
	if err := json.Unmarshal(s.ask("human.approval_status", "bot", "WS-1", obj{"approval_id": "H-1"})["approval"], &a); err != nil || a.Status != "rejected" {
		t.Error(a, err)
	}
	if n := len(s.proposal("P-1").Approvals[0].Decisions); n != 4 {
		t.Errorf("%d decisions", n)
	}
}

// TestStatus follows a proposal's status and its transaction's.
func TestStatus(t *testing.T) {
	s := newScene(t)
	is := func(status, transaction, applied string) {
		t.Helper()
		p := s.proposal("P-1")
		if p.Status != status || p.TxState != transaction {
			t.Errorf("%s, %s; want %s, %s", p.Status, p.TxState, status, transaction)
		}
		if p.Transaction == "" {
			return
		}
		v, _, err := s.r.Show(t.Context(), "transaction", "WS-1", p.Transaction, 0)
		if err != nil {
			t.Fatal(err)
		}
		if x := v.(wire.Transaction); x.State != transaction || x.Applied != applied {
			t.Errorf("transaction %s is %s, applied %s; want %s, %s", x.ID, x.State, x.Applied, transaction, applied)
		}
	}
	is("in_review", "not_started", "")
	s.add(s.revision("P-1", 2, "bot", "a/b.go"))
	is("in_review", "not_started", "")
	s.add(events.ProposalRevisionRequested{Proposal: "P-1", Revision: 2, By: "eve", Cause: "vote"})
	is("revision_requested", "not_started", "")
	s.add(s.revision("P-1", 3, "bot", "a/b.go"))
	is("pending", "not_started", "")
	open := func(id string) {
		s.add(events.TransactionOpened{Transaction: id, Workspace: "WS-1", Proposal: "P-1", Revision: 3, By: "ann"})
	}
	open("TX-1")
	is("pending", "pending", "no")
	s.add(events.TransactionStaged{Transaction: "TX-1"})
	is("pending", "staged", "no")
	apply := func(id string) {
		s.add(events.TransactionApplyRequested{Transaction: id, Proposal: "P-1", Attempt: 1, PatchDigest: "d", Gates: []events.GateResult{{Gate: "votes", Status: "passed"}}})
	}
	apply("TX-1")
	is("pending", "applying", "unknown")
	s.add(events.TransactionFailed{Transaction: "TX-1", Proposal: "P-1", Attempt: 1, Code: "state.needs_attention"})
	is("pending", "failed", "unknown")
	open("TX-2")
	apply("TX-2")
	s.add(events.TransactionFailed{Transaction: "TX-2", Proposal: "P-1", Attempt: 1, Code: "conflict"})
	is("pending", "failed", "no")
	open("TX-3")
	apply("TX-3")
	s.add(events.TransactionApplied{Transaction: "TX-3", Proposal: "P-1", Attempt: 1, AfterTree: "tree"}, events.ProposalAccepted{Proposal: "P-1", Transaction: "TX-3", Revision: 3})
	is("accepted", "applied", "yes")
	if r := s.proposal("P-1").Revisions; len(r) != 3 || r[2].CandidateTree != "tree" || r[1].CandidateTree != "" {
		t.Errorf("%+v", r)
	}
	s.add(events.TransactionStaged{Transaction: "TX-1"}, events.TransactionCompensated{Transaction: "TX-3", By: "TX-4"})
	is("accepted", "applied", "yes") // an older transaction says nothing here
}
