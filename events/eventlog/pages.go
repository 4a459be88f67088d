package eventlog

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"

	"roundtable/events"
)

// A Source is a log that is read in order. Every Store is one.
type Source interface {
	// Since returns up to limit records after position, oldest first.
	Since(ctx context.Context, position int64, limit int) ([]events.Record, error)
	// Head returns the newest position and its hash; 0 and "" of an empty log.
	Head(ctx context.Context) (position int64, hash string, err error)
}

// pageSize is how many events are read at once where the caller does not say.
// No reading stays open between pages: an open one would keep SQLite's
// write-ahead log from being cut.
const pageSize = 1000

// Pages returns what s holds after a position, in pages of up to limit
// records, up to the end as it is when that is reached. After an error comes
// nothing.
func Pages(ctx context.Context, s Source, after int64, limit int) iter.Seq2[[]events.Record, error] {
	return func(yield func([]events.Record, error) bool) {
		for {
			rs, err := s.Since(ctx, after, limit)
			if err != nil {
				yield(nil, err)
				return
			}
			if len(rs) > 0 {
				after = rs[len(rs)-1].Position
				if !yield(rs, nil) {
					return
				}
			}
			if len(rs) < limit {
				return
			}
		}
	}
}

// Records returns the records after a position one by one, to until and no
// further, or to the end if until is 0.
func Records(ctx context.Context, s Source, after, until int64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for page, err := range Pages(ctx, s, after, pageSize) {
			if err != nil {
				yield(events.Record{}, err)
				return
			}
			for _, r := range page {
				if until > 0 && r.Position > until || !yield(r, nil) {
					return
				}
			}
		}
	}
}

// replayPage is how many events are decoded, and handed over, at once.
const replayPage = 512

// Replay hands f the events of s after a position, up to until (to the head of
// now if until is 0), in order and in pages of up to 512. Decoding is done by
// that many workers, at least one, beside f; f runs on the caller's goroutine.
// The first error, of reading, decoding or f, ends it. What is read ahead is
// bounded by the workers.
func Replay(ctx context.Context, s Source, after, until int64, workers int, f func([]events.Event) error) error {
	if until == 0 {
		var err error
		if until, _, err = s.Head(ctx); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()

	work, inOrder := make(chan page), make(chan page, max(workers, 1))
	wg.Go(func() {
		defer close(inOrder)
		defer close(work)
		readPages(ctx, s, after, until, work, inOrder)
	})
	for range max(workers, 1) {
		wg.Go(func() {
			for p := range work {
				p.done <- decode(p.records)
			}
		})
	}
	for p := range inOrder {
		d := <-p.done
		if d.err != nil {
			return d.err
		}
		if err := f(d.events); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// A page is decoded by a worker and handed over in order.
type page struct {
	records []events.Record
	done    chan decoded // buffered
}

type decoded struct {
	events []events.Event
	err    error
}

// readPages sends each page first to those who keep the order, then to a
// worker; an error is sent as a page that is done.
func readPages(ctx context.Context, s Source, after, until int64, work, inOrder chan<- page) {
	next := after + 1
	for rs, err := range Pages(ctx, s, after, replayPage) {
		p := page{rs, make(chan decoded, 1)}
		if err == nil {
			p.records, err = gapless(rs, next, until)
			next += int64(len(p.records))
		}
		if err == nil && len(p.records) == 0 {
			return
		}
		select {
		case inOrder <- p:
		case <-ctx.Done():
			return
		}
		if err != nil {
			p.done <- decoded{err: err}
			return
		}
		select {
		case work <- p:
		case <-ctx.Done():
			p.done <- decoded{err: ctx.Err()}
			return
		}
	}
}

// errGap says that a reader met a position that is not the last + 1.
var errGap = errors.New("the log has a gap, or was cut: verify it")

// gapless checks that rs begin with next and have no gap, which no log may
// have, and cuts off what is past until; 0 is no bound.
func gapless(rs []events.Record, next, until int64) ([]events.Record, error) {
	for i, r := range rs {
		if until > 0 && r.Position > until {
			return rs[:i], nil
		}
		if r.Position != next+int64(i) {
			return nil, fmt.Errorf("position %d after %d: %w", r.Position, next+int64(i)-1, errGap)
		}
	}
	return rs, nil
}

func decode(rs []events.Record) decoded {
	es := make([]events.Event, len(rs))
	for i, r := range rs {
		var err error
		if es[i], err = r.Event(); err != nil {
			return decoded{err: fmt.Errorf("event %d: %w", r.Position, err)}
		}
	}
	return decoded{events: es}
}
