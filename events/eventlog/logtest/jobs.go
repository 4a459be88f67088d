package logtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"roundtable/events"
	"roundtable/events/eventlog"
)

func job(id, kind string) eventlog.Job {
	return eventlog.Job{ID: id, Kind: kind, Event: "event of " + id, Stream: stream("a"), Data: []byte(`{"n":1}`), Meta: batch("k", "a", 0, 0).Meta}
}

// enqueue writes jobs at the head.
func (e *env) enqueue(t *testing.T, jobs ...eventlog.Job) {
	t.Helper()
	if err := e.Enqueue(t.Context(), "manager", 0, jobs); err != nil {
		t.Fatal(err)
	}
}

func at(second int64) time.Time { return time.Unix(second, 0) }

func (e *env) lease(t *testing.T, kind string, now, until int64) (eventlog.Job, bool) {
	t.Helper()
	j, ok, err := e.Lease(t.Context(), kind, at(now), at(until))
	if err != nil {
		t.Fatalf("lease: %v", err)
	}
	return j, ok
}

// testJobs: jobs come oldest first, by kind, once, as they were written.
func testJobs(t *testing.T, e *env) {
	queued := e.Queued()
	e.enqueue(t, job("1", "apply"), job("2", "apply"), job("3", "test"))
	<-queued // else it would hang
	e.enqueue(t, job("2", "apply"), job("4", "apply"))
	j, ok := e.lease(t, "apply", 10, 20)
	wanted := job("1", "apply")
	wanted.Attempt, wanted.Fence = 1, 1
	if d := cmp.Diff(wanted, j); !ok || d != "" {
		t.Errorf("first job: %v %s", ok, d)
	}
	second, _ := e.lease(t, "apply", 10, 20)
	third, _ := e.lease(t, "apply", 10, 20)
	if second.ID != "2" || third.ID != "4" {
		t.Errorf("then %q and %q", second.ID, third.ID)
	}
	if j, ok := e.lease(t, "apply", 10, 20); ok {
		t.Errorf("a fourth: %+v", j)
	}
	if j, ok := e.lease(t, "test", 10, 20); !ok || j.ID != "3" {
		t.Errorf("another kind: %+v", j)
	}
	queued = e.Queued()
	for range 2 { // a worker that did not learn of its first try
		if err := e.Finish(t.Context(), second); err != nil {
			t.Errorf("finish: %v", err)
		}
	}
	<-queued
	queued = e.Queued()
	if err := e.Release(t.Context(), third, at(15), "busy"); err != nil {
		t.Errorf("release: %v", err)
	}
	<-queued
	if j, ok := e.lease(t, "apply", 14, 20); ok {
		t.Errorf("before its time: %+v", j)
	}
	if j, ok := e.lease(t, "apply", 15, 20); !ok || j.ID != "4" || j.Fence != 2 || j.Attempt != 2 {
		t.Errorf("after its time: %+v", j)
	}
	e.enqueue(t, job("2", "apply")) // known, though finished
	if j, ok := e.lease(t, "apply", 19, 30); ok {
		t.Errorf("again: %+v", j)
	}
}

// testFences: a lease that has ended can be taken over, and its old holder can
// do nothing with the job any more.
func testFences(t *testing.T, e *env) {
	e.enqueue(t, job("1", "apply"))
	first, _ := e.lease(t, "apply", 10, 20)
	if err := e.Extend(t.Context(), first, at(25)); err != nil {
		t.Errorf("extend: %v", err)
	}
	if j, ok := e.lease(t, "apply", 24, 40); ok {
		t.Errorf("taken while held: %+v", j)
	}
	second, ok := e.lease(t, "apply", 25, 40)
	if !ok || second.Fence != first.Fence+1 || second.Attempt != 2 {
		t.Fatalf("taken over: %v %+v", ok, second)
	}
	lost := func(j eventlog.Job) {
		t.Helper()
		want(t, e.Extend(t.Context(), j, at(50)), eventlog.ErrLeaseLost, "extend")
		want(t, e.Release(t.Context(), j, at(50), "x"), eventlog.ErrLeaseLost, "release")
		want(t, e.Finish(t.Context(), j), eventlog.ErrLeaseLost, "finish")
	}
	lost(first)
	lost(job("unknown", "apply"))
	if err := e.Release(t.Context(), second, at(30), "later"); err != nil {
		t.Error(err)
	}
	lost(second)
	third, _ := e.lease(t, "apply", 30, 40)
	if err := e.Finish(t.Context(), third); err != nil || third.Fence != 3 {
		t.Errorf("finish %+v: %v", third, err)
	}
	want(t, e.Extend(t.Context(), third, at(50)), eventlog.ErrLeaseLost, "extend a finished one")
	want(t, e.Release(t.Context(), third, at(50), "x"), eventlog.ErrLeaseLost, "release a finished one")
	want(t, e.Finish(t.Context(), second), eventlog.ErrLeaseLost, "finish with an old fence")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	if j, ok := e.lease(t, "apply", 100, 200); ok {
		t.Errorf("a finished job came back: %+v", j)
	}
}

// testWorkersRace: each job goes to one worker, while appends share the file.
func testWorkersRace(t *testing.T, e *env) {
	const jobs = 60
	for i := range jobs {
		e.enqueue(t, job(fmt.Sprint(i), "apply"))
	}
	var mu sync.Mutex
	done := map[string]int{}
	eachAtOnce(12, func(w int) {
		for i := 0; ; i++ {
			if w%3 == 0 {
				if _, err := e.Append(context.Background(), batch(fmt.Sprintf("%d.%d", w, i), fmt.Sprint(w), int64(i), 1), nil); err != nil {
					t.Error(err)
				}
			}
			j, ok, err := e.Lease(context.Background(), "apply", at(10), at(20))
			if err != nil {
				t.Error(err)
				return
			}
			if !ok {
				return
			}
			mu.Lock()
			done[j.ID]++
			mu.Unlock()
			if err := e.Finish(context.Background(), j); err != nil {
				t.Error(err)
			}
		}
	})
	for i := range jobs {
		if n := done[fmt.Sprint(i)]; n != 1 {
			t.Errorf("job %d was done %d times", i, n)
		}
	}
	e.all(t)
}

// testCheckpoints: a checkpoint moves with its jobs, never back and never past
// the head.
func testCheckpoints(t *testing.T, e *env) {
	e.must(t, batch("1", "a", 0, 9))
	for _, step := range []struct{ to, at int64 }{{5, 5}, {3, 5}, {9, 9}, {0, 9}} {
		if err := e.Enqueue(t.Context(), "c", step.to, []eventlog.Job{job(fmt.Sprint(step.to), "k")}); err != nil {
			t.Fatal(err)
		}
		if at, err := e.Checkpoint(t.Context(), "c"); err != nil || at != step.at {
			t.Errorf("after %d the checkpoint is %d (%v)", step.to, at, err)
		}
	}
	if err := e.Enqueue(t.Context(), "c", 10, []eventlog.Job{job("10", "k")}); err == nil {
		t.Error("a checkpoint past the head was taken")
	}
	if at, err := e.Checkpoint(t.Context(), "other"); err != nil || at != 0 {
		t.Errorf("another's checkpoint is %d (%v)", at, err)
	}
	n := 0
	for _, ok := e.lease(t, "k", 1, 2); ok; _, ok = e.lease(t, "k", 1, 2) {
		n++
	}
	if n != 4 {
		t.Errorf("%d jobs, want 4: one of each step that was taken", n)
	}
}

func testSnapshots(t *testing.T, e *env) {
	get := func(s events.Stream, code string) string {
		version, state, ok, err := e.Snapshot(t.Context(), s, code)
		return fmt.Sprintf("%d %s %v %v", version, state, ok, err)
	}
	keep := func(code string, version int64, state string) {
		if err := e.KeepSnapshot(t.Context(), stream("a"), code, version, []byte(state)); err != nil {
			t.Error(err)
		}
	}
	keep("v1", 3, "three")
	keep("v1", 2, "two") // a slow one comes late
	keep("v2", 1, "")
	if got := get(stream("a"), "v1"); got != "3 three true <nil>" {
		t.Error(got)
	}
	keep("v1", 4, "four")
	for code, wanted := range map[string]string{"v1": "4 four true <nil>", "v2": "1  true <nil>", "v3": "0  false <nil>"} {
		if got := get(stream("a"), code); got != wanted {
			t.Errorf("%s: %s", code, got)
		}
	}
	if got := get(stream("b"), "v1"); got != "0  false <nil>" {
		t.Error(got)
	}
}

func testParking(t *testing.T, e *env) {
	lot, ok := e.Store.(eventlog.Parking)
	if !ok {
		t.Fatal("the store is no Parking")
	}
	a := eventlog.Parked{Consumer: "c", Position: 4, Error: "cannot be decoded", Tries: 1, Time: at(5).UTC()}
	b := eventlog.Parked{Consumer: "c", Position: 2, Error: "cannot be encoded", Tries: 2, Time: at(6).UTC()}
	for _, p := range []eventlog.Parked{a, b, a} {
		if err := lot.Park(t.Context(), p); err != nil {
			t.Fatal(err)
		}
	}
	ps, err := lot.Parked(t.Context())
	if d := cmp.Diff([]eventlog.Parked{b, a}, ps); d != "" || err != nil {
		t.Errorf("%v %s", err, d)
	}
	for _, wanted := range []bool{true, false} {
		if was, err := lot.Unpark(t.Context(), "c", 2); err != nil || was != wanted {
			t.Errorf("unpark: %v %v", was, err)
		}
	}
}
