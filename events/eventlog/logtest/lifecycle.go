package logtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// testCancelled: a context ends its request while that waits in the queue, and
// no longer once it is in a group or leads one.
func testCancelled(t *testing.T, e *env) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := e.Append(ended, batch("ended", "ended", 0, 1), nil)
	want(t, err, context.Canceled, "ended before")

	leads, cancelLeader := context.WithCancel(context.Background())
	release := e.hold(t, leads, "leader")
	waits, cancelWaiting := context.WithCancel(context.Background())
	left := make(chan error)
	go func() {
		_, err := e.Append(waits, batch("waiting", "waiting", 0, 1), nil)
		left <- err
	}()
	cancelWaiting() // whether it is in the queue yet or not, it must leave now
	want(t, <-left, context.Canceled, "cancelled in the queue")
	cancelLeader()
	if o, err := release(); err != nil || o.Position != 1 {
		t.Errorf("cancelled while leading: %+v, %v", o, err)
	}

	// Taken into another's group: cancelled from inside its own decision.
	release = e.hold(t, t.Context(), "second")
	var wg sync.WaitGroup
	for i := range 8 {
		ctx, cancel := context.WithCancel(context.Background())
		key := fmt.Sprint("taken", i)
		wg.Go(func() {
			defer cancel()
			_, err := e.Append(ctx, batch(key, "shared", 99, 1), func(ctx context.Context, v eventlog.View) (eventlog.Batch, error) {
				cancel()
				es, err := v.Stream(ctx, stream("shared"), 0)
				return batch(key, "shared", int64(len(es)), 1), err
			})
			if err != nil {
				t.Errorf("cancelled when taken: %v", err)
			}
		})
	}
	if _, err := release(); err != nil {
		t.Error(err)
	}
	wg.Wait()
	if rs := e.all(t); len(rs) != 2+8 {
		t.Errorf("%d events: %s", len(rs), keys(rs))
	}
}

// testView: a decision inside a group sees the log and what the group has made
// of it, of old and of new streams, from any version.
func testView(t *testing.T, e *env) {
	e.must(t, batch("old", "a", 0, 5))
	var kept eventlog.View
	release := e.hold(t, t.Context(), "holder")
	done := make(chan struct{})
	go func() {
		defer close(done)
		eachAtOnce(6, func(i int) {
			key := fmt.Sprint("d", i)
			_, err := e.Append(context.Background(), batch(key, "a", 99, 1), func(ctx context.Context, v eventlog.View) (eventlog.Batch, error) {
				kept = v
				whole, err := v.Stream(ctx, stream("a"), 0)
				if err != nil {
					return eventlog.Batch{}, err
				}
				for after := range int64(len(whole)) + 2 {
					es, err := v.Stream(ctx, stream("a"), after)
					if err != nil || len(es) != max(0, len(whole)-int(after)) {
						return eventlog.Batch{}, fmt.Errorf("after %d of %d: %d, %w", after, len(whole), len(es), err)
					}
					for j, ev := range es {
						if ev.Version != after+int64(j)+1 || ev.Stream() != stream("a") || ev.ID != whole[ev.Version-1].ID {
							return eventlog.Batch{}, fmt.Errorf("after %d: %+v", after, ev)
						}
					}
				}
				none, err := v.Stream(ctx, stream("none"), 0)
				if err != nil || len(none) != 0 {
					return eventlog.Batch{}, fmt.Errorf("none: %d, %w", len(none), err)
				}
				b := batch(key, "a", int64(len(whole)), 2)
				b.Expect[stream("new"+key)] = 0
				b.Happened = append(b.Happened, happened("new"+key, 1)...)
				return b, nil
			})
			if err != nil {
				t.Errorf("%s: %v", key, err)
			}
		})
	}()
	if _, err := release(); err != nil {
		t.Error(err)
	}
	<-done
	if es, err := e.Stream(t.Context(), stream("a"), 0); err != nil || len(es) != 5+12 {
		t.Errorf("%d events, %v", len(es), err)
	}
	e.all(t)
	if _, err := kept.Stream(t.Context(), events.Stream("task/a"), 0); err == nil {
		t.Error("a view can be used after its decision")
	}
}

// testClose: what runs is finished, what waits too, and what comes is refused.
func testClose(t *testing.T, e *env) {
	release := e.hold(t, t.Context(), "running")
	closed := make(chan error)
	go func() { closed <- e.Close() }()
	// Close has begun once a new request is refused; until then ours are accepted and wait.
	var wg sync.WaitGroup
	var mu sync.Mutex
	accepted := 0
	for i := 0; ; i++ {
		ctx, cancel := context.WithCancel(context.Background())
		refused := make(chan bool, 1)
		wg.Go(func() {
			_, err := e.Append(ctx, batch(fmt.Sprint("w", i), fmt.Sprint("w", i), 0, 1), nil)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				accepted++
			case !errors.Is(err, eventlog.ErrClosed) && !errors.Is(err, context.Canceled):
				t.Errorf("waiting at close: %v", err)
			}
			refused <- errors.Is(err, eventlog.ErrClosed)
		})
		cancel()
		if <-refused {
			break
		}
	}
	if _, err := release(); err != nil {
		t.Errorf("running at close: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
	wg.Wait()
	_, err := e.Append(t.Context(), batch("late", "late", 0, 1), nil)
	want(t, err, eventlog.ErrClosed, "append after close")
	_, err = e.Since(t.Context(), 0, 1)
	want(t, err, eventlog.ErrClosed, "read after close")
	if err := e.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	e.reopen(t)
	if rs := e.all(t); len(rs) != 1+accepted {
		t.Errorf("%d events, %d accepted", len(rs), accepted)
	}
}
