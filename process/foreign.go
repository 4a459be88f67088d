package process

import (
	"context"
	"slices"
	"strings"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
	"roundtable/internal/world"
)

// met looks at the paths of an attempt that has ended with f, where all that
// it changed was taken back: what then is not as the gates saw it, somebody
// else did. Where that is not certain nothing is said; the next look tells.
func (a Applier) met(ctx context.Context, r events.TransactionApplyRequested, f *fault.Error) domain.Sight {
	s := domain.Sight{FoundAt: "apply"}
	switch {
	case f.Code == "state.third_party_edit" || f.Code == "state.needs_attention":
		s.FoundAt = "apply_conflict"
	case f.Kind != fault.Conflict && f.Kind != fault.Refused:
		return s
	}
	rests, err := a.Handler.RestsOn(ctx, r.Workspace, r.Transaction)
	var paths []string
	for _, p := range rests {
		paths = append(paths, p.Path)
	}
	var root string
	if err == nil {
		root, err = a.Handler.Root(ctx, r.Workspace)
	}
	if err == nil {
		s.Now, err = a.World.Look(ctx, root, paths)
	}
	if err != nil {
		a.Log.WarnContext(ctx, "the paths of a failed apply could not be looked at", "transaction", r.Transaction, "err", err)
		return domain.Sight{}
	}
	return s
}

// moved is the failure of an attempt whose paths are not as the gates saw them.
func (a Applier) moved(ctx context.Context, r events.TransactionApplyRequested, now events.Base) error {
	rests, err := a.Handler.RestsOn(ctx, r.Workspace, r.Transaction)
	if err != nil {
		return err
	}
	is := map[string]events.PathState{}
	for _, p := range slices.Concat(now.Paths, now.Sources) {
		is[p.Path] = p
	}
	var names []string
	for _, p := range rests {
		if is[p.Path] != p {
			names = append(names, p.Path)
		}
	}
	return fault.Errorf(fault.Conflict, "state.stale", "these paths have changed since the gates were judged: %s", strings.Join(names, ", ")).With("paths", names)
}

// held reports what somebody wrote into the versions that an apply replaced.
func (a Applier) held(ctx context.Context, space *repo.Workspace, r events.TransactionApplyRequested) error {
	found, err := space.State(ctx, r.Transaction, r.Attempt, nil, nil)
	if err != nil {
		return err
	}
	lies, held := map[string]patch.State{}, map[string]patch.State{}
	for _, p := range found.Paths {
		if p.Stuck != "" && p.Slot != nil {
			lies[p.Path], held[p.Path] = p.Now, *p.Slot
		}
	}
	c := commands.RecordHeld{Transaction: r.Transaction, Held: map[string]events.PathState{}}
	for _, p := range world.ChangedPaths(held, lies) {
		c.Now = append(c.Now, p.After)
		c.Held[p.Path] = p.Before
	}
	by := commands.System(r.Workspace, "foreign.held."+key(r.Transaction, r.Attempt))
	_, err = a.Handler.Do(ctx, by, c)
	if fault.CodeOf(err) == "idempotency_key_reused" {
		return nil // reported before, and somebody has gone on writing since
	}
	return err
}
