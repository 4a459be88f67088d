package commands

import (
	"context"
	"slices"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/auth"
)

// The commands of this file are reports of workers: no op offers them.

// RecordApplied reports that the repository holds the change. From here on it
// counts: claims end and the proposal is accepted, in one append.
type RecordApplied struct {
	events.TransactionApplied
	Phases []events.TransactionPhaseCompleted
}

// Name is the command's in the log of outcomes.
func (RecordApplied) Name() string { return "transaction.record_applied" }

func (c RecordApplied) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.Transaction](ctx, u, c.TransactionApplied.Stream())
	if err != nil {
		return nil, err
	}
	p, err := load[domain.Proposal](ctx, u, events.ProposalStream(t.Proposal))
	if err != nil {
		return nil, err
	}
	claims, err := u.claims(ctx)
	if err != nil {
		return nil, err
	}
	of, err := u.behind(ctx, t)
	if err != nil {
		return nil, err
	}
	c.Proposal = t.Proposal
	out := t.RecordApplied(c.TransactionApplied, c.Phases, p, claims, of)
	if len(out) > 0 {
		out = append(out, claims.Overtaken(events.ClaimBecameStale{Workspace: t.Workspace, Cause: "transaction", Transaction: t.ID}, left(c.Files), p.Authors(), u.now)...)
	}
	return out, nil
}

// behind lists what t takes back, what that had taken back, and so on.
func (u *unit) behind(ctx context.Context, t domain.Transaction) (of []domain.Transaction, err error) {
	for t.Compensates != "" {
		if t, err = load[domain.Transaction](ctx, u, events.TransactionStream(t.Compensates)); err != nil {
			return nil, err
		}
		of = append(of, t)
	}
	return of, nil
}

// left lists what a transaction made of its paths.
func left(files []events.ChangedPath) (out []events.PathState) {
	for _, f := range files {
		out = append(out, f.After)
	}
	return out
}

// RecordFailed reports that an apply ended without the change.
type RecordFailed struct {
	events.TransactionFailed
	Phases []events.TransactionPhaseCompleted
	Sight  domain.Sight // what lay at the paths after it; nothing where that is not certain
}

// Name is the command's in the log of outcomes.
func (RecordFailed) Name() string { return "transaction.record_failed" }

func (c RecordFailed) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.Transaction](ctx, u, c.TransactionFailed.Stream())
	if err != nil {
		return nil, err
	}
	p, err := load[domain.Proposal](ctx, u, events.ProposalStream(t.Proposal))
	if err != nil {
		return nil, err
	}
	c.Proposal = t.Proposal
	out := t.RecordFailed(c.TransactionFailed, c.Phases)
	if len(out) == 0 || len(c.Sight.Now) == 0 {
		return out, nil
	}
	found, err := u.metForeign(ctx, t, p, c.Sight)
	return append(out, found...), err
}

// metForeign says what an attempt of t met that nobody had left so.
func (u *unit) metForeign(ctx context.Context, t domain.Transaction, p domain.Proposal, s domain.Sight) ([]events.Payload, error) {
	root, err := u.root(ctx)
	if err != nil {
		return nil, err
	}
	tree, err := u.turns(ctx)
	if err != nil {
		return nil, err
	}
	claims, err := u.claims(ctx)
	if err != nil {
		return nil, err
	}
	s.Transaction = t.ID
	for _, r := range p.Revisions {
		if r.Number == t.Revision {
			s.Bases = tree.Bases(r)
		}
	}
	return u.foreign(ctx, root, tree, s, claims)
}

// StartTest reports that a worker has a run's tree ready. It answers whether
// the run may begin: the result's IDs hold "begun".
type StartTest struct{ events.TestRunStarted }

// Name is the command's in the log of outcomes.
func (StartTest) Name() string { return "test_run.start" }

func (c StartTest) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.TestRun](ctx, u, c.TestRunStarted.Stream())
	if err != nil {
		return nil, err
	}
	out := t.Start(c.Tree)
	if len(out) > 0 {
		u.ids["begun"] = c.TestRun
	}
	return out, nil
}

// FinishTest reports how a run ended.
type FinishTest struct{ events.TestRunFinished }

// Name is the command's in the log of outcomes.
func (FinishTest) Name() string { return "test_run.finish" }

func (c FinishTest) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.TestRun](ctx, u, c.TestRunFinished.Stream())
	if err != nil {
		return nil, err
	}
	var p domain.Proposal
	if t.Request.Proposal != "" {
		if p, err = load[domain.Proposal](ctx, u, events.ProposalStream(t.Request.Proposal)); err != nil {
			return nil, err
		}
	}
	return u.validated(ctx, t, t.Finish(c.TestRunFinished, p))
}

// The functions below tell workers how far something is.

// Transaction returns a transaction as the log has it; the zero value if there
// is none.
func (h *Handler) Transaction(ctx context.Context, id string) (domain.Transaction, error) {
	return load[domain.Transaction](ctx, h.question(auth.Principal{}, ""), events.TransactionStream(id))
}

// TestRun returns a test run as the log has it; the zero value if there is none.
func (h *Handler) TestRun(ctx context.Context, id string) (domain.TestRun, error) {
	return load[domain.TestRun](ctx, h.question(auth.Principal{}, ""), events.TestRunStream(id))
}

// RestsOn lists the paths that a transaction's revision reads or changes, as
// they were when it was attached.
func (h *Handler) RestsOn(ctx context.Context, workspace, transaction string) ([]events.PathState, error) {
	u := h.question(auth.Principal{}, workspace)
	t, err := u.transaction(ctx, transaction)
	if err != nil {
		return nil, err
	}
	p, err := load[domain.Proposal](ctx, u, events.ProposalStream(t.Proposal))
	if err != nil {
		return nil, err
	}
	for _, r := range p.Revisions {
		if r.Number == t.Revision {
			return slices.Concat(r.Base.Paths, r.Base.Sources), nil
		}
	}
	return nil, nil
}

// Fenced checks that nobody else has come to hold what an apply rests on.
func (h *Handler) Fenced(ctx context.Context, r events.TransactionApplyRequested) error {
	u := h.question(auth.Principal{}, r.Workspace)
	p, err := load[domain.Proposal](ctx, u, events.ProposalStream(r.Proposal))
	if err != nil {
		return err
	}
	claims, err := u.claims(ctx)
	if err != nil {
		return err
	}
	return claims.Fenced(r.Fences, p.Authors(), u.now)
}

// Authorship returns the proposal that an apply is of, and its author.
func (h *Handler) Authorship(ctx context.Context, r events.TransactionApplyRequested) (domain.Proposal, auth.Principal, error) {
	u := h.question(auth.Principal{}, r.Workspace)
	p, err := load[domain.Proposal](ctx, u, events.ProposalStream(r.Proposal))
	if err != nil {
		return p, auth.Principal{}, err
	}
	d, err := load[domain.Directory](ctx, u, events.DirectoryStream)
	return p, d.Principals[p.Author], err
}

// Root returns the folder of a workspace.
func (h *Handler) Root(ctx context.Context, workspace string) (string, error) {
	return h.question(auth.Principal{}, workspace).root(ctx)
}

// Kind returns what the folder of a workspace was when it came under
// governance; "" where none has that folder.
func (h *Handler) Kind(ctx context.Context, root string) (string, error) {
	ws, err := load[domain.Workspaces](ctx, h.question(auth.Principal{}, ""), events.WorkspacesStream)
	for _, w := range ws.ByID {
		if w.Root == root {
			return w.Kind, err
		}
	}
	return "", err
}

// Roots returns the folders of all workspaces, by id.
func (h *Handler) Roots(ctx context.Context) (map[string]string, error) {
	ws, err := load[domain.Workspaces](ctx, h.question(auth.Principal{}, ""), events.WorkspacesStream)
	roots := map[string]string{}
	for id, w := range ws.ByID {
		roots[id] = w.Root
	}
	return roots, err
}
