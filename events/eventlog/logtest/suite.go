// Package logtest is what every event store promises, as tests: Suite runs
// them against a store, and a test of one store alone is a sign that a case is
// missing here.
package logtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// Open opens, and if need be makes, the log kept in dir, with now as its
// clock. Opened again it is the same log.
type Open func(ctx context.Context, dir string, now func() time.Time) (eventlog.Store, error)

// Suite tests the stores that open makes. It must be the whole of a test that
// has no name but its own (no subtest): to kill a writer it runs the test's
// binary again for that test alone.
func Suite(t *testing.T, open Open) {
	if dir := os.Getenv(childEnv); dir != "" {
		child(t, open, dir)
		return
	}
	for _, c := range []struct {
		name string
		run  func(*testing.T, *env)
	}{
		{"Empty", testEmpty},
		{"Append", testAppend},
		{"Guards", testGuards},
		{"Refused", testRefused},
		{"Outcomes", testOutcomes},
		{"KeysAtOnce", testKeysAtOnce},
		{"SeveralStreams", testSeveralStreams},
		{"Pages", testPages},
		{"Reopen", testReopen},
		{"ClockGoesBack", testClockGoesBack},
		{"Appenders", testAppenders},
		{"Follower", testFollower},
		{"HotStream", testHotStream},
		{"OneOfAGroupFails", testOneFails},
		{"GroupUnseen", testGroupUnseen},
		{"Cancelled", testCancelled},
		{"View", testView},
		{"Close", testClose},
		{"Linearizable", testLinearizable},
		{"Jobs", testJobs},
		{"Fences", testFences},
		{"WorkersRace", testWorkersRace},
		{"Checkpoints", testCheckpoints},
		{"Snapshots", testSnapshots},
		{"Parking", testParking},
		{"Killed", testKilled},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newEnv(t, open)) })
	}
}

// An env is one log under test.
type env struct {
	eventlog.Store
	open  Open
	dir   string
	clock *clock
}

func newEnv(t *testing.T, open Open) *env {
	e := &env{open: open, dir: t.TempDir(), clock: newClock()}
	e.reopen(t)
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return e
}

func (e *env) reopen(t *testing.T) {
	s, err := e.open(context.Background(), e.dir, e.clock.now)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	e.Store = s
}

// A clock moves by a microsecond each time it is read.
type clock struct{ nanos atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.set(time.Date(2026, 11, 30, 12, 0, 0, 123456789, time.UTC))
	return c
}

func (c *clock) set(t time.Time) { c.nanos.Store(t.UnixNano()) }

func (c *clock) now() time.Time { return time.Unix(0, c.nanos.Add(1000)) }

func stream(id string) events.Stream { return events.TaskStream(id) }

// happened returns n events of one stream.
func happened(id string, n int) []events.Payload {
	ps := make([]events.Payload, n)
	for i := range ps {
		ps[i] = events.TaskCreated{Task: id, Title: fmt.Sprintf("<%d> é\u2028", i), Priority: i, Risk: "low"}
	}
	return ps
}

// batch is command key, which makes n events of a stream read at version.
func batch(key, id string, version int64, n int) eventlog.Batch {
	return eventlog.Batch{
		Meta:   events.Meta{Workspace: "WS-1", Actor: "PR-1", Session: "S-1", Command: key, Cause: "cause", Correlation: "corr"},
		Digest: []byte("digest of " + key), Answer: []byte(`{"key":"` + key + `"}`),
		Expect: map[events.Stream]int64{stream(id): version}, Happened: happened(id, n),
	}
}

// must appends what has to succeed.
func (e *env) must(t *testing.T, b eventlog.Batch) eventlog.Outcome {
	t.Helper()
	o, err := e.Append(t.Context(), b, nil)
	if err != nil {
		t.Fatalf("append %s: %v", b.Meta.Command, err)
	}
	return o
}

// all returns the whole log, and checks that it is whole: positions, versions
// and hashes.
func (e *env) all(t *testing.T) []events.Record {
	t.Helper()
	rs, err := e.Since(t.Context(), 0, 1<<20)
	if err != nil {
		t.Fatalf("read: %v", err)
	}
	versions := map[events.Stream]int64{}
	var prev []byte
	prevHex := ""
	for i, r := range rs {
		versions[r.Stream]++
		hash := eventlog.Hash(prev, &r)
		prev = hash[:]
		switch {
		case r.Position != int64(i+1):
			t.Fatalf("position %d stands at place %d", r.Position, i+1)
		case r.Version != versions[r.Stream]:
			t.Fatalf("position %d: %s has version %d after %d", r.Position, r.Stream, r.Version, versions[r.Stream]-1)
		case r.PrevHash != prevHex || r.Hash != fmt.Sprintf("%x", hash):
			t.Fatalf("position %d: hash %s after %s, want %x after %s", r.Position, r.Hash, r.PrevHash, hash, prevHex)
		}
		prevHex = r.Hash
	}
	position, hash, err := e.Head(t.Context())
	if err != nil || position != int64(len(rs)) || hash != prevHex {
		t.Fatalf("head is %d %q (%v), the last of %d events has %q", position, hash, err, len(rs), prevHex)
	}
	return rs
}

// eachAtOnce runs f for 0, …, n-1 at once.
func eachAtOnce(n int, f func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { f(i) })
	}
	wg.Wait()
}

// hold makes a command whose decision waits inside its group until release is
// called: while it does, all others wait in the queue. It returns once the
// decision waits.
func (e *env) hold(t *testing.T, ctx context.Context, key string) (release func() (eventlog.Outcome, error)) {
	t.Helper()
	inside, goOn := make(chan struct{}), make(chan struct{})
	done := make(chan struct{})
	var o eventlog.Outcome
	var err error
	go func() {
		defer close(done)
		b := batch(key, "held-"+key, 7, 1) // 7 is never right: the decision is made inside
		o, err = e.Append(ctx, b, func(ctx context.Context, v eventlog.View) (eventlog.Batch, error) {
			close(inside)
			<-goOn
			return batch(key, "held-"+key, 0, 1), nil
		})
	}()
	<-inside
	letGo := sync.OnceFunc(func() { close(goOn); <-done })
	t.Cleanup(letGo) // a test that ends early must not hold its log for ever
	return func() (eventlog.Outcome, error) {
		letGo()
		return o, err
	}
}

func want(t *testing.T, err, target error, what string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s: %v, want %v", what, err, target)
	}
}

func keys(rs []events.Record) string {
	var ks []string
	for _, r := range rs {
		ks = append(ks, r.Command)
	}
	return strings.Join(slices.Compact(ks), " ")
}
