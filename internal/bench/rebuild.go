package bench

import (
	"context"
	"database/sql"
	"fmt"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/sqlite"
)

const viewTable = `DROP TABLE IF EXISTS view; CREATE TABLE view (id TEXT PRIMARY KEY, title TEXT NOT NULL, priority INTEGER NOT NULL, risk TEXT NOT NULL,
	events INTEGER NOT NULL, position INTEGER NOT NULL) STRICT, WITHOUT ROWID`

const viewUpsert = `INSERT INTO view VALUES (?,?,?,?,?,?) ON CONFLICT DO UPDATE SET title = excluded.title, priority = excluded.priority,
	risk = excluded.risk, events = events + excluded.events, position = excluded.position`

// upsertEach fills a view the plain way: a statement per event, a commit per
// thousand.
func upsertEach(ctx context.Context, log eventlog.Source, views *sqlite.DB) (n int64, err error) {
	if _, err := views.Write.ExecContext(ctx, viewTable); err != nil {
		return 0, err
	}
	for page, err := range eventlog.Pages(ctx, log, 0, 1000) {
		if err != nil {
			return n, err
		}
		err = views.InTx(ctx, func(tx *sql.Tx) error {
			for _, r := range page {
				e, err := r.Event()
				if err != nil {
					return err
				}
				p := e.Payload.(events.TaskCreated)
				if _, err := tx.ExecContext(ctx, viewUpsert, p.Task, p.Title, p.Priority, p.Risk, 1, e.Position); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return n, err
		}
		n += int64(len(page))
	}
	return n, nil
}

type viewRow struct {
	title, risk string
	priority    int
	events      int64
	position    int64
}

// fold fills the same view in memory and writes it at the end.
func fold(ctx context.Context, log eventlog.Source, views *sqlite.DB, workers int) (n int64, err error) {
	rows := map[string]viewRow{}
	err = eventlog.Replay(ctx, log, 0, 0, workers, func(es []events.Event) error {
		for _, e := range es {
			p, ok := e.Payload.(events.TaskCreated)
			if !ok {
				return fmt.Errorf("position %d is no task", e.Position)
			}
			rows[p.Task] = viewRow{p.Title, p.Risk, p.Priority, rows[p.Task].events + 1, e.Position}
		}
		n += int64(len(es))
		return nil
	})
	if err != nil {
		return n, err
	}
	if _, err := views.Write.ExecContext(ctx, viewTable); err != nil {
		return n, err
	}
	return n, views.InTx(ctx, func(tx *sql.Tx) error {
		insert, err := tx.PrepareContext(ctx, viewUpsert)
		if err != nil {
			return err
		}
		defer insert.Close()
		for id, r := range rows {
			if _, err := insert.ExecContext(ctx, id, r.title, r.priority, r.risk, r.events, r.position); err != nil {
				return err
			}
		}
		return nil
	})
}
