package repo_test

import (
	"fmt"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/repo"
)

// whole says what is wrong with files and branch: they must be as was
// answered, and agree once all is recovered.
func (k committing) whole(t *testing.T, answer error) error {
	t.Helper()
	now, code := k.state(t), fault.CodeOf(answer)
	switch {
	case answer == nil && now != "after":
		return fmt.Errorf("it is %s", now)
	case answer != nil && code != "state.unknown" && code != "state.needs_attention" && now != "before":
		return fmt.Errorf("it is %s, not before:\n%s", now, listing(t, k.root, true))
	}
	w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Commit: true})
	all, err := w.Recover(ctx(t))
	for _, r := range all {
		if err == nil && r.Marker == repo.Committed {
			err = w.Finish(ctx(t), r.Tx, r.Attempt)
		}
	}
	if err != nil {
		return fmt.Errorf("recovery: %w", err)
	}
	now = k.agrees(t, "recovered")
	if answer == nil && now != "after" || answer != nil && code != "state.unknown" && now != "before" {
		return fmt.Errorf("recovered it is %s", now)
	}
	return nil
}

func TestFaultInCommit(t *testing.T) {
	volley(t, 60, func(t *testing.T, s shot) (o outcome) {
		k := newCommitting(t)
		w := open(t, k.root, repo.Options{Blobs: blobs(t, k.blobs), Commit: true})
		noted := false
		o.hit, o.made, o.err = s.fire(func() error {
			r, err := w.Apply(ctx(t), "TX-K", 1, repo.Plan{Changes: commitKinds, Commit: wish()})
			noted = len(r.Notes) > 0
			return err
		})
		if noted { // the index was not written, which is said and made good later
			o.hit.What = "index"
		}
		o.bad = k.whole(t, o.err)
		return o
	})
}
