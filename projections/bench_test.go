package projections

import (
	"fmt"
	"testing"
	"time"

	"roundtable/events"
)

// BenchmarkRebuild measures building all tables again, and swapping them in,
// from a log of 50,000 ordinary events in memory.
func BenchmarkRebuild(b *testing.B) {
	log := &memLog{}
	for i := 0; len(log.records) < 50_000; i++ {
		log.add(epoch.Add(time.Duration(i)), ordinary(i)...)
	}
	v := openViews(b, b.Context(), b.TempDir(), "views.db", log)
	defer v.db.Close()
	for b.Loop() {
		if _, err := v.Rebuild(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N*len(log.records))/b.Elapsed().Seconds(), "events/s")
}

// BenchmarkShow measures reading one proposal among many.
func BenchmarkShow(b *testing.B) {
	log := &memLog{}
	for i := range 1000 {
		log.add(epoch, ordinary(i)...)
	}
	v := openViews(b, b.Context(), b.TempDir(), "views.db", log)
	defer v.db.Close()
	v.catchUp(b.Context(), b, 1000)
	r := NewReader(v, func() time.Time { return epoch }, Limits{})
	for b.Loop() {
		if _, _, err := r.Show(b.Context(), "proposal", "WS-1", "P-500", 0); err != nil {
			b.Fatal(err)
		}
	}
}

// ordinary is the i-th proposal's path through the product.
func ordinary(i int) []events.Payload {
	id := func(prefix string, n int) string { return fmt.Sprintf("%s-%d", prefix, 10*i+n) }
	p := fmt.Sprintf("P-%d", i)
	return []events.Payload{
		events.TaskCreated{Task: id("T", 0), Workspace: "WS-1", Title: "a task", Body: "of some words", Risk: "normal"},
		events.ClaimGranted{Claim: id("C", 0), Workspace: "WS-1", Resource: "file:a/b.go", Type: "write", Holder: "PR-1", GrantedAt: epoch, ExpiresAt: epoch.Add(time.Hour)},
		events.ProposalCreated{Proposal: p, Workspace: "WS-1", Task: id("T", 0), Author: "PR-1", Title: "a change", Summary: "of some words", Risk: "normal"},
		events.ProposalRevisionAttached{Proposal: p, Number: 1, PatchDigest: "d", Files: []events.PatchedFile{{Op: "modify", Path: "a/b.go", Added: 3}}, Resources: []string{"file:a/b.go"}, AttachedBy: "PR-1"},
		events.ProposalReviewRequested{Proposal: p, Revision: 1, By: "PR-1"},
		events.VoteCast{Vote: id("V", 0), Proposal: p, Revision: 1, Voter: "PR-2", Choice: "approve", Reason: "reads well"},
		events.VoteCast{Vote: id("V", 1), Proposal: p, Revision: 1, Voter: "PR-3", Choice: "approve", Reason: "reads well"},
		events.TransactionOpened{Transaction: id("TX", 0), Workspace: "WS-1", Proposal: p, Revision: 1, By: "PR-2"},
		events.TransactionPhaseCompleted{Transaction: id("TX", 0), Attempt: 1, Phase: "apply", Status: "completed", Actor: events.System},
		events.TransactionApplied{Transaction: id("TX", 0), Proposal: p, Attempt: 1, Files: []events.ChangedPath{{Path: "a/b.go"}}},
		events.ProposalAccepted{Proposal: p, Transaction: id("TX", 0), Revision: 1},
		events.ClaimReleased{Claim: id("C", 0), Workspace: "WS-1", Cause: "proposal_accepted"},
	}
}
