package projections

import (
	"context"
	"database/sql"
	"fmt"

	"roundtable/events"
)

// take applies a page of the log to p's tables and moves its checkpoint, in
// one tx. Events at or below the checkpoint have had their effect and are
// passed over.
func (v *Views) take(ctx context.Context, p Projector, page []events.Event) error {
	if len(page) == 0 {
		return nil
	}
	first, last := page[0].Position, page[len(page)-1].Position
	err := v.db.InTx(ctx, func(tx *sql.Tx) error {
		at, err := checkpoint(ctx, tx, p.Name)
		if err != nil || at >= last {
			return err
		}
		if first > at+1 {
			return fmt.Errorf("events %d to %d were not delivered", at+1, first-1)
		}
		r := newRows(tx)
		for _, e := range page {
			if e.Position <= at {
				continue
			}
			if err := apply(context.WithoutCancel(ctx), r, []Projector{p}, e); err != nil {
				return err
			}
		}
		return moveCheckpoint(ctx, tx, p.Name, at, last)
	})
	if err == nil {
		v.moved.Send()
	}
	return err
}
