package sqlitelog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"roundtable/internal/sqlite"
)

// A writer is the one connection that writes, with its statements prepared. It
// is owned by whoever leads.
type writer struct {
	conn  *sql.Conn
	stmts map[string]*sql.Stmt // by text
}

func openWriter(ctx context.Context, db *sqlite.DB) (*writer, error) {
	conn, err := db.Write.Conn(ctx)
	if err != nil {
		return nil, err
	}
	return &writer{conn, map[string]*sql.Stmt{}}, nil
}

// A sqlError is an error of the database, as against one of a decision: after
// it nothing is believed of the transaction until it has been asked.
type sqlError struct{ err error }

func (e *sqlError) Error() string { return "log: " + e.err.Error() }
func (e *sqlError) Unwrap() error { return e.err }

func failed(err error) error {
	if err == nil {
		return nil
	}
	return &sqlError{err}
}

func (w *writer) stmt(ctx context.Context, text string) (*sql.Stmt, error) {
	if s, ok := w.stmts[text]; ok {
		return s, nil
	}
	s, err := w.conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, failed(err)
	}
	w.stmts[text] = s
	return s, nil
}

func (w *writer) exec(ctx context.Context, text string, args ...any) (sql.Result, error) {
	s, err := w.stmt(ctx, text)
	if err != nil {
		return nil, err
	}
	res, err := s.ExecContext(ctx, args...)
	return res, failed(err)
}

// changed runs a statement and says whether it changed a row.
func (w *writer) changed(ctx context.Context, text string, args ...any) (bool, error) {
	res, err := w.exec(ctx, text, args...)
	if err != nil {
		return false, err
	}
	n, err := res.RowsAffected()
	return n > 0, failed(err)
}

// find reads one row into dest; false if there is none.
func (w *writer) find(ctx context.Context, text string, args []any, dest ...any) (bool, error) {
	s, err := w.stmt(ctx, text)
	if err != nil {
		return false, err
	}
	err = s.QueryRowContext(ctx, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, failed(err)
}

func (w *writer) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	s, err := w.stmt(ctx, text)
	if err != nil {
		return nil, err
	}
	rows, err := s.QueryContext(ctx, args...)
	return rows, failed(err)
}

// discard closes the connection for good instead of giving it back to the
// pool: whatever transaction it was in is rolled back by that.
func (w *writer) discard() error {
	err := w.close(false)
	rawErr := w.conn.Raw(func(any) error { return driver.ErrBadConn })
	if rawErr != nil && !errors.Is(rawErr, driver.ErrBadConn) {
		err = errors.Join(err, rawErr)
	}
	return err
}

func (w *writer) close(conn bool) error {
	var errs []error
	for text, s := range w.stmts {
		if err := s.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close %q: %w", text, err))
		}
	}
	clear(w.stmts)
	if conn {
		errs = append(errs, w.conn.Close())
	}
	return errors.Join(errs...)
}
