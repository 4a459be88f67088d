package domain

import (
	"time"

	"roundtable/events"
	"roundtable/internal/fault"
)

// The states of a transaction.
const (
	TxPending   = "pending"
	TxStaged    = "staged"
	TxApplying  = "applying"
	TxApplied   = "applied"
	TxFailed    = "failed"
	TxCancelled = "cancelled"
)

// NeedsAttention is the code of a failure that leaves paths to a person.
const NeedsAttention = "state.needs_attention"

// A Transaction is the applying of one revision to the repository. The zero
// value is none. It is pending while it waits behind another of its workspace:
// see Tree.
//
//	pending ──stage──▶ staged ──apply──▶ applying ──▶ applied
//	   ▲ ▲◀──apply, and another has the turn─┘ └──────▶ failed ◀─ pending, staged: gates, stale revision
//	   └──────────────────retry────────────────────────┘
//	pending, staged, failed ──cancel──▶ cancelled
type Transaction struct {
	ID, Workspace, Proposal, State string
	Revision                       int
	PatchDigest                    string
	Attempt                        int
	Retried                        bool                             // what opened it last was a retry
	Request                        events.TransactionApplyRequested // of the newest attempt
	Wish                           events.TransactionApplyQueued    // an apply that waits for the turn; zero if none was asked for
	Files                          []events.ChangedPath             // once applied
	AfterPaths                     string
	Ref, Commit, Parent            string // the commit that it made, if one was made
	Compensates                    string
	Compensation                   string // the open proposal that takes it back
	CompensatedBy                  string
	Failure                        events.TransactionFailed
	Recovered                      events.TransactionRecovered        // the newest; zero if there was none
	Recoveries                     int                                // how many there were
	Resolving                      events.TransactionResolveRequested // that has not ended; zero if there is none
	Resolved                       events.TransactionResolved         // of the newest attempt
	Unresolved                     events.TransactionResolveFailed    // why the newest resolving failed; zero if it did not
}

// Evolve returns t after e has happened.
func (t Transaction) Evolve(e events.Payload) Transaction {
	switch e := e.(type) {
	case events.TransactionOpened:
		return Transaction{ID: e.Transaction, Workspace: e.Workspace, Proposal: e.Proposal, State: TxPending, Revision: e.Revision,
			PatchDigest: e.PatchDigest, Compensates: e.Compensates}
	case events.TransactionStaged:
		t.State = TxStaged
	case events.TransactionApplyQueued:
		t.State, t.Wish = TxPending, e
	case events.TransactionApplyRequested:
		t.State, t.Attempt, t.Request = TxApplying, e.Attempt, e
		t.Wish, t.Resolved = events.TransactionApplyQueued{}, events.TransactionResolved{}
	case events.TransactionPhaseCompleted:
		// shown, and nothing is decided by it
	case events.TransactionRecovered:
		t.Recovered, t.Recoveries = e, t.Recoveries+1
	case events.TransactionApplied:
		t.State, t.Files, t.AfterPaths = TxApplied, e.Files, e.AfterPaths
		t.Ref, t.Commit, t.Parent = e.Ref, e.Commit, e.Parent
	case events.TransactionFailed:
		t.State, t.Failure, t.Wish = TxFailed, e, events.TransactionApplyQueued{}
	case events.TransactionRetried:
		t.State, t.Failure, t.Retried = TxPending, events.TransactionFailed{}, true
	case events.TransactionCancelled:
		t.State, t.Wish = TxCancelled, events.TransactionApplyQueued{}
	case events.TransactionResolveRequested:
		t.Resolving, t.Unresolved = e, events.TransactionResolveFailed{}
	case events.TransactionResolved:
		t.Resolving, t.Resolved = events.TransactionResolveRequested{}, e
	case events.TransactionResolveFailed:
		t.Resolving, t.Unresolved = events.TransactionResolveRequested{}, e
	case events.TransactionCompensated:
		t.CompensatedBy = e.By
	case events.TransactionRestored:
		t.CompensatedBy = ""
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

// Done reports whether t has come to its end, but for a retry.
func (t Transaction) Done() bool {
	return t.State == TxApplied || t.State == TxFailed || t.State == TxCancelled
}

// Stuck reports whether paths of t wait for a person.
func (t Transaction) Stuck() bool {
	return t.State == TxFailed && t.Failure.Code == NeedsAttention && t.Resolved.Transaction == ""
}

// An Asker is whoever wants something of a transaction, and why.
type Asker struct {
	ID, Request, Reason string
	Now                 time.Time
}

// Open starts the applying of p's newest revision, and stages it if nobody is
// before it.
func (p Proposal) Open(id string, by Asker, tree Tree) ([]events.Payload, error) {
	switch {
	case p.Terminal():
		return nil, p.illegal("transaction.open", "it has come to its end")
	case p.Busy:
		return nil, p.busy()
	}
	r := p.Current()
	opened := events.TransactionOpened{Transaction: id, Workspace: p.Workspace, Proposal: p.ID, Revision: r.Number, PatchDigest: r.PatchDigest,
		PathsDigest: r.Base.PathsDigest, Compensates: p.Compensates, By: by.ID, Before: r.Base.Paths}
	begins, err := Transaction{}.Evolve(opened).begin(by, tree)
	if err != nil {
		return nil, err
	}
	return append([]events.Payload{
		opened,
		events.ProposalTransactionOpened{Proposal: p.ID, Transaction: id, Revision: r.Number},
	}, begins...), nil
}

// begin stages t, or puts it in the line.
func (t Transaction) begin(by Asker, tree Tree) ([]events.Payload, error) {
	if tree.Free(t.ID) {
		return t.staged(by), nil
	}
	return tree.queue(t)
}

// staged makes t ready.
func (t Transaction) staged(by Asker) []events.Payload {
	return []events.Payload{
		events.TransactionStaged{Transaction: t.ID, By: by.ID},
		events.TransactionPhaseCompleted{Transaction: t.ID, Attempt: t.Attempt + 1, Phase: "stage", Status: "completed", Actor: by.ID, Reason: by.Reason,
			Request: by.Request, Inputs: map[string]any{"revision": t.Revision, "patch_digest": t.PatchDigest}, Outputs: map[string]any{"attempt": t.Attempt + 1}, StartedAt: by.Now, EndedAt: by.Now},
	}
}

// Stage makes t ready, once nobody is before it. Repeating it changes nothing.
func (t Transaction) Stage(by Asker, tree Tree) ([]events.Payload, error) {
	switch {
	case t.State == TxStaged:
		return nil, nil
	case t.State != TxPending:
		return nil, t.illegal("transaction.stage")
	case !tree.Free(t.ID):
		return nil, t.waits(tree)
	}
	return t.staged(by), nil
}

func (t Transaction) waits(tree Tree) error {
	before := tree.Behind(t.ID)
	return fault.Errorf(fault.Conflict, "transaction_waits", "%s waits behind %s; it is staged by itself when its turn comes", t.ID, before).
		With("state", t.State).With("behind", before).With("allowed", allowedTx[TxPending]).
		Then("transaction.get", map[string]any{"transaction_id": before}, "you", "see how far the one before it is")
}

// Ask wants t applied. Where it has the turn, now is true and the gates are to
// be judged; else the wish is kept until the turn comes. Repeating it changes
// nothing.
func (t Transaction) Ask(by Asker, tree Tree) (out []events.Payload, now bool, err error) {
	if err := text("reason", by.Reason, MaxReason, false); err != nil {
		return nil, false, err
	}
	switch {
	case t.State == TxApplying || t.State == TxApplied:
		return nil, false, nil
	case t.State != TxStaged && t.State != TxPending:
		return nil, false, t.illegal("transaction.apply")
	case tree.Free(t.ID):
		return nil, true, nil
	case t.State == TxPending && t.Wish.By != "":
		return nil, false, nil
	}
	wish := events.TransactionApplyQueued{Transaction: t.ID, By: by.ID, Reason: by.Reason, Request: by.Request}
	queued, err := tree.queue(t)
	if err != nil {
		return nil, false, err
	}
	return append([]events.Payload{wish}, queued...), false, nil
}

// Apply begins the next attempt of t, whose turn it is, on gates that all
// passed and the claims that authorize it.
func (t Transaction) Apply(e events.TransactionApplyRequested, p Proposal, by Asker) []events.Payload {
	r := p.Current()
	e.Transaction, e.Workspace, e.Proposal, e.Revision, e.Attempt = t.ID, t.Workspace, p.ID, r.Number, t.Attempt+1
	e.PatchDigest, e.PathsDigest = r.PatchDigest, r.Base.PathsDigest
	e.By, e.Reason, e.Request = by.ID, by.Reason, by.Request
	if t.State == TxPending {
		return append(t.staged(by), e)
	}
	return []events.Payload{e}
}

// Turn says what the service does with t when its turn comes: one that nobody
// asked to apply is staged; of the others the wish is returned, to be judged.
// One that no longer waits only leaves the line.
func (t Transaction) Turn(tree Tree, now time.Time) (out []events.Payload, wish *Asker) {
	switch {
	case t.State != TxPending:
		return []events.Payload{events.WorkspaceTransactionUnqueued{Workspace: t.Workspace, Transaction: t.ID, Cause: t.State}}, nil
	case t.Wish.By == "":
		return t.staged(Asker{ID: events.System, Now: now}), nil
	}
	return nil, &Asker{ID: t.Wish.By, Request: t.Wish.Request, Reason: t.Wish.Reason, Now: now}
}

// Unmet ends t, whose turn has come and which may not be applied, as f says.
func (t Transaction) Unmet(f *fault.Error) []events.Payload {
	paths, _ := f.Context["paths"].([]string)
	return []events.Payload{
		events.TransactionFailed{Transaction: t.ID, Proposal: t.Proposal, Attempt: t.Attempt, Code: f.Code, Detail: f.Detail, Paths: paths},
		events.ProposalTransactionFailed{Proposal: t.Proposal, Transaction: t.ID, Code: f.Code},
	}
}

// Retry opens t again after a failure. Repeating it before the next attempt
// changes nothing; of one that has not failed it is refused.
func (t Transaction) Retry(by Asker, p Proposal, tree Tree) ([]events.Payload, error) {
	if err := text("reason", by.Reason, MaxReason, false); err != nil {
		return nil, err
	}
	switch {
	case t.Retried && (t.State == TxPending || t.State == TxStaged):
		return nil, nil
	case t.State != TxFailed:
		return nil, t.illegal("transaction.retry")
	case t.Stuck():
		return nil, t.stuck("transaction.retry")
	case p.Terminal():
		return nil, p.illegal("transaction.retry", "it has come to its end")
	case p.Busy:
		return nil, p.busy()
	case t.Revision != p.Current().Number:
		return nil, p.stale(t.Revision).(*fault.Error).
			Then("patch.apply", map[string]any{"proposal_id": p.ID}, "orchestrator", "apply the newest revision by a transaction of its own")
	}
	begins, err := t.begin(by, tree)
	if err != nil {
		return nil, err
	}
	return append([]events.Payload{
		events.TransactionRetried{Transaction: t.ID, Proposal: p.ID, Revision: t.Revision, By: by.ID, Reason: by.Reason, Request: by.Request},
		events.ProposalTransactionOpened{Proposal: p.ID, Transaction: t.ID, Revision: t.Revision},
	}, begins...), nil
}

// Cancel ends t for good, before it changes anything. Repeating it changes
// nothing.
func (t Transaction) Cancel(by Asker, p Proposal) ([]events.Payload, error) {
	if err := text("reason", by.Reason, MaxReason, false); err != nil {
		return nil, err
	}
	switch {
	case t.State == TxCancelled:
		return nil, nil
	case t.State == TxApplying || t.State == TxApplied:
		return nil, t.illegal("transaction.cancel")
	case t.Stuck():
		return nil, t.stuck("transaction.cancel")
	}
	out := []events.Payload{events.TransactionCancelled{Transaction: t.ID, Proposal: p.ID, By: by.ID, Reason: by.Reason, Request: by.Request}}
	if p.Busy && p.Transaction == t.ID {
		out = append(out, events.ProposalTransactionCancelled{Proposal: p.ID, Transaction: t.ID})
	}
	return out, nil
}

// Resolve wants what now lies at the paths of t to stay, by a person's word.
// Repeating it changes nothing.
func (t Transaction) Resolve(by Asker) ([]events.Payload, error) {
	switch err := text("reason", by.Reason, MaxReason, true); {
	case err != nil:
		return nil, err
	case t.Resolving.Transaction != "" || t.Resolved.Transaction != "":
		return nil, nil
	case !t.Stuck() && t.State != TxApplied:
		return nil, t.illegal("transaction.resolve")
	}
	return []events.Payload{events.TransactionResolveRequested{Transaction: t.ID, Workspace: t.Workspace, Attempt: t.Attempt, By: by.ID, Reason: by.Reason, Request: by.Request}}, nil
}

// RecordResolved takes the word on how the resolving that was asked for ended.
func (t Transaction) RecordResolved(e events.Payload) []events.Payload {
	if t.Resolving.Transaction == "" {
		return nil
	}
	return []events.Payload{e}
}

// RecordApplied takes the word that the repository holds the change; of is
// what t takes back: see TakenBack.
func (t Transaction) RecordApplied(e events.TransactionApplied, phases []events.TransactionPhaseCompleted, p Proposal, c Claims, of []Transaction) []events.Payload {
	if t.State != TxApplying || e.Attempt != t.Attempt {
		return nil
	}
	out := append(append(payloads(phases), e), t.TakenBack(of)...)
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

// allowedTx lists what may be asked of a transaction in a state.
var allowedTx = map[string][]string{
	TxPending:   {"transaction.apply", "transaction.cancel"},
	TxStaged:    {"transaction.apply", "transaction.cancel"},
	TxApplying:  {},
	TxApplied:   {"transaction.compensate"},
	TxFailed:    {"transaction.retry", "transaction.cancel"},
	TxCancelled: {},
}

func (t Transaction) illegal(op string) error {
	allowed := allowedTx[t.State]
	if t.Stuck() {
		allowed = []string{"transaction.resolve"}
	}
	return fault.Errorf(fault.Conflict, "illegal_transaction_transition", "%s is not possible while %s is %s", op, t.ID, t.State).
		With("state", t.State).With("allowed", allowed).
		Then("transaction.recovery", map[string]any{"transaction_id": t.ID}, "you", "see what lies in the repository and what can be done")
}

func (t Transaction) stuck(op string) error {
	return fault.Errorf(fault.Conflict, NeedsAttention, "%s is not possible while paths of %s wait for a person: both versions are kept", op, t.ID).
		With("state", t.State).With("allowed", []string{"transaction.resolve"}).With("paths", t.Failure.Paths).
		Then("transaction.resolve", map[string]any{"transaction_id": t.ID}, "operator", "keep what now lies at the paths")
}
