package projections

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"roundtable/events"
)

// following runs v until stop is called, which fails the test if Run failed.
func following(t *testing.T, v *Views) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// until waits for the views to be as cond says.
func until(t *testing.T, v *Views, cond func([]Status) bool) []Status {
	t.Helper()
	for {
		moved := v.moved.Next()
		all, err := v.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if cond(all) {
			return all
		}
		select {
		case <-moved:
		case <-time.After(20 * time.Second):
			t.Fatalf("stuck at %+v", all)
		}
	}
}

func caughtUp(all []Status) bool {
	for _, s := range all {
		if s.Lag != 0 {
			return false
		}
	}
	return true
}

// TestFollow: views keep up with a log that grows, through restarts, while
// many read; what a read shows is never older than what it waited for, nor
// torn.
func TestFollow(t *testing.T) {
	v, log := newViews(t)
	history := example(t, 400)
	stop := following(t, v)
	r := NewReader(v, func() time.Time { return epoch }, Limits{Wait: 20 * time.Second})
	var readers sync.WaitGroup
	for i, p := range history {
		at := log.add(epoch.Add(time.Duration(i)), p)
		if e, ok := p.(events.ProposalCreated); ok {
			readers.Go(func() {
				got, shown, err := r.Show(t.Context(), "proposal", e.Workspace, e.Proposal, at)
				if err != nil || shown < at {
					t.Errorf("%s at %d, asked for %d: %v", got, shown, at, err)
				}
			})
		}
		if i == len(history)/2 {
			readers.Wait()
			stop()
			stop = following(t, v)
		}
	}
	readers.Wait()
	until(t, v, caughtUp)
	stop()
	past, err := At(t.Context(), log, int64(len(history)))
	if err != nil {
		t.Fatal(err)
	}
	defer past.Close()
	if d := cmp.Diff(tables(t.Context(), t, past.db), tables(t.Context(), t, v.db.Read)); d != "" {
		t.Error(d)
	}
}

// TestStopsAlone: an event that a projector cannot take stops that one, and
// the rest goes on; once what was in the way is gone, a rebuild lets it go on.
func TestStopsAlone(t *testing.T) {
	for name, poison := range map[string]func(*memLog){
		"about nothing": func(l *memLog) { l.add(epoch, events.ClaimReleased{Claim: "none", Workspace: "WS-0001"}) },
		"twice":         func(l *memLog) { claim := grant("C-1"); l.add(epoch, claim, claim) },
	} {
		t.Run(name, func(t *testing.T) {
			v, log := newViews(t)
			log.add(epoch, example(t, 30)...)
			good := len(log.records)
			following(t, v)
			until(t, v, caughtUp)
			poison(log)
			log.add(epoch, events.TaskCreated{Task: "T-after", Workspace: "WS-0001"})
			all := until(t, v, func(all []Status) bool {
				n := 0
				for _, s := range all {
					if (s.Lag == 0) == (s.Name != "claims") && (s.Error == "") == (s.Name != "claims") {
						n++
					}
				}
				return n == len(all)
			})
			for _, s := range all {
				if s.Name == "claims" && (s.Position != int64(good) || !strings.Contains(s.Error, "position ")) {
					t.Errorf("%+v", s)
				}
			}
			if _, err := v.Rebuild(t.Context(), "claims"); err == nil {
				t.Fatal("rebuilt over the same poison")
			}
			log.mu.Lock()
			log.records = append(log.records[:good:good], record(int64(good+1), epoch, grant("C-1")))
			log.mu.Unlock()
			if at, err := v.Rebuild(t.Context(), "claims"); err != nil || at != int64(good+1) {
				t.Fatal(at, err)
			}
			log.add(epoch, grant("C-2"), grant("C-3"))
			until(t, v, func(all []Status) bool { return all[3].Name == "claims" && all[3].Lag == 0 && all[3].Error == "" })
		})
	}
}

func grant(id string) events.Payload {
	return events.ClaimGranted{Claim: id, Workspace: "WS-0001", Resource: "file:a", GrantedAt: epoch, ExpiresAt: epoch}
}

// TestUndecodable: an event that nobody can read stops every view before it.
func TestUndecodable(t *testing.T) {
	v, log := newViews(t)
	log.add(epoch, example(t, 30)...)
	good := int64(len(log.records))
	log.add(epoch, grant("C-1"))
	log.records[good].Data = []byte(`{"fence": "x"}`)
	following(t, v)
	for _, s := range until(t, v, func(all []Status) bool {
		return !slices.ContainsFunc(all, func(s Status) bool { return s.Error == "" })
	}) {
		if s.Position > good || !strings.Contains(s.Error, "claim.granted") {
			t.Errorf("%+v", s)
		}
	}
}

// TestPanicStops: a projector that panics stops like one that fails.
func TestPanicStops(t *testing.T) {
	v, log := newViews(t)
	v.ps = []Projector{tasks, {Name: "broken", on: when(on(func(context.Context, *rows, events.Event, events.TaskCreated) error { panic("broken") }))}}
	following(t, v)
	log.add(epoch, events.TaskCreated{Task: "T-1", Workspace: "WS-1"})
	until(t, v, func(all []Status) bool { return all[0].Lag == 0 && strings.Contains(all[1].Error, "broken") })
}

// TestRebuildOnline rebuilds again and again while the log grows and readers
// read: no row is missing from any answer, and the end is the same.
func TestRebuildOnline(t *testing.T) {
	v, log := newViews(t)
	history := example(t, 300)
	log.add(epoch, history[:100]...)
	following(t, v)
	until(t, v, caughtUp)
	r := NewReader(v, func() time.Time { return epoch }, Limits{Wait: 20 * time.Second})
	var others sync.WaitGroup
	others.Go(func() {
		for i := range 3 {
			if _, err := v.Rebuild(t.Context()); err != nil {
				t.Error(i, err)
			}
		}
	})
	others.Go(func() {
		last := int64(0)
		for i, p := range history[100:] {
			at := log.add(epoch, p)
			if i%10 != 0 {
				continue
			}
			_, shown, err := r.Show(t.Context(), "workspace", "", "WS-0001", at)
			if err != nil || shown < last {
				t.Error(fmt.Sprint("at ", shown, " after ", last), err)
			}
			last = shown
		}
	})
	others.Wait()
	until(t, v, caughtUp)
	past, err := At(t.Context(), log, int64(len(history)))
	if err != nil {
		t.Fatal(err)
	}
	defer past.Close()
	if d := cmp.Diff(tables(t.Context(), t, past.db), tables(t.Context(), t, v.db.Read)); d != "" {
		t.Error(d)
	}
}
