package sqlite_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/sqlite"
)

// TestSettings opens both databases as the program does and asks SQLite what
// is in force.
func TestSettings(t *testing.T) {
	for name, c := range map[string]struct {
		open func(context.Context, string) (*sqlite.DB, error)
		sync int
	}{"log": {sqlite.OpenLog, 2}, "views": {sqlite.OpenViews, 1}, "plain": {sqlite.OpenPlain, 2}} {
		path := filepath.Join(t.TempDir(), "odd ?#%41 name.db")
		db, err := c.open(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for pool, p := range map[string]*sql.DB{"write": db.Write, "read": db.Read} {
			var mode string
			var synchronous, keys, queryOnly int
			for pragma, dest := range map[string]any{"journal_mode": &mode, "synchronous": &synchronous, "foreign_keys": &keys, "query_only": &queryOnly} {
				if err := p.QueryRow("PRAGMA " + pragma).Scan(dest); err != nil {
					t.Fatal(err)
				}
			}
			if mode != "wal" || keys != 1 || (queryOnly == 1) != (pool == "read") || pool == "write" && synchronous != c.sync {
				t.Errorf("%s, %s: journal_mode %s, synchronous %d, foreign_keys %d, query_only %d", name, pool, mode, synchronous, keys, queryOnly)
			}
		}
		if _, err := db.Read.Exec(`CREATE TABLE x (a)`); err == nil {
			t.Errorf("%s: the reading pool can write", name)
		}
		if n := db.Write.Stats().MaxOpenConnections; n != 1 {
			t.Errorf("%s: %d connections write", name, n)
		}
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestCheckSees: the check fails where the setting is not in force, so that it
// can be believed where it passes. Without _synchronous the driver is at NORMAL.
func TestCheckSees(t *testing.T) {
	for dsn, want := range map[string]string{
		"?_journal_mode=WAL":                        "synchronous is 1",
		"?_journal_mode=WAL&_synchronous=NORMAL":    "synchronous is 1",
		"?_journal_mode=DELETE&_synchronous=FULL":   "journal_mode is delete",
		"?_journal_mode=WAL&_synchronous=FULL":      "",
		"?_journal_mode=TRUNCATE&_synchronous=FULL": "journal_mode is truncate",
	} {
		db, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "x.db")+dsn)
		if err != nil {
			t.Fatal(err)
		}
		if err := sqlite.Check(t.Context(), db, sqlite.Full); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dsn, err)
		}
		db.Close()
	}
	for version, ok := range map[string]bool{"3.51.3": true, "3.54.1": true, "4.0.0": true, "3.51.2": false, "3.44.6": false, "2.99.99": false, "": false, "x": false} {
		if err := sqlite.Supported(version); (err == nil) != ok {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"garbage": garbage, "no folder": filepath.Join(dir, "none", "x.db"), "a folder": dir} {
		if db, err := sqlite.OpenLog(t.Context(), path); err == nil {
			t.Errorf("%s: opened", name)
			db.Close()
		} else if !strings.Contains(err.Error(), path) {
			t.Errorf("%s: the error does not name the file: %v", name, err)
		}
	}
	if _, err := sqlite.OpenRead(t.Context(), filepath.Join(dir, "none.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("reading what is not there: %v", err)
	}
}

// TestSeatBelt: what the log's triggers refuse, for each table that is only
// appended to.
func TestSeatBelt(t *testing.T) {
	db, err := sqlite.OpenLog(t.Context(), filepath.Join(t.TempDir(), "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	event := func(verb string, position, version int) string {
		return fmt.Sprintf(verb+` INTO events VALUES (%d, 'i', 'w', 1, %d, 't', 1, 0, 'a', '', 'k', '', '', x'', x'')`, position, version)
	}
	for _, q := range []string{`INSERT INTO streams VALUES (1, 's')`, event("INSERT", 1, 1), event("INSERT", 2, 2), `INSERT INTO outcomes VALUES ('a', 'k', x'', 1, x'01', 0)`} {
		if _, err := db.Write.Exec(q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
	for _, q := range []string{
		`UPDATE events SET data = x'00'`, `DELETE FROM events`, `UPDATE OR REPLACE events SET position = 9`,
		event("INSERT OR REPLACE", 1, 3), event("INSERT OR REPLACE", 3, 1), event("INSERT", 4, 3), event("INSERT", 3, 4), event("INSERT", 2, 3),
		`UPDATE outcomes SET digest = x'00'`, `DELETE FROM outcomes`,
		`UPDATE streams SET name = 'x'`, `DELETE FROM streams`,
		`INSERT INTO events VALUES (3, 'i', 'w', 99, 1, 't', 1, 0, 'a', '', 'k', '', '', x'', x'')`, // no such stream
	} {
		if _, err := db.Write.Exec(q); err == nil {
			t.Errorf("not refused: %s", q)
		}
	}
	if _, err := db.Write.Exec(`INSERT OR REPLACE INTO outcomes VALUES ('a', 'k', x'', 2, x'02', 0)`); err != nil {
		t.Error(err)
	}
	var n, position int
	if err := db.Read.QueryRow(`SELECT (SELECT count(*) FROM events), (SELECT position FROM outcomes)`).Scan(&n, &position); err != nil || n != 2 || position != 1 {
		t.Errorf("%d events, the outcome's position %d, %v", n, position, err)
	}
}

// TestCopy: a copy is whole while another writes, and never overwrites.
func TestCopy(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "a.db"), filepath.Join(dir, "b.db")
	db, err := sqlite.OpenPlain(t.Context(), from)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Write.Exec(`CREATE TABLE x (a); INSERT INTO x VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	err = db.InTx(t.Context(), func(tx *sql.Tx) error {
		if _, err := tx.Exec(`INSERT INTO x VALUES (2)`); err != nil {
			return err
		}
		return sqlite.Copy(t.Context(), from, to)
	})
	if err != nil {
		t.Fatal(err)
	}
	copied, err := sqlite.OpenRead(t.Context(), to)
	if err != nil {
		t.Fatal(err)
	}
	defer copied.Close()
	var n int
	if err := copied.QueryRow(`SELECT count(*) FROM x`).Scan(&n); err != nil || n != 1 {
		t.Errorf("%d rows, %v: want what was committed", n, err)
	}
	if err := sqlite.Copy(t.Context(), from, to); !errors.Is(err, fs.ErrExist) {
		t.Errorf("onto a file: %v", err)
	}
	if err := sqlite.Copy(t.Context(), filepath.Join(dir, "none.db"), filepath.Join(dir, "c.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
}

const childEnv = "ROUNDTABLE_TEST_LOCK"

// TestLock: one process has the folder; another is told which; the lock ends
// with its process, however that ends.
func TestLock(t *testing.T) {
	if dir := os.Getenv(childEnv); dir != "" {
		if _, err := sqlite.LockDir(dir); err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("locked")
		select {} // until killed
	}
	dir := t.TempDir()
	child := func() (*exec.Cmd, string) {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestLock$")
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return cmd, line
	}
	first, line := child()
	if line != "locked\n" {
		t.Fatalf("first: %s", line)
	}
	second, line := child()
	if !strings.Contains(line, fmt.Sprintf("process %d", first.Process.Pid)) || !strings.Contains(line, dir) {
		t.Errorf("second: %s", line)
	}
	if err := second.Wait(); err != nil {
		t.Error(err)
	}
	held := (*sqlite.HeldError)(nil)
	if _, err := sqlite.LockDir(dir); !errors.As(err, &held) || held.PID != first.Process.Pid {
		t.Errorf("from here: %v", err)
	}
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Error("the child was not killed")
	}
	unlock, err := sqlite.LockDir(dir)
	if err != nil {
		t.Fatalf("after the kill: %v", err)
	}
	if _, err := sqlite.LockDir(dir); !errors.As(err, &held) || held.PID != os.Getpid() {
		t.Errorf("a second time from one process: %v", err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
	if unlock, err = sqlite.LockDir(dir); err != nil {
		t.Errorf("after unlocking: %v", err)
	} else if err := unlock(); err != nil {
		t.Error(err)
	}
	if _, err := sqlite.LockDir(filepath.Join(dir, "none")); err == nil {
		t.Error("a folder that is not there was locked")
	}
}

// TestTxOfEndedContext: a tx whose context ends writes nothing, and fails with
// that, whatever the driver says of what is asked of it afterwards. The
// connection is as good as before.
func TestTxOfEndedContext(t *testing.T) {
	db, err := sqlite.OpenPlain(t.Context(), filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Write.Exec(`CREATE TABLE x (a)`); err != nil {
		t.Fatal(err)
	}
	for name, asked := range map[string]func(tx *sql.Tx, s *sql.Stmt) error{
		"tx":        func(tx *sql.Tx, _ *sql.Stmt) error { _, err := tx.Exec(`INSERT INTO x VALUES (1)`); return err },
		"statement": func(_ *sql.Tx, s *sql.Stmt) error { _, err := s.Exec(); return err },
		"nothing":   func(tx *sql.Tx, _ *sql.Stmt) error { tx.Exec(`INSERT INTO x VALUES (1)`); return nil },
	} {
		ctx, cancel := context.WithCancel(t.Context())
		err := db.InTx(ctx, func(tx *sql.Tx) error {
			s, err := tx.Prepare(`INSERT INTO x VALUES (1)`)
			if err != nil {
				return err
			}
			cancel()
			for _, err := tx.Exec(`SELECT 1`); err == nil; _, err = tx.Exec(`SELECT 1`) { // until it is rolled back
			}
			return asked(tx, s)
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
	own := errors.New("own")
	if err := db.InTx(t.Context(), func(*sql.Tx) error { return own }); err != own {
		t.Errorf("%v: nothing has ended", err)
	}
	n := 0
	if err := db.InTx(t.Context(), func(tx *sql.Tx) error { return tx.QueryRow(`SELECT count(*) FROM x`).Scan(&n) }); err != nil || n != 0 {
		t.Errorf("%d rows, %v", n, err)
	}
}
