package main

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// fixtureDir holds the data folder of the first version. It is never made
// again: what it holds must open for ever.
const fixtureDir = "testdata/fixture-1"

var makeFixture = flag.Bool("fixture.make", false, "make "+fixtureDir+", where it is not there yet")

// TestFixture: the program opens what the first version wrote, finds its chain
// whole, and makes the same state of it. Its governed folder is long gone,
// which is said and keeps nobody from the rest.
func TestFixture(t *testing.T) {
	if *makeFixture {
		playFixture(t)
	}
	s := &site{data: filepath.Join(t.TempDir(), "data"), tokens: map[string]string{}}
	if err := os.CopyFS(s.data, os.DirFS(filepath.Join(fixtureDir, "data"))); err != nil {
		t.Fatal(err)
	}
	head, err := os.ReadFile(filepath.Join(fixtureDir, "head"))
	if err != nil {
		t.Fatal(err)
	}
	offlineRun(t, "log", "verify", "--data", s.data, "--head", strings.TrimSpace(string(head)))
	s.replays(t)
	s.tokens["admin"] = strings.TrimSpace(string(offlineRun(t, "token", "issue", "--data", s.data, "--principal", "admin")))
	v := serving(t, s.data)
	all := list(s.must(t, v.at, "admin", "GET", "/workspaces", nil), "workspaces")
	if len(all) != 1 {
		t.Fatalf("%v", all)
	}
	s.ws, s.root = text(all[0], "workspace_id"), text(all[0], "root")
	s.head(t, v.at)
	_, err = s.do(t, v.at, "admin", "POST", s.here("/claims"), "k", args{"resource_id": "file:a.txt", "claim_type": "write"})
	if p, refused := errors.AsType[*problem](err); !refused || p.Code != "workspace_unavailable" || p.Status != 503 || !strings.Contains(p.Detail, s.root) {
		t.Errorf("a claim in a folder that is gone: %v", err)
	}
	if !strings.Contains(v.said(), "workspace cannot be opened") {
		t.Errorf("the log does not say that the folder is gone: %s", v.said())
	}
	s.idle(t)
	v.stop(t)
	s.sound(t)
}

// replays compares what the history gives now with what it gave then. Tables
// and columns may have come since.
func (s *site) replays(t *testing.T) {
	t.Helper()
	then, err := os.ReadFile(filepath.Join(fixtureDir, "replay.json"))
	if err != nil {
		t.Fatal(err)
	}
	want, got := tables(t, then), tables(t, offlineRun(t, "log", "replay", "--data", s.data))
	for table, rows := range want {
		if len(got[table]) != len(rows) {
			t.Errorf("%s has %d rows, and had %d", table, len(got[table]), len(rows))
			continue
		}
		for i, row := range rows {
			for column, v := range row {
				if now, ok := got[table][i][column]; !ok || !reflect.DeepEqual(now, v) {
					t.Errorf("%s, row %d: %s is %v, and was %v", table, i, column, now, v)
				}
			}
		}
	}
}

func tables(t *testing.T, replay []byte) map[string][]map[string]any {
	t.Helper()
	var all map[string]json.RawMessage
	if err := json.Unmarshal(replay, &all); err != nil {
		t.Fatal(err)
	}
	delete(all, "position")
	out := map[string][]map[string]any{}
	for name, text := range all {
		var rows []map[string]any
		if err := json.Unmarshal(text, &rows); err != nil {
			t.Fatal(name, err)
		}
		out[name] = rows
	}
	if len(out) == 0 {
		t.Fatal("a replay without tables")
	}
	return out
}
