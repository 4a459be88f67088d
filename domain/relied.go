package domain

import (
	"maps"
	"slices"

	"roundtable/internal/auth"
)

// Relied are the records that passed gates rest on.
type Relied struct{ Votes, Approvals, TestRuns []string }

// Rests returns what the application of f's proposal rests on.
func Rests(f Facts) (r Relied) {
	p := f.Proposal
	r.Votes, _, _ = tally(f, &Gate{})
	latest := decisions(p)
	for _, who := range slices.Sorted(maps.Keys(latest)) {
		d := latest[who]
		if f.Directory.Principals[who].Kind == auth.Human && !slices.Contains(p.Authors(), who) && approves(p, d) && !slices.Contains(r.Approvals, d.Approval) {
			r.Approvals = append(r.Approvals, d.Approval)
		}
	}
	for _, command := range p.ExpectedTests {
		if t, ok := passedTest(f, command); ok && !slices.Contains(r.TestRuns, t.TestRun) {
			r.TestRuns = append(r.TestRuns, t.TestRun)
		}
	}
	return r
}
