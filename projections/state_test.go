package projections

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"roundtable/events"
)

func (s *scene) state(caller string) State {
	s.Helper()
	s.upToDate()
	var st State
	if err := json.Unmarshal(s.ask("table.get_state", caller, "WS-1", obj{})["state"], &st); err != nil {
		s.Fatal(err)
	}
	return st
}

// TestState: each caller is told what is theirs and what waits for them.
func TestState(t *testing.T) {
	s := newScene(t)
	needs := func(caller, want string) {
		t.Helper()
		var got []string
		for _, n := range s.state(caller).NeedsMe {
			got = append(got, n.Kind+":"+n.Proposal+n.Approval)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("%s is needed for %q, want %q", caller, g, want)
		}
	}
	st := s.state("bot")
	if len(st.Claims) != 1 || st.Claims[0].ID != "C-1" || len(st.Proposals) != 2 || st.Head != int64(len(s.log.records)) ||
		st.Me.Principal != "bot" || fmt.Sprint(st.Me.Roles) != "[implementer]" || st.Workspace.ID != "WS-1" {
		t.Errorf("%+v", st)
	}
	needs("bot", "")  // no reviewer
	needs("bot2", "") // of the author's owner
	needs("eves", "vote:P-1")
	needs("ann", "vote:P-1") // a person may review what their agents write
	needs("eve", "")         // a viewer here
	s.vote("V-1", "P-1", "eves", "revise", 1)
	s.add(events.ProposalRevisionRequested{Proposal: "P-1", Revision: 1, By: "eves", Cause: "vote"})
	needs("eves", "")
	needs("bot", "revision:P-1")
	s.add(s.revision("P-1", 2, "eves", "a/b.go"), events.ProposalReviewRequested{Proposal: "P-1", Revision: 2, By: "bot"})
	needs("eves", "") // an author now
	needs("bot", "")

	s.add(events.ApprovalRequested{Approval: "H-1", Workspace: "WS-1", Proposal: "P-1", Subject: "s", Revision: 2, By: "bot"},
		events.ApprovalRequested{Approval: "H-2", Workspace: "WS-1", Proposal: "P-2", Subject: "s", Revision: 1, By: "bot"},
		events.ApprovalRequested{Approval: "H-3", Workspace: "WS-1", Subject: "s", By: "bot"},
		events.ApprovalRequested{Approval: "H-4", Workspace: "WS-2", Subject: "s", By: "bot"})
	needs("ann", "vote:P-1 approval:P-1H-1 approval:H-3") // P-2 is her own
	needs("eve", "approval:P-1H-1 approval:P-2H-2 approval:H-3")
	decide := func(id, proposal, by, verdict string, revision int) {
		s.add(events.ApprovalDecided{Approval: id, Proposal: proposal, By: by, Verdict: verdict, Revision: revision})
	}
	decide("H-1", "P-1", "ann", "rejected", 2)
	decide("H-3", "", "ann", "deferred", 0)
	needs("ann", "vote:P-1 approval:H-3")
	needs("eve", "approval:P-1H-1 approval:P-2H-2 approval:H-3")
	decide("H-3", "", "eve", "approved", 0)
	decide("H-2", "P-2", "eve", "approved", 1)
	needs("ann", "vote:P-1")
	needs("eve", "approval:P-1H-1")
	s.add(s.revision("P-1", 3, "bot", "a/b.go"), s.revision("P-2", 2, "ann", "c.go"))
	needs("eve", "approval:P-1H-1 approval:P-2H-2") // what was decided is stale
	s.add(events.ProposalWithdrawn{Proposal: "P-2", By: "ann"})
	needs("eve", "approval:P-1H-1")

	s.add(events.TransactionOpened{Transaction: "TX-1", Workspace: "WS-1", Proposal: "P-1", Revision: 3, By: "ann"})
	if st := s.state("bot"); len(st.Transactions) != 1 || len(st.Proposals) != 1 || len(st.Truncated) != 0 {
		t.Errorf("%+v", st)
	}
	for i := range stateMax + 1 {
		s.claim(fmt.Sprint("C-9", i), "file:x", "bot", 10*time.Hour)
	}
	s.now = s.now.Add(5 * time.Second)
	if st := s.state("bot"); len(st.Claims) != stateMax || fmt.Sprint(st.Truncated) != "[claims]" {
		t.Errorf("%d claims, truncated %v", len(st.Claims), st.Truncated)
	}
}
