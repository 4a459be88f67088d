package eventlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// A memory is a log in memory that can be broken.
type memory struct {
	mu      sync.Mutex
	rs      []events.Record
	changed chan struct{}
	err     error
	reads   atomic.Int64
}

func newMemory(rs []events.Record) *memory { return &memory{rs: rs, changed: make(chan struct{})} }

func (m *memory) Since(_ context.Context, position int64, limit int) ([]events.Record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.reads.Add(1)
	var rs []events.Record
	for _, r := range m.rs {
		if r.Position > position && len(rs) < limit {
			rs = append(rs, r)
		}
	}
	return rs, m.err
}

func (m *memory) Head(context.Context) (int64, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.rs) == 0 {
		return 0, "", m.err
	}
	last := m.rs[len(m.rs)-1]
	return last.Position, last.Hash, m.err
}

func (m *memory) Changed() <-chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.changed
}

// set replaces what the log holds and wakes its followers.
func (m *memory) set(rs []events.Record, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rs, m.err = rs, err
	close(m.changed)
	m.changed = make(chan struct{})
}

func TestExport(t *testing.T) {
	rs := history(30)
	rs[4].Data = []byte(`{"task_id":"\u003cb\u003e \u2028","title":"é"}`)
	rs = rehash(rs)
	var b bytes.Buffer
	if err := eventlog.Export(&b, eventlog.Records(t.Context(), newMemory(rs), 0, 0)); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	var back []events.Record
	for r, err := range eventlog.Import(&b) {
		if err != nil {
			t.Fatal(err)
		}
		back = append(back, r)
	}
	if d := cmp.Diff(rs, back); d != "" {
		t.Error(d)
	}
	rep, err := eventlog.Verify(t.Context(), eventlog.Import(strings.NewReader(text)), eventlog.Point{})
	if err != nil || !rep.OK || rep.Events != 30 {
		t.Errorf("%+v %v", rep, err)
	}
	for name, bad := range map[string]string{"cut in a line": text[:len(text)-20], "garbage": text + "x\n", "empty line": "\n" + text,
		"unknown field": strings.Replace(text, `{"position":1,`, `{"approved_by":"x","position":1,`, 1), "repeated field": strings.Replace(text, `"actor":"A"`, `"actor":"x","actor":"A"`, 1),
		"other case": strings.Replace(text, `"actor"`, `"Actor"`, 1), "space": strings.Replace(text, `,"actor"`, `, "actor"`, 1)} {
		if _, err := eventlog.Verify(t.Context(), eventlog.Import(strings.NewReader(bad)), eventlog.Point{}); err == nil || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestRecords(t *testing.T) {
	m := newMemory(history(2500))
	for _, c := range []struct{ after, until, first, last int64 }{{0, 0, 1, 2500}, {0, 1, 1, 1}, {999, 2001, 1000, 2001}, {2499, 0, 2500, 2500}, {2500, 0, 0, 0}} {
		var first, last int64
		for r, err := range eventlog.Records(t.Context(), m, c.after, c.until) {
			if err != nil {
				t.Fatal(err)
			}
			if first == 0 {
				first = r.Position
			}
			last = r.Position
		}
		if first != c.first || last != c.last {
			t.Errorf("after %d until %d: %d to %d", c.after, c.until, first, last)
		}
	}
}

func TestVerifyTail(t *testing.T) {
	m := newMemory(history(20))
	m.rs[4].Actor = "forger"
	for n, ok := range map[int64]bool{0: true, 1: true, 15: true, 16: false, 20: false, 100: false} {
		rep, err := eventlog.VerifyTail(t.Context(), m, n)
		if err != nil || rep.OK != ok || !ok && rep.FirstBad != 5 {
			t.Errorf("the last %d: %+v, %v", n, rep, err)
		}
	}
	m.rs = append(m.rs[:9], m.rs[10:]...) // position 10
	if rep, err := eventlog.VerifyTail(t.Context(), m, 10); err != nil || rep.OK || rep.FirstBad != 10 {
		t.Errorf("a hole at the start: %+v, %v", rep, err)
	}
}

// TestReplay: all events come in order, whatever the number of workers.
func TestReplay(t *testing.T) {
	m := newMemory(history(5000))
	for _, workers := range []int{0, 1, 2, 7} {
		for _, c := range []struct{ after, until, want int64 }{{0, 0, 5000}, {0, 5000, 5000}, {10, 600, 590}, {5000, 0, 0}, {0, 9999, 5000}} {
			next, n := c.after+1, int64(0)
			err := eventlog.Replay(t.Context(), m, c.after, c.until, workers, func(es []events.Event) error {
				for _, e := range es {
					if e.Position != next {
						return fmt.Errorf("position %d, want %d", e.Position, next)
					}
					next++
					n++
				}
				return nil
			})
			if err != nil || n != c.want {
				t.Errorf("%d workers, after %d until %d: %d events, %v", workers, c.after, c.until, n, err)
			}
		}
	}
}

// TestReplayEnds: the first error of any kind ends it, and nothing is left
// running (the pages read are bounded by the workers).
func TestReplayEnds(t *testing.T) {
	boom := errors.New("boom")
	nothing := func([]events.Event) error { return nil }
	t.Run("fold", func(t *testing.T) {
		m := newMemory(history(8_000))
		if err := eventlog.Replay(t.Context(), m, 0, 0, 2, func([]events.Event) error { return boom }); !errors.Is(err, boom) {
			t.Error(err)
		}
		if n := m.reads.Load(); n > 10 {
			t.Errorf("%d pages were read", n)
		}
	})
	t.Run("read", func(t *testing.T) {
		m := newMemory(history(10))
		m.err = boom
		if err := eventlog.Replay(t.Context(), m, 0, 10, 2, nothing); !errors.Is(err, boom) {
			t.Error(err)
		}
	})
	t.Run("decode", func(t *testing.T) {
		m := newMemory(history(2000))
		m.rs[1500].Type = "unknown.type"
		n := 0
		err := eventlog.Replay(t.Context(), m, 0, 0, 3, func(es []events.Event) error { n += len(es); return nil })
		if err == nil || !strings.Contains(err.Error(), "1501") || n != 1024 {
			t.Errorf("after %d events: %v", n, err)
		}
	})
	t.Run("gap", func(t *testing.T) {
		m := newMemory(history(2000))
		m.rs = append(m.rs[:700], m.rs[701:]...)
		if err := eventlog.Replay(t.Context(), m, 0, 0, 2, nothing); err == nil || !strings.Contains(err.Error(), "702 after 700") {
			t.Error(err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		n := 0
		err := eventlog.Replay(ctx, newMemory(history(8_000)), 0, 0, 2, func([]events.Event) error {
			if n++; n == 3 {
				cancel()
			}
			return nil
		})
		if !errors.Is(err, context.Canceled) || n > 10 {
			t.Errorf("%d pages, %v", n, err)
		}
	})
}

// FuzzImport: no input makes it panic, and what it takes it would write.
func FuzzImport(f *testing.F) {
	var b bytes.Buffer
	if err := eventlog.Export(&b, all(history(2))); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("{}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		var rs []events.Record
		for r, err := range eventlog.Import(bytes.NewReader(in)) {
			if err != nil {
				break
			}
			rs = append(rs, r)
		}
		var out bytes.Buffer
		if err := eventlog.Export(&out, all(rs)); err != nil {
			t.Fatal(err)
		}
		normal := bytes.ReplaceAll(append(in, '\n'), []byte("\r\n"), []byte("\n"))
		if !bytes.HasPrefix(normal, out.Bytes()) {
			t.Errorf("%q was taken as %q", in, out.Bytes())
		}
		if _, err := eventlog.Verify(t.Context(), all(rs), eventlog.Point{}); err != nil {
			t.Error(err)
		}
	})
}
