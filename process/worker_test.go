package process_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/process"
)

// TestWaitsForASlot: a job that waits for a slot longer than a lease lasts is
// begun once, when its turn comes.
func TestWaitsForASlot(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlitelog.Open(t.Context(), filepath.Join(dir, "log.db"), sqlitelog.Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		append1(t, store, 0, "a")
		var jobs []eventlog.Job
		for _, id := range []string{"1", "2", "3"} {
			jobs = append(jobs, eventlog.Job{ID: id, Kind: "k", Event: id, Stream: "task/T-a", Data: []byte("{}"), Meta: events.Meta{Actor: "a"}})
		}
		if err := store.Enqueue(t.Context(), "c", 1, jobs); err != nil {
			t.Fatal(err)
		}
		var begun, cut atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		w := process.Worker{Kind: "k", Slots: 1, Do: func(ctx context.Context, j eventlog.Job) error {
			select {
			case <-time.After(3 * process.Lease):
			case <-ctx.Done():
				cut.Add(1)
			}
			if begun.Add(1) == 3 {
				cancel()
			}
			return nil
		}}
		pool := process.Pool{Store: store, Log: slog.New(slog.DiscardHandler), Now: time.Now}
		if err := pool.Run(ctx, w); err != nil {
			t.Error(err)
		}
		if begun.Load() != 3 || cut.Load() != 0 {
			t.Errorf("%d begun, %d cut off", begun.Load(), cut.Load())
		}
		if _, left, err := store.Lease(context.WithoutCancel(ctx), "k", time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)); err != nil || left {
			t.Errorf("a job is left: %v, %v", left, err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
