package migrations

import (
	"database/sql"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	_ "github.com/mattn/go-sqlite3"
)

func open(t *testing.T, path string) *sql.DB {
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_busy_timeout=5000&_journal_mode=WAL")
	if err != nil {
		t.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	t.Cleanup(func() { db.Close() })
	return db
}

func set(files map[string]string) Set {
	m := fstest.MapFS{}
	for name, text := range files {
		m["x/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Set{"x", 77, m}
}

func number(t *testing.T, db *sql.DB) (n int) {
	if err := db.QueryRow(`PRAGMA user_version`).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestApply: both schemas can be made, again is no change, and every table is
// STRICT.
func TestApply(t *testing.T) {
	for name, s := range map[string]Set{"log": Log(), "views": Views()} {
		db := open(t, filepath.Join(t.TempDir(), "x.db"))
		newest, err := s.Newest()
		if err != nil || newest == 0 {
			t.Fatalf("%s: %d files, %v", name, newest, err)
		}
		for range 2 {
			if err := s.Apply(t.Context(), db); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if n := number(t, db); n != newest {
				t.Errorf("%s: schema %d, want %d", name, n, newest)
			}
		}
		var loose string
		err = db.QueryRow(`SELECT coalesce(group_concat(name), '') FROM pragma_table_list WHERE type = 'table' AND NOT strict AND name NOT LIKE 'sqlite_%'`).Scan(&loose)
		if err != nil || loose != "" {
			t.Errorf("%s: not STRICT: %s (%v)", name, loose, err)
		}
	}
}

// TestRefused: a newer database, or one of another kind, is left as it is.
func TestRefused(t *testing.T) {
	for name, c := range map[string]struct{ before, want string }{
		"newer":          {`PRAGMA application_id = 77; PRAGMA user_version = 9`, "newer Roundtable"},
		"the other kind": {`PRAGMA application_id = 78; PRAGMA user_version = 1`, "not a Roundtable x database"},
		"foreign":        {`CREATE TABLE t (a)`, "not a Roundtable x database"},
		"foreign, named": {`PRAGMA user_version = 1`, "not a Roundtable x database"},
	} {
		db := open(t, filepath.Join(t.TempDir(), "x.db"))
		if _, err := db.Exec(c.before); err != nil {
			t.Fatal(err)
		}
		was := number(t, db)
		err := set(map[string]string{"0001_a.sql": `PRAGMA application_id = 77; CREATE TABLE a (x)`}).Apply(t.Context(), db)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
		var made int
		if err := db.QueryRow(`SELECT count(*) FROM sqlite_schema WHERE name = 'a'`).Scan(&made); err != nil || made != 0 || number(t, db) != was {
			t.Errorf("%s: the database was touched", name)
		}
	}
	db := open(t, filepath.Join(t.TempDir(), "views.db"))
	if err := Views().Apply(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if err := Log().Apply(t.Context(), db); err == nil {
		t.Error("the views were taken for the log")
	}
}

// TestSteps: each file runs once, in order, and one that fails leaves nothing
// and is run again.
func TestSteps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	first := `PRAGMA application_id = 77; CREATE TABLE a (x)`
	db := open(t, path)
	broken := map[string]string{"0001_a.sql": first, "0002_b.sql": `CREATE TABLE b (x); INSERT INTO nowhere VALUES (1)`}
	if err := set(broken).Apply(t.Context(), db); err == nil || !strings.Contains(err.Error(), "0002_b.sql") {
		t.Fatalf("broken file: %v", err)
	}
	if n := number(t, db); n != 1 {
		t.Errorf("after the broken file: schema %d", n)
	}
	mended := map[string]string{"0001_a.sql": first, "0002_b.sql": `CREATE TABLE b (x)`, "0003_c.sql": `CREATE TABLE c (x)`}
	var wg sync.WaitGroup
	for range 4 { // four programs at once
		other := open(t, path)
		wg.Go(func() {
			if err := set(mended).Apply(t.Context(), other); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := number(t, db); n != 3 {
		t.Errorf("schema %d", n)
	}
}

func TestNumbers(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"gap":      {"0001_a.sql": "", "0003_b.sql": ""},
		"twice":    {"0001_a.sql": "", "0001_b.sql": ""},
		"unnamed":  {"0001.sql": ""},
		"zero":     {"0000_a.sql": ""},
		"too long": {"00001_a.sql": ""},
	} {
		if _, err := set(files).Newest(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
