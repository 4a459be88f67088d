package projections

import (
	"encoding/json"
	"testing"
	"time"

	"roundtable/events"
	"roundtable/internal/wire"
)

// TestStaleClaims: a claim shows what made it stale until its holder claims the
// same resource again.
func TestStaleClaims(t *testing.T) {
	s := newScene(t)
	s.claim("C-4", "file:x", "bot", time.Hour)
	foreign := func(id string, paths ...string) {
		e := events.ClaimBecameStale{Claim: id, Workspace: "WS-1", Cause: "foreign_change"}
		for _, p := range paths {
			e.Paths = append(e.Paths, events.PathState{Path: p, Kind: "file"})
		}
		s.add(e)
	}
	get := func(id string) (c wire.Claim) {
		t.Helper()
		s.upToDate()
		if err := json.Unmarshal(s.ask("claim.get", "ann", "WS-1", obj{"claim_id": id})["claim"], &c); err != nil {
			t.Fatal(err)
		}
		return c
	}
	if c := get("C-4"); c.Stale || c.Because != nil {
		t.Errorf("%+v", c)
	}
	foreign("C-4", "x")
	foreign("C-1", "a/b.go")
	s.add(events.ClaimBecameStale{Claim: "C-1", Workspace: "WS-1", Cause: "transaction", Transaction: "TX-1", Paths: []events.PathState{{Path: "a/a.go"}, {Path: "a/b.go"}}, More: 2})
	c := get("C-1")
	if b, _ := json.Marshal(c.Because.Paths); !c.Stale || c.Because.Cause != "transaction" || c.Because.Transaction != "TX-1" || c.Because.More != 2 || string(b) != `["a/a.go","a/b.go"]` || c.Because.Since.IsZero() {
		t.Errorf("%+v, %+v", c, c.Because)
	}
	s.add(events.ClaimGranted{Claim: "C-5", Workspace: "WS-1", Resource: "file:x", Type: "write", Holder: "eve", GrantedAt: s.now, ExpiresAt: s.now.Add(time.Hour)})
	if c := get("C-4"); !c.Stale {
		t.Error("somebody else's claim renews nothing")
	}
	s.add(events.ClaimGranted{Claim: "C-6", Workspace: "WS-1", Resource: "file:x", Type: "read", Holder: "bot", Base: events.BaseHash{State: "present", Hash: "new"}, GrantedAt: s.now, ExpiresAt: s.now.Add(time.Hour)})
	if c := get("C-4"); c.Stale || c.BaseHash.Hash != "new" {
		t.Errorf("%+v", c)
	}
	if c := get("C-1"); !c.Stale {
		t.Error("another resource renews nothing")
	}
	for stale, want := range map[bool]int{true: 1, false: 5} {
		var got []wire.Claim
		if err := json.Unmarshal(s.ask("resource.claim_status", "ann", "WS-1", obj{"stale": stale})["claims"], &got); err != nil || len(got) != want {
			t.Errorf("stale=%v: %d claims (%v), want %d", stale, len(got), err, want)
		}
	}
}
