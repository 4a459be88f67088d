package projections

import (
	"context"
	"database/sql"
	"time"

	"roundtable/events"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

var foreignChanges = Projector{
	Name:   "foreign_changes",
	Tables: []string{"foreign_changes"},
	on:     when(on(foreignChanged)),
}

// maxShownPaths bounds the paths of one change that are shown.
const maxShownPaths = 100

func foreignChanged(ctx context.Context, r *rows, e events.Event, p events.WorkspaceForeignChange) error {
	var paths []wire.ForeignPath
	for _, f := range p.Paths[:min(len(p.Paths), maxShownPaths)] {
		shown := wire.ForeignPath{Path: f.Path, Was: lying(f.Was), Is: lying(f.Is)}
		if f.Held != nil {
			shown.Held = new(lying(*f.Held))
		}
		paths = append(paths, shown)
	}
	stored, err := listed(paths)
	if err != nil {
		return err
	}
	return r.exec(ctx, `INSERT INTO foreign_changes (seq, id, workspace, found_at, transaction_id, head, paths, more, at) VALUES (?,?,?,?,?,?,?,?,?)`,
		e.Position, e.ID.String(), p.Workspace, p.FoundAt, p.Transaction, p.Head, stored, len(p.Paths)-len(paths), nanos(e.Time))
}

func lying(s events.PathState) wire.PathState {
	return wire.PathState{Kind: s.Kind, Mode: s.Mode, SHA256: s.SHA256, Size: s.Size}
}

func foreignView() view[wire.ForeignChange] {
	return view[wire.ForeignChange]{
		name: "foreign_change", plural: "foreign_changes", from: foreignChanges, source: "foreign_changes",
		columns: "seq, id, workspace, found_at, transaction_id, head, paths, more, at", created: "at",
		scan: func(s scanner) (seq int64, c wire.ForeignChange, err error) {
			err = s.Scan(&seq, &c.ID, &c.Workspace, &c.FoundAt, &c.Transaction, &c.Head, decoded{&c.Paths}, &c.More, stamp{&c.At})
			c.Position = seq
			return seq, c, err
		},
	}
}

type foreignList struct {
	Page
	FoundAt     string `json:"found_at,omitempty" jsonschema:"claim, validate, apply, apply_conflict or doctor"`
	Transaction string `json:"transaction_id,omitempty"`
}

func (r *Reader) foreignOps() []op.Op {
	return []op.Op{listOp(r, op.Op{
		Name: "repository.foreign_changes", Route: inWorkspace("repository/foreign-changes"), May: op.May{Any: true},
		Doc: "List what was found changed behind the service's back: which paths, what they were and what they are.",
	}, always(foreignView()), func(c op.Call, in foreignList, _ time.Time) (where, error) {
		w := here(c)
		w.is("found_at", in.FoundAt)
		w.is("transaction_id", in.Transaction)
		return w, oneOf("/found_at", in.FoundAt, "claim", "validate", "apply", "apply_conflict", "doctor")
	})}
}

// ForeignChanges returns a workspace's newest ones once the view holds position
// after, and the position that the answer stands for.
func (r *Reader) ForeignChanges(ctx context.Context, workspace string, limit int, after int64) (out []wire.ForeignChange, at int64, err error) {
	at, err = r.read(ctx, after, []Projector{foreignChanges}, func(tx *sql.Tx) (err error) {
		w := where{}
		w.add("workspace = ?", workspace)
		out, _, err = foreignView().find(ctx, tx, w, "DESC", limit)
		return err
	})
	return out, at, err
}

// maxOpen bounds the open proposals that are named.
const maxOpen = 1000

// OpenProposals names a workspace's proposals that have not come to their end,
// oldest first, at most the newest thousand.
func (r *Reader) OpenProposals(ctx context.Context, workspace string) (ids []string, err error) {
	_, err = r.read(ctx, 0, []Projector{proposals}, func(tx *sql.Tx) error {
		return each(ctx, tx, `SELECT id FROM (SELECT seq, id FROM proposals WHERE workspace = ? AND (`+open+`) ORDER BY seq DESC LIMIT ?) ORDER BY seq`, []any{workspace, maxOpen}, func(s scanner) error {
			var id string
			err := s.Scan(&id)
			ids = append(ids, id)
			return err
		})
	})
	return ids, err
}
