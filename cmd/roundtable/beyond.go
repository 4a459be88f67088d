package main

import (
	"context"
	"path/filepath"

	"roundtable/internal/fault"
)

// whole refuses a history that ends before what was made from it: it was cut,
// or an older copy was put in its place. To go on with it would give positions
// that clients have seen to other events, and show views of what never was.
func (a *app) whole(ctx context.Context) error {
	head, _, err := a.store.Head(ctx)
	if err != nil {
		return err
	}
	file := filepath.Join(a.data, "log.db")
	cut := func(what string, at int64, next string) error {
		return fault.Errorf(fault.Conflict, "history_cut", "%s ends at position %d, but %s stands at %d: the history was cut, or an older copy was put in its place. Nothing was changed. Put the newer log.db back%s",
			file, head, what, at, next).With("head", head).With("position", at)
	}
	at, err := a.store.Reached(ctx)
	if err != nil {
		return err
	}
	if at > head {
		return cut("the record of commands and consumers in the same file", at, " from a backup: this file lacks events that it says were written")
	}
	status, err := a.views.Status(ctx)
	for _, s := range status {
		if s.Lag < 0 {
			return cut("the view "+s.Name+" in "+filepath.Join(a.data, "views.db"), s.Position,
				"; or, to accept that all beyond is lost, run `roundtable rebuild --data "+a.data+"`, which makes the views of what is left, and start again")
		}
	}
	return err
}
