package domain

import (
	"maps"
	"slices"
	"time"

	"roundtable/events"
	"roundtable/internal/fault"
)

// Bounds on the time a claim is granted for.
const (
	DefaultTTL = 15 * time.Minute
	MaxTTL     = 24 * time.Hour
)

// Claims is the lease table of one workspace. A claim ends by its expiry, for
// every rule that is given the time, whether or not that was written down.
//
//	granted ──release──▶ released
//	   └──────expiry───▶ expired
type Claims struct {
	Live  map[string]Claim // by id; those not known to have ended
	Fence int64            // the last one given
}

// A Claim is one lease.
type Claim struct {
	ID       string
	Resource Resource
	Type     string
	Holder   string
	Task     string
	Fence    int64
	Base     events.BaseHash
	Seen     *events.PathState // of a file: all that lay there
	Granted  time.Time
	Expires  time.Time
	Stale    *Staleness // nil while all is as the holder knows it
}

// conflicts says which two types of claim cannot be held at once on resources
// that overlap. It is symmetric.
var conflicts = map[[2]string]bool{
	{"exclusive", "exclusive"}: true, {"exclusive", "write"}: true, {"exclusive", "review"}: true, {"exclusive", "read"}: true,
	{"write", "exclusive"}: true, {"review", "exclusive"}: true, {"read", "exclusive"}: true,
	{"write", "write"}: true,
}

// Clone returns a table that can be folded further without touching c.
func (c Claims) Clone() Claims {
	c.Live = maps.Clone(c.Live)
	return c
}

// Evolve returns c after e has happened. It changes c.Live in place: see Clone.
func (c Claims) Evolve(e events.Payload) Claims {
	switch e := e.(type) {
	case events.ClaimGranted:
		if c.Live == nil {
			c.Live = map[string]Claim{}
		}
		r, _ := ParseResource(e.Resource) // it was parsed when it was granted
		c.Live[e.Claim] = Claim{ID: e.Claim, Resource: r, Type: e.Type, Holder: e.Holder, Task: e.Task, Fence: e.Fence, Base: e.Base, Seen: e.Seen, Granted: e.GrantedAt, Expires: e.ExpiresAt}
		c.refresh(c.Live[e.Claim])
		c.Fence = max(c.Fence, e.Fence)
	case events.ClaimReleased:
		delete(c.Live, e.Claim)
	case events.ClaimExpired:
		delete(c.Live, e.Claim)
	case events.ClaimBecameStale:
		c.stale(e)
	default:
		foreign("claims", e)
	}
	return c
}

// A Wish for a claim.
type ClaimWish struct {
	ID, Workspace, Holder, Task, Rationale string
	Resource                               Resource
	Type                                   string
	TTL                                    time.Duration // 0 is DefaultTTL
	Base                                   events.BaseHash
	Seen                                   *events.PathState
}

// Grant gives out a lease, unless another holder's stands in the way. What it
// finds to have expired it writes down.
func (c Claims) Grant(w ClaimWish, now time.Time) ([]events.Payload, error) {
	if w.TTL == 0 {
		w.TTL = DefaultTTL
	}
	switch err := firstOf(oneOf("claim_type", w.Type, "read", "review", "write", "exclusive"), text("rationale", w.Rationale, MaxReason, false)); {
	case err != nil:
		return nil, err
	case w.TTL < time.Second || w.TTL > MaxTTL:
		return nil, fault.Errorf(fault.Invalid, "invalid_field", "ttl_seconds is from 1 to %d", int(MaxTTL.Seconds())).At("/ttl_seconds", "out of bounds")
	}
	var out []events.Payload
	for _, o := range c.sorted() {
		if !o.Expires.After(now) {
			out = append(out, events.ClaimExpired{Claim: o.ID, Workspace: w.Workspace, Cause: "ttl"})
			continue
		}
		if o.Holder != w.Holder && conflicts[[2]string{o.Type, w.Type}] && o.Resource.Overlaps(w.Resource) {
			return nil, heldBy(o, w)
		}
	}
	return append(out, events.ClaimGranted{
		Claim: w.ID, Workspace: w.Workspace, Resource: w.Resource.ID(), Type: w.Type, Holder: w.Holder, Task: w.Task,
		Rationale: w.Rationale, Fence: c.Fence + 1, Base: w.Base, Seen: w.Seen, GrantedAt: now, ExpiresAt: now.Add(w.TTL),
	}), nil
}

func heldBy(o Claim, w ClaimWish) error {
	return fault.Errorf(fault.Conflict, "claim_conflict", "%s is held by %s as %s on %s until %s",
		w.Resource.ID(), o.Holder, o.Type, o.Resource.ID(), o.Expires.UTC().Format(time.RFC3339)).
		With("holder", o.Holder).With("claim_type", o.Type).With("resource_id", o.Resource.ID()).
		With("claim_id", o.ID).With("expires_at", o.Expires).
		Then("resource.claim_status", map[string]any{"resource_id": w.Resource.ID()}, "you", "see who holds what; the claim ends by itself at its expiry").
		Then("resource.release", map[string]any{"claim_id": o.ID}, o.Holder, "the holder can give it back")
}

// Release gives a lease back, on behalf of its holder.
func (c Claims) Release(workspace, id, holder string, now time.Time) ([]events.Payload, error) {
	o, ok := c.Live[id]
	switch {
	case !ok:
		return nil, fault.Errorf(fault.NotFound, "claim_not_found", "there is no live claim %s", id)
	case o.Holder != holder:
		return nil, fault.Errorf(fault.Forbidden, "not_holder", "claim %s is held by %s, who alone can release it", id, o.Holder)
	case !o.Expires.After(now):
		return []events.Payload{events.ClaimExpired{Claim: id, Workspace: workspace, Cause: "ttl"}}, nil
	}
	return []events.Payload{events.ClaimReleased{Claim: id, Workspace: workspace, Cause: "holder"}}, nil
}

// ReleaseOf ends the claims that p, which has come to its end, had relied on:
// of its authors, on exactly the resources of one of its revisions. A wider
// claim may serve other work and stays, and so does one for another task or
// one that was taken after the last revision that names it was replaced.
func (c Claims) ReleaseOf(p Proposal, cause string) (out []events.Payload) {
	for _, o := range c.sorted() {
		if slices.Contains(p.Authors(), o.Holder) && p.reliedOn(o) {
			out = append(out, events.ClaimReleased{Claim: o.ID, Workspace: p.Workspace, Cause: cause})
		}
	}
	return out
}

// reliedOn reports whether a claim was one of p's.
func (p Proposal) reliedOn(o Claim) bool {
	for i, r := range p.Revisions {
		if !slices.Contains(r.Resources, o.Resource.ID()) {
			continue
		}
		if i == len(p.Revisions)-1 {
			return true
		}
		replaced := p.Revisions[i+1].At // zero if it is not known
		if !o.Granted.After(replaced) && (o.Task == "" || o.Task == p.Task) {
			return true
		}
	}
	return false
}

// authorizes reports whether one of holders may write r by o.
func (o Claim) authorizes(r Resource, holders []string, now time.Time) bool {
	return slices.Contains(holders, o.Holder) && (o.Type == "write" || o.Type == "exclusive") && o.Expires.After(now) && o.Resource.Covers(r)
}

// Against returns another's live claim that keeps holders from writing r.
func (c Claims) Against(r Resource, holders []string, now time.Time) (Claim, bool) {
	for _, o := range c.sorted() {
		if !slices.Contains(holders, o.Holder) && conflicts[[2]string{o.Type, "write"}] && o.Expires.After(now) && o.Resource.Overlaps(r) {
			return o, true
		}
	}
	return Claim{}, false
}

// Fenced checks, just before files are changed, that nobody else has come to
// hold what the claims behind fences had authorized.
func (c Claims) Fenced(fences []events.Fence, authors []string, now time.Time) error {
	for _, f := range fences {
		r, err := ParseResource(f.Resource)
		if err != nil {
			return err
		}
		if o, taken := c.Against(r, authors, now); taken && o.Fence > f.Fence {
			return fault.Errorf(fault.Conflict, "stale_fence", "claim %s on %s ended, and %s holds %s since", f.Claim, f.Resource, o.Holder, o.Resource.ID()).
				With("paths", []string{r.Path})
		}
	}
	return nil
}

// sorted returns the live claims in the order in which they were granted.
func (c Claims) sorted() []Claim {
	return slices.SortedFunc(maps.Values(c.Live), func(a, b Claim) int { return int(a.Fence - b.Fence) })
}

// Code names the state's JSON, for snapshots.
func (Claims) Code() string { return "claims.3" }
