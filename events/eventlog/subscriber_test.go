package eventlog_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"roundtable/events"
	"roundtable/events/eventlog"
)

func from(position int64) func(context.Context, string) (int64, error) {
	return func(context.Context, string) (int64, error) { return position, nil }
}

func never(t *testing.T) func(string, error) {
	return func(consumer string, err error) { t.Errorf("%s failed: %v", consumer, err) }
}

// TestSubscriberOrder: every event comes once, in order, in pages, while the
// log grows, to each of several consumers from its own checkpoint.
func TestSubscriberOrder(t *testing.T) {
	rs := history(2000)
	m := newMemory(rs[:1])
	s := eventlog.NewSubscriber(m, func(_ context.Context, consumer string) (int64, error) {
		return map[string]int64{"a": 0, "b": 1, "c": 700}[consumer], nil
	}, never(t))
	done := make(chan struct{})
	for consumer, at := range map[string]int64{"a": 0, "b": 1, "c": 700} {
		messages, err := s.Subscribe(t.Context(), consumer)
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			defer func() { done <- struct{}{} }()
			for msg := range messages {
				es := eventlog.From(msg)
				if len(es) == 0 || len(es) > 256 {
					t.Errorf("%d events in a message", len(es))
				}
				for _, e := range es {
					if at++; e.Position != at {
						t.Errorf("%s: position %d, want %d", consumer, e.Position, at)
						return
					}
				}
				msg.Ack()
				if at == 2000 {
					return
				}
			}
		}()
	}
	for n := 1; n <= 2000; n += 37 {
		m.set(rs[:n], nil)
	}
	m.set(rs, nil)
	for range 3 {
		<-done
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TestSubscriberWaits: after a nack the same page comes again, later each
// time, and at once after an ack.
func TestSubscriberWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := eventlog.NewSubscriber(newMemory(history(300)), from(0), never(t))
		messages, err := s.Subscribe(t.Context(), "c")
		if err != nil {
			t.Fatal(err)
		}
		next := func(after time.Duration, first int64) *message.Message {
			t.Helper()
			start := time.Now()
			m := <-messages
			if waited := time.Since(start); waited != after || eventlog.From(m)[0].Position != first {
				t.Errorf("position %d after %v, want %d after %v", eventlog.From(m)[0].Position, waited, first, after)
			}
			return m
		}
		const ms = time.Millisecond
		next(0, 1).Nack()
		for _, wait := range []time.Duration{50, 100, 200, 400, 800, 1600, 3200, 5000, 5000} {
			next(wait*ms, 1).Nack()
		}
		next(5000*ms, 1).Ack()
		next(0, 257).Nack()
		next(50*ms, 257).Nack()
		if err := s.Close(); err != nil { // cuts the wait short
			t.Error(err)
		}
		if m, ok := <-messages; ok {
			t.Errorf("after Close: %v", m)
		}
		if _, err := s.Subscribe(t.Context(), "c"); !errors.Is(err, eventlog.ErrClosed) {
			t.Errorf("subscribe after Close: %v", err)
		}
	})
}

// TestSubscriberEnds: the channel closes with the context, wherever the
// subscription is, and that is no failure.
func TestSubscriberEnds(t *testing.T) {
	for name, take := range map[string]bool{"while sending": false, "while handled": true} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			s := eventlog.NewSubscriber(newMemory(history(3)), from(0), never(t))
			messages, err := s.Subscribe(ctx, "c")
			if err != nil {
				t.Fatal(err)
			}
			if take {
				m := <-messages
				cancel()
				<-m.Context().Done() // else the handler would go on
			}
			cancel()
			for range messages {
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSubscriberFails: a log that cannot be read or decoded, or has a gap,
// ends the subscription, and the consumer is named.
func TestSubscriberFails(t *testing.T) {
	boom := errors.New("boom")
	undecodable := history(3)
	undecodable[1].Type = "unknown.type"
	withGap := append(history(3)[:1], history(3)[2:]...)
	backwards := history(3)
	backwards[2].Position = 2
	for name, c := range map[string]struct {
		rs   []events.Record
		err  error
		want string
	}{
		"unreadable":  {nil, boom, "boom"},
		"undecodable": {undecodable, nil, "event 2"},
		"gap":         {withGap, nil, "position 3 after 1"},
		"repeated":    {backwards, nil, "position 2 after 2"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMemory(nil)
			failed := make(chan string, 1)
			s := eventlog.NewSubscriber(m, from(0), func(consumer string, err error) { failed <- consumer + ": " + err.Error() })
			messages, err := s.Subscribe(t.Context(), "c")
			if err != nil {
				t.Fatal(err)
			}
			m.set(c.rs, c.err)
			if text := <-failed; !strings.HasPrefix(text, "c: ") || !strings.Contains(text, c.want) {
				t.Errorf("failed with %q", text)
			}
			if _, ok := <-messages; ok {
				t.Error("a message came nevertheless")
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	if _, err := eventlog.NewSubscriber(newMemory(nil), func(context.Context, string) (int64, error) { return 0, boom }, nil).Subscribe(t.Context(), "c"); !errors.Is(err, boom) {
		t.Errorf("checkpoint: %v", err)
	}
}
