package domain

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/internal/fault"
)

// TestTakenBackChain: in a chain of any length, each taking back the one
// before it, the change of every second one from the end is there and the
// others' are not.
func TestTakenBackChain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var chain []Transaction // the newest first
		for i := range rapid.IntRange(1, 9).Draw(t, "length") {
			x := Transaction{ID: fmt.Sprint("TX-", i), State: TxApplied}
			if i > 0 {
				x.Compensates = chain[0].ID
			}
			for _, e := range x.TakenBack(chain) {
				for j := range chain {
					if e.Stream() == events.TransactionStream(chain[j].ID) {
						chain[j] = chain[j].Evolve(e)
					}
				}
			}
			chain = append([]Transaction{x}, chain...)
		}
		for i, x := range chain {
			want := ""
			if i%2 == 1 {
				want = chain[i-1].ID
			}
			if x.CompensatedBy != want || (fault.CodeOf(x.Compensate()) == "already_compensated") != (want != "") {
				t.Errorf("%d of %d is taken back by %q, want %q", i, len(chain), x.CompensatedBy, want)
			}
		}
	})
}

// TestTakenBackMeanwhile: what has become of a transaction by another way
// stays.
func TestTakenBackMeanwhile(t *testing.T) {
	x := Transaction{ID: "TX-3", Compensates: "TX-2"}
	of := []Transaction{{ID: "TX-2", Compensates: "TX-1"}, {ID: "TX-1", CompensatedBy: "TX-other"}}
	if got := x.TakenBack(of); len(got) != 1 || got[0] != (events.TransactionCompensated{Transaction: "TX-2", By: "TX-3"}) {
		t.Errorf("%+v", got)
	}
	of[0].CompensatedBy = "TX-other"
	if got := x.TakenBack(of); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestCompensationIsExact: a proposal that takes a transaction back takes only
// what is merged of the stored images.
func TestCompensationIsExact(t *testing.T) {
	p := Proposal{}.Evolve(events.ProposalCreated{Proposal: "P-1", Author: "ada", Compensates: "TX-1"}).
		Evolve(events.ProposalRevisionAttached{Number: 1, AttachedBy: "ada"})
	_, err := p.Attach(events.ProposalRevisionAttached{AttachedBy: "ada", PatchDigest: "other"}, 1, Transaction{})
	f, ok := err.(*fault.Error)
	if !ok || f.Code != "compensation_is_exact" || len(f.Next) != 2 {
		t.Errorf("%v", err)
	}
	if es, err := p.Attach(events.ProposalRevisionAttached{AttachedBy: "ada", RebasedFrom: 1}, 1, Transaction{}); err != nil || len(es) != 1 {
		t.Errorf("%v, %v", es, err)
	}
	if s := attach(p, "make it anew"); s.Op != "proposal.withdraw" {
		t.Errorf("%+v", s)
	}
}

// TestStagePhase: the phase that a transaction opens with names what is staged.
func TestStagePhase(t *testing.T) {
	p := Proposal{}.Evolve(events.ProposalCreated{Proposal: "P-1", Author: "ada"}).Evolve(events.ProposalRevisionAttached{Number: 1, PatchDigest: "d1"})
	es, err := p.Open("TX-1", Asker{ID: "bob"}, Tree{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if ph, ok := e.(events.TransactionPhaseCompleted); ok && ph.Inputs["revision"] == 1 && ph.Inputs["patch_digest"] == "d1" {
			return
		}
	}
	t.Errorf("%+v", es)
}
