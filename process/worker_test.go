package process_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/process"
)

// TestTakeOver: what processes before this one had leased is begun at once,
// also when one of them died while it took over, or had a clock that was ahead;
// each job once.
func TestTakeOver(t *testing.T) {
	store, err := sqlitelog.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlitelog.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	var jobs []eventlog.Job
	for _, id := range []string{"free", "leased", "taken over", "ahead"} {
		jobs = append(jobs, eventlog.Job{ID: id, Kind: "k", Data: []byte("{}")})
	}
	if err := store.Enqueue(t.Context(), "c", 0, jobs); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, until := range []time.Time{now.Add(process.Lease), now.Add(24 * time.Hour), now.Add(2 * time.Hour)} {
		if _, ok, err := store.Lease(t.Context(), "k", now, until); !ok || err != nil {
			t.Fatal(ok, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	did := make(chan string, 10)
	w := process.Worker{Kind: "k", Slots: 2, Do: func(_ context.Context, j eventlog.Job) error {
		did <- j.ID
		return nil
	}}
	ended := make(chan error, 1)
	go func() { ended <- process.Pool{Store: store, Now: time.Now}.Run(ctx, w) }()
	seen := map[string]int{}
	for range jobs {
		select {
		case id := <-did:
			seen[id]++
		case <-time.After(30 * time.Second):
			t.Fatalf("only %v", seen)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if len(seen) != len(jobs) || len(did) > 0 {
		t.Errorf("done: %v, and %d more", seen, len(did))
	}
}
