package logtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// testAppenders: 64 at once, on streams of their own, lose and double nothing.
func testAppenders(t *testing.T, e *env) {
	const writers, each = 64, 8
	var mu sync.Mutex
	told := map[string]int64{}
	eachAtOnce(writers, func(w int) {
		id, version := fmt.Sprint("w", w), int64(0)
		for i := range each {
			n := 1 + (w+i)%3
			key := fmt.Sprintf("%d.%d", w, i)
			o, err := e.Append(context.Background(), batch(key, id, version, n), nil)
			if err != nil {
				t.Errorf("%s: %v", key, err)
				return
			}
			version += int64(n)
			mu.Lock()
			told[key] = o.Position
			mu.Unlock()
		}
	})
	newest := map[string]int64{}
	for _, r := range e.all(t) {
		newest[r.Command] = r.Position
	}
	if len(newest) != writers*each {
		t.Errorf("%d commands in the log", len(newest))
	}
	for key, p := range told {
		if newest[key] != p {
			t.Errorf("%s was told %d and its newest event is %d", key, p, newest[key])
		}
	}
}

// testFollower: one that waits for Changed and reads after its position meets
// every event once, in order, while appends race.
func testFollower(t *testing.T, e *env) {
	const writers, each = 16, 20
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			at := int64(0)
			for at < writers*each*2 {
				changed := e.Changed()
				rs, err := e.Since(context.Background(), at, 7)
				if err != nil {
					t.Error(err)
					return
				}
				for _, r := range rs {
					if r.Position != at+1 {
						t.Errorf("position %d after %d", r.Position, at)
						return
					}
					at = r.Position
				}
				if len(rs) == 0 {
					<-changed
				}
			}
		})
	}
	eachAtOnce(writers, func(w int) {
		for i := range each {
			if _, err := e.Append(context.Background(), batch(fmt.Sprintf("%d.%d", w, i), fmt.Sprint(w), int64(i)*2, 2), nil); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
}

// errTaken is the fault of a claim that someone else holds.
var errTaken = errors.New("taken")

// testHotStream: all want the same stream at the same version. The first gets
// it, and each of the others is told who has it; no conflict reaches a caller.
func testHotStream(t *testing.T, e *env) {
	const writers, rounds = 64, 5
	for round := range rounds {
		id := fmt.Sprint("hot", round)
		var won, lost atomic.Int64
		eachAtOnce(writers, func(w int) {
			key := fmt.Sprintf("%d.%d", round, w)
			_, err := e.Append(context.Background(), batch(key, id, 0, 1), func(ctx context.Context, v eventlog.View) (eventlog.Batch, error) {
				es, err := v.Stream(ctx, stream(id), 0)
				if err != nil || len(es) == 0 {
					return eventlog.Batch{}, fmt.Errorf("decided again on %d events: %w", len(es), err)
				}
				return eventlog.Batch{}, fmt.Errorf("%w by %s", errTaken, es[0].Command)
			})
			switch {
			case err == nil:
				won.Add(1)
			case errors.Is(err, errTaken):
				lost.Add(1)
			default:
				t.Errorf("%s: %v", key, err)
			}
		})
		if won.Load() != 1 || lost.Load() != writers-1 {
			t.Errorf("round %d: %d won, %d lost", round, won.Load(), lost.Load())
		}
	}
	if rs := e.all(t); len(rs) != rounds {
		t.Errorf("%d events", len(rs))
	}
	// Each adds one: none is refused, and each sees those before it.
	eachAtOnce(writers, func(w int) {
		key := fmt.Sprint("add", w)
		if _, err := e.Append(context.Background(), batch(key, "sum", 0, 1), add(key)); err != nil {
			t.Errorf("%s: %v", key, err)
		}
	})
	if es, err := e.Stream(t.Context(), stream("sum"), 0); err != nil || len(es) != writers {
		t.Errorf("%d of %d: %v", len(es), writers, err)
	}
	e.all(t)
}

// add decides to add one event to stream "sum", whose folded state in the memo
// is its version.
func add(key string) eventlog.Decide {
	return func(ctx context.Context, v eventlog.View) (eventlog.Batch, error) {
		version, _ := v.Memo()[stream("sum")].(int64)
		es, err := v.Stream(ctx, stream("sum"), version)
		if err != nil {
			return eventlog.Batch{}, err
		}
		for _, e := range es {
			if e.Version != version+1 {
				return eventlog.Batch{}, fmt.Errorf("version %d after %d", e.Version, version)
			}
			version++
		}
		v.Memo()[stream("sum")] = version
		return batch(key, "sum", version, 1), nil
	}
}

// testOneFails: of a group, members that fail in each way fail alone.
func testOneFails(t *testing.T, e *env) {
	e.must(t, batch("known", "known", 0, 1))
	release := e.hold(t, t.Context(), "holder")
	boom := errors.New("boom")
	decide := func(b eventlog.Batch, err error) eventlog.Decide {
		return func(context.Context, eventlog.View) (eventlog.Batch, error) { return b, err }
	}
	type member struct {
		b     eventlog.Batch
		again eventlog.Decide
		check func(error) bool
	}
	fine := func(err error) bool { return err == nil }
	members := []member{
		{batch("guard", "known", 0, 1), nil, func(err error) bool { return errors.Is(err, eventlog.ErrMoved) }},
		{batch("fault", "known", 0, 1), decide(eventlog.Batch{}, boom), func(err error) bool { return errors.Is(err, boom) }},
		{batch("panic", "known", 0, 1), func(context.Context, eventlog.View) (eventlog.Batch, error) { panic("at the disco") },
			func(err error) bool { return err != nil && strings.Contains(err.Error(), "at the disco") }},
		{batch("still stale", "known", 0, 1), decide(batch("still stale", "known", 0, 1), nil), func(err error) bool { return errors.Is(err, eventlog.ErrMoved) }},
		{batch("another", "known", 0, 1), decide(batch("not another", "known", 1, 1), nil), func(err error) bool { return err != nil }},
		{batch("unlisted", "known", 0, 1), decide(eventlog.Batch{Meta: batch("unlisted", "", 0, 0).Meta, Expect: map[events.Stream]int64{stream("a"): 0},
			Happened: []events.Payload{unlisted{}}}, nil), func(err error) bool { return err != nil }},
		{batch("known", "known", 0, 1), decide(eventlog.Batch{}, boom), fine}, // a repeat
	}
	for i := range 8 {
		members = append(members, member{batch(fmt.Sprint("fine", i), fmt.Sprint("fine", i), 0, 2), nil, fine})
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		eachAtOnce(len(members), func(i int) {
			m := members[i]
			if _, err := e.Append(context.Background(), m.b, m.again); !m.check(err) {
				t.Errorf("%s: %v", m.b.Meta.Command, err)
			}
		})
	}()
	if _, err := release(); err != nil {
		t.Errorf("holder: %v", err)
	}
	<-done
	if rs := e.all(t); len(rs) != 2+16 {
		t.Errorf("%d events: %s", len(rs), keys(rs))
	}
}

// testGroupUnseen: what a group has written is not seen before it is durable,
// and followers are woken then.
func testGroupUnseen(t *testing.T, e *env) {
	changed := e.Changed()
	inside, goOn, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(goOn) })
	t.Cleanup(letGo)
	release := e.hold(t, t.Context(), "first")
	go func() {
		defer close(done)
		var wg sync.WaitGroup
		for i := range 4 {
			key := fmt.Sprint("before", i)
			wg.Go(func() {
				if _, err := e.Append(context.Background(), batch(key, key, 0, 1), nil); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Go(func() {
			_, err := e.Append(context.Background(), batch("late", "late", 9, 1), func(context.Context, eventlog.View) (eventlog.Batch, error) {
				close(inside)
				<-goOn
				return batch("late", "late", 0, 1), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
	}()
	select {
	case <-changed:
		t.Error("woken before the commit")
	default:
	}
	if rs := e.all(t); len(rs) != 0 {
		t.Errorf("%d events are seen before the commit", len(rs))
	}
	if _, err := release(); err != nil {
		t.Fatal(err)
	}
	<-changed // else it would hang
	<-inside
	seen := len(e.all(t))
	if _, known, err := e.Outcome(t.Context(), "PR-1", "late"); known || err != nil {
		t.Errorf("the outcome is seen before the commit (%v)", err)
	}
	letGo()
	<-done
	if rs := e.all(t); len(rs) != 6 || seen >= 6 {
		t.Errorf("%d events, %d before the last commit", len(rs), seen)
	}
}
