package projections

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/signal"
	"roundtable/internal/sqlite"
)

// A memLog is as much of a Store as views need, in memory.
type memLog struct {
	eventlog.Store // what is not written below is not called
	mu             sync.Mutex
	records        []events.Record
	changed        signal.Signal
}

func (l *memLog) add(at time.Time, ps ...events.Payload) (position int64) {
	l.mu.Lock()
	for _, p := range ps {
		l.records = append(l.records, record(int64(len(l.records)+1), at, p))
	}
	position = int64(len(l.records))
	l.mu.Unlock()
	l.changed.Send()
	return position
}

func (l *memLog) Since(_ context.Context, position int64, limit int) ([]events.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.records[min(position, int64(len(l.records))):]
	return rest[:min(limit, len(rest)):min(limit, len(rest))], nil
}

func (l *memLog) Head(context.Context) (int64, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.records)), "", nil
}

func (l *memLog) Changed() <-chan struct{} { return l.changed.Next() }

// fatal is testing.T and rapid.T.
type fatal interface {
	Helper()
	Fatal(...any)
	Fatalf(string, ...any)
}

func openViews(t fatal, ctx context.Context, dir, name string, log eventlog.Store) *Views {
	t.Helper()
	db, err := sqlite.OpenViews(ctx, filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return New(log, db, nil)
}

// catchUp applies what the views have not had yet, in pages of the given size.
func (v *Views) catchUp(ctx context.Context, t fatal, page int) {
	t.Helper()
	for _, p := range v.ps {
		for {
			at, err := checkpoint(ctx, v.db.Read, p.Name)
			if err != nil {
				t.Fatal(err)
			}
			rs, err := v.log.Since(ctx, at, page)
			if err != nil {
				t.Fatal(err)
			}
			if len(rs) == 0 {
				break
			}
			if err := v.take(ctx, p, decodeAll(t, rs)); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func newViews(t *testing.T) (*Views, *memLog) {
	log := &memLog{}
	v := openViews(t, t.Context(), t.TempDir(), "views.db", log)
	t.Cleanup(func() {
		if err := v.db.Close(); err != nil {
			t.Error(err)
		}
	})
	return v, log
}

// manyTimes checks a property, and more often among the slow proofs.
func manyTimes(t *testing.T, property func(*rapid.T)) {
	t.Helper()
	rounds := 1
	if os.Getenv("ROUNDTABLE_LONG") == "1" {
		rounds = 20
	}
	for range rounds {
		rapid.Check(t, property)
	}
}

// empty returns v as if its file were new.
func empty(t fatal, ctx context.Context, v *Views, log eventlog.Store) *Views {
	t.Helper()
	for _, p := range v.ps {
		for _, table := range append([]string{"checkpoints"}, p.Tables...) {
			if _, err := v.db.Write.ExecContext(ctx, `DELETE FROM `+table); err != nil {
				t.Fatal(err)
			}
		}
	}
	return New(log, v.db, nil)
}

// example makes one long history of every kind of event.
func example(t testing.TB, n int) []events.Payload {
	t.Helper()
	return rapid.Custom(func(rt *rapid.T) []events.Payload { return newWorld(rt).history(n) }).Example(1)
}

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func decodeAll(t fatal, rs []events.Record) []events.Event {
	t.Helper()
	es := make([]events.Event, len(rs))
	for i, r := range rs {
		var err error
		if es[i], err = r.Event(); err != nil {
			t.Fatal(err)
		}
	}
	return es
}
