package domain

import (
	"slices"
	"testing"
	"time"

	"roundtable/events"
)

// TestReleaseOfEarlier: with a proposal end the claims of all its revisions,
// and not those that its author took for something else.
func TestReleaseOfEarlier(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	minute := func(n int) time.Time { return at.Add(time.Duration(n) * time.Minute) }
	var c Claims
	for i, g := range []events.ClaimGranted{
		{Claim: "earlier", Resource: "file:a", Holder: "ada", GrantedAt: minute(0)},
		{Claim: "newest", Resource: "file:b", Holder: "ada", GrantedAt: minute(3)},
		{Claim: "again", Resource: "file:a", Holder: "ada", GrantedAt: minute(4)}, // after revision 2, which leaves it out
		{Claim: "task", Resource: "file:a", Holder: "ada", Task: "T-2", GrantedAt: minute(0)},
		{Claim: "wide", Resource: "directory:", Holder: "ada", GrantedAt: minute(0)},
		{Claim: "unnamed", Resource: "file:c", Holder: "ada", GrantedAt: minute(0)},
		{Claim: "others", Resource: "file:a", Holder: "bob", GrantedAt: minute(0)},
	} {
		g.Type, g.Fence, g.ExpiresAt = "read", int64(i+1), minute(60)
		c = c.Evolve(g)
	}
	ended := func(second time.Time) (ids []string) {
		p := Proposal{}.Evolve(events.ProposalCreated{Proposal: "P-1", Author: "ada", Task: "T-1"}).
			Evolve(events.ProposalRevisionAttached{Number: 1, AttachedBy: "ada", Resources: []string{"file:a"}, AttachedAt: minute(1)}).
			Evolve(events.ProposalRevisionAttached{Number: 2, AttachedBy: "ada", Resources: []string{"file:b"}, AttachedAt: second})
		es, err := p.Withdraw("ada", "", c, Transaction{})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			if r, ok := e.(events.ClaimReleased); ok {
				ids = append(ids, r.Claim)
			}
		}
		return ids
	}
	if got := ended(minute(2)); !slices.Equal(got, []string{"earlier", "newest"}) {
		t.Errorf("released %v", got)
	}
	if got := ended(time.Time{}); !slices.Equal(got, []string{"newest"}) { // of a history from before
		t.Errorf("released %v", got)
	}
}
