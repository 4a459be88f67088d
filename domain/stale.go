package domain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"roundtable/events"
)

// maxStalePaths bounds the paths that one claim's staleness names; the others
// are counted.
const maxStalePaths = 100

// A Staleness says what in a claim's resource is no longer as its holder knows
// it.
type Staleness struct {
	Cause       string // of the newest change: foreign_change or transaction
	Transaction string
	Paths       []events.PathState // as they are now, sorted
	More        int                // paths that are not named
}

// stale folds a further change into what is known of a claim. A claim that has
// ended stays so.
func (c Claims) stale(e events.ClaimBecameStale) {
	o, ok := c.Live[e.Claim]
	if !ok {
		return
	}
	s := Staleness{Cause: e.Cause, Transaction: e.Transaction, Paths: slices.Clone(e.Paths), More: e.More}
	if o.Stale != nil {
		s.More += o.Stale.More
		for _, p := range o.Stale.Paths {
			if !slices.ContainsFunc(e.Paths, func(n events.PathState) bool { return n.Path == p.Path }) {
				s.Paths = append(s.Paths, p)
			}
		}
	}
	slices.SortFunc(s.Paths, func(a, b events.PathState) int { return strings.Compare(a.Path, b.Path) })
	if n := len(s.Paths) - maxStalePaths; n > 0 {
		s.Paths, s.More = s.Paths[:maxStalePaths], s.More+n
	}
	o.Stale = &s
	c.Live[e.Claim] = o
}

// refresh lets a grant renew what its holder knows of the same resource by
// earlier claims.
func (c Claims) refresh(by Claim) {
	for id, o := range c.Live {
		if o.Stale != nil && o.Holder == by.Holder && o.Resource == by.Resource {
			o.Stale, o.Base, o.Seen = nil, by.Base, by.Seen
			c.Live[id] = o
		}
	}
}

// Overtaken makes the live claims stale in whose resources paths have come to
// be as they are given, but for those of knowing, who did it. What a claim's
// holder has seen so already, or was told, is no news.
func (c Claims) Overtaken(e events.ClaimBecameStale, paths []events.PathState, knowing []string, now time.Time) (out []events.Payload) {
	for _, o := range c.sorted() {
		if slices.Contains(knowing, o.Holder) || !o.Expires.After(now) {
			continue
		}
		e.Claim, e.Paths, e.More = o.ID, nil, 0
		for _, p := range paths {
			switch {
			case !o.Resource.Overlaps(FileResource(p.Path)) || o.knows(p):
			case len(e.Paths) == maxStalePaths:
				e.More++
			default:
				e.Paths = append(e.Paths, p)
			}
		}
		if len(e.Paths) > 0 {
			out = append(out, e)
		}
	}
	return out
}

// knows reports whether the holder has seen a path so when claiming it, or was
// told.
func (o Claim) knows(p events.PathState) bool {
	if o.Stale != nil {
		for _, told := range o.Stale.Paths {
			if told.Path == p.Path {
				return told == p
			}
		}
	}
	return o.Seen != nil && *o.Seen == p
}

// Backing returns the claim by which a revision's authors may write r: of the
// live ones the newest that is not stale for it, or the newest; and what is
// wrong with it if it is stale for it.
func (c Claims) Backing(r Resource, authors []string, v Revision, now time.Time) (found Claim, stale string, ok bool) {
	for _, o := range c.Live {
		if !o.authorizes(r, authors, now) {
			continue
		}
		why := o.staleFor(r, v)
		if !ok || why == "" && stale != "" || (why == "") == (stale == "") && o.Fence > found.Fence {
			found, stale, ok = o, why, true
		}
	}
	return found, stale, ok
}

// A StaleClaim is a claim that would back a revision, were it not stale for it.
type StaleClaim struct {
	Claim   Claim
	Because string
}

// StaleClaims lists those that the newest revision of f's proposal would rest
// on, each once.
func StaleClaims(f Facts) (out []StaleClaim) {
	p := f.Proposal
	for _, id := range p.Current().Resources {
		r, err := ParseResource(id)
		if err != nil {
			continue // the gate says so
		}
		c, why, ok := f.Claims.Backing(r, p.Authors(), p.Current(), f.Now)
		if ok && why != "" && !slices.ContainsFunc(out, func(s StaleClaim) bool { return s.Claim.ID == c.ID }) {
			out = append(out, StaleClaim{c, why})
		}
	}
	return out
}

// staleFor says what keeps a stale claim from backing revision v's change of r:
// a path in r that has changed, unless v was made on what it changed to.
func (o Claim) staleFor(r Resource, v Revision) string {
	if o.Stale == nil {
		return ""
	}
	var changed []string
	for _, p := range o.Stale.Paths {
		if r.Overlaps(FileResource(p.Path)) && !slices.Contains(v.Base.Paths, p) {
			changed = append(changed, p.Path)
		}
	}
	if len(changed) == 0 && o.Stale.More == 0 {
		return ""
	}
	by := "somebody edited behind the service's back"
	if o.Stale.Cause == "transaction" {
		by = "transaction " + o.Stale.Transaction + " changed"
	}
	what := strings.Join(changed[:min(len(changed), 10)], ", ")
	if n := len(changed) - min(len(changed), 10) + o.Stale.More; n > 0 {
		what = strings.TrimPrefix(fmt.Sprintf("%s and %d more paths in it", what, n), " and ")
	}
	return by + " " + what
}
