package commands

import (
	"context"
	"errors"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// A transactionQuestion names one transaction.
type transactionQuestion struct {
	Transaction string `json:"transaction_id"`
}

// recovery compares the files, the journal and the log. Where the files cannot
// be looked at it says so, and nothing about them.
func (h *Handler) recovery(ctx context.Context, c op.Call, in transactionQuestion) (r wire.Recovery, err error) {
	u := h.question(c.Who, c.Workspace)
	a := around{look: Look{Repository: "unknown", Journal: "unknown"}}
	if a.tx, err = u.transaction(ctx, in.Transaction); err != nil {
		return r, err
	}
	if a.proposal, err = load[domain.Proposal](ctx, u, events.ProposalStream(a.tx.Proposal)); err != nil {
		return r, err
	}
	if a.tree, err = u.turns(ctx); err != nil {
		return r, err
	}
	r = wire.Recovery{Transaction: a.tx.ID, State: a.tx.State, Paths: []wire.RecoveryPath{}}
	look, err := u.look(ctx, a.tx, a.proposal)
	switch f, ok := errors.AsType[*fault.Error](err); {
	case err == nil:
		a.look = look
	case ok && f.Kind != fault.Internal && f.Code != "workspace_not_found":
		r.Why = "the files could not be looked at: " + f.Detail
	default:
		return r, err
	}
	if err == nil && len(a.look.Paths) == 0 {
		a.look.Repository, r.Why = "unknown", "neither the log nor a journal names its paths"
	}
	r.Repository, r.Journal = a.look.Repository, a.look.Journal
	for _, p := range a.look.Paths {
		r.Paths = append(r.Paths, p.wire())
	}
	if err == nil {
		if r.Branch, err = u.branch(ctx, a.tx); err != nil {
			return r, err
		}
	}
	if a.tx.State == domain.TxApplied && a.tx.CompensatedBy == "" && a.look.Repository != "unknown" {
		if a.mergeable, a.merging, err = u.mergeable(ctx, a.tx, a.proposal); err != nil {
			return r, err
		}
	}
	r.Actions = a.actions()
	return r, nil
}

// branch asks the world where the branch of a transaction stands.
func (u *unit) branch(ctx context.Context, t domain.Transaction) (*wire.RecoveryBranch, error) {
	root, err := u.root(ctx)
	if err != nil {
		return nil, err
	}
	return u.h.World.Branch(ctx, root, t)
}

// mergeable says whether a transaction can be taken back, as taking it back
// would find it now.
func (u *unit) mergeable(ctx context.Context, t domain.Transaction, of domain.Proposal) (possible bool, why string, err error) {
	root, err := u.root(ctx)
	if err != nil {
		return false, "", err
	}
	m, err := u.h.World.Reverse(ctx, root, t.Files, movedBack(of, t.Revision))
	if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
		return false, f.Code + ": " + f.Detail, nil
	}
	switch {
	case err != nil:
		return false, "", err
	case len(m.Conflicts) > 0:
		return false, "later work stands in the way at " + named(m.Paths), nil
	case len(m.Patch) == 0:
		return false, "every path is as taking it back would make it", nil
	}
	return true, "what was done since can be kept", nil
}

// look asks the world what lies at the paths of a transaction. Where no journal
// is left, they are compared with what the log says: of one that was not
// applied, with what its revision was made on.
func (u *unit) look(ctx context.Context, t domain.Transaction, p domain.Proposal) (Look, error) {
	root, err := u.root(ctx)
	if err != nil {
		return Look{}, err
	}
	return fact(u, "look "+t.ID, func() (Look, error) { return u.h.World.Lies(ctx, root, t.ID, t.Attempt, pathsOf(t, p)) })
}

// pathsOf returns the paths of t with what the log says of their states.
func pathsOf(t domain.Transaction, p domain.Proposal) (files []events.ChangedPath) {
	if t.State == domain.TxApplied {
		return t.Files
	}
	for _, r := range p.Revisions {
		if r.Number != t.Revision {
			continue
		}
		for _, s := range r.Base.Paths {
			files = append(files, events.ChangedPath{Path: s.Path, Before: s})
		}
	}
	return files
}

// PathsOf returns the paths of t with what the log says of their states.
func (h *Handler) PathsOf(ctx context.Context, t domain.Transaction) ([]events.ChangedPath, error) {
	p, err := load[domain.Proposal](ctx, h.question(auth.Principal{}, t.Workspace), events.ProposalStream(t.Proposal))
	return pathsOf(t, p), err
}

// wire shows what lies at a path.
func (p LookPath) wire() wire.RecoveryPath {
	out := wire.RecoveryPath{Path: p.Path, State: p.Is, Kind: p.Now.Kind, SHA256: p.Now.SHA256, Why: p.Stuck}
	if p.Held != nil {
		out.Held = &wire.PathNow{Path: p.Path, Kind: p.Held.Kind, Mode: p.Held.Mode, SHA256: p.Held.SHA256}
	}
	return out
}

// around is all by which the possible actions are told.
type around struct {
	tx       domain.Transaction
	proposal domain.Proposal
	tree     domain.Tree
	look     Look

	mergeable bool // what was applied can be taken back, as it lies now
	merging   string
}

// actions says of everything that can be done about a transaction whether it is
// possible now, and why.
func (a around) actions() []wire.Action {
	tx := map[string]any{"transaction_id": a.tx.ID}
	reason := map[string]any{"transaction_id": a.tx.ID, "reason": "what now lies at the paths is to stay"}
	again := map[string]any{"proposal_id": a.tx.Proposal}
	return []wire.Action{
		action("stage", "orchestrator", "transaction.stage", tx, a.stage),
		action("apply", "orchestrator", "transaction.apply", tx, a.apply),
		action("retry", "person with role orchestrator", "transaction.retry", tx, a.retry),
		action("apply_again", "orchestrator", "patch.apply", again, a.again),
		action("cancel", "person with role orchestrator", "transaction.cancel", tx, a.cancel),
		action("resolve", "person with role operator", "transaction.resolve", reason, a.resolve),
		action("compensate", "orchestrator", "transaction.compensate", tx, a.compensate),
	}
}

func action(name, who, call string, args map[string]any, judge func() (possible bool, why string)) wire.Action {
	x := wire.Action{Action: name}
	if x.Possible, x.Why = judge(); x.Possible {
		x.Call = &fault.Step{Op: call, Args: args, Who: who, Why: x.Why}
	}
	return x
}

func (a around) stage() (bool, string) {
	switch {
	case a.tx.State != domain.TxPending:
		return false, "it is " + a.tx.State
	case !a.tree.Free(a.tx.ID):
		return false, "it waits behind " + a.tree.Behind(a.tx.ID)
	}
	return true, "nobody is before it"
}

func (a around) apply() (bool, string) {
	switch {
	case a.tx.State == domain.TxPending && a.tx.Wish.By != "":
		return false, "it was asked for, and is judged when its turn comes"
	case a.tx.State == domain.TxPending || a.tx.State == domain.TxStaged && !a.tree.Free(a.tx.ID):
		return true, "it is " + a.tx.State + "; the wish is kept until its turn comes"
	case a.tx.State == domain.TxStaged:
		return true, "it is staged, and nobody is before it"
	}
	return false, "it is " + a.tx.State
}

// open says why the proposal takes no transaction, or "".
func (a around) open() string {
	p := a.proposal
	switch {
	case a.tx.Stuck():
		return "some paths wait for a person: both versions are kept"
	case a.look.Repository == "unknown":
		return "what lies at its paths is not known"
	case a.look.Journal == "committed" || a.look.Journal == "open":
		return "the journal is " + a.look.Journal + ": the service settles it before it does anything else"
	case p.Terminal():
		return "its proposal is " + p.Status
	case p.Busy:
		return "transaction " + p.Transaction + " of its proposal has not ended"
	}
	return ""
}

func (a around) retry() (bool, string) {
	why := a.open()
	switch {
	case a.tx.State != domain.TxFailed:
		return false, "it is " + a.tx.State
	case why != "":
		return false, why
	case a.tx.Revision != a.proposal.Current().Number:
		return false, "its revision is not the newest of its proposal"
	case a.look.Repository != "before" && a.tx.Failure.Code == "state.dirty":
		return false, "its paths have changes that are not committed: once they are stashed or restored (git stash, git restore) it is possible; if they are committed, attach a revision made on them"
	case a.look.Repository != "before":
		return false, "its paths are not as they were before (" + a.look.Repository + "): it is possible once they are; put back what `paths` names, or attach a revision made on what lies there"
	}
	return true, "every path is as it was before"
}

func (a around) again() (bool, string) {
	why := a.open()
	switch {
	case a.tx.State != domain.TxFailed && a.tx.State != domain.TxCancelled:
		return false, "it is " + a.tx.State
	case why != "":
		return false, why
	}
	return true, "another transaction may try the newest revision; its gates are judged"
}

func (a around) cancel() (bool, string) {
	switch {
	case a.tx.Stuck():
		return false, "some paths wait for a person: both versions are kept"
	case a.tx.State == domain.TxPending || a.tx.State == domain.TxStaged:
		return true, "it has changed nothing"
	case a.tx.State == domain.TxFailed:
		return true, "it has failed; its proposal can be applied by another either way"
	}
	return false, "it is " + a.tx.State
}

func (a around) resolve() (bool, string) {
	switch {
	case a.tx.Resolving.Transaction != "":
		return false, "it was asked for and goes on"
	case a.look.Repository == "unknown":
		return false, "what lies at its paths is not known"
	case !a.look.CanResolve && a.tx.Stuck():
		return true, "no path waits for a person any more; say so, and the transaction can be retried or cancelled"
	case !a.look.CanResolve:
		return false, "no path waits for a person"
	case !a.tx.Stuck() && a.tx.State != domain.TxApplied:
		return false, "it is " + a.tx.State + ", and the service has not said yet that it needs a person"
	}
	return true, "what lies at the paths stays; further versions go to the blob store"
}

func (a around) compensate() (bool, string) {
	switch {
	case a.tx.CompensatedBy != "":
		return false, "it was taken back by " + a.tx.CompensatedBy
	case a.tx.State != domain.TxApplied:
		return false, "it is " + a.tx.State
	case a.look.Repository == "unknown":
		return false, "what lies at its paths is not known"
	case a.look.Repository != "after" || !a.mergeable:
		return a.mergeable, a.merging
	}
	return true, "every path is as it left it"
}
