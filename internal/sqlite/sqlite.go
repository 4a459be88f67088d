// Package sqlite opens the project's databases the one right way.
//
// What always holds:
//   - One connection writes, and its transactions take the write lock at
//     once: writers queue in Go and never meet SQLITE_BUSY among themselves.
//     Inside InTx only the tx may be used: the pool has no second connection.
//   - The connections that read cannot write.
//   - The log is in WAL mode with synchronous=FULL, asked of SQLite after
//     opening and not only requested: what was committed survives a power cut.
//     Views are at NORMAL on purpose, since they are made from the log.
//   - SQLite is 3.51.3 or later; earlier ones could corrupt a WAL database.
package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"

	_ "github.com/mattn/go-sqlite3" // the driver "sqlite3"

	"roundtable/migrations"
)

// Synchronous is what SQLite waits for at a commit; the values are those of
// PRAGMA synchronous.
type Synchronous int

// Normal may lose the newest commits at a power cut, Full loses none.
const (
	Normal Synchronous = 1
	Full   Synchronous = 2
)

func (s Synchronous) String() string {
	if s == Full {
		return "FULL"
	}
	return "NORMAL"
}

// DB is one database file: a pool of one connection that writes, and one of
// connections that can only read.
type DB struct {
	Write *sql.DB
	Read  *sql.DB
}

// OpenLog opens, and if need be makes and migrates, the log at path.
func OpenLog(ctx context.Context, path string) (*DB, error) {
	return open(ctx, path, Full, migrations.Log())
}

// OpenViews opens, and if need be makes and migrates, the views at path.
func OpenViews(ctx context.Context, path string) (*DB, error) {
	return open(ctx, path, Normal, migrations.Views())
}

// OpenPlain opens a database without a schema at the log's settings, for
// measurements beside it.
func OpenPlain(ctx context.Context, path string) (*DB, error) {
	return open(ctx, path, Full, migrations.Set{})
}

// OpenRead opens the existing database at path for reading alone, beside a
// program that may be writing to it.
func OpenRead(ctx context.Context, path string) (*sql.DB, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, err
	}
	db, err := sql.Open("sqlite3", dsn(path, Full)+"&_query_only=on")
	if err != nil {
		return nil, err
	}
	n := runtime.GOMAXPROCS(0) + 2
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(n)
	if err := db.PingContext(ctx); err != nil {
		db.Close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return db, nil
}

func dsn(path string, s Synchronous) string {
	return "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_journal_mode=WAL&_foreign_keys=on&_busy_timeout=5000&_synchronous=" + s.String()
}

func open(ctx context.Context, path string, s Synchronous, set migrations.Set) (_ *DB, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open %s: %w", path, err)
		}
	}()
	if err := create(path); err != nil {
		return nil, err
	}
	w, err := sql.Open("sqlite3", dsn(path, s)+"&_txlock=immediate")
	if err != nil {
		return nil, err
	}
	w.SetMaxOpenConns(1)
	db := &DB{Write: w}
	if err := Check(ctx, w, s); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if set != (migrations.Set{}) {
		if err := set.Apply(ctx, w); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	if db.Read, err = OpenRead(ctx, path); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return db, nil
}

// create makes the file, readable by its owner alone (SQLite gives its other
// files the same mode), and makes its name durable.
func create(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return nil
	} else if err != nil {
		return err
	}
	return errors.Join(f.Close(), syncFile(filepath.Dir(path)))
}

// Check asks a connection of db whether it is what this package promises.
func Check(ctx context.Context, db *sql.DB, want Synchronous) error {
	var version, mode string
	var have Synchronous
	if err := db.QueryRowContext(ctx, `SELECT sqlite_version()`).Scan(&version); err != nil {
		return err
	}
	if err := Supported(version); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `PRAGMA journal_mode`).Scan(&mode); err != nil {
		return err
	}
	if err := db.QueryRowContext(ctx, `PRAGMA synchronous`).Scan(&have); err != nil {
		return err
	}
	if mode != "wal" {
		return fmt.Errorf("journal_mode is %s, not wal: the file system may lack shared memory (a network file system does)", mode)
	}
	if have != want {
		return fmt.Errorf("synchronous is %d, not %d (%s)", have, want, want)
	}
	return nil
}

// Supported returns an error unless SQLite's version is 3.51.3 or later.
func Supported(version string) error {
	var major, minor, patch int
	if _, err := fmt.Sscanf(version, "%d.%d.%d", &major, &minor, &patch); err != nil {
		return fmt.Errorf("SQLite version %q: %w", version, err)
	}
	if major*1_000_000+minor*1_000+patch < 3_051_003 {
		return fmt.Errorf("SQLite %s is linked; before 3.51.3 a WAL database could be corrupted", version)
	}
	return nil
}

// Close closes both pools, after what runs on them has ended.
func (db *DB) Close() error { return errors.Join(db.Read.Close(), db.Write.Close()) }

// InTx runs f in one write transaction, committed if f returns nil.
func (db *DB) InTx(ctx context.Context, f func(*sql.Tx) error) error {
	return inTx(ctx, db.Write, nil, f)
}

// InReadTx runs f on one snapshot of the database.
func (db *DB) InReadTx(ctx context.Context, f func(*sql.Tx) error) error {
	return inTx(ctx, db.Read, &sql.TxOptions{ReadOnly: true}, f)
}

// A Beginner is a pool of connections, or one of them.
type Beginner interface {
	BeginTx(context.Context, *sql.TxOptions) (*sql.Tx, error)
}

// InTxOf is InTx of a database that is no DB.
func InTxOf(ctx context.Context, db Beginner, f func(*sql.Tx) error) error {
	return inTx(ctx, db, nil, f)
}

func inTx(ctx context.Context, db Beginner, o *sql.TxOptions, f func(*sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, o)
	if err != nil {
		return because(ctx, err)
	}
	defer tx.Rollback() // after Commit it does nothing
	if err := f(tx); err != nil {
		return because(ctx, err)
	}
	return because(ctx, tx.Commit())
}

// because returns err as one that also is the end of ctx, if ctx has ended. The
// end of ctx rolls the tx back at once, and whatever is then asked of it fails
// with no more than that it, or a statement of it, is closed.
func because(ctx context.Context, err error) error {
	ended := ctx.Err()
	if err == nil || ended == nil || errors.Is(err, ended) {
		return err
	}
	return fmt.Errorf("%w: %w", ended, err)
}
