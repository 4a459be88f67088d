package attest_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"roundtable/events"
	"roundtable/internal/attest"
)

// past makes a history in which the first attempt failed and the second was
// applied. change may alter what is said before it is read.
func past(t *testing.T, change func(q *events.TransactionApplyRequested)) (attest.History, map[string]string) {
	t.Helper()
	at, ids := int64(0), map[string]string{}
	event := func(name string, p events.Payload) events.Event {
		at++
		e := events.Event{Position: at, ID: ulid.Make(), Time: time.Unix(at, 7).UTC(), Payload: p}
		ids[name] = e.ID.String()
		return e
	}
	request := events.TransactionApplyRequested{Transaction: "TX-1", Proposal: "P-1", Revision: 2, Attempt: 2, PatchDigest: sha("two"), PolicyDigest: sha("policy"),
		Votes: []string{"V-2"}, Approvals: []string{"H-2"}, TestRuns: []string{"TR-2"}, By: "PR-9", Reason: "now"}
	if change != nil {
		change(&request)
	}
	state := func(s string) events.PathState {
		return events.PathState{Path: "a", Kind: "file", Mode: "100644", SHA256: sha(s), Size: int64(len(s))}
	}
	h := attest.History{Workspace: events.WorkspaceAdded{Workspace: "WS-1", Kind: "folder"}}
	h.Proposal = []events.Event{
		event("created", events.ProposalCreated{Proposal: "P-1", Author: "PR-1"}),
		event("first", events.ProposalRevisionAttached{Number: 1, Base: events.Base{PathsDigest: sha("old")}, AttachedBy: "PR-1"}),
		event("second", events.ProposalRevisionAttached{Number: 2, Base: events.Base{Commit: "c", PathsDigest: sha("new")}, AttachedBy: "PR-2"}),
		event("V-1", events.VoteCast{Vote: "V-1", Voter: "PR-3", Choice: "revise"}),
		event("V-2", events.VoteCast{Vote: "V-2", Voter: "PR-3", Choice: "approve"}),
		event("H-1", events.ApprovalDecided{Approval: "H-1", By: "PR-4", Verdict: "approved"}),
		event("other", events.ApprovalDecided{Approval: "H-2", By: "PR-5", Verdict: "rejected"}),
		event("H-2", events.ApprovalDecided{Approval: "H-2", By: "PR-4", Verdict: "approved"}),
		event("TR-1", events.ProposalTested{TestRun: "TR-1", State: "failed"}),
		event("TR-2", events.ProposalTested{TestRun: "TR-2", State: "passed", Tree: sha("tree"), Command: "go test", Isolation: "namespace"}),
	}
	h.Transaction = []events.Event{
		event("opened", events.TransactionOpened{Transaction: "TX-1", Workspace: "WS-1", Proposal: "P-1", Revision: 1, By: "PR-8"}),
		event("one", events.TransactionApplyRequested{Transaction: "TX-1", Attempt: 1, Revision: 1, PatchDigest: sha("one"), By: "PR-8"}),
		event("failed", events.TransactionFailed{Transaction: "TX-1", Attempt: 1}),
		event("two", request),
	}
	h.Proposal = append(h.Proposal, event("later", events.ApprovalDecided{Approval: "H-2", By: "PR-4", Verdict: "rejected"}))
	applied := event("applied", events.TransactionApplied{Transaction: "TX-1", Proposal: "P-1", Attempt: 2, AfterTree: sha("tree"), Ref: "refs/heads/main", Commit: "c2", Parent: "c1",
		Files: []events.ChangedPath{{Path: "a", Before: state("x"), After: state("y")}}})
	h.Transaction = append(h.Transaction, applied, event("back", events.TransactionCompensated{Transaction: "TX-1"}))
	typ, schema, data, err := events.Encode(applied.Payload)
	if err != nil {
		t.Fatal(err)
	}
	h.Applied = events.Record{Position: applied.Position, ID: applied.ID.String(), Type: typ, Schema: schema, Time: applied.Time, Data: data, Hash: sha("row")}
	return h, ids
}

// TestOf: a receipt is of the attempt that was applied and of the revision that
// it was of, and its evidence is as it stood when the apply was asked for.
func TestOf(t *testing.T) {
	h, ids := past(t, nil)
	r, err := attest.Of(h)
	if err != nil {
		t.Fatal(err)
	}
	if r.Attempt != 2 || r.Revision != 2 || r.PatchDigest != sha("two") || r.OpenedBy != "PR-8" || r.RequestedBy != "PR-9" || r.Author != "PR-1" || r.AttachedBy != "PR-2" ||
		r.Base != (attest.Base{Commit: "c", PathsDigest: sha("new")}) || r.WorkspaceKind != "folder" || r.Log != (attest.LogPlace{Position: h.Applied.Position, Event: ids["applied"], Hash: sha("row")}) {
		t.Errorf("%+v", r)
	}
	if r.Commit == nil || *r.Commit != (attest.Commit{ID: "c2", Parent: "c1", Ref: "refs/heads/main"}) {
		t.Errorf("%+v", r.Commit)
	}
	want := attest.Evidence{Votes: []attest.Vote{{ID: "V-2", Voter: "PR-3", Vote: "approve", Event: ids["V-2"]}},
		Approvals: []attest.Approval{{ID: "H-2", By: "PR-4", Verdict: "approved", Event: ids["H-2"]}},
		TestRuns:  []attest.TestRun{{ID: "TR-2", Command: "go test", Tree: sha("tree"), State: "passed", Isolation: "namespace", Event: ids["TR-2"]}}}
	if fmt.Sprint(r.Evidence) != fmt.Sprint(want) {
		t.Errorf("%+v, want %+v", r.Evidence, want)
	}
}

// TestOfLacking: a history that does not have what a receipt rests on gives none.
func TestOfLacking(t *testing.T) {
	for name, change := range map[string]func(q *events.TransactionApplyRequested){
		"the attempt":  func(q *events.TransactionApplyRequested) { q.Attempt = 3 },
		"the revision": func(q *events.TransactionApplyRequested) { q.Revision = 7 },
		"a vote":       func(q *events.TransactionApplyRequested) { q.Votes = append(q.Votes, "V-9") },
		"an approval":  func(q *events.TransactionApplyRequested) { q.Approvals = append(q.Approvals, "H-1") },
		"a test":       func(q *events.TransactionApplyRequested) { q.TestRuns = append(q.TestRuns, "TR-9") },
	} {
		h, _ := past(t, change)
		if r, err := attest.Of(h); err == nil {
			t.Errorf("without %s: %+v", name, r)
		}
	}
}
