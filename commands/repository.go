package commands

import (
	"context"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/domain"
	"roundtable/internal/auth"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// shownChanges is how many foreign changes are shown with a repository.
const shownChanges = 10

func (h *Handler) repositoryOps() []op.Op {
	const r = ws + "/repository"
	found := op.OneOf[wire.Repository]("repository", map[string]*jsonschema.Schema{"check": op.SchemaOf[wire.RepositoryCheck]()})
	return []op.Op{
		question(h, op.Op{Name: "repository.get", Route: "GET " + r, Out: op.OneOf[wire.Repository]("repository", nil),
			Doc: "Say what lies in the workspace's folder: its commit and branch, who changes it, and what was changed behind the service's back."}, h.repository),
		commanding(h, "repository", op.Op{Route: "POST " + r + "/check", May: by(auth.Orchestrator),
			Doc: "Compare every path that is known with what lies there, and record what was changed behind the service's back."}, found, h.checkedRepository),
	}
}

// repository answers what lies in the folder of a workspace.
func (h *Handler) repository(ctx context.Context, c op.Call, _ struct{}) (op.Answer, error) {
	u := h.question(c.Who, c.Workspace)
	root, err := u.root(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	t, claims, err := u.known(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	out, err := h.World.Describe(ctx, root)
	if err != nil {
		return op.Answer{}, err
	}
	out.Workspace, out.KnownPaths = c.Workspace, len(t.KnownPaths(domain.Resource{Kind: "directory"}, claims, u.now))
	if len(t.Applying) > 0 {
		out.Applying = t.Applying[0]
	}
	changes, at, err := h.ForeignChanges(ctx, c.Workspace, shownChanges, c.After)
	out.Changes = append(out.Changes, changes...)
	return op.Answer{Name: "repository", Value: out, Position: at}, err
}

// checkedRepository answers what a check found, beside the repository.
func (h *Handler) checkedRepository(ctx context.Context, c op.Call, _ CheckRepository, r Result) (op.Answer, error) {
	c.After = r.Position
	a, err := h.repository(ctx, c, struct{}{})
	if err != nil {
		return a, err
	}
	found, err := h.Found(ctx, c.Workspace, r)
	a.Position, a.More = r.Position, map[string]any{"check": found}
	return a, err
}

// Found tells what a CheckRepository came to. Its changes are read once the
// views hold them; without views they are only counted.
func (h *Handler) Found(ctx context.Context, workspace string, r Result) (out wire.RepositoryCheck, err error) {
	out = wire.RepositoryCheck{Waits: r.IDs["waits_for"], Changes: []wire.ForeignChange{}}
	written := 0
	for name, n := range map[string]*int{"checked": &out.Checked, "found": &out.Changed, "events": &written} {
		if *n, err = strconv.Atoi(r.IDs[name]); err != nil {
			return out, err
		}
	}
	if out.Changed == 0 || h.ForeignChanges == nil {
		return out, nil
	}
	newest, _, err := h.ForeignChanges(ctx, workspace, written, r.Position)
	for _, f := range newest { // of one append the positions follow each other
		if f.Position > r.Position-int64(written) && f.Position <= r.Position {
			out.Changes = append(out.Changes, f)
		}
	}
	return out, err
}
