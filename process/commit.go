package process

import (
	"context"
	"strings"

	"roundtable/events"
	"roundtable/internal/repo"
)

// commit says how an apply is committed; nil where only files change. The
// commit has the tree that was judged, on the commit that it was judged on.
func (a Applier) commit(ctx context.Context, r events.TransactionApplyRequested, space *repo.Workspace, parent, tree string) (*repo.Commit, error) {
	if !space.Commits() {
		return nil, nil
	}
	p, author, err := a.Handler.Authorship(ctx, r)
	if err != nil {
		return nil, err
	}
	return &repo.Commit{
		Author:    repo.Identity{Name: author.Name, Email: author.ID + noHost},
		Committer: repo.Identity{Name: "Roundtable", Email: "roundtable" + noHost},
		Message: strings.Join(strings.Fields(p.Title), " ") + "\n\n" + strings.TrimSpace(p.Summary) + "\n\n" +
			"Roundtable-Transaction: " + r.Transaction + "\nRoundtable-Proposal: " + r.Proposal + "\nRoundtable-Patch: " + r.PatchDigest + "\n",
		Time: a.Now(), Parent: parent, Tree: tree,
	}, nil
}

// noHost ends the addresses in commits: nothing can ever be sent there.
const noHost = "@roundtable.invalid"

// committed fills in what commit an apply has made, and its trees.
func committed(ctx context.Context, space *repo.Workspace, receipt repo.Receipt, e *events.TransactionApplied) (err error) {
	e.Ref, e.Commit, e.Parent = receipt.Ref, receipt.Commit, receipt.Parent
	if e.BeforeTree, err = space.TreeID(ctx, receipt.Parent); err == nil {
		e.AfterTree, err = space.TreeID(ctx, receipt.Commit)
	}
	return err
}
