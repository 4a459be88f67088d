package sqlitelog

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/sqlite"
)

func openLog(t *testing.T) (*Store, *sqlite.DB) {
	db, err := sqlite.OpenLog(t.Context(), filepath.Join(t.TempDir(), "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := New(t.Context(), db, Options{Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, db
}

// together runs requests as one group: they enter while a leader is held.
func together(t *testing.T, s *Store, run ...func(ctx context.Context, g *group) error) []error {
	t.Helper()
	inside, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.submit(context.Background(), newRequest(0, func(context.Context, *group) error {
			close(inside)
			<-goOn
			return nil
		}))
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	errs := make([]error, len(run))
	for i, f := range run {
		r := newRequest(0, f)
		if lead, err := s.queue.enter(r); lead || err != nil {
			t.Fatalf("request %d: lead %v, %v", i, lead, err)
		}
		wg.Go(func() {
			if s.queue.wait(context.Background(), r) {
				members := s.queue.take()
				defer s.queue.pass(members, r)
				if len(members) != len(run) {
					t.Errorf("a group of %d, not %d", len(members), len(run))
				}
				s.commit(context.Background(), members)
			}
			errs[i] = r.err
		})
	}
	close(goOn)
	wg.Wait()
	return errs
}

// appending is a request that appends command key to a stream of its own.
func appending(key string) func(ctx context.Context, g *group) error {
	return func(ctx context.Context, g *group) error {
		p, err := prepare(command(key, key, 0))
		if err == nil {
			_, err = g.append(ctx, ctx, p, nil)
		}
		return err
	}
}

func whole(t *testing.T, s *Store, events int64) {
	t.Helper()
	rep, err := eventlog.Verify(t.Context(), eventlog.Records(t.Context(), s, 0, 0), eventlog.Point{})
	if err != nil || !rep.OK || rep.Events != events {
		t.Errorf("want %d events: %+v, %v", events, rep, err)
	}
}

// TestMemberFails: in one group, a statement that the database refuses, half
// way through its request, and a panic between two statements, undo their own
// request alone.
func TestMemberFails(t *testing.T) {
	s, db := openLog(t)
	if _, err := db.Read.Exec(`SELECT 1`); err != nil {
		t.Fatal(err)
	}
	half := func(ctx context.Context, g *group, then func() error) error {
		if err := g.write(ctx); err != nil {
			return err
		}
		if _, err := g.exec(ctx, `INSERT INTO snapshots (stream, code, version, state) VALUES ('half', 'c', 1, x'')`); err != nil {
			return err
		}
		return then()
	}
	errs := together(t, s,
		appending("a"),
		func(ctx context.Context, g *group) error {
			return half(ctx, g, func() error {
				_, err := g.exec(ctx, `INSERT INTO snapshots (stream, code, version, state) VALUES ('half', 'd', 'no number', x'')`)
				return err
			})
		},
		appending("b"),
		func(ctx context.Context, g *group) error {
			return half(ctx, g, func() error { panic("half way") })
		},
		func(ctx context.Context, g *group) error { // a statement that cannot even be read, before anything is written
			_, err := g.find(ctx, `SELECT x FROM nowhere`, nil)
			return err
		},
		appending("c"),
	)
	for i, want := range []string{"", "cannot store TEXT", "", "half way", "no such table", ""} {
		if got := fmt.Sprint(errs[i]); (errs[i] == nil) != (want == "") || !strings.Contains(got, want) {
			t.Errorf("member %d: %v, want %q", i, errs[i], want)
		}
	}
	whole(t, s, 6)
	if _, _, ok, err := s.Snapshot(t.Context(), "half", "c"); ok || err != nil {
		t.Errorf("half of a request is there (%v)", err)
	}
}

// TestTransactionEnds: if the transaction has ended under a group, nobody is
// told that anything was written.
func TestTransactionEnds(t *testing.T) {
	s, _ := openLog(t)
	errs := together(t, s, appending("a"), func(ctx context.Context, g *group) error {
		if _, err := g.exec(ctx, `ROLLBACK`); err != nil { // as SQLite does by itself when the disk is full
			return err
		}
		_, err := g.find(ctx, `SELECT x FROM nowhere`, nil)
		return err
	}, appending("b"))
	for i, err := range errs {
		if err == nil {
			t.Errorf("member %d was told of success", i)
		}
	}
	whole(t, s, 0)
	if _, err := s.Append(t.Context(), command("a", "a", 0), nil); err != nil {
		t.Error(err)
	}
	whole(t, s, 2)
}

// TestOtherWriter: a second writer on the file, which the folder's lock is to
// prevent, makes a group fail and never makes the log wrong; the next one goes
// on from what is there.
func TestOtherWriter(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log.db")
	var two [2]*Store
	for i := range two {
		s, err := Open(t.Context(), path, Options{Now: time.Now})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		two[i] = s
	}
	if _, err := two[0].Append(t.Context(), command("a", "a", 0), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := two[1].Append(t.Context(), command("b", "b", 0), nil); err == nil {
		t.Error("appended after a head that was not the newest")
	}
	if _, err := two[1].Append(t.Context(), command("b", "b", 0), nil); err != nil {
		t.Errorf("after the failure: %v", err)
	}
	for _, err := range together(t, two[0], appending("c"), appending("d")) {
		if err == nil {
			t.Error("a group appended after a head that was not the newest")
		}
	}
	whole(t, two[0], 4)
}

// TestLeaderBreaksOff: the others are answered, and the lead is passed on, also
// if the leader's goroutine ends inside a decision or in the store's own code.
func TestLeaderBreaksOff(t *testing.T) {
	s, _ := openLog(t)
	for name, f := range map[string]eventlog.Decide{
		"goexit": func(context.Context, eventlog.View) (eventlog.Batch, error) {
			runtime.Goexit()
			return eventlog.Batch{}, nil
		},
		"panic": func(context.Context, eventlog.View) (eventlog.Batch, error) { panic("in a decision") },
	} {
		done := make(chan struct{})
		go func() {
			defer close(done)
			if _, err := s.Append(context.Background(), command(name, name, 9), f); err == nil {
				t.Errorf("%s: no error", name)
			}
		}()
		<-done
		if _, err := s.Append(t.Context(), command("after "+name, "after "+name, 0), nil); err != nil {
			t.Errorf("after %s: %v", name, err)
		}
	}
	whole(t, s, 4)
}

// TestFull: past its bound the queue refuses, says so, and goes on after.
func TestFull(t *testing.T) {
	s, _ := openLog(t)
	inside, goOn := make(chan struct{}), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		err := s.submit(context.Background(), newRequest(0, func(context.Context, *group) error { close(inside); <-goOn; return nil }))
		if err != nil {
			t.Error(err)
		}
	})
	<-inside
	nothing := func(context.Context, *group) error { return nil }
	var waiting []*request
	for range maxWaiting {
		r := newRequest(1000, nothing)
		if lead, err := s.queue.enter(r); lead || err != nil {
			t.Fatal(lead, err)
		}
		waiting = append(waiting, r)
	}
	if _, err := s.Append(t.Context(), command("k", "k", 0), nil); !errors.Is(err, eventlog.ErrFull) {
		t.Errorf("one too many: %v", err)
	}
	close(goOn)
	groups := 0
	for _, r := range waiting {
		if s.queue.wait(context.Background(), r) {
			groups++
			members := s.queue.take()
			if len(members) > maxGroup || len(members)*1000 > maxGroupLen {
				t.Errorf("a group of %d", len(members))
			}
			s.commit(context.Background(), members)
			s.queue.pass(members, r)
		}
	}
	wg.Wait()
	if want := (maxWaiting + maxGroup - 1) / maxGroup; groups < want {
		t.Errorf("%d groups, want at least %d", groups, want)
	}
	if _, err := s.Append(t.Context(), command("k", "k", 0), nil); err != nil {
		t.Errorf("after the rush: %v", err)
	}
}

// TestBig: one request may be larger than a group.
func TestBig(t *testing.T) {
	s, _ := openLog(t)
	b := command("k", "k", 0)
	p := b.Happened[0].(events.TaskCreated)
	p.Body = strings.Repeat("x", 3<<20)
	b.Happened = []events.Payload{p, p}
	if _, err := s.Append(t.Context(), b, nil); err != nil {
		t.Error(err)
	}
	whole(t, s, 2)
}

// TestNextID: ids grow, whatever the clock does and whatever entropy says.
func TestNextID(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var last ulid.ULID
		if rapid.Bool().Draw(t, "near the end of a millisecond") {
			last = ulid.MustParse("01JDXKZ000ZZZZZZZZZZZZZZZZ")
		}
		for range 50 {
			now := time.UnixMilli(rapid.Int64Range(-10, 4e12).Draw(t, "now"))
			fill := byte(rapid.IntRange(0, 255).Draw(t, "entropy"))
			id, err := nextID(last, now, func(b []byte) error {
				for i := range b {
					b[i] = fill
				}
				return nil
			})
			if err != nil || id.Compare(last) <= 0 {
				t.Fatalf("%s after %s: %v", id, last, err)
			}
			last = id
		}
	})
	if _, err := nextID(ulid.ULID{}, time.Now(), func([]byte) error { return errors.New("dry") }); err == nil {
		t.Error("no entropy, and an id")
	}
}

// TestCache: what is in use stays known, and the cache is bounded.
func TestCache(t *testing.T) {
	c := newCache()
	for i := range 3 * cacheSize {
		c.put("hot", place{1, int64(i)})
		c.put(events.Stream(fmt.Sprint(i)), place{2, 2})
	}
	if p, ok := c.get("hot"); !ok || p.version != 3*cacheSize-1 {
		t.Errorf("%+v %v", p, ok)
	}
	if n := len(c.newer) + len(c.older); n > 2*cacheSize {
		t.Errorf("%d places", n)
	}
	if _, ok := c.get("0"); ok {
		t.Error("the oldest is still there")
	}
}

// TestDurable: the connection that the store writes through is at FULL.
func TestDurable(t *testing.T) {
	s, _ := openLog(t)
	var n int
	if _, err := s.writer.find(t.Context(), `PRAGMA synchronous`, nil, &n); err != nil || n != 2 {
		t.Errorf("synchronous is %d, %v", n, err)
	}
	s.drop() // as after a failure: the next connection is no other
	if _, err := s.Append(t.Context(), command("k", "k", 0), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.writer.find(t.Context(), `PRAGMA synchronous`, nil, &n); err != nil || n != 2 {
		t.Errorf("after a failure synchronous is %d, %v", n, err)
	}
}
