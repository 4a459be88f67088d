// Package sqlitelog keeps the log in one SQLite file.
//
// What always holds, besides what eventlog promises:
//   - One process has the file open for writing (the data folder's lock sees
//     to it), and in it one connection writes. Whoever leads a group owns that
//     connection and what is known of the log's head: see group.go.
//   - Everything that writes is a request of the one queue: commands, jobs,
//     checkpoints, snapshots. What waits together is committed together, with
//     one fsync.
//   - There is no goroutine of the store's own: callers lead in turn.
//   - What memory knows of the log is adopted after COMMIT and dropped after
//     a failure, so that the next leader believes the file alone.
package sqlitelog

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"roundtable/events/eventlog"
	"roundtable/internal/signal"
	"roundtable/internal/sqlite"
)

// Options are what a Store needs from outside.
type Options struct {
	Now     func() time.Time // required: read once for each request
	Entropy io.Reader        // of event ids; crypto/rand if nil
}

// A Store is a log in one SQLite file. It may be used from many goroutines.
type Store struct {
	*Reader
	db      *sqlite.DB
	now     func() time.Time
	entropy io.Reader
	queue   *queue

	appended, queued signal.Signal

	// Owned by the leader; nil if it is to be opened, or read from the file, anew.
	writer *writer
	memory *memory

	head      atomic.Pointer[head] // as of the last commit, for readers; nil if it is not known
	closeOnce sync.Once
	closeErr  error
}

var (
	_ eventlog.Store   = (*Store)(nil)
	_ eventlog.Parking = (*Store)(nil)
)

// Open opens, and if need be makes and migrates, the log in the file at path.
// The caller has locked its folder (sqlite.LockDir).
func Open(ctx context.Context, path string, o Options) (*Store, error) {
	db, err := sqlite.OpenLog(ctx, path)
	if err != nil {
		return nil, err
	}
	s, err := New(ctx, db, o)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// New returns a store over a database that has the log's schema, which it
// takes over: Close closes it.
func New(ctx context.Context, db *sqlite.DB, o Options) (*Store, error) {
	if o.Now == nil {
		return nil, errors.New("sqlitelog: a clock is required")
	}
	if o.Entropy == nil {
		o.Entropy = rand.Reader
	}
	s := &Store{Reader: &Reader{read: db.Read}, db: db, now: o.Now, entropy: o.Entropy, queue: newQueue()}
	w, err := openWriter(ctx, db)
	if err != nil {
		return nil, fmt.Errorf("open the log for writing: %w", err)
	}
	if s.memory, err = readMemory(ctx, w); err != nil {
		return nil, errors.Join(err, w.close(true))
	}
	s.writer = w
	s.head.Store(new(s.memory.head))
	return s, nil
}

// submit sends r through the queue and returns when it has been answered.
func (s *Store) submit(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	lead, err := s.queue.enter(r)
	if err != nil {
		return err
	}
	if !lead && !s.queue.wait(ctx, r) {
		return r.err
	}
	members := s.queue.take()
	defer s.queue.pass(members, r) // also if the leader panics
	s.commit(context.WithoutCancel(ctx), members)
	return r.err
}

// Head returns the newest position and its hash.
func (s *Store) Head(ctx context.Context) (int64, string, error) {
	if h := s.head.Load(); h != nil {
		return h.position, h.hex(), nil
	}
	return s.Reader.Head(ctx)
}

// Changed returns a channel that is closed at the next append.
func (s *Store) Changed() <-chan struct{} { return s.appended.Next() }

// Queued returns a channel that is closed when next a job is written, released
// or finished.
func (s *Store) Queued() <-chan struct{} { return s.queued.Next() }

// Close refuses new work, waits for what runs and closes the file.
func (s *Store) Close() error {
	s.closeOnce.Do(func() {
		s.queue.close()
		// Nobody leads any more, so the writer is ours.
		if s.writer != nil {
			s.closeErr = s.writer.close(true)
		}
		s.head.Store(nil)
		s.closed.Store(true)
		s.closeErr = errors.Join(s.closeErr, s.db.Close())
	})
	return s.closeErr
}
