package domain

import (
	"fmt"
	"strings"

	"roundtable/internal/fault"
)

// What a revision comes to on the tree as it is.
const (
	UpToDate       = "up_to_date"      // its base has not moved
	CleanRebase    = "clean_rebase"    // it and what was done since can be joined
	RebaseConflict = "conflict"        // they cannot
	AlreadyThere   = "already_applied" // all that it changes is in the tree
	NoRebase       = "impossible"      // there is nothing to merge
)

// A Rebase is what a revision comes to when it is merged three ways with the
// tree as it is. It is told, and never done unless somebody attaches it. The
// zero value is one whose base has not moved.
type Rebase struct {
	Outcome   string
	Conflicts []string // path and reason, of a conflict
	Why       string   // of an impossible one
}

// maxSaid is how many conflicts one sentence names.
const maxSaid = 20

// Sentence tells the outcome; "" if the base has not moved.
func (r Rebase) Sentence() string {
	switch r.Outcome {
	case CleanRebase:
		return CleanRebase + ": merged with what was done since it gives a patch that fits"
	case RebaseConflict:
		more := ""
		if n := len(r.Conflicts); n > maxSaid {
			more = fmt.Sprintf(", and %d more", n-maxSaid)
		}
		return RebaseConflict + ": it cannot be merged with what was done since: " + strings.Join(r.Conflicts[:min(len(r.Conflicts), maxSaid)], ", ") + more
	case AlreadyThere:
		return AlreadyThere + ": all that it changes is in the tree"
	case NoRebase:
		return "no three-way merge is possible: " + r.Why
	}
	return ""
}

// step is the call by which an author goes on.
func (r Rebase) step(p Proposal) fault.Step {
	switch r.Outcome {
	case CleanRebase:
		return fault.Step{Op: "proposal.attach_patch", Args: map[string]any{"proposal_id": p.ID, "expected_revision": p.Current().Number, "rebase": true}, Who: p.Author,
			Why: "attach the merged revision as it is; proposal.patch_rebase shows it first"}
	case AlreadyThere:
		return fault.Step{Op: "proposal.withdraw", Args: map[string]any{"proposal_id": p.ID}, Who: p.Author, Why: "nothing is left to apply"}
	}
	return attach(p, "make the patch again on the tree as it is now")
}
