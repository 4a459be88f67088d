package domain

import (
	"time"

	"roundtable/events"
	"roundtable/internal/fault"
)

// The states of a transaction.
const (
	TxPending  = "pending"
	TxStaged   = "staged"
	TxApplying = "applying"
	TxApplied  = "applied"
	TxFailed   = "failed"
)

// A Transaction is the applying of one revision to the repository. The zero
// value is none.
//
//	pending ──stage──▶ staged ──apply──▶ applying ──▶ applied
//	                                         └──────▶ failed
type Transaction struct {
	ID, Workspace, Proposal, State string
	Revision                       int
	PatchDigest                    string
	Attempt                        int
	Request                        events.TransactionApplyRequested // of the newest attempt
	Files                          []events.ChangedPath             // once applied
	AfterPaths                     string
	Compensates                    string
	Compensation                   string // the open proposal that takes it back
	CompensatedBy                  string
	Failure                        events.TransactionFailed
}

// Evolve returns t after e has happened.
func (t Transaction) Evolve(e events.Payload) Transaction {
	switch e := e.(type) {
	case events.TransactionOpened:
		return Transaction{ID: e.Transaction, Workspace: e.Workspace, Proposal: e.Proposal, State: TxPending, Revision: e.Revision,
			PatchDigest: e.PatchDigest, Compensates: e.Compensates}
	case events.TransactionStaged:
		t.State = TxStaged
	case events.TransactionApplyRequested:
		t.State, t.Attempt, t.Request = TxApplying, e.Attempt, e
	case events.TransactionPhaseCompleted:
		// shown, and nothing is decided by it
	case events.TransactionApplied:
		t.State, t.Files, t.AfterPaths = TxApplied, e.Files, e.AfterPaths
	case events.TransactionFailed:
		t.State, t.Failure = TxFailed, e
	case events.TransactionCompensated:
		t.CompensatedBy = e.By
	case events.TransactionCompensationProposed:
		t.Compensation = e.Proposal
	default:
		foreign("transaction", e)
	}
	return t
}

// In checks that t is a transaction of workspace.
func (t Transaction) In(workspace, id string) error {
	if t.ID == "" || t.Workspace != workspace {
		return fault.Errorf(fault.NotFound, "transaction_not_found", "there is no transaction %s in this workspace", id).
			Then("transaction.list", nil, "you", "see which transactions there are")
	}
	return nil
}

// Done reports whether t has come to its end.
func (t Transaction) Done() bool { return t.State == TxApplied || t.State == TxFailed }

// Open starts and stages the applying of p's newest revision.
func (p Proposal) Open(id, by string, now time.Time) ([]events.Payload, error) {
	switch {
	case p.Terminal():
		return nil, p.illegal("transaction.open", "it has come to its end")
	case p.Busy:
		return nil, p.busy()
	}
	r := p.Current()
	return []events.Payload{
		events.TransactionOpened{Transaction: id, Workspace: p.Workspace, Proposal: p.ID, Revision: r.Number, PatchDigest: r.PatchDigest,
			PathsDigest: r.Base.PathsDigest, Compensates: p.Compensates, By: by},
		events.ProposalTransactionOpened{Proposal: p.ID, Transaction: id, Revision: r.Number},
		events.TransactionStaged{Transaction: id, By: by},
		stagePhase(id, by, now),
	}, nil
}

// Stage makes t ready. Repeating it changes nothing.
func (t Transaction) Stage(by string, now time.Time) ([]events.Payload, error) {
	switch t.State {
	case TxPending:
		return []events.Payload{events.TransactionStaged{Transaction: t.ID, By: by}, stagePhase(t.ID, by, now)}, nil
	case TxStaged:
		return nil, nil
	}
	return nil, t.illegal("transaction.stage")
}

func stagePhase(id, by string, now time.Time) events.Payload {
	return events.TransactionPhaseCompleted{Transaction: id, Phase: "stage", Status: "completed", Actor: by, StartedAt: now, EndedAt: now}
}

// Apply asks for the next attempt, on gates that all passed and the claims
// that authorize it. Repeating it changes nothing.
func (t Transaction) Apply(e events.TransactionApplyRequested, p Proposal) ([]events.Payload, error) {
	if err := text("reason", e.Reason, MaxReason, false); err != nil {
		return nil, err
	}
	switch {
	case t.State == TxApplying || t.State == TxApplied:
		return nil, nil
	case t.State != TxStaged:
		return nil, t.illegal("transaction.apply")
	case t.Revision != p.Current().Number:
		return []events.Payload{
			events.TransactionFailed{Transaction: t.ID, Proposal: p.ID, Attempt: t.Attempt, Code: "stale_revision", Detail: "the proposal has a newer revision"},
			events.ProposalTransactionFailed{Proposal: p.ID, Transaction: t.ID, Code: "stale_revision"},
		}, nil
	}
	r := p.Current()
	e.Transaction, e.Workspace, e.Proposal, e.Revision, e.Attempt = t.ID, t.Workspace, p.ID, r.Number, t.Attempt+1
	e.PatchDigest, e.PathsDigest = r.PatchDigest, r.Base.PathsDigest
	return []events.Payload{e}, nil
}

// RecordApplied takes the word that the repository holds the change; of, if
// it has an ID, is the transaction that t takes back.
func (t Transaction) RecordApplied(e events.TransactionApplied, phases []events.TransactionPhaseCompleted, p Proposal, c Claims, of Transaction) []events.Payload {
	if t.State != TxApplying || e.Attempt != t.Attempt {
		return nil
	}
	out := append(payloads(phases), e)
	if of.ID != "" && of.CompensatedBy == "" {
		out = append(out, events.TransactionCompensated{Transaction: of.ID, By: t.ID})
	}
	return append(out, p.end(c, "proposal_accepted", events.ProposalAccepted{Proposal: p.ID, Transaction: t.ID, Revision: t.Revision})...)
}

// RecordFailed takes the word that the attempt has ended without the change.
func (t Transaction) RecordFailed(e events.TransactionFailed, phases []events.TransactionPhaseCompleted) []events.Payload {
	if t.State != TxApplying || e.Attempt != t.Attempt {
		return nil
	}
	return append(payloads(phases), e, events.ProposalTransactionFailed{Proposal: t.Proposal, Transaction: t.ID, Code: e.Code})
}

func payloads(phases []events.TransactionPhaseCompleted) []events.Payload {
	var out []events.Payload
	for _, p := range phases {
		out = append(out, p)
	}
	return out
}

// Compensate checks that t can be taken back.
func (t Transaction) Compensate() error {
	switch {
	case t.State != TxApplied:
		return t.illegal("transaction.compensate")
	case t.CompensatedBy != "":
		return fault.Errorf(fault.Conflict, "already_compensated", "%s was taken back by %s", t.ID, t.CompensatedBy).With("compensated_by", t.CompensatedBy)
	}
	return nil
}

var allowedTx = map[string][]string{
	TxPending: {"transaction.stage"},
	TxStaged:  {"transaction.apply"},
	TxApplied: {"transaction.compensate"},
}

func (t Transaction) illegal(op string) error {
	return fault.Errorf(fault.Conflict, "illegal_transaction_transition", "%s is not possible while %s is %s", op, t.ID, t.State).
		With("state", t.State).With("allowed", append([]string{}, allowedTx[t.State]...)).
		Then("transaction.recovery", map[string]any{"transaction_id": t.ID}, "you", "see what lies in the repository and what can be done")
}
