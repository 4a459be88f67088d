package projections_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/fault"
	"roundtable/internal/sqlite"
	"roundtable/internal/wire"
	"roundtable/projections"
)

// TestRealStore follows the store that the product uses, twice into a new
// file; what a position stood for stays the same.
func TestRealStore(t *testing.T) {
	dir, now := t.TempDir(), func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
	store, err := sqlitelog.Open(t.Context(), filepath.Join(dir, "log.db"), sqlitelog.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	add := func(p events.Payload, version int64) int64 {
		t.Helper()
		o, err := store.Append(t.Context(), eventlog.Batch{
			Meta:     events.Meta{Actor: "PR-1", Command: fmt.Sprint(p.Stream(), version)},
			Expect:   map[events.Stream]int64{p.Stream(): version},
			Happened: []events.Payload{p},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return o.Position
	}
	read := func(file string) (string, wire.Task) {
		t.Helper()
		db, err := sqlite.OpenViews(t.Context(), filepath.Join(dir, file))
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		v := projections.New(store, db, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- v.Run(ctx) }()
		at := add(events.TaskCreated{Task: "T-" + file, Workspace: "WS-1", Title: file}, 0)
		r := projections.NewReader(v, now, projections.Limits{Wait: 20 * time.Second})
		task, shown, err := r.Show(t.Context(), "task", "WS-1", "T-"+file, at)
		if err != nil || shown != at {
			t.Fatal(shown, err)
		}
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		return past(t, store, 2), task.(wire.Task)
	}
	add(events.WorkspaceAdded{Workspace: "WS-1", Name: "one", Root: "/srv/one", Kind: "git"}, 0)
	add(events.WorkspaceAdded{Workspace: "WS-2", Name: "two", Root: "/srv/two", Kind: "git"}, 1)
	first, task := read("views.db")
	if want := (wire.Task{ID: "T-views.db", Workspace: "WS-1", Title: "views.db", Status: "open", CreatedBy: "PR-1", CreatedAt: now()}); task != want {
		t.Error(cmp.Diff(want, task))
	}
	second, _ := read("again.db")
	if first != second {
		t.Error(cmp.Diff(first, second))
	}
	var state map[string]any
	if err := json.Unmarshal([]byte(first), &state); err != nil {
		t.Fatal(err)
	}
	if ws, ok := state["workspaces"].([]any); !ok || len(ws) != 2 || state["position"] != 2.0 || len(state["tasks"].([]any)) != 0 {
		t.Error(first)
	}
	for _, position := range []int64{-1, 99} {
		if _, err := projections.At(t.Context(), store, position); fault.CodeOf(err) != "invalid_position" {
			t.Error(err)
		}
	}
}

func past(t *testing.T, store eventlog.Store, position int64) string {
	t.Helper()
	p, err := projections.At(t.Context(), store, position)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var b bytes.Buffer
	if err := p.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
