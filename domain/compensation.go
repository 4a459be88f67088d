package domain

import (
	"roundtable/events"
	"roundtable/internal/fault"
)

// Compensate checks that t can be taken back.
func (t Transaction) Compensate() error {
	switch {
	case t.State != TxApplied:
		return t.illegal("transaction.compensate")
	case t.CompensatedBy != "":
		return fault.Errorf(fault.Conflict, "already_compensated", "%s was taken back by %s", t.ID, t.CompensatedBy).With("compensated_by", t.CompensatedBy).
			Then("transaction.compensate", map[string]any{"transaction_id": t.CompensatedBy}, "orchestrator", "take that one back to have the change again")
	}
	return nil
}

// TakenBack says what becomes of the transactions behind t once t is applied.
// of lists what t takes back, what that had taken back, and so on. Each second
// one is there again and can be taken back anew; of the others the change is
// gone again. It ends where something else has happened to one.
func (t Transaction) TakenBack(of []Transaction) (out []events.Payload) {
	newer := t
	for i, o := range of {
		switch {
		case i%2 == 0 && o.CompensatedBy == "":
			out = append(out, events.TransactionCompensated{Transaction: o.ID, By: newer.ID})
		case i%2 == 1 && o.CompensatedBy == newer.ID:
			out = append(out, events.TransactionRestored{Transaction: o.ID, By: t.ID})
		default:
			return out
		}
		newer = o
	}
	return out
}

// exact refuses a revision e of a proposal that takes a transaction back,
// unless the service makes it of the stored images: by any other the
// transaction would count as taken back while its change stays.
func (p Proposal) exact(e events.ProposalRevisionAttached) error {
	if p.Compensates == "" || e.RebasedFrom != 0 {
		return nil
	}
	return fault.Errorf(fault.Conflict, "compensation_is_exact", "%s takes back %s and nothing else: it takes no patch of yours", p.ID, p.Compensates).
		With("compensates_transaction_id", p.Compensates).
		Then("proposal.attach_patch", map[string]any{"proposal_id": p.ID, "expected_revision": p.Current().Number, "rebase": true}, p.Author, "have it made again on the tree as it is now").
		Then("proposal.create", nil, "implementer", "propose a change of your own by a proposal of its own")
}
