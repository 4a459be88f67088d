package attest

import (
	"cmp"
	"fmt"

	"roundtable/events"
)

// A History is what the log says of one applied transaction.
type History struct {
	Workspace   events.WorkspaceAdded
	Proposal    []events.Event // of its stream, at least up to the apply
	Transaction []events.Event // of its stream
	Applied     events.Record  // the row of transaction.applied
}

// Of makes the receipt that a history gives. An error says that the history
// does not have what a receipt needs.
func Of(h History) (Receipt, error) {
	var opened, requested events.Event
	for _, e := range h.Transaction {
		switch e.Payload.(type) {
		case events.TransactionOpened:
			opened = e
		case events.TransactionApplyRequested:
			if e.Position < h.Applied.Position {
				requested = e
			}
		}
	}
	done, err := h.Applied.Event()
	if err != nil {
		return Receipt{}, err
	}
	applied, ok := done.Payload.(events.TransactionApplied)
	o, isOpened := opened.Payload.(events.TransactionOpened)
	q, isRequested := requested.Payload.(events.TransactionApplyRequested)
	if !ok || !isOpened || !isRequested || q.Attempt != applied.Attempt {
		return Receipt{}, fmt.Errorf("the history does not have the opening, the request and the end of attempt %d", applied.Attempt)
	}
	r := Receipt{Transaction: applied.Transaction, Workspace: o.Workspace, WorkspaceKind: h.Workspace.Kind, Proposal: o.Proposal, Revision: q.Revision,
		Attempt: applied.Attempt, Compensates: o.Compensates, PatchDigest: q.PatchDigest, PolicyDigest: q.PolicyDigest,
		Before: Side{applied.BeforePaths, applied.BeforeTree}, After: Side{applied.AfterPaths, applied.AfterTree}, Files: []File{},
		Gates: append([]events.GateResult{}, q.Gates...), Evidence: evidence(q, requested.Position, h.Proposal), Tested: append([]string{}, q.Tested...), Fences: append([]events.Fence{}, q.Fences...),
		OpenedBy: o.By, RequestedBy: q.By, Reason: q.Reason, OpenedAt: opened.Time.UTC(), RequestedAt: requested.Time.UTC(), AppliedAt: done.Time.UTC(),
		Log: LogPlace{h.Applied.Position, h.Applied.ID, h.Applied.Hash}}
	if applied.Commit != "" {
		r.Commit = &Commit{applied.Commit, applied.Parent, applied.Ref}
	}
	for _, f := range applied.Files {
		r.Files = append(r.Files, File{f.Path, stateOf(f.Before), stateOf(f.After)})
	}
	if id := r.Evidence.missing(q); id != "" {
		return r, fmt.Errorf("the history does not have %s, which the apply rests on", id)
	}
	return r, r.revised(h.Proposal)
}

func stateOf(s events.PathState) State { return State{s.Kind, s.Mode, s.SHA256, s.Size} }

// revised takes over what the proposal's stream says of the revision.
func (r *Receipt) revised(proposal []events.Event) error {
	for _, e := range proposal {
		switch e := e.Payload.(type) {
		case events.ProposalCreated:
			r.Author = e.Author
		case events.ProposalRevisionAttached:
			if e.Number == r.Revision {
				r.Base, r.AttachedBy = Base{e.Base.Commit, e.Base.PathsDigest}, e.AttachedBy
			}
		}
	}
	if cmp.Or(r.Author, r.AttachedBy) == "" || r.Base.PathsDigest == "" {
		return fmt.Errorf("the history does not have revision %d of %s", r.Revision, r.Proposal)
	}
	return nil
}

// Sign returns the receipt in its envelope. One that Verify would refuse, as
// where a name of the log is not the name of a file because it cannot be
// written in JSON, is a *Refusal.
func (r *Ring) Sign(of Receipt) ([]byte, error) {
	s := about(of)
	payload, err := s.encode()
	if err != nil {
		return nil, err
	}
	if _, err := parseStatement(payload); err != nil {
		return nil, err
	}
	k, err := r.own()
	if err != nil {
		return nil, err
	}
	return k.seal(payload)
}

// Verified is what a receipt came to.
type Verified struct {
	Key       string   // id of the trusted key that it is signed by
	Others    []string // ids that other signatures name; nobody looked at those
	Statement Statement
}

// Verify checks a receipt with keys that the caller trusts, and what it says
// for contradictions. Why it is not taken is a *Refusal.
func Verify(file []byte, trusted []PublicKey) (v Verified, err error) {
	payload, by, others, err := open(file, trusted)
	if err != nil {
		return v, err
	}
	s, err := parseStatement(payload)
	if err != nil {
		return Verified{Key: by, Others: others}, err
	}
	return Verified{by, others, s}, nil
}
