package projections

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"time"
)

// rows is a tx that a projector writes in. It prepares each statement once.
type rows struct {
	tx    *sql.Tx
	stmts map[string]*sql.Stmt // closed by the end of tx
}

func newRows(tx *sql.Tx) *rows { return &rows{tx, map[string]*sql.Stmt{}} }

func (r *rows) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if s, ok := r.stmts[query]; ok {
		return s, nil
	}
	// The statement outlives the call: the tx, not ctx, ends it.
	s, err := r.tx.PrepareContext(context.WithoutCancel(ctx), query)
	if err == nil {
		r.stmts[query] = s
	}
	return s, err
}

// exec runs a statement that may meet no row.
func (r *rows) exec(ctx context.Context, query string, args ...any) error {
	_, err := r.run(ctx, query, args)
	return err
}

// set runs a statement that must meet a row: an event about something that the
// log has not told of before means that the view is not what the log says.
func (r *rows) set(ctx context.Context, query string, args ...any) error {
	n, err := r.run(ctx, query, args)
	if err == nil && n == 0 {
		err = fmt.Errorf("no row for it in: %s", query)
	}
	return err
}

// get reads the one row that a query must meet.
func (r *rows) get(ctx context.Context, query string, args []any, dest ...any) error {
	s, err := r.stmt(ctx, query)
	if err != nil {
		return err
	}
	return s.QueryRowContext(ctx, args...).Scan(dest...)
}

func (r *rows) run(ctx context.Context, query string, args []any) (int64, error) {
	s, err := r.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	res, err := s.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// nanos is how a time is stored.
func nanos(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// nanosOf is nanos of a time that may be absent.
func nanosOf(t *time.Time) int64 {
	if t == nil {
		return 0
	}
	return nanos(*t)
}

func fromNanos(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n).UTC()
}

// listed is how a list is stored: as JSON, never null.
func listed[E any](l []E) (string, error) {
	if l == nil {
		l = []E{}
	}
	return document(l)
}

// object is how an object of unknown members is stored: as JSON, never null.
func object(m map[string]any) (string, error) {
	if m == nil {
		m = map[string]any{}
	}
	return document(m)
}

func document(v any) (string, error) {
	b, err := json.Marshal(v)
	return string(b), err
}

// stamp scans a stored time.
type stamp struct{ to *time.Time }

// Scan implements sql.Scanner.
func (s stamp) Scan(v any) error {
	n, ok := v.(int64)
	if !ok {
		return fmt.Errorf("a time is stored as %T", v)
	}
	*s.to = fromNanos(n)
	return nil
}

// stampOrNil scans a stored time that may be absent.
type stampOrNil struct{ to **time.Time }

// Scan implements sql.Scanner.
func (s stampOrNil) Scan(v any) error {
	var t time.Time
	if err := (stamp{&t}).Scan(v); err != nil {
		return err
	}
	if *s.to = nil; !t.IsZero() {
		*s.to = &t
	}
	return nil
}

// decoded scans stored JSON.
type decoded struct{ to any }

// Scan implements sql.Scanner.
func (d decoded) Scan(v any) error {
	s, ok := v.(string)
	if !ok {
		return fmt.Errorf("JSON is stored as %T", v)
	}
	return json.Unmarshal([]byte(s), d.to)
}
