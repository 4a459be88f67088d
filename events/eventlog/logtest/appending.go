package logtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/oklog/ulid/v2"

	"roundtable/events"
	"roundtable/events/eventlog"
)

func testEmpty(t *testing.T, e *env) {
	if rs := e.all(t); len(rs) != 0 {
		t.Errorf("%d events", len(rs))
	}
	if _, ok, err := e.Outcome(t.Context(), "PR-1", "k"); ok || err != nil {
		t.Errorf("outcome: %v %v", ok, err)
	}
	if es, err := e.Stream(t.Context(), stream("a"), 0); len(es) != 0 || err != nil {
		t.Errorf("stream: %v %v", es, err)
	}
	if _, ok, err := e.Lease(t.Context(), "k", time.Now(), time.Now()); ok || err != nil {
		t.Errorf("lease: %v %v", ok, err)
	}
	if at, err := e.Checkpoint(t.Context(), "c"); at != 0 || err != nil {
		t.Errorf("checkpoint: %v %v", at, err)
	}
}

// testAppend: an event comes back as it was written, by every way.
func testAppend(t *testing.T, e *env) {
	b := batch("k1", "a", 0, 2)
	o := e.must(t, b)
	if o.Position != 2 || o.Repeated || !bytes.Equal(o.Digest, b.Digest) || !bytes.Equal(o.Answer, b.Answer) {
		t.Errorf("outcome %+v", o)
	}
	rs := e.all(t)
	es, err := e.Stream(t.Context(), stream("a"), 0)
	if err != nil || len(es) != 2 || len(rs) != 2 {
		t.Fatalf("%d in the stream, %d in all, %v", len(es), len(rs), err)
	}
	for i, r := range rs {
		fromRecord, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(fromRecord, es[i]); d != "" {
			t.Errorf("record and stream differ: %s", d)
		}
		if d := cmp.Diff(es[i].Meta, b.Meta); d != "" {
			t.Errorf("meta: %s", d)
		}
		if d := cmp.Diff(es[i].Payload, b.Happened[i]); d != "" {
			t.Errorf("payload: %s", d)
		}
		if r.Time.Location() != time.UTC || !r.Time.Equal(rs[0].Time) || r.Time.Nanosecond()%1000 == 0 {
			t.Errorf("time %v: want one of the request, in UTC, to the nanosecond", r.Time)
		}
		if r.Type != "task.created" || r.Schema != 1 || r.Workspace != "WS-1" {
			t.Errorf("record %+v", r)
		}
	}
	if rs[0].ID >= rs[1].ID {
		t.Errorf("ids do not grow: %s, %s", rs[0].ID, rs[1].ID)
	}
	if es, err := e.Stream(t.Context(), stream("a"), 1); err != nil || len(es) != 1 || es[0].Version != 2 {
		t.Errorf("after version 1: %v %v", es, err)
	}
}

// testGuards: an append is refused if any stream its decision rests on is not
// where it was read, behind or ahead, and then leaves nothing.
func testGuards(t *testing.T, e *env) {
	also := func(b eventlog.Batch, id string, version int64) eventlog.Batch {
		b.Expect[stream(id)] = version
		return b
	}
	for i, step := range []struct {
		b  eventlog.Batch
		ok bool
	}{
		{batch("1", "p", 0, 1), true},
		{also(batch("2", "q", 0, 1), "p", 0), false}, // p is at 1
		{batch("3", "q", 1, 1), false},               // ahead of q
		{also(batch("4", "q", 0, 1), "p", 1), true},
		{also(batch("5", "q", 1, 3), "none", 0), true},
		{batch("6", "q", 3, 1), false},
		{batch("7", "q", 4, 0), true}, // nothing happened, and yet the guard holds
		{batch("8", "q", 3, 0), false},
	} {
		_, err := e.Append(t.Context(), step.b, nil)
		if step.ok && err != nil {
			t.Errorf("step %d: %v", i, err)
		} else if !step.ok {
			want(t, err, eventlog.ErrMoved, fmt.Sprint("step ", i))
			if _, known, err := e.Outcome(t.Context(), "PR-1", step.b.Meta.Command); known || err != nil {
				t.Errorf("step %d left an outcome (%v)", i, err)
			}
		}
	}
	if rs := e.all(t); keys(rs) != "1 4 5" {
		t.Errorf("the log holds %s", keys(rs))
	}
}

// testRefused: what can never be right is refused and leaves nothing.
func testRefused(t *testing.T, e *env) {
	change := func(f func(*eventlog.Batch)) eventlog.Batch {
		b := batch("k", "a", 0, 1)
		f(&b)
		return b
	}
	for name, b := range map[string]eventlog.Batch{
		"no actor":         change(func(b *eventlog.Batch) { b.Meta.Actor = "" }),
		"no key":           change(func(b *eventlog.Batch) { b.Meta.Command = "" }),
		"long answer":      change(func(b *eventlog.Batch) { b.Answer = make([]byte, eventlog.MaxAnswer+1) }),
		"not UTF-8":        change(func(b *eventlog.Batch) { b.Meta.Session = "\xff" }),
		"unread stream":    change(func(b *eventlog.Batch) { b.Happened = happened("b", 1) }),
		"unlisted payload": change(func(b *eventlog.Batch) { b.Happened = []events.Payload{unlisted{}} }),
		"stream not UTF-8": change(func(b *eventlog.Batch) { b.Expect["task/\xff"] = 0; b.Happened = happened("\xff", 1) }),
	} {
		if _, err := e.Append(t.Context(), b, nil); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if rs := e.all(t); len(rs) != 0 {
		t.Errorf("%d events", len(rs))
	}
	e.must(t, change(func(b *eventlog.Batch) { b.Answer, b.Digest = make([]byte, eventlog.MaxAnswer), nil }))
}

type unlisted struct{}

func (unlisted) Stream() events.Stream { return stream("a") }

// testOutcomes: a command has one outcome, also one that changed nothing.
func testOutcomes(t *testing.T, e *env) {
	e.must(t, batch("0", "a", 0, 3))
	for _, c := range []struct {
		b        eventlog.Batch
		position int64
	}{
		{batch("nothing", "a", 3, 0), 3},
		{batch("something", "b", 0, 2), 5},
	} {
		if o := e.must(t, c.b); o.Position != c.position || o.Repeated {
			t.Errorf("%s: %+v", c.b.Meta.Command, o)
		}
		e.must(t, batch("after "+c.b.Meta.Command, "c"+c.b.Meta.Command, 0, 0))
		repeat := c.b
		repeat.Digest, repeat.Answer = []byte("another"), []byte("another")
		for _, b := range []eventlog.Batch{c.b, repeat} { // one at a guard that has moved, one that has not
			o, err := e.Append(t.Context(), b, func(context.Context, eventlog.View) (eventlog.Batch, error) {
				t.Error("a repeat was decided again")
				return b, nil
			})
			looked, known, err2 := e.Outcome(t.Context(), "PR-1", b.Meta.Command)
			if err != nil || err2 != nil || !known {
				t.Fatalf("repeat: %v %v %v", err, known, err2)
			}
			wanted := eventlog.Outcome{Digest: c.b.Digest, Position: c.position, Answer: c.b.Answer, Repeated: true}
			if d := cmp.Diff(wanted, o) + cmp.Diff(wanted, looked); d != "" {
				t.Errorf("repeat of %s: %s", b.Meta.Command, d)
			}
		}
	}
	other := batch("something", "d", 0, 1)
	other.Meta.Actor = "PR-2"
	if o := e.must(t, other); o.Repeated || o.Position != 6 {
		t.Errorf("another actor's key: %+v", o)
	}
	e.all(t)
}

// testKeysAtOnce: of many runs of one command at once, one is written, and all
// get its outcome.
func testKeysAtOnce(t *testing.T, e *env) {
	const runs, commands = 16, 8
	positions := make([]int64, runs*commands)
	eachAtOnce(runs*commands, func(i int) {
		key := fmt.Sprint("k", i%commands)
		o, err := e.Append(context.Background(), batch(key, fmt.Sprint("s", i%commands), 0, 2), nil)
		if err != nil {
			t.Errorf("%s: %v", key, err)
		}
		positions[i] = o.Position
	})
	for i, p := range positions {
		if p != positions[i%commands] {
			t.Errorf("run %d of k%d was told %d, another %d", i/commands, i%commands, p, positions[i%commands])
		}
	}
	if rs := e.all(t); len(rs) != 2*commands {
		t.Errorf("%d events", len(rs))
	}
}

// testSeveralStreams: one batch may be of several streams, in any order.
func testSeveralStreams(t *testing.T, e *env) {
	b := batch("1", "a", 0, 0)
	b.Expect[stream("b")], b.Expect[stream("c")] = 0, 0
	b.Happened = slices.Concat(happened("a", 1), happened("b", 2), happened("a", 2))
	e.must(t, b)
	b = batch("2", "a", 3, 2)
	b.Expect[stream("b")] = 2
	b.Happened = append(b.Happened, happened("b", 1)...)
	e.must(t, b)
	rs := e.all(t)
	var order []string
	for _, r := range rs {
		order = append(order, fmt.Sprintf("%s@%d", strings.TrimPrefix(string(r.Stream), "task/"), r.Version))
	}
	if got := strings.Join(order, " "); got != "a@1 b@1 b@2 a@2 a@3 a@4 a@5 b@3" {
		t.Errorf("order %s", got)
	}
}

func testPages(t *testing.T, e *env) {
	for i := range 10 {
		e.must(t, batch(fmt.Sprint(i), fmt.Sprint(i%3), int64(i/3), 1))
	}
	all := e.all(t)
	for limit := range 12 {
		for after := range int64(12) {
			rs, err := e.Since(t.Context(), after, limit)
			if err != nil {
				t.Fatal(err)
			}
			from := min(int(after), len(all))
			if d := cmp.Diff(all[from:min(from+limit, len(all))], rs, cmp.Transformer("empty", func(r []events.Record) int { return len(r) })); len(rs) == 0 && d != "" {
				t.Errorf("Since(%d, %d): %s", after, limit, d)
			} else if len(rs) > 0 {
				if d := cmp.Diff(all[from:min(from+limit, len(all))], rs); d != "" {
					t.Errorf("Since(%d, %d): %s", after, limit, d)
				}
			}
		}
	}
}

// testReopen: what is known of the log comes back with it.
func testReopen(t *testing.T, e *env) {
	e.must(t, batch("1", "a", 0, 2))
	before := e.all(t)
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e.reopen(t)
	if d := cmp.Diff(before, e.all(t)); d != "" {
		t.Error(d)
	}
	_, err := e.Append(t.Context(), batch("2", "a", 0, 1), nil)
	want(t, err, eventlog.ErrMoved, "stale after reopening")
	if o := e.must(t, batch("1", "a", 0, 2)); !o.Repeated {
		t.Error("the outcome was forgotten")
	}
	e.must(t, batch("3", "a", 2, 1))
	if after := e.all(t); after[2].ID <= after[1].ID {
		t.Errorf("ids do not grow over a restart: %s, %s", after[1].ID, after[2].ID)
	}
}

// testClockGoesBack: nothing but the recorded time follows the clock.
func testClockGoesBack(t *testing.T, e *env) {
	for i, at := range []time.Time{time.Unix(2e9, 0), time.Unix(1e9, 5), time.Unix(-5, 0), time.Unix(2e9, 0), time.Unix(2e9, 0), time.Unix(3e9, 0)} {
		e.clock.set(at)
		e.must(t, batch(fmt.Sprint(i), "a", int64(i)*2, 2))
	}
	rs := e.all(t)
	if !slices.IsSortedFunc(rs, func(a, b events.Record) int { return strings.Compare(a.ID, b.ID) }) {
		t.Error("ids do not grow")
	}
	if sec := rs[2].Time.Unix(); sec != 1e9 {
		t.Errorf("recorded time %v", rs[2].Time)
	}
	seen := map[string]bool{}
	for _, r := range rs {
		if _, err := ulid.ParseStrict(r.ID); err != nil || seen[r.ID] {
			t.Errorf("id %s: seen before %v, %v", r.ID, seen[r.ID], err)
		}
		seen[r.ID] = true
	}
}
