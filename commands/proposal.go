package commands

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/wire"
)

// CreateProposal proposes a change.
type CreateProposal struct {
	Title         string   `json:"title"`
	Summary       string   `json:"summary_md"`
	Task          string   `json:"task_id,omitempty"`
	Risk          string   `json:"risk,omitempty" enum:"low,normal,high,critical"`
	ExpectedTests []string `json:"expected_tests,omitempty" jsonschema:"commands that must pass, such as: go test ./..."`
	RollbackNotes string   `json:"rollback_notes,omitempty"`
	PatchInput
}

// Name is the command's on the wire.
func (CreateProposal) Name() string { return "proposal.create" }

func (c CreateProposal) wish() any {
	c.PatchInput = c.text()
	return c
}

func (c CreateProposal) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	if err := u.checkTask(ctx, c.Task); err != nil {
		return nil, err
	}
	if len(c.ExpectedTests) > 32 {
		return nil, fault.Errorf(fault.Invalid, "invalid_field", "at most 32 expected tests").At("/expected_tests", "too many")
	}
	for _, t := range c.ExpectedTests {
		if _, err := u.h.World.Argv(t); err != nil {
			return nil, err
		}
	}
	first, err := u.revision(ctx, c.PatchInput)
	if err != nil {
		return nil, err
	}
	u.ids["proposal"] = u.id("P")
	p := begin[domain.Proposal](u, events.ProposalStream(u.ids["proposal"]))
	return p.Create(events.ProposalCreated{Proposal: u.ids["proposal"], Workspace: u.caller.Workspace, Task: c.Task, Author: u.caller.Who.ID,
		Title: c.Title, Summary: c.Summary, Risk: c.Risk, ExpectedTests: c.ExpectedTests, RollbackNotes: c.RollbackNotes}, first)
}

// revision makes a revision of a patch on the tree as it lies: the patch is
// kept, and a touched path outside the named resources becomes one.
func (u *unit) revision(ctx context.Context, in PatchInput) (e events.ProposalRevisionAttached, err error) {
	patch, err := in.data()
	if err != nil {
		return e, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return e, err
	}
	found, err := fact(u, "new patch", func() (Inspection, error) { return u.h.World.Inspect(ctx, root, patch) })
	if err != nil {
		return e, err
	}
	if found.Never {
		return e, found.Refused
	}
	if in.Base != "" { // what the author worked on; the base is the tree as it lies
		if _, err := fact(u, "commit "+in.Base, func() (string, error) { return u.h.World.Commit(ctx, root, in.Base) }); err != nil {
			return e, err
		}
	}
	resources, err := cover(in.Resources, found.Base.Paths)
	if err != nil {
		return e, err
	}
	digest, err := fact(u, "keep patch", func() (string, error) { return u.h.World.Keep(ctx, patch) })
	if err != nil {
		return e, err
	}
	if _, err := fact(u, "keep base", func() (bool, error) {
		return true, u.h.World.KeepBase(ctx, root, append(slices.Clone(found.Base.Paths), found.Base.Sources...))
	}); err != nil {
		return e, err
	}
	risk := "" // policy's word; the author's is the rule's to add
	if path, _ := u.h.Policy.HighPath(paths(found.Base)); path != "" {
		risk = "high"
	}
	tree, err := u.turns(ctx)
	if err != nil {
		return e, err
	}
	found.Base.Watched = len(tree.Applying) == 0 // else the tree may still be taken back
	return events.ProposalRevisionAttached{Risk: risk, PatchDigest: digest, PatchBytes: int64(len(patch)), Base: found.Base, Files: found.Files,
		Resources: resources, AttachedBy: u.caller.Who.ID, AttachedAt: u.now}, nil
}

func paths(b events.Base) (out []string) {
	for _, s := range b.Paths {
		out = append(out, s.Path)
	}
	return out
}

// cover returns the resources, each once and in order, and those that the
// paths outside them need.
func cover(ids []string, paths []events.PathState) (all []string, err error) {
	rs, err := resources(ids)
	if err != nil {
		return nil, err
	}
	for _, p := range paths {
		if !slices.ContainsFunc(rs, func(r domain.Resource) bool { return r.Contains(p.Path) }) {
			rs = append(rs, domain.FileResource(p.Path))
		}
	}
	for _, r := range rs {
		if !slices.Contains(all, r.ID()) {
			all = append(all, r.ID())
		}
	}
	return all, nil
}

// resources reads the ids of affected_resources, or refuses with every one that
// is none.
func resources(ids []string) (rs []domain.Resource, err error) {
	var bad *fault.Error
	for i, id := range ids {
		r, err := domain.ParseResource(id)
		f, is := errors.AsType[*fault.Error](err)
		switch {
		case err == nil:
			rs = append(rs, r)
			continue
		case !is:
			return nil, err
		case bad == nil:
			bad = fault.Errorf(f.Kind, f.Code, "%s", f.Detail)
		}
		bad.At(fmt.Sprintf("/affected_resources/%d", i), f.Detail)
	}
	if bad == nil {
		return rs, nil
	}
	if n := len(bad.Fields) - 1; n > 0 {
		bad.Detail += fmt.Sprintf(" (and %d more resources are not right)", n)
	}
	return nil, bad
}

// AttachPatch adds a revision to a proposal.
type AttachPatch struct {
	Proposal string `json:"proposal_id"`
	Expected int    `json:"expected_revision" jsonschema:"number of the newest revision, which this one replaces" min:"1"`
	Rebase   bool   `json:"rebase,omitempty" jsonschema:"in place of a patch: the newest revision, merged with what was done since; proposal.patch_rebase shows it"`
	PatchInput
}

// Name is the command's on the wire.
func (AttachPatch) Name() string { return "proposal.attach_patch" }

func (c AttachPatch) wish() any {
	c.PatchInput = c.text()
	return c
}

func (c AttachPatch) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	p, err := u.proposal(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	mine := events.ProposalRevisionAttached{AttachedBy: u.caller.Who.ID}
	if c.Rebase {
		mine.RebasedFrom = p.Current().Number
	}
	open, err := u.opened(ctx, p)
	if err != nil {
		return nil, err
	}
	if _, err := p.Attach(mine, c.Expected, open); err != nil {
		return nil, err // before the patch is looked at
	}
	e, err := c.revision(ctx, u, p)
	if err != nil {
		return nil, err
	}
	return p.Attach(e, c.Expected, open)
}

// revision makes the revision that is to be attached.
func (c AttachPatch) revision(ctx context.Context, u *unit, p domain.Proposal) (e events.ProposalRevisionAttached, err error) {
	switch {
	case !c.Rebase:
		return u.revision(ctx, c.PatchInput)
	case c.Patch+c.Base64+c.SHA256 != "" || c.Bytes != nil:
		return e, fault.Errorf(fault.Invalid, "invalid_field", "a patch and rebase were both sent; send one of them").At("/rebase", "not with a patch")
	}
	return u.attachRebased(ctx, p, c.PatchInput)
}

// proposal loads a proposal of the command's workspace and answers its id. A
// token that is narrowed to a task reaches only proposals of that task.
func (u *unit) proposal(ctx context.Context, id string) (domain.Proposal, error) {
	p, err := load[domain.Proposal](ctx, u, events.ProposalStream(id))
	if err != nil {
		return p, err
	}
	u.ids["proposal"] = id
	if err := p.In(u.caller.Workspace, id); err != nil {
		return p, err
	}
	if task := u.caller.Who.Scope.Task; task != "" && p.Task != task {
		return p, fault.Errorf(fault.Forbidden, "token_scope", "this token is narrowed to task %s, and %s is not of it", task, id)
	}
	return p, nil
}

// opened loads the transaction that p waits for, if there is one.
func (u *unit) opened(ctx context.Context, p domain.Proposal) (t domain.Transaction, err error) {
	if !p.Busy {
		return t, nil
	}
	return load[domain.Transaction](ctx, u, events.TransactionStream(p.Transaction))
}

func (u *unit) claims(ctx context.Context) (domain.Claims, error) {
	return load[domain.Claims](ctx, u, events.ClaimsStream(u.caller.Workspace))
}

// RequestReview puts a proposal up for review, and starts the tests it expects.
type RequestReview struct {
	Proposal string `json:"proposal_id"`
}

// Name is the command's on the wire.
func (RequestReview) Name() string { return "proposal.request_review" }

func (c RequestReview) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	p, err := u.proposal(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	out, err := p.RequestReview(u.caller.Who.ID)
	if err != nil || len(out) == 0 {
		return nil, err
	}
	tests, err := u.startTests(ctx, p)
	return append(out, tests...), err
}

// WithdrawProposal takes a proposal back.
type WithdrawProposal struct {
	Proposal string `json:"proposal_id"`
	Reason   string `json:"reason_md,omitempty"`
}

// Name is the command's on the wire.
func (WithdrawProposal) Name() string { return "proposal.withdraw" }

func (c WithdrawProposal) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	p, claims, open, err := u.ending(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	return p.Withdraw(u.caller.Who.ID, c.Reason, claims, open)
}

// ending loads what the end of a proposal is about: it, the claims, and the
// transaction that it waits for.
func (u *unit) ending(ctx context.Context, id string) (p domain.Proposal, c domain.Claims, open domain.Transaction, err error) {
	if p, err = u.proposal(ctx, id); err != nil {
		return p, c, open, err
	}
	if c, err = u.claims(ctx); err != nil {
		return p, c, open, err
	}
	open, err = u.opened(ctx, p)
	return p, c, open, err
}

// RejectPatch turns a proposal down.
type RejectPatch struct {
	Proposal string `json:"proposal_id"`
	Reason   string `json:"reason_md"`
}

// Name is the command's on the wire.
func (RejectPatch) Name() string { return "patch.reject" }

func (c RejectPatch) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	p, claims, open, err := u.ending(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	return p.Reject(u.caller.Who.ID, c.Reason, u.id("D"), claims, open)
}

// facts gathers all that the gates of p are judged by. The candidate tree is
// made only if a test has run on one.
func (u *unit) facts(ctx context.Context, p domain.Proposal) (f domain.Facts, err error) {
	f = domain.Facts{Proposal: p, Policy: u.h.Policy, Now: u.now}
	if f.Directory, err = load[domain.Directory](ctx, u, events.DirectoryStream); err != nil {
		return f, err
	}
	if f.Claims, err = u.claims(ctx); err != nil {
		return f, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return f, err
	}
	tree, err := u.turns(ctx) // before the files are looked at
	if err != nil {
		return f, err
	}
	r := p.Current()
	found, err := u.inspect(ctx, root, r.PatchDigest)
	if err != nil {
		return f, err
	}
	f.Patch = domain.PatchFacts{Refused: found.Refused, Dirty: found.Dirty}
	f.Patch.Compared = !found.Never
	if f.Patch.Compared {
		now := slices.Concat(found.Base.Paths, found.Base.Sources)
		f.Patch.Moved = moved(slices.Concat(r.Base.Paths, r.Base.Sources), now)
		u.notice(root, tree, domain.Sight{FoundAt: "validate", Now: now, Bases: tree.Bases(r)}, f.Claims)
	}
	if len(f.Patch.Moved) > 0 || unfit(found) {
		m, err := u.rebase(ctx, root, r)
		if err != nil {
			return f, err
		}
		if f.Patch.Rebase = rebased(m); len(f.Patch.Moved) == 0 && m.Impossible != "" {
			f.Patch.Rebase = domain.Rebase{} // it is refused, and that is all
		}
	}
	if p.Tested() && found.Refused == nil {
		f.Patch.Tree, err = u.tree(ctx, root, r.PatchDigest)
	}
	return f, err
}

// moved returns the paths whose state is not the same in both lists.
func moved(was, is []events.PathState) (paths []string) {
	now := map[string]events.PathState{}
	for _, s := range is {
		now[s.Path] = s
	}
	for _, s := range was {
		if now[s.Path] != s {
			paths = append(paths, s.Path)
		}
	}
	return paths
}

func wireGates(gates []domain.Gate, boundTo string) []wire.Gate {
	out := make([]wire.Gate, len(gates))
	for i, g := range gates {
		out[i] = wire.Gate{Gate: g.Gate, Status: g.Status, Because: append([]string{}, g.Because...), Needs: append([]string{}, g.Needs...), Next: steps(g.Next), BoundTo: boundTo}
	}
	return out
}

// steps spells calls, with arguments in each.
func steps(next []fault.Step) []fault.Step {
	out := []fault.Step{}
	for _, s := range next {
		if s.Args == nil {
			s.Args = map[string]any{}
		}
		out = append(out, s)
	}
	return out
}
