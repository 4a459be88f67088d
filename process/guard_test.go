package process_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/process"
)

// TestParked: an event that a manager cannot react to is kept and named; what
// comes after it is reacted to.
func TestParked(t *testing.T) {
	store, err := sqlitelog.Open(t.Context(), filepath.Join(t.TempDir(), "log.db"), sqlitelog.Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	m := process.Manager{Name: "fragile", React: func(e events.Event) []process.Job {
		switch e.Payload.(events.TaskCreated).Title {
		case "panic":
			panic("a fault in the manager")
		case "bad data":
			return []process.Job{{Kind: "k", Data: func() {}}}
		}
		return []process.Job{{Kind: "k", Data: "fine"}}
	}}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		t.Fatal(err)
	}
	process.AddTo(router, []process.Manager{m}, store, slog.New(slog.NewTextHandler(t.Output(), nil)), time.Now, func(c string, err error) { t.Error(c, err) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- router.Run(ctx) }()
	<-router.Running()
	for i, title := range []string{"a", "panic", "b", "bad data", "c"} {
		append1(t, store, i, title)
		awaitCheckpoint(t, store, int64(i+1))
	}
	cancel()
	if err := errors.Join(router.Close(), <-ended); err != nil {
		t.Error(err)
	}
	parked, err := store.Parked(t.Context())
	var at []int64
	for _, p := range parked {
		at = append(at, p.Position)
	}
	if err != nil || !slices.Equal(at, []int64{2, 4}) {
		t.Errorf("parked %+v, %v", parked, err)
	}
	jobs := 0
	for now := time.Now(); ; jobs++ {
		if _, ok, err := store.Lease(t.Context(), "k", now, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		} else if !ok {
			break
		}
	}
	if jobs != 3 {
		t.Errorf("%d jobs, want 3", jobs)
	}
}

func append1(t *testing.T, store *sqlitelog.Store, i int, title string) {
	t.Helper()
	e := events.TaskCreated{Task: "T-" + title, Title: title}
	_, err := store.Append(t.Context(), eventlog.Batch{Meta: events.Meta{Actor: "a", Command: title}, Digest: []byte{1},
		Expect: map[events.Stream]int64{e.Stream(): 0}, Happened: []events.Payload{e}}, nil)
	if err != nil {
		t.Fatal(i, err)
	}
}

func awaitCheckpoint(t *testing.T, store *sqlitelog.Store, at int64) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		queued := store.Queued()
		if now, err := store.Checkpoint(t.Context(), "process.fragile"); err != nil || now >= at {
			if err != nil {
				t.Fatal(err)
			}
			return
		}
		select {
		case <-queued:
		case <-time.After(5 * time.Millisecond): // a checkpoint without a job sends no signal
		case <-timeout:
			t.Fatal("the manager stopped before position ", at)
		}
	}
}
