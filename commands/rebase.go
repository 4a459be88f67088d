package commands

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// rebase asks the world once what a revision comes to on the tree as it lies.
// That nothing can be merged is part of the answer.
func (u *unit) rebase(ctx context.Context, root string, r domain.Revision) (Merging, error) {
	return fact(u, "rebase "+root+" "+r.PatchDigest, func() (Merging, error) {
		m, err := u.h.World.Rebase(ctx, root, r)
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
			return Merging{Impossible: f.Code + ": " + f.Detail}, nil
		}
		return m, err
	})
}

// rebased judges what a merge came to, as a fact about the proposal.
func rebased(m Merging) domain.Rebase {
	r := domain.Rebase{Outcome: domain.CleanRebase, Why: m.Impossible}
	switch {
	case m.Impossible != "":
		r.Outcome = domain.NoRebase
	case len(m.Conflicts) > 0:
		r.Outcome = domain.RebaseConflict
	case len(m.Patch) == 0:
		r.Outcome = domain.AlreadyThere
	}
	for _, c := range m.Conflicts {
		r.Conflicts = append(r.Conflicts, c.Path+": "+c.Detail)
	}
	return r
}

// attachRebased makes the next revision of what the newest one comes to on the
// tree as it lies. Its resources are the old ones, where they still hold
// something that it touches, unless others are named.
func (u *unit) attachRebased(ctx context.Context, p domain.Proposal, in PatchInput) (e events.ProposalRevisionAttached, err error) {
	root, err := u.root(ctx)
	if err != nil {
		return e, err
	}
	r := p.Current()
	_, m, moved, err := u.comesTo(ctx, root, r)
	if err != nil {
		return e, err
	}
	if !moved {
		return e, fault.Errorf(fault.Conflict, "nothing_to_rebase", "revision %d of %s fits the tree that it was made on, and nothing has changed since", r.Number, p.ID)
	}
	switch v := rebased(m); v.Outcome {
	case domain.NoRebase:
		return e, fault.Errorf(fault.Conflict, "rebase_impossible", "revision %d of %s cannot be merged with the tree: %s", r.Number, p.ID, v.Why)
	case domain.AlreadyThere:
		return e, fault.Errorf(fault.Conflict, "nothing_to_rebase", "all that revision %d of %s changes is in the tree already", r.Number, p.ID)
	case domain.RebaseConflict:
		return e, fault.Errorf(fault.Conflict, "rebase_conflict", "revision %d of %s cannot be merged with the tree: it and what was done since meet at %s", r.Number, p.ID, named(m.Paths)).
			With("paths", m.Paths).With("conflicts", m.Conflicts).
			Then("proposal.attach_patch", map[string]any{"proposal_id": p.ID, "expected_revision": r.Number}, "you", "make the patch again on the tree as it is now")
	}
	resources := in.Resources
	if len(resources) == 0 {
		resources = slices.DeleteFunc(slices.Clone(r.Resources), func(id string) bool {
			res, err := domain.ParseResource(id)
			return err == nil && !slices.ContainsFunc(m.Base, func(s events.PathState) bool { return res.Contains(s.Path) })
		})
	}
	if e, err = u.merged(ctx, m, resources); err == nil {
		e.RebasedFrom = r.Number
	}
	return e, err
}

// comesTo merges a revision with the tree as it lies, if its base has moved or
// had moved before it was attached, so that it never fitted.
func (u *unit) comesTo(ctx context.Context, root string, r domain.Revision) (changed []string, m Merging, moved bool, err error) {
	if changed, err = u.moved(ctx, root, r); err != nil {
		return nil, m, false, err
	}
	if len(changed) == 0 {
		found, err := u.inspect(ctx, root, r.PatchDigest)
		if err != nil || !unfit(found) {
			return nil, m, false, err
		}
	}
	m, err = u.rebase(ctx, root, r)
	return changed, m, true, err
}

// unfit reports whether a patch does not fit the tree, and may fit another.
func unfit(i Inspection) bool {
	return i.Refused != nil && !i.Never && strings.HasPrefix(i.Refused.Code, "apply.") && i.Refused.Code != "apply.already_applied"
}

// moved returns the paths that are no longer as a revision's base has them.
func (u *unit) moved(ctx context.Context, root string, r domain.Revision) ([]string, error) {
	return fact(u, "moved "+root+" "+r.PatchDigest, func() ([]string, error) {
		_, changed, err := u.h.World.Since(ctx, root, append(slices.Clone(r.Base.Paths), r.Base.Sources...))
		return changed, err
	})
}

// A rebaseQuestion asks what the newest revision comes to on the tree as it is.
type rebaseQuestion struct {
	Proposal string `json:"proposal_id"`
	Limit    int    `json:"limit,omitempty" jsonschema:"at most so many lines of the patch; 500 if not given" min:"1" max:"5000"`
	Cursor   string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

// rebaseOp is the question for a rebase.
func (h *Handler) rebaseOp() op.Op {
	out := op.ListOf[wire.PatchFile]("files")
	for name, s := range map[string]*jsonschema.Schema{
		"proposal_id": op.SchemaOf[string](), "revision": op.SchemaOf[int](), "patch_digest": op.SchemaOf[string](), "rebase": op.SchemaOf[wire.Rebase](),
	} {
		out.Properties[name] = s
		out.Required = append(out.Required, name)
	}
	slices.Sort(out.Required)
	return question(h, op.Op{Name: "proposal.patch_rebase", Route: "GET " + ws + "/proposals/{proposal_id}/patch/rebase", Out: out,
		Doc: "Say what the newest revision comes to when it is merged with what was done since: the patch that would be attached, or the conflicts."}, h.patchRebase)
}

func (h *Handler) patchRebase(ctx context.Context, c op.Call, in rebaseQuestion) (op.Answer, error) {
	if in.Limit == 0 {
		in.Limit = 500
	}
	u, p, r, err := h.revisionOf(ctx, c, patchQuestion{Proposal: in.Proposal})
	if err != nil {
		return op.Answer{}, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	changed, m, moved, err := u.comesTo(ctx, root, r)
	if err != nil {
		return op.Answer{}, err
	}
	out := wire.Rebase{Outcome: domain.UpToDate, Base: wire.Base{Commit: r.Base.Commit, PathsDigest: r.Base.PathsDigest}, Changed: append([]string{}, changed...),
		Merged: []string{}, Conflicts: []wire.MergeConflict{}}
	if moved {
		v := rebased(m)
		out.Outcome, out.Why, out.Merged = v.Outcome, v.Why, append(out.Merged, m.Merged...)
		out.Conflicts, out.ConflictCount = append(out.Conflicts, m.Conflicts...), len(m.Paths)
	}
	sum := sha256.Sum256(m.Patch)
	list := hex.EncodeToString(sum[:])
	view := PatchView{Revision: r, Merged: m.Patch, Lines: in.Limit}
	if view.At, err = place(list, in.Cursor); err != nil {
		return op.Answer{}, err
	}
	a := op.Answer{Name: "files", Value: []wire.PatchFile{}, List: true, More: map[string]any{"proposal_id": p.ID, "revision": r.Number, "patch_digest": r.PatchDigest}}
	if len(m.Patch) > 0 {
		page, err := h.World.Preview(ctx, root, view)
		if err != nil {
			return op.Answer{}, err
		}
		a.Value, out.Bytes = page.Files, page.Bytes
		out.Files, out.Added, out.Removed = page.Counts.Files, page.Counts.Added, page.Counts.Removed
		if page.Next != nil {
			a.Next = placeCursor(list, *page.Next)
		}
	}
	a.More["rebase"] = out
	a.Position, _, err = h.Log.Head(ctx)
	return a, err
}
