package process

import (
	"context"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
	"roundtable/internal/world"
)

// settle takes back what was begun in a workspace and not committed, by a
// dead process or by a try of this one that could not end it: nothing may be
// planned on a tree that is half changed. What it finds is in the log before
// the workspace forgets it. at says why somebody looks: see
// events.TransactionRecovered.
func (a Applier) settle(ctx context.Context, id string, space *repo.Workspace, at string) ([]repo.Recovered, error) {
	if a.Torn {
		return nil, nil
	}
	return space.Settle(ctx, func(ctx context.Context, f repo.Recovered) error {
		a.Log.InfoContext(ctx, "recovered", "workspace", id, "transaction", f.Tx, "attempt", f.Attempt, "marker", f.Marker, "stuck", len(f.Stuck))
		return a.Handler.Recovered(ctx, id, recovered(f, at))
	})
}

// found names what each marker means once a transaction is settled.
var found = map[repo.Marker]string{repo.None: domain.FoundNothing, repo.Aborted: domain.FoundRolledBack, repo.Committed: domain.FoundCommitted, repo.Attention: domain.FoundAttention}

func recovered(f repo.Recovered, at string) events.TransactionRecovered {
	e := events.TransactionRecovered{Transaction: f.Tx, Attempt: f.Attempt, Found: found[f.Marker], FoundAt: at, Folder: f.Folder}
	for _, s := range f.Stuck {
		e.Stuck = append(e.Stuck, events.StuckPath{Path: s.Path, Reason: s.Reason})
	}
	for _, k := range f.Kept {
		state := map[string]patch.State{k.Path: k.State}
		e.Kept = append(e.Kept, world.ChangedPaths(state, state)[0].After)
	}
	return e
}
