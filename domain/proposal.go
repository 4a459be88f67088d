package domain

import (
	"slices"
	"strings"
	"time"

	"roundtable/events"
	"roundtable/internal/fault"
)

// The states of a proposal.
const (
	Pending           = "pending"
	InReview          = "in_review"
	RevisionRequested = "revision_requested"
	Accepted          = "accepted"
	Rejected          = "rejected"
	Withdrawn         = "withdrawn"
)

// A Proposal is a change that someone wants to make. The zero value is none.
//
//	pending ──request-review──▶ in_review ──revise, request-changes──▶ revision_requested
//	   ▲                            │                                         │
//	   └────────────────────────────┼───────────────attach────────────────────┘
//	any of these: ──apply──▶ accepted, ──reject──▶ rejected, ──withdraw──▶ withdrawn
type Proposal struct {
	ID, Workspace, Task, Author, Risk, Status, Compensates string
	Title, Summary                                         string
	ExpectedTests                                          []string
	Revisions                                              []Revision
	Votes                                                  []events.VoteCast // in order of casting
	Approvals                                              []Approval
	Decisions                                              []events.ApprovalDecided       // of all approvals, in order of happening
	Running                                                []events.ProposalTestRequested // runs that have not ended
	Tests                                                  []events.ProposalTested
	Transaction                                            string // the one that is open, or that applied it
	Busy                                                   bool   // a transaction is open
}

// A Revision is one version of the patch.
type Revision struct {
	Number      int
	PatchDigest string
	Base        events.Base
	Files       []events.PatchedFile
	Resources   []string
	AttachedBy  string
	Risk        string // the higher of the author's word and policy's
	At          time.Time
}

// Evolve returns p after e has happened.
func (p Proposal) Evolve(e events.Payload) Proposal {
	switch e := e.(type) {
	case events.ProposalCreated:
		return Proposal{ID: e.Proposal, Workspace: e.Workspace, Task: e.Task, Author: e.Author, Risk: e.Risk, Status: Pending,
			Compensates: e.Compensates, Title: e.Title, Summary: e.Summary, ExpectedTests: e.ExpectedTests}
	case events.ProposalRevisionAttached:
		p.Revisions = append(slices.Clip(p.Revisions), Revision{e.Number, e.PatchDigest, e.Base, e.Files, e.Resources, e.AttachedBy, e.Risk, e.AttachedAt})
		if p.Status == RevisionRequested {
			p.Status = Pending
		}
	case events.ProposalReviewRequested:
		p.Status = InReview
	case events.ProposalRevisionRequested:
		p.Status = RevisionRequested
	case events.ProposalRejected:
		p.Status = Rejected
	case events.ProposalWithdrawn:
		p.Status = Withdrawn
	case events.ProposalTransactionOpened:
		p.Transaction, p.Busy = e.Transaction, true
	case events.ProposalTransactionFailed, events.ProposalTransactionCancelled:
		p.Busy = false
	case events.ProposalAccepted:
		p.Status, p.Busy = Accepted, false
	case events.ProposalTestRequested:
		p.Running = append(slices.Clip(p.Running), e)
	case events.ProposalTested:
		p.Running = slices.DeleteFunc(slices.Clone(p.Running), func(r events.ProposalTestRequested) bool { return r.TestRun == e.TestRun })
		p.Tests = append(slices.Clip(p.Tests), e)
	default:
		return p.review(e)
	}
	return p
}

// Terminal reports whether p has come to its end.
func (p Proposal) Terminal() bool {
	return p.Status == Accepted || p.Status == Rejected || p.Status == Withdrawn
}

// Current returns the newest revision; the zero Revision if there is none.
func (p Proposal) Current() Revision {
	if len(p.Revisions) == 0 {
		return Revision{}
	}
	return p.Revisions[len(p.Revisions)-1]
}

// Authors returns everyone who wrote a part of p: its author and whoever
// attached a revision.
func (p Proposal) Authors() []string {
	who := []string{p.Author}
	for _, r := range p.Revisions {
		if !slices.Contains(who, r.AttachedBy) {
			who = append(who, r.AttachedBy)
		}
	}
	return who
}

// In checks that p is a proposal of workspace.
func (p Proposal) In(workspace, id string) error {
	if p.ID == "" || p.Workspace != workspace {
		return fault.Errorf(fault.NotFound, "proposal_not_found", "there is no proposal %s in this workspace", id).
			Then("proposal.list", nil, "you", "see which proposals there are")
	}
	return nil
}

// Create makes a proposal with its first revision, whose Risk is policy's word.
func (p Proposal) Create(e events.ProposalCreated, first events.ProposalRevisionAttached) ([]events.Payload, error) {
	e.Title, e.Summary = strings.TrimSpace(e.Title), strings.TrimSpace(e.Summary)
	if e.Risk == "" {
		e.Risk = "normal"
	}
	err := firstOf(line("title", e.Title, MaxTitle, true), text("summary_md", e.Summary, MaxText, true), oneOf("risk", e.Risk, risks...),
		text("rollback_notes", e.RollbackNotes, MaxText, false))
	if err != nil {
		return nil, err
	}
	first.Proposal, first.Number, first.Risk = e.Proposal, 1, HigherRisk(e.Risk, first.Risk)
	return []events.Payload{e, first}, nil
}

// Attach adds a revision, by the author or a co-author, on top of the newest;
// its Risk is policy's word. A transaction that only waits to apply the older
// one fails; open is that transaction, if there is one.
func (p Proposal) Attach(e events.ProposalRevisionAttached, expected int, open Transaction) ([]events.Payload, error) {
	freed, busy := p.free(open, "stale_revision", "the proposal has a newer revision")
	switch n := p.Current().Number; {
	case !slices.Contains(p.Authors(), e.AttachedBy):
		return nil, fault.Errorf(fault.Forbidden, "not_author", "only the authors of %s can attach a revision to it", p.ID)
	case p.Terminal():
		return nil, p.illegal("proposal.attach_patch", "an accepted, rejected or withdrawn proposal takes no revision")
	case busy != nil:
		return nil, busy
	case expected != n:
		return nil, fault.Errorf(fault.Conflict, "stale_revision", "expected_revision is %d and the newest revision is %d", expected, n).
			With("revision", n).Then("proposal.get", map[string]any{"proposal_id": p.ID}, "you", "read the newest revision, then attach on top of it")
	}
	if err := p.exact(e); err != nil {
		return nil, err
	}
	e.Proposal, e.Number, e.Risk = p.ID, p.Current().Number+1, HigherRisk(p.Risk, e.Risk)
	return append(freed, e), nil
}

// RequestReview puts p up for review. Repeating it changes nothing.
func (p Proposal) RequestReview(by string) ([]events.Payload, error) {
	switch p.Status {
	case InReview:
		return nil, nil
	case Pending:
		return []events.Payload{events.ProposalReviewRequested{Proposal: p.ID, Revision: p.Current().Number, By: by}}, nil
	case RevisionRequested:
		return nil, p.illegal("proposal.request_review", "a new revision was requested: attach it first")
	}
	return nil, p.illegal("proposal.request_review", "it has come to its end")
}

// free ends the transaction that waits to apply p, so that p may change. One
// that is applying cannot be ended: it is the fault.
func (p Proposal) free(open Transaction, code, why string) ([]events.Payload, error) {
	switch {
	case !p.Busy:
		return nil, nil
	case open.State == TxApplying:
		return nil, p.busy()
	}
	return []events.Payload{
		events.TransactionFailed{Transaction: open.ID, Proposal: p.ID, Attempt: open.Attempt, Code: code, Detail: why},
		events.ProposalTransactionFailed{Proposal: p.ID, Transaction: open.ID, Code: code},
	}, nil
}

// Reject turns p down for good, with a reason, and releases its claims.
func (p Proposal) Reject(by, reason, decision string, c Claims, open Transaction) ([]events.Payload, error) {
	freed, busy := p.free(open, "proposal_rejected", "the proposal was rejected")
	switch err := text("reason_md", reason, MaxReason, true); {
	case err != nil:
		return nil, err
	case p.Terminal():
		return nil, p.illegal("patch.reject", "it has come to its end")
	case busy != nil:
		return nil, busy
	}
	return p.end(c, "proposal_rejected", append(freed,
		events.ProposalRejected{Proposal: p.ID, By: by, Reason: reason},
		events.DecisionRecorded{Decision: decision, Workspace: p.Workspace, Proposal: p.ID, Task: p.Task, Word: "rejected", Rationale: reason, By: by})...), nil
}

// Withdraw takes p back, by its author, and releases its claims.
func (p Proposal) Withdraw(by, reason string, c Claims, open Transaction) ([]events.Payload, error) {
	freed, busy := p.free(open, "proposal_withdrawn", "the proposal was withdrawn")
	switch err := text("reason_md", reason, MaxReason, false); {
	case err != nil:
		return nil, err
	case by != p.Author:
		return nil, fault.Errorf(fault.Forbidden, "not_author", "only its author can withdraw %s", p.ID)
	case p.Status == Withdrawn:
		return nil, nil
	case p.Terminal():
		return nil, p.illegal("proposal.withdraw", "it has come to its end")
	case busy != nil:
		return nil, busy
	}
	return p.end(c, "proposal_withdrawn", append(freed, events.ProposalWithdrawn{Proposal: p.ID, By: by, Reason: reason})...), nil
}

// end adds the release of what p had claimed to what ends it.
func (p Proposal) end(c Claims, cause string, what ...events.Payload) []events.Payload {
	return append(what, c.ReleaseOf(p, cause)...)
}

// RecordTest takes the result of a verified run. One of an older revision is
// kept, and counts for nothing.
func (p Proposal) RecordTest(e events.ProposalTested) []events.Payload {
	if p.ID == "" || slices.ContainsFunc(p.Tests, func(o events.ProposalTested) bool { return o.TestRun == e.TestRun }) {
		return nil
	}
	return []events.Payload{e}
}

var allowedOps = map[string][]string{
	Pending:           {"proposal.request_review", "proposal.attach_patch", "patch.reject", "proposal.withdraw", "patch.apply"},
	InReview:          {"vote.cast", "proposal.attach_patch", "patch.reject", "proposal.withdraw", "patch.apply"},
	RevisionRequested: {"proposal.attach_patch", "patch.reject", "proposal.withdraw"},
}

func (p Proposal) illegal(op, why string) error {
	f := fault.Errorf(fault.Conflict, "illegal_proposal_transition", "%s is not possible while %s is %s: %s", op, p.ID, p.Status, why).
		With("proposal_status", p.Status).With("allowed", append([]string{}, allowedOps[p.Status]...))
	if !p.Terminal() {
		f.Then("proposal.explain", map[string]any{"proposal_id": p.ID}, "you", "see what the proposal waits for")
	}
	return f
}

func (p Proposal) busy() error {
	return fault.Errorf(fault.Conflict, "transaction_busy", "transaction %s of %s has not ended", p.Transaction, p.ID).
		With("transaction_id", p.Transaction).
		Then("transaction.get", map[string]any{"transaction_id": p.Transaction}, "you", "see how far it is")
}
