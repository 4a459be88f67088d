package sqlitelog

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"io"

	"github.com/ncruces/go-sqlite3"
)

// The driver of ncruces/go-sqlite3 registers the same name as the one that the
// program uses, so that both cannot be in one binary. These are the few parts
// of a driver that the log needs, over its connection.

type connector struct {
	name    string
	pragmas []string
}

func (c connector) Driver() driver.Driver { return nil }

func (c connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := sqlite3.Open(c.name)
	if err != nil {
		return nil, err
	}
	for _, p := range c.pragmas {
		if err := conn.Exec("PRAGMA " + p); err != nil {
			conn.Close()
			return nil, err
		}
	}
	return &ncConn{conn}, nil
}

type ncConn struct{ *sqlite3.Conn }

func (c *ncConn) Prepare(query string) (driver.Stmt, error) {
	s, _, err := c.Conn.Prepare(query)
	if err != nil {
		return nil, err
	}
	return &ncStmt{s, c.Conn}, nil
}

func (c *ncConn) Begin() (driver.Tx, error) { return ncTx{c.Conn}, c.Exec(`BEGIN IMMEDIATE`) }

// ExecContext runs several statements, as a migration has them.
func (c *ncConn) ExecContext(_ context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return driver.ResultNoRows, c.Exec(query)
}

type ncTx struct{ conn *sqlite3.Conn }

func (t ncTx) Commit() error   { return t.conn.Exec(`COMMIT`) }
func (t ncTx) Rollback() error { return t.conn.Exec(`ROLLBACK`) }

type ncStmt struct {
	*sqlite3.Stmt
	conn *sqlite3.Conn
}

func (s *ncStmt) NumInput() int { return s.BindCount() }

func (s *ncStmt) bind(args []driver.Value) error {
	for i, a := range args {
		var err error
		switch a := a.(type) {
		case nil:
			err = s.BindNull(i + 1)
		case int64:
			err = s.BindInt64(i+1, a)
		case string:
			err = s.BindText(i+1, a)
		case []byte:
			if err = s.BindBlob(i+1, a); len(a) == 0 {
				err = s.BindZeroBlob(i+1, 0)
			}
		default:
			err = fmt.Errorf("argument %d is a %T", i+1, a)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *ncStmt) Exec(args []driver.Value) (driver.Result, error) {
	if err := s.bind(args); err != nil {
		return nil, err
	}
	if err := s.Stmt.Exec(); err != nil {
		return nil, err
	}
	return ncResult{s.conn.LastInsertRowID(), s.conn.Changes()}, nil
}

type ncResult struct{ id, changes int64 }

func (r ncResult) LastInsertId() (int64, error) { return r.id, nil }
func (r ncResult) RowsAffected() (int64, error) { return r.changes, nil }

func (s *ncStmt) Query(args []driver.Value) (driver.Rows, error) { return ncRows{s}, s.bind(args) }

type ncRows struct{ *ncStmt }

func (r ncRows) Columns() (names []string) {
	for i := range r.ColumnCount() {
		names = append(names, r.ColumnName(i))
	}
	return names
}

func (r ncRows) Close() error { return r.Reset() }

func (r ncRows) Next(dest []driver.Value) error {
	if !r.Step() {
		if err := r.Err(); err != nil {
			return err
		}
		return io.EOF
	}
	for i := range dest {
		switch r.ColumnType(i) {
		case sqlite3.INTEGER:
			dest[i] = r.ColumnInt64(i)
		case sqlite3.TEXT:
			dest[i] = r.ColumnText(i)
		case sqlite3.BLOB:
			dest[i] = r.ColumnBlob(i, []byte{})
		default:
			dest[i] = nil
		}
	}
	return nil
}

// openDisk returns a pool of one connection to the log on a disk registered as
// a VFS.
func openDisk(vfsName, synchronous string) *sql.DB {
	db := sql.OpenDB(connector{"file:/log.db?vfs=" + vfsName, []string{
		"locking_mode = exclusive", "journal_mode = wal", "synchronous = " + synchronous, "wal_autocheckpoint = 30", "foreign_keys = on"}})
	db.SetMaxOpenConns(1)
	return db
}
