package projections

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"roundtable/events"
)

// TestStoppedInAPage: a service that is told to stop while a view is in the
// middle of a page says nothing of it, leaves nothing of the page, and shows it
// once when it runs again.
func TestStoppedInAPage(t *testing.T) {
	v, log := newViews(t)
	var said bytes.Buffer
	v.slog = slog.New(slog.NewTextHandler(&said, nil))
	ctx, cancel := context.WithCancel(t.Context())
	const row = `INSERT INTO checkpoints (consumer, position) VALUES ('shown', 1) ON CONFLICT (consumer) DO UPDATE SET position = position + 1`
	v.ps = []Projector{{Name: "tasks", on: when(on(func(page context.Context, r *rows, e events.Event, _ events.TaskCreated) error {
		err := r.exec(page, row)
		if e.Position == 2 && ctx.Err() == nil {
			cancel()
			for err == nil { // until the tx is rolled back
				err = r.exec(page, `DELETE FROM checkpoints WHERE consumer = 'nobody'`)
			}
		}
		return err
	}))}}
	for _, id := range []string{"T-1", "T-2", "T-3"} {
		log.add(epoch, events.TaskCreated{Task: id, Workspace: "WS-0001"})
	}
	if err := v.Run(ctx); err != nil {
		t.Error(err)
	}
	all, err := v.Status(t.Context())
	if err != nil || all[0].Position != 0 || all[0].Error != "" || said.Len() > 0 {
		t.Errorf("%+v, %v: %s", all, err, said.String())
	}
	stop := following(t, v)
	until(t, v, caughtUp)
	stop()
	if shown, err := checkpoint(t.Context(), v.db.Read, "shown"); err != nil || shown != 3 {
		t.Errorf("%d events of 3 shown, %v", shown, err)
	}
}
