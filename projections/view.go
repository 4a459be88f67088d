package projections

import (
	"context"
	"database/sql"
	"errors"
	"strings"

	"roundtable/internal/fault"
)

// A view is how rows of one source become entities of wire.
type view[E any] struct {
	name        string                // of one
	missing     func(id string) error // that there is none with id
	plural      string                // of a list of them
	from        Projector
	source      string // table or subquery; it has seq, id, workspace unless global, and created
	global      bool   // belongs to no workspace
	columns     string // the first is seq
	created     string // the column with the time it was made
	oldestFirst bool   // how a list goes that names no order
	scan        func(scanner) (seq int64, e E, err error)
	fill        func(ctx context.Context, tx *sql.Tx, es []E) error // adds what lies in other tables; may be nil
}

// absent makes the error that there is none.
func absent(code, what string) func(id string) error {
	return func(id string) error {
		return fault.Errorf(fault.NotFound, code, "there is no %s %s here", what, short(id))
	}
}

// scanner is a row.
type scanner interface{ Scan(...any) error }

// one returns the entity with id, if it is in workspace.
func (v view[E]) one(ctx context.Context, tx *sql.Tx, workspace, id string) (E, error) {
	w := where{}
	w.add("id = ?", id)
	if !v.global {
		w.add("workspace = ?", workspace)
	}
	es, _, err := v.find(ctx, tx, w, "", 1)
	if err == nil && len(es) == 0 {
		err = v.missing(id)
	}
	if err != nil {
		var none E
		return none, err
	}
	return es[0], nil
}

// find returns up to limit entities in an order ("" for any, "ASC" or "DESC"
// by seq), and the seq of each.
func (v view[E]) find(ctx context.Context, tx *sql.Tx, w where, order string, limit int) (es []E, seqs []int64, err error) {
	es = []E{}
	err = each(ctx, tx, v.query(w, order), append(w.args, limit), func(s scanner) error {
		seq, e, err := v.scan(s)
		es, seqs = append(es, e), append(seqs, seq)
		return err
	})
	if err == nil && v.fill != nil && len(es) > 0 {
		err = v.fill(ctx, tx, es)
	}
	return es, seqs, err
}

// query is the text of find's; its last argument is the limit.
func (v view[E]) query(w where, order string) string {
	q := "SELECT " + v.columns + " FROM " + v.source + w.text()
	if order != "" {
		q += " ORDER BY seq " + order
	}
	return q + " LIMIT ?"
}

// each calls f for every row of a query.
func each(ctx context.Context, tx *sql.Tx, query string, args []any, f func(scanner) error) (err error) {
	rs, err := tx.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rs.Close()) }()
	for rs.Next() {
		if err := f(rs); err != nil {
			return err
		}
	}
	return rs.Err()
}

// where is a list of conditions that all must hold.
type where struct {
	conds []string
	args  []any
}

func (w *where) add(cond string, args ...any) {
	w.conds = append(w.conds, cond)
	w.args = append(w.args, args...)
}

// is asks for a value, if there is one to ask for.
func (w *where) is(column, value string) {
	if value != "" {
		w.add(column+" = ?", value)
	}
}

func (w *where) text() string {
	if len(w.conds) == 0 {
		return ""
	}
	return " WHERE (" + strings.Join(w.conds, ") AND (") + ")"
}

// short is a text of a caller's as an error may repeat it.
func short(s string) string {
	const most = 80
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
