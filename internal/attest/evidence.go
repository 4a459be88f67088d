package attest

import (
	"maps"
	"slices"

	"roundtable/events"
)

// Evidence is the records that the passed gates rest on. Of each the history
// has an event, which holds all of it.
type Evidence struct {
	Votes     []Vote     `json:"votes"`     // that counted as approvals
	Approvals []Approval `json:"approvals"` // in which people approved
	TestRuns  []TestRun  `json:"test_runs"` // that gate tests rests on
}

// A Vote is one that counted.
type Vote struct {
	ID    string `json:"vote_id"`
	Voter string `json:"voter"`
	Vote  string `json:"vote"`
	Event string `json:"event_id"`
}

// An Approval is one person's yes to a request.
type Approval struct {
	ID      string `json:"approval_id"`
	By      string `json:"decided_by"`
	Verdict string `json:"verdict"`
	Event   string `json:"event_id"`
}

// A TestRun is a verified pass of one command on one tree.
type TestRun struct {
	ID        string `json:"test_run_id"`
	Command   string `json:"command"`
	Tree      string `json:"candidate_tree"`
	State     string `json:"state"`
	Isolation string `json:"isolation"`
	Event     string `json:"event_id"`
}

// evidence finds in a proposal's stream what a request rests on, as it stood
// then. Of each person the newest word counts.
func evidence(q events.TransactionApplyRequested, requested int64, proposal []events.Event) Evidence {
	votes, runs, words := map[string]Vote{}, map[string]TestRun{}, map[string]Approval{} // words by person
	for _, e := range proposal {
		if e.Position > requested {
			break
		}
		id := e.ID.String()
		switch p := e.Payload.(type) {
		case events.VoteCast:
			votes[p.Vote] = Vote{p.Vote, p.Voter, p.Choice, id}
		case events.ProposalTested:
			runs[p.TestRun] = TestRun{p.TestRun, p.Command, p.Tree, p.State, p.Isolation, id}
		case events.ApprovalDecided:
			words[p.By] = Approval{p.Approval, p.By, p.Verdict, id}
		}
	}
	out := Evidence{Votes: []Vote{}, Approvals: []Approval{}, TestRuns: []TestRun{}}
	for _, id := range q.Votes {
		out.Votes = append(out.Votes, votes[id])
	}
	for _, id := range q.TestRuns {
		out.TestRuns = append(out.TestRuns, runs[id])
	}
	for _, id := range q.Approvals {
		for _, who := range slices.Sorted(maps.Keys(words)) {
			if a := words[who]; a.ID == id && a.Verdict == "approved" {
				out.Approvals = append(out.Approvals, a)
			}
		}
	}
	return out
}

// missing names the evidence that is named by a request and of which the
// history has no event.
func (e Evidence) missing(q events.TransactionApplyRequested) (id string) {
	for i, v := range e.Votes {
		if v.ID == "" {
			return q.Votes[i]
		}
	}
	for i, t := range e.TestRuns {
		if t.ID == "" {
			return q.TestRuns[i]
		}
	}
	for _, id := range q.Approvals {
		if !slices.ContainsFunc(e.Approvals, func(a Approval) bool { return a.ID == id }) {
			return id
		}
	}
	return ""
}
