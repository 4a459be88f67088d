package sqlite_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"roundtable/internal/sqlite"
)

// TestTransient: a database that is locked may be free later, a constraint
// will be broken again.
func TestTransient(t *testing.T) {
	ctx := t.Context()
	path := filepath.Join(t.TempDir(), "a ?#%.db")
	db, err := sqlite.OpenScratch(ctx, path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.ExecContext(ctx, `INSERT INTO checkpoints (consumer, position) VALUES ('a', 1), ('a', 2)`)
	if err == nil || sqlite.Transient(err) {
		t.Errorf("a broken constraint: %v", err)
	}
	tx, err := db.BeginTx(ctx, nil) // holds the write lock
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback()
	other, err := sqlite.OpenScratch(ctx, path+"2")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for _, q := range []string{`PRAGMA busy_timeout = 0`, `ATTACH '` + path + `' AS other`} {
		if _, err := other.ExecContext(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	_, err = other.ExecContext(ctx, `INSERT INTO other.checkpoints (consumer, position) VALUES ('b', 1)`)
	if !sqlite.Transient(fmt.Errorf("wrapped: %w", err)) {
		t.Errorf("a locked database: %v", err)
	}
	if sqlite.Transient(errors.New("something else")) || sqlite.Transient(nil) {
		t.Error("not of SQLite")
	}
}

// TestScratchEndsWithItself: a scratch file without a name keeps nothing.
func TestScratchEndsWithItself(t *testing.T) {
	ctx := t.Context()
	for range 2 {
		db, err := sqlite.OpenScratch(ctx, "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := db.ExecContext(ctx, `INSERT INTO checkpoints (consumer, position) VALUES ('a', 1)`); err != nil {
			t.Fatal(err)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
