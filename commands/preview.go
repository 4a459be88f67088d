package commands

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// A patchQuestion names one revision of a proposal.
type patchQuestion struct {
	Proposal string `json:"proposal_id"`
	Revision *int   `json:"revision,omitempty" jsonschema:"the newest if not given" min:"1"`
}

// A filesQuestion asks for a page of files.
type filesQuestion struct {
	patchQuestion
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many files; 50 if not given" min:"1" max:"200"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

// A diffQuestion asks for a page of lines.
type diffQuestion struct {
	patchQuestion
	From   *int   `json:"from,omitempty" jsonschema:"an earlier revision: show what differs between what both give" min:"1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"at most so many lines; 500 if not given" min:"1" max:"5000"`
	Cursor string `json:"cursor,omitempty" jsonschema:"next_cursor of the page before"`
}

// previewOps lists the questions about what a patch states.
func (h *Handler) previewOps() []op.Op {
	const p = ws + "/proposals/{proposal_id}/patch"
	of := func(s *jsonschema.Schema, more ...string) *jsonschema.Schema {
		s.Properties["proposal_id"], s.Properties["revision"], s.Properties["patch_digest"] = op.SchemaOf[string](), op.SchemaOf[int](), op.SchemaOf[string]()
		s.Required = append(s.Required, "proposal_id", "revision", "patch_digest")
		for _, m := range more {
			s.Properties[m] = op.SchemaOf[int]()
		}
		return s
	}
	paged := func(more ...string) *jsonschema.Schema { return of(op.ListOf[wire.PatchFile]("files"), more...) }
	return []op.Op{
		question(h, op.Op{Name: "proposal.patch", Route: "GET " + p, Out: op.OneOf[wire.Patch]("patch", nil),
			Doc: "Say what a revision's patch is: digest, base, whether the base has moved, and true counts."}, h.patch),
		question(h, op.Op{Name: "proposal.patch_files", Route: "GET " + p + "/files", Out: paged(),
			Doc: "List the files of a revision's patch: operation, paths, modes and counts."}, h.patchFiles),
		question(h, op.Op{Name: "proposal.patch_diff", Route: "GET " + p + "/diff", Out: paged("from_revision"),
			Doc: "Show a revision's patch line by line, or with from what has changed since another revision; secrets are masked."}, h.patchDiff),
		h.rebaseOp(),
		question(h, op.Op{Name: "proposal.patch_symbols", Route: "GET " + p + "/symbols", Out: of(op.ListOf[wire.SymbolFile]("files")),
			Doc: "List the functions, types and other symbols that a revision's patch adds, removes or changes, by file."}, h.patchSymbols),
	}
}

// A RawPatch is a patch as it was sent.
type RawPatch struct {
	Digest string `json:"patch_digest"`
	Data   []byte `json:"data"`
}

// RawPatchOp is the question for the exact bytes of a revision's patch. A
// transport serves them as they are.
func (h *Handler) RawPatchOp() op.Op {
	return question(h, op.Op{Name: "proposal.patch_raw", Route: "GET " + ws + "/proposals/{proposal_id}/patch/raw",
		Doc: "Fetch the exact bytes of a revision's patch."}, func(ctx context.Context, c op.Call, in patchQuestion) (RawPatch, error) {
		_, _, r, err := h.revisionOf(ctx, c, in)
		if err != nil {
			return RawPatch{}, err
		}
		data, err := h.World.Kept(ctx, r.PatchDigest)
		return RawPatch{r.PatchDigest, data}, err
	})
}

// revisionOf loads the revision that is asked for.
func (h *Handler) revisionOf(ctx context.Context, c op.Call, in patchQuestion) (*unit, domain.Proposal, domain.Revision, error) {
	u := h.question(c.Who, c.Workspace)
	p, err := u.proposal(ctx, in.Proposal)
	if err != nil {
		return u, p, domain.Revision{}, err
	}
	r, err := numbered(p, in.Revision, "/revision")
	return u, p, r, err
}

// numbered is the revision of that number, the newest where none is given.
func numbered(p domain.Proposal, n *int, field string) (domain.Revision, error) {
	if n == nil {
		return p.Current(), nil
	}
	for _, r := range p.Revisions {
		if r.Number == *n {
			return r, nil
		}
	}
	return domain.Revision{}, fault.Errorf(fault.NotFound, "revision_not_found", "%s has no revision %d; the newest is %d", p.ID, *n, p.Current().Number).
		At(field, "no such revision").With("revision", p.Current().Number)
}

// patch describes a revision's patch as a whole.
func (h *Handler) patch(ctx context.Context, c op.Call, in patchQuestion) (op.Answer, error) {
	u, p, r, err := h.revisionOf(ctx, c, in)
	if err != nil {
		return op.Answer{}, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	page, err := h.World.Preview(ctx, root, PatchView{Revision: r})
	if err != nil {
		return op.Answer{}, err
	}
	out := wire.Patch{Proposal: p.ID, Revision: r.Number, Newest: r.Number == p.Current().Number, Digest: r.PatchDigest, Bytes: page.Bytes,
		Base: wire.Base{Commit: r.Base.Commit, PathsDigest: r.Base.PathsDigest}, Changed: []string{}, Notes: page.Notes, NotesAll: page.Found, Files: len(page.Files)}
	for _, f := range page.Files {
		out.Added, out.Removed = out.Added+f.Added, out.Removed+f.Removed
		if f.Binary {
			out.Binaries++
		}
	}
	var relied []events.PathState
	if !p.Terminal() {
		relied = r.Base.Paths
	}
	head, changed, err := h.World.Since(ctx, root, relied)
	if err != nil {
		return op.Answer{}, err
	}
	out.Head, out.Changed, out.Stale = head, append(out.Changed, changed...), len(changed) > 0
	at, _, err := h.Log.Head(ctx)
	return op.Answer{Name: "patch", Value: out, Position: at}, err
}

// patchFiles lists the files of a revision's patch.
func (h *Handler) patchFiles(ctx context.Context, c op.Call, in filesQuestion) (op.Answer, error) {
	if in.Limit == 0 {
		in.Limit = 50
	}
	return h.patchPage(ctx, c, in.patchQuestion, nil, PatchView{Files: in.Limit}, in.Cursor)
}

// patchDiff shows the lines of a revision's patch, or of an interdiff.
func (h *Handler) patchDiff(ctx context.Context, c op.Call, in diffQuestion) (op.Answer, error) {
	if in.Limit == 0 {
		in.Limit = 500
	}
	return h.patchPage(ctx, c, in.patchQuestion, in.From, PatchView{Lines: in.Limit}, in.Cursor)
}

// patchSymbols lists what symbols a revision's patch touches.
func (h *Handler) patchSymbols(ctx context.Context, c op.Call, in filesQuestion) (op.Answer, error) {
	u, p, r, err := h.revisionOf(ctx, c, in.patchQuestion)
	if err != nil {
		return op.Answer{}, err
	}
	v := PatchView{Revision: r, Files: cmp.Or(in.Limit, 50)}
	list := "symbols-" + r.PatchDigest
	if v.At, err = place(list, in.Cursor); err != nil {
		return op.Answer{}, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	page, err := h.World.Symbols(ctx, root, v)
	if err != nil {
		return op.Answer{}, err
	}
	at, _, err := h.Log.Head(ctx)
	a := op.Answer{Name: "files", Value: page.Files, Position: at, List: true,
		More: map[string]any{"proposal_id": p.ID, "revision": r.Number, "patch_digest": r.PatchDigest}}
	if page.Next != nil {
		a.Next = placeCursor(list, *page.Next)
	}
	return a, err
}

func (h *Handler) patchPage(ctx context.Context, c op.Call, in patchQuestion, from *int, v PatchView, cursor string) (op.Answer, error) {
	u, p, r, err := h.revisionOf(ctx, c, in)
	if err != nil {
		return op.Answer{}, err
	}
	more := map[string]any{"proposal_id": p.ID, "revision": r.Number, "patch_digest": r.PatchDigest}
	v.Revision = r
	list := r.PatchDigest
	if from != nil {
		old, err := numbered(p, from, "/from")
		if err != nil {
			return op.Answer{}, err
		}
		v.From, more["from_revision"] = &old, old.Number
		list += old.PatchDigest
	}
	if v.At, err = place(list, cursor); err != nil {
		return op.Answer{}, err
	}
	root, err := u.root(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	page, err := h.World.Preview(ctx, root, v)
	if err != nil {
		return op.Answer{}, err
	}
	at, _, err := h.Log.Head(ctx)
	a := op.Answer{Name: "files", Value: page.Files, Position: at, List: true, More: more}
	if page.Next != nil {
		a.Next = placeCursor(list, *page.Next)
	}
	return a, err
}

// placeCursor names a place in the list of what is shown.
func placeCursor(list string, p PatchPlace) string {
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%s %d %d %d", list, p.File, p.Hunk, p.Line))
}

// place reads a cursor of that list; "" is its beginning.
func place(list, cursor string) (p PatchPlace, err error) {
	if cursor == "" {
		return p, nil
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(cursor)
	var of string
	if err == nil {
		_, err = fmt.Sscanf(string(b), "%s %d %d %d", &of, &p.File, &p.Hunk, &p.Line)
	}
	if err != nil || of != list || placeCursor(list, p) != cursor {
		return PatchPlace{}, fault.Errorf(fault.Invalid, "invalid_cursor", "this cursor is not from this patch; begin again without one").
			At("/cursor", "not next_cursor of the page before")
	}
	return p, nil
}
