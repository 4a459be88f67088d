package sqlitelog

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/oklog/ulid/v2"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// A head is the end of the log.
type head struct {
	position int64
	hash     []byte // nil of an empty log; never changed in place
	id       ulid.ULID
}

func (h head) hex() string { return hex.EncodeToString(h.hash) }

// A place is where a stream has got to. The zero value is a stream that has no
// event yet.
type place struct {
	number  int64 // in table streams; 0: not there
	version int64
}

// memory is what a leader knows of the log without asking the file.
type memory struct {
	head  head
	known cache // of places
}

func readMemory(ctx context.Context, w *writer) (*memory, error) {
	m := &memory{known: newCache()}
	var id string
	ok, err := w.find(ctx, `SELECT position, hash, id FROM events ORDER BY position DESC LIMIT 1`, nil, &m.head.position, &m.head.hash, &id)
	if err != nil || !ok {
		return m, err
	}
	if m.head.id, err = ulid.ParseStrict(id); err != nil {
		return nil, fmt.Errorf("log: event %d has id %q: %w", m.head.position, id, err)
	}
	return m, nil
}

// A group is one transaction: a working copy of what is known of the log,
// changed by each of its requests in turn and adopted after COMMIT.
type group struct {
	*writer
	store *Store
	base  *memory
	head  head
	moved map[events.Stream]place           // what the group has read or moved
	fresh map[events.Stream][]events.Record // what the group has appended, for decisions in it
	memo  map[events.Stream]any

	lone  bool // one request: the transaction is its savepoint
	dirty bool // the present request has begun to write
	wrote bool // some request has written and has not failed
	jobs  bool // a job was written, released or finished
}

// commit runs one transaction for all members and sets the err of each,
// whatever happens. Nobody is answered before it returns.
func (s *Store) commit(ctx context.Context, members []*request) {
	var g *group
	settled := false
	defer func() {
		if !settled { // a panic of ours, or the leader's goroutine ended inside a decision
			s.drop()
			for _, r := range members {
				r.err = errors.New("log: the writer broke off; nothing was written")
			}
		}
	}()
	g, err := s.begin(ctx, len(members) == 1)
	if err == nil {
		err = g.runAll(ctx, members)
	}
	switch {
	case err != nil:
		s.drop()
	case !g.wrote:
		_, err = g.exec(ctx, `ROLLBACK`)
		if err != nil {
			s.drop()
		}
	default:
		// From here on it counts: a crash during COMMIT leaves all of the
		// group or nothing, and whether an error did is not known.
		if _, err = g.exec(ctx, `COMMIT`); err != nil {
			s.drop()
			err = fmt.Errorf("%w: %w", eventlog.ErrUnknown, err)
		} else {
			s.adopt(g)
		}
	}
	if err != nil {
		// Also of those that had an answer: it may rest on what the group had
		// written, which is not there.
		for _, r := range members {
			r.err = err
		}
	}
	settled = true
}

func (s *Store) begin(ctx context.Context, lone bool) (g *group, err error) {
	if s.writer == nil {
		if s.writer, err = openWriter(ctx, s.db); err != nil {
			return nil, failed(err)
		}
	}
	if _, err := s.writer.exec(ctx, `BEGIN IMMEDIATE`); err != nil {
		return nil, err
	}
	if s.memory == nil {
		if s.memory, err = readMemory(ctx, s.writer); err != nil {
			return nil, err
		}
	}
	return &group{writer: s.writer, store: s, base: s.memory, head: s.memory.head, lone: lone,
		moved: map[events.Stream]place{}}, nil
}

// runAll lets each request write. An error is the whole group's.
func (g *group) runAll(ctx context.Context, members []*request) error {
	for _, r := range members {
		if err := g.attempt(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// attempt lets r write and undoes what it wrote if it fails. The working copy
// needs no undoing: a request changes it when all its statements are through.
func (g *group) attempt(ctx context.Context, r *request) error {
	g.dirty = false
	r.err = guarded(ctx, g, r)
	if r.err == nil {
		g.wrote = g.wrote || g.dirty
		if g.dirty && !g.lone {
			_, err := g.exec(ctx, `RELEASE member`)
			return err
		}
		return nil
	}
	var broken *sqlError
	isBroken := errors.As(r.err, &broken)
	if g.lone && isBroken {
		return r.err
	}
	if g.dirty && !g.lone { // a lone request's transaction is rolled back, since nothing else was written
		if _, err := g.exec(ctx, `ROLLBACK TO member`); err != nil {
			return r.err
		}
		if _, err := g.exec(ctx, `RELEASE member`); err != nil {
			return r.err
		}
	}
	if isBroken && !g.alive(ctx) {
		return r.err
	}
	return nil
}

// guarded makes a panic in a decision the failure of its request alone.
func guarded(ctx context.Context, g *group, r *request) (err error) {
	defer func() {
		if p := recover(); p != nil {
			g.memo = nil // it may have been left half made
			err = fmt.Errorf("log: panic: %v\n%s", p, debug.Stack())
		}
	}()
	return r.run(ctx, g)
}

// alive says whether, after an error of the database, the transaction is still
// there and the log is where the working copy says: some errors end the
// transaction by themselves, and a broken uniqueness means another writer.
// BEGIN fails exactly if there is a transaction.
func (g *group) alive(ctx context.Context) bool {
	if _, err := g.exec(ctx, `BEGIN`); err == nil {
		return false
	}
	var position int64
	_, err := g.find(ctx, `SELECT coalesce(max(position), 0) FROM events`, nil, &position)
	return err == nil && position == g.head.position
}

// write marks where the present request begins to write. All checks and
// decisions come before it.
func (g *group) write(ctx context.Context) error {
	g.dirty = true
	if g.lone {
		return nil
	}
	_, err := g.exec(ctx, `SAVEPOINT member`)
	return err
}

// drop forgets everything after a failure. The connection goes too, and with
// it whatever is left of the transaction.
func (s *Store) drop() {
	s.memory = nil
	s.head.Store(nil)
	if w := s.writer; w != nil {
		s.writer = nil
		// What fails here has failed before, as the error that led here.
		_ = w.discard()
	}
}

// adopt makes the working copy what is known, and wakes who waits for it.
func (s *Store) adopt(g *group) {
	before := g.base.head.position
	g.base.head = g.head
	for name, p := range g.moved {
		g.base.known.put(name, p)
	}
	if g.head.position != before || s.head.Load() == nil {
		s.head.Store(new(g.head))
	}
	if g.head.position != before {
		s.appended.Send()
	}
	if g.jobs {
		s.queued.Send()
	}
}

// place returns where stream has got to, as the group has made it so far.
func (g *group) place(ctx context.Context, stream events.Stream) (place, error) {
	if p, ok := g.moved[stream]; ok {
		return p, nil
	}
	p, ok := g.base.known.get(stream)
	if !ok {
		_, err := g.find(ctx, `SELECT id, coalesce((SELECT max(version) FROM events WHERE stream = streams.id), 0) FROM streams WHERE name = ?`,
			[]any{string(stream)}, &p.number, &p.version)
		if err != nil {
			return place{}, err
		}
	}
	g.moved[stream] = p
	return p, nil
}

// nextID returns an id above last: ids grow even if the clock goes back.
func nextID(last ulid.ULID, now time.Time, entropy func([]byte) error) (id ulid.ULID, err error) {
	ms := uint64(max(now.UnixMilli(), 0))
	if ms > last.Time() {
		if err := id.SetTime(ms); err != nil {
			return id, err
		}
		if err := entropy(id[6:]); err != nil {
			return id, err
		}
		id[6] &= 0x7f // room to count up within the millisecond
		return id, nil
	}
	var step [4]byte
	if err := entropy(step[:]); err != nil {
		return id, err
	}
	id = last
	carry := uint16(1) // at least one
	for i := len(id) - 1; i >= 0; i-- {
		add := carry
		if j := i - (len(id) - len(step)); j >= 0 {
			add += uint16(step[j])
		}
		sum := uint16(id[i]) + add
		id[i], carry = byte(sum), sum>>8
	}
	return id, nil
}
