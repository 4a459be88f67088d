package main

import (
	"database/sql"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/mattn/go-sqlite3"
)

// starting runs serve to its end, which comes at once if it refuses.
func starting(t *testing.T, data string) (code int, say string) {
	t.Helper()
	var errs output
	code = run(t.Context(), []string{"serve", "--data", data, "--addr", "127.0.0.1:0"}, terminal{out: io.Discard, err: &errs, env: environment(nil)})
	return code, errs.String()
}

// TestRestoredOlder: an older log.db beside newer views is not served, until
// somebody has decided to go on from there.
func TestRestoredOlder(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	log := filepath.Join(s.data, "log.db")
	old, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	s.start(t)
	s.post(t, "", "~/tasks", args{"title": "lost", "body_md": ""}, 201) // its answer was read from the views
	s.stop()
	err = errors.Join(os.WriteFile(log, old, 0o600), os.RemoveAll(log+"-wal"), os.RemoveAll(log+"-shm"))
	if err != nil {
		t.Fatal(err)
	}
	code, say := starting(t, s.data)
	for _, want := range []string{log, "views.db", "position", "roundtable rebuild", "log.db back"} {
		if code == 0 || !strings.Contains(say, want) {
			t.Errorf("%d, no %q in: %s", code, want, say)
		}
	}
	for _, args := range [][]string{{"token", "issue", "--data", s.data, "--principal", "admin"}, {"init", s.root, "--data", s.data}} {
		var out, errs output
		if code := run(t.Context(), args, terminal{out: &out, err: &errs, env: environment(nil)}); code == 0 {
			t.Errorf("%v writes onto a history that was cut: %s", args, &out)
		}
	}
	var out, errs output
	if code := run(t.Context(), []string{"rebuild", "--data", s.data}, terminal{out: &out, err: &errs, env: environment(nil)}); code != 0 {
		t.Fatal(code, &errs)
	}
	s.start(t)
	if list, ok := s.get(t, "", "~/tasks").body["tasks"].([]any); !ok || len(list) != 0 {
		t.Errorf("the lost task is shown: %v", list)
	}
	s.post(t, "", "~/tasks", args{"title": "new", "body_md": ""}, 201)
	s.stop()
}

// TestCutLog: a log that lost events of which it has the outcomes is not served.
func TestCutLog(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	db, err := sql.Open("sqlite3", filepath.Join(s.data, "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"INSERT INTO outcomes (actor, command, digest, position, answer, time) SELECT 'x', 'y', digest, position + 1, answer, time FROM outcomes ORDER BY position DESC LIMIT 1",
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if code, say := starting(t, s.data); code == 0 || !strings.Contains(say, "backup") {
		t.Errorf("%d %s", code, say)
	}
}

// TestServeUnfinished: a data folder that nobody has a credential for is not
// served; init goes on with it.
func TestServeUnfinished(t *testing.T) {
	t.Parallel()
	dir := repository(t)
	data := filepath.Join(dir, ".roundtable")
	opened(t, data, func(*app) {})
	if code, say := starting(t, data); code == 0 || !strings.Contains(say, "roundtable init") {
		t.Errorf("%d %s", code, say)
	}
	m, code, say := initAt(t, dir)
	if code != 0 {
		t.Fatal(code, say)
	}
	adminOf(t, m, "admin")
}
