// Package migrations holds the schemas of the project's databases as numbered
// SQL files and brings a database up to the newest one.
//
// What always holds: a released file never changes, a change is a new file;
// each file runs whole or not at all, in one transaction with the number it
// leaves in PRAGMA user_version; a database of another kind, or one that is
// newer than the program, is refused and not touched.
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
)

//go:embed log/*.sql views/*.sql
var files embed.FS

// A Set is the schema of one kind of database. File n of it, in the order of
// names, brings a database from n-1 to n.
type Set struct {
	name string
	id   int64 // PRAGMA application_id, which the first file sets
	fsys fs.FS
}

// Log returns the schema of the file that holds the history.
func Log() Set { return Set{"log", 0x52544c47, files} }

// Views returns the schema of the file that holds the read models.
func Views() Set { return Set{"views", 0x52545657, files} }

// Newest returns the number a database has once Apply has run, or an error if
// the files are not numbered 0001_, 0002_, … without a gap.
func (s Set) Newest() (int, error) {
	names, err := s.files()
	return len(names), err
}

var numbered = regexp.MustCompile(`^(\d{4})_[a-z0-9_]+\.sql$`)

func (s Set) files() ([]string, error) {
	names, err := fs.Glob(s.fsys, s.name+"/*.sql") // sorted, since a directory is read in order
	if err != nil {
		return nil, err
	}
	for i, n := range names {
		m := numbered.FindStringSubmatch(path.Base(n))
		if m == nil || m[1] != fmt.Sprintf("%04d", i+1) {
			return nil, fmt.Errorf("migrations: %s should be number %04d", n, i+1)
		}
	}
	return names, nil
}

// Apply runs the files that db has not had yet. Two programs that do so at
// once are serialized if db begins its transactions with the write lock.
func (s Set) Apply(ctx context.Context, db *sql.DB) error {
	names, err := s.files()
	if err != nil {
		return err
	}
	for {
		have, err := s.check(ctx, db, len(names))
		if err != nil || have == len(names) {
			return err
		}
		if err := s.step(ctx, db, names); err != nil {
			return fmt.Errorf("migration %s: %w", names[have], err)
		}
	}
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// check returns the number of the database, or why it is not ours to touch.
func (s Set) check(ctx context.Context, db querier, newest int) (have int, err error) {
	var id int64
	var objects int
	if err := db.QueryRowContext(ctx, `PRAGMA user_version`).Scan(&have); err != nil {
		return 0, fmt.Errorf("read schema number: %w", err)
	}
	if err := db.QueryRowContext(ctx, `PRAGMA application_id`).Scan(&id); err != nil {
		return 0, fmt.Errorf("read application id: %w", err)
	}
	if err := db.QueryRowContext(ctx, `SELECT count(*) FROM sqlite_schema`).Scan(&objects); err != nil {
		return 0, fmt.Errorf("read schema: %w", err)
	}
	switch {
	case id != s.id && (have != 0 || id != 0 || objects != 0):
		return 0, fmt.Errorf("this is not a Roundtable %s database (application id %#x): check the data folder", s.name, id)
	case have > newest:
		return 0, fmt.Errorf("this %s database has schema %d and this program knows up to %d: a newer Roundtable has used it; run that one, or restore a backup made before the upgrade", s.name, have, newest)
	}
	return have, nil
}

// step runs the next file. The number is read again under the write lock.
func (s Set) step(ctx context.Context, db *sql.DB, names []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer tx.Rollback() // after Commit it does nothing
	have, err := s.check(ctx, tx, len(names))
	if err != nil || have == len(names) {
		return err
	}
	text, err := fs.ReadFile(s.fsys, names[have])
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, string(text)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf(`PRAGMA user_version = %d`, have+1)); err != nil {
		return err
	}
	return tx.Commit()
}
