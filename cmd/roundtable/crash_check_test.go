package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// remembered fails the test unless every write that was answered is still
// there: repeated under its key it must answer the same entities at the same
// position, and write nothing.
func (s *site) remembered(t *testing.T, at string) {
	t.Helper()
	s.mu.Lock()
	acks := s.acks
	s.mu.Unlock()
	s.idle(t) // what comes then comes of the repeats
	before := s.head(t, at)
	for _, a := range acks {
		out, err := s.send(t, at, a.who, a.method, a.path, a.key, a.body)
		if err != nil {
			t.Errorf("lost: %s %s by %s, answered at position %v: %v", a.method, a.path, a.who, a.position, err)
			continue
		}
		if got := answered(out); !reflect.DeepEqual(got, a.ids) {
			t.Errorf("%s %s by %s: answered %v, now %v", a.method, a.path, a.who, a.ids, got)
		}
		if p := out["position"].(float64); p != a.position && !strings.HasSuffix(a.path, "/apply") { // which answers how things are
			t.Errorf("%s %s by %s: was at %v, now at %v", a.method, a.path, a.who, a.position, p)
		}
	}
	if after := s.head(t, at); len(acks) > 0 && after != before {
		t.Errorf("repeats wrote events %d to %d", before+1, after)
	}
}

// head returns the newest position. Every view has come to it.
func (s *site) head(t *testing.T, at string) int64 {
	t.Helper()
	v := s.must(t, at, "admin", "GET", "/events/verify", nil)
	if v["ok"] != true {
		t.Fatalf("the history does not verify: %v", v)
	}
	n := text(v, "events")
	for _, path := range []string{"/workspaces", "/principals", "/tokens", s.here("/tasks"), s.here("/claims"), s.here("/proposals"), s.here("/approvals"),
		s.here("/transactions"), s.here("/test-runs"), s.here("/state")} {
		s.must(t, at, "admin", "GET", path+"?after="+n, nil)
	}
	head, err := strconv.ParseInt(n, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return head
}

// sound checks a data folder that no server has: the chain, one outcome for
// each attempt at an apply, no work left, and the views.
func (s *site) sound(t *testing.T) {
	t.Helper()
	s.verified(t)
	asked, ended, begun := map[string]int{}, map[string]int{}, map[string]int{}
	for r, err := range eventlog.Import(bytes.NewReader(offlineRun(t, "log", "export", "--data", s.data))) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		switch p := e.Payload.(type) {
		case events.TransactionApplyRequested:
			asked[fmt.Sprint(p.Transaction, ".", p.Attempt)]++
		case events.WorkspaceApplyBegun:
			if begun[p.Workspace]++; begun[p.Workspace] > 1 {
				t.Errorf("%s begins while another applies, at position %d", p.Transaction, r.Position)
			}
		case events.WorkspaceApplyEnded:
			begun[p.Workspace]--
		case events.TransactionApplied:
			ended[fmt.Sprint(p.Transaction, ".", p.Attempt)]++
		case events.TransactionFailed:
			if a := fmt.Sprint(p.Transaction, ".", p.Attempt); asked[a] > ended[a] { // one that waited fails without an attempt
				ended[a]++
			}
		}
	}
	for a, n := range asked {
		if n != 1 || ended[a] != 1 {
			t.Errorf("attempt %s: asked for %d times, ended %d times", a, n, ended[a])
		}
	}
	if len(ended) != len(asked) {
		t.Errorf("asked %v, ended %v", asked, ended)
	}
	if left := s.work(t); len(left) > 0 {
		t.Errorf("work left: %v", left)
	}
	if left := s.journals(t); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	for _, d := range s.differences(t) {
		t.Error(d)
	}
}

// verified returns what log verify says of a history that is whole.
func (s *site) verified(t *testing.T) (v map[string]any) {
	t.Helper()
	if err := json.Unmarshal(offlineRun(t, "log", "verify", "--data", s.data, "--json"), &v); err != nil || v["ok"] != true {
		t.Fatalf("log verify: %v, %v", v, err)
	}
	return v
}

// work lists what the service still has to do, or could not.
func (s *site) work(t *testing.T) []map[string]any {
	t.Helper()
	return s.rows(t, "log.db", `SELECT id, kind, state, why FROM jobs WHERE state <> 'done'
		UNION ALL SELECT consumer, position, error, tries FROM parked
		UNION ALL SELECT consumer, position, 'behind', '' FROM checkpoints WHERE consumer LIKE 'process.%' AND position < (SELECT max(position) FROM events)`)
}

// idle waits for the service to have done all its work, also that which no
// manager has seen yet.
func (s *site) idle(t *testing.T) {
	t.Helper()
	tick, timeout := time.NewTicker(20*time.Millisecond), time.After(time.Minute)
	defer tick.Stop()
	for len(s.work(t)) > 0 {
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("still at work: %v", s.work(t))
		}
	}
}

// differences compares the rows of the live views with those that a replay of
// the history gives.
func (s *site) differences(t *testing.T) (out []string) {
	t.Helper()
	var replayed map[string]json.RawMessage
	if err := json.Unmarshal(offlineRun(t, "log", "replay", "--data", s.data), &replayed); err != nil {
		t.Fatal(err)
	}
	n := 0
	for table, text := range replayed {
		if table == "position" {
			continue
		}
		var want []map[string]any
		if err := json.Unmarshal(text, &want); err != nil {
			t.Fatal(table, err)
		}
		n += len(want)
		got := s.rows(t, "views.db", "SELECT * FROM "+table+" ORDER BY 1, 2")
		if len(got) != len(want) {
			out = append(out, fmt.Sprintf("view %s has %d rows, a rebuild %d", table, len(got), len(want)))
			continue
		}
		for i := range want {
			if !reflect.DeepEqual(got[i], want[i]) {
				out = append(out, fmt.Sprintf("view %s, row %d:\n%v\na rebuild gives\n%v", table, i, got[i], want[i]))
			}
		}
	}
	if n == 0 {
		t.Fatal("the replay has no rows")
	}
	return out
}

// rows reads what a query on a file of the data folder gives, as JSON has it.
func (s *site) rows(t *testing.T, file, query string) (out []map[string]any) {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.data, file)+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	out, err = readRows(t.Context(), db, query)
	if err != nil {
		t.Fatal(file, err)
	}
	return out
}

func readRows(ctx context.Context, db *sql.DB, query string) (out []map[string]any, err error) {
	rs, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rs.Close()
	columns, err := rs.Columns()
	if err != nil {
		return nil, err
	}
	for rs.Next() {
		values, into := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			into[i] = &values[i]
		}
		if err := rs.Scan(into...); err != nil {
			return nil, err
		}
		m := map[string]any{}
		for i, c := range columns {
			m[c] = values[i]
		}
		b, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		var row map[string]any
		if err := json.Unmarshal(b, &row); err != nil {
			return nil, err
		}
		out = append(out, row)
	}
	return out, rs.Err()
}

func digest(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
