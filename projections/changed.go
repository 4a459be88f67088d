package projections

import (
	"context"
	"database/sql"

	"roundtable/events"
	"roundtable/internal/wire"
)

// changed keeps which transactions have changed a path.
var changed = Projector{
	Name:   "changed_paths",
	Tables: []string{"changed_paths"},
	on: when(on(func(ctx context.Context, r *rows, e events.Event, p events.TransactionApplied) error {
		for _, f := range p.Files {
			if err := r.exec(ctx, `INSERT INTO changed_paths (workspace, path, seq, transaction_id, kind, mode, sha256) VALUES (?,?,?,?,?,?,?)`,
				e.Workspace, f.Path, e.Position, p.Transaction, f.After.Kind, f.After.Mode, f.After.SHA256); err != nil {
				return err
			}
		}
		return nil
	})),
}

// maxLater bounds how many changes one question about later work answers.
const maxLater = 1000

// Later returns which transactions have changed the paths since one of the
// workspace had, and what each left there, in the order in which they did. It
// knows of all that was written up to after.
func (r *Reader) Later(ctx context.Context, workspace, transaction string, paths []string, after int64) (out []wire.LaterChange, err error) {
	those, err := document(paths)
	if err != nil {
		return nil, err
	}
	_, err = r.read(ctx, after, []Projector{changed}, func(tx *sql.Tx) error {
		return each(ctx, tx, `SELECT c.transaction_id, c.path, c.kind, c.mode, c.sha256
			FROM json_each(?1) p CROSS JOIN changed_paths c ON c.workspace = ?2 AND c.path = p.value
			WHERE c.seq > (SELECT t.seq FROM changed_paths t WHERE t.workspace = ?2 AND t.path = p.value AND t.transaction_id = ?3)
			ORDER BY c.seq, c.path LIMIT ?4`, []any{those, workspace, transaction, maxLater}, func(s scanner) error {
			var l wire.LaterChange
			err := s.Scan(&l.Transaction, &l.Path, &l.Kind, &l.Mode, &l.SHA256)
			out = append(out, l)
			return err
		})
	})
	return out, err
}
