package eventlog

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"roundtable/events"
)

// Bounds of a subscription.
const (
	subscriberPage = 256                   // events in a message
	firstWait      = 50 * time.Millisecond // after a nack; doubled by each nack that follows
	longestWait    = 5 * time.Second
)

// A Followed is a log that can be followed. Every Store is one.
type Followed interface {
	Source
	// Changed returns a channel that is closed at the next append.
	Changed() <-chan struct{}
}

// A Subscriber is a watermill subscriber whose topics are consumers of the
// log. Each gets every event in log order, in pages: a message carries up to
// 256 decoded events, the next is sent when the last was acked, and a nacked
// one is sent again after a wait. So order is the subscriber's doing, and no
// event is skipped.
//
// Delivery is at least once: the consumer moves its checkpoint in the
// transaction that does its work, and skips what is at or below it.
type Subscriber struct {
	log        Followed
	checkpoint func(ctx context.Context, consumer string) (int64, error)
	fail       func(consumer string, err error)

	mu     sync.Mutex
	closed bool
	ending chan struct{} // closed by Close
	wg     sync.WaitGroup
}

var _ message.Subscriber = (*Subscriber)(nil)

// NewSubscriber returns a subscriber to log. A consumer starts after the
// position that checkpoint returns. fail is called, once and from another
// goroutine, for a consumer that cannot go on, since the log cannot be read or
// decoded or has a gap: the router would only stop the one handler, without a
// word. Close must be called.
func NewSubscriber(log Followed, checkpoint func(ctx context.Context, consumer string) (int64, error), fail func(consumer string, err error)) *Subscriber {
	return &Subscriber{log: log, checkpoint: checkpoint, fail: fail, ending: make(chan struct{})}
}

// Subscribe starts sending the log to consumer, until ctx ends or Close is
// called; then the channel is closed.
func (s *Subscriber) Subscribe(ctx context.Context, consumer string) (<-chan *message.Message, error) {
	at, err := s.checkpoint(ctx, consumer)
	if err != nil {
		return nil, fmt.Errorf("checkpoint of %s: %w", consumer, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	out := make(chan *message.Message)
	s.wg.Go(func() {
		defer close(out)
		defer cancel()
		if err := s.follow(ctx, at, out); err != nil && ctx.Err() == nil {
			s.fail(consumer, err)
		}
	})
	s.wg.Go(func() {
		select {
		case <-s.ending:
			cancel()
		case <-ctx.Done():
		}
	})
	return out, nil
}

// Close ends all subscriptions and waits for them.
func (s *Subscriber) Close() error {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.ending)
	}
	s.mu.Unlock()
	s.wg.Wait()
	return nil
}

// follow sends what comes after at, until ctx ends.
func (s *Subscriber) follow(ctx context.Context, at int64, out chan<- *message.Message) error {
	for {
		changed := s.log.Changed()
		rs, err := s.log.Since(ctx, at, subscriberPage)
		if err != nil {
			return fmt.Errorf("read the log: %w", err)
		}
		if rs, err = gapless(rs, at+1, 0); err != nil {
			return err
		}
		if len(rs) > 0 {
			d := decode(rs)
			if d.err != nil {
				return d.err
			}
			if err := deliver(ctx, out, d.events); err != nil {
				return err
			}
			at = rs[len(rs)-1].Position
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// deliver sends es until they are acked or ctx ends.
func deliver(ctx context.Context, out chan<- *message.Message, es []events.Event) error {
	for wait := firstWait; ; wait = min(2*wait, longestWait) {
		acked, err := send(ctx, out, es)
		if err != nil || acked {
			return err
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func send(ctx context.Context, out chan<- *message.Message, es []events.Event) (acked bool, err error) {
	m := message.NewMessage(es[0].ID.String(), nil)
	m.Metadata.Set("first", strconv.FormatInt(es[0].Position, 10))
	m.Metadata.Set("last", strconv.FormatInt(es[len(es)-1].Position, 10))
	ctx, cancel := context.WithCancel(context.WithValue(ctx, eventsKey{}, es))
	defer cancel()
	m.SetContext(ctx)
	select {
	case out <- m:
	case <-ctx.Done():
		return false, ctx.Err()
	}
	select {
	case <-m.Acked():
		return true, nil
	case <-m.Nacked():
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

type eventsKey struct{}

// From returns the events that a message of a Subscriber carries, in order; at
// least one. They are shared with the next delivery and must not be changed.
func From(m *message.Message) []events.Event {
	return m.Context().Value(eventsKey{}).([]events.Event)
}
