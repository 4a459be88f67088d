package sqlitelog

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"time"
	"unicode/utf8"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// A prepared batch is one whose payloads are encoded: outside the group where
// that can be.
type prepared struct {
	eventlog.Batch
	rows []row
}

type row struct {
	stream events.Stream
	typ    string
	schema int
	data   []byte
	digest [sha256.Size]byte
}

// prepare encodes b, or says what is wrong with it whatever the log holds.
func prepare(b eventlog.Batch) (prepared, error) {
	p := prepared{Batch: b}
	if b.Meta.Actor == "" || b.Meta.Command == "" {
		return p, errors.New("log: a batch needs its actor and its command's key")
	}
	if len(b.Answer) > eventlog.MaxAnswer {
		return p, fmt.Errorf("log: an answer of %d bytes is longer than %d", len(b.Answer), eventlog.MaxAnswer)
	}
	m := b.Meta
	// An export is JSON, and what is no UTF-8 would not come back from it as it was hashed.
	for _, s := range []string{m.Workspace, m.Actor, m.Session, m.Command, m.Cause, m.Correlation} {
		if !utf8.ValidString(s) {
			return p, fmt.Errorf("log: %q is not UTF-8", s)
		}
	}
	p.rows = make([]row, len(b.Happened))
	for i, e := range b.Happened {
		r := &p.rows[i]
		r.stream = e.Stream()
		if _, ok := b.Expect[r.stream]; !ok {
			return p, fmt.Errorf("log: %T is of %s, which was not read", e, r.stream)
		}
		if r.stream == "" || !utf8.ValidString(string(r.stream)) {
			return p, fmt.Errorf("log: stream name %q is empty or not UTF-8", r.stream)
		}
		var err error
		if r.typ, r.schema, r.data, err = events.Encode(e); err != nil {
			return p, err
		}
		r.digest = sha256.Sum256(r.data)
	}
	return p, nil
}

func (p *prepared) size() int {
	n := len(p.Answer)
	for i := range p.rows {
		n += len(p.rows[i].data)
	}
	return n
}

// Append writes a batch with its outcome, or none of it.
func (s *Store) Append(ctx context.Context, b eventlog.Batch, again eventlog.Decide) (eventlog.Outcome, error) {
	p, err := prepare(b)
	if err != nil {
		return eventlog.Outcome{}, err
	}
	var out eventlog.Outcome
	// The decision keeps its caller's values, but a caller that gives up must
	// not interrupt a statement: that would undo the whole group.
	dctx := context.WithoutCancel(ctx)
	err = s.submit(ctx, newRequest(p.size(), func(ctx context.Context, g *group) (err error) {
		out, err = g.append(ctx, dctx, p, again)
		return err
	}))
	if err != nil {
		return eventlog.Outcome{}, err
	}
	return out, nil
}

func (g *group) append(ctx, dctx context.Context, p prepared, again eventlog.Decide) (eventlog.Outcome, error) {
	stale, err := g.stale(ctx, p.Expect)
	if err != nil {
		return eventlog.Outcome{}, err
	}
	if stale != nil {
		// A repeat must never get the fault of a second decision.
		o, known, err := g.outcome(ctx, p.Meta)
		if err != nil || known {
			return o, err
		}
		if again == nil {
			return eventlog.Outcome{}, stale
		}
		if p, err = g.decide(ctx, dctx, p, again); err != nil {
			return eventlog.Outcome{}, err
		}
	}
	return g.insert(ctx, p)
}

// stale returns an ErrMoved that says which guard has moved, or nil.
func (g *group) stale(ctx context.Context, expect map[events.Stream]int64) (moved, err error) {
	for stream, version := range expect {
		at, err := g.place(ctx, stream)
		if err != nil {
			return nil, err
		}
		if at.version != version {
			return fmt.Errorf("%s is at version %d and not %d: %w", stream, at.version, version, eventlog.ErrMoved), nil
		}
	}
	return nil, nil
}

// decide makes the decision again, on what the group has made so far.
func (g *group) decide(ctx, dctx context.Context, was prepared, again eventlog.Decide) (prepared, error) {
	v := &view{g: g}
	b, err := again(dctx, v)
	v.g = nil
	if v.err != nil {
		return was, v.err // whatever the decision made of it
	}
	if err != nil {
		return was, err
	}
	if b.Meta.Actor != was.Meta.Actor || b.Meta.Command != was.Meta.Command {
		return was, errors.New("log: a decision made again must be of the same command")
	}
	p, err := prepare(b)
	if err != nil {
		return was, err
	}
	stale, err := g.stale(ctx, p.Expect)
	return p, errors.Join(stale, err)
}

// outcome returns what the command came to, if it has run: before, or earlier in this group.
func (g *group) outcome(ctx context.Context, m events.Meta) (o eventlog.Outcome, known bool, err error) {
	known, err = g.find(ctx, selectOutcome, []any{m.Actor, m.Command}, &o.Digest, &o.Position, &o.Answer)
	o.Repeated = known
	return o, known, err
}

// insert writes p: the outcome first, so that a known key has nothing to undo.
func (g *group) insert(ctx context.Context, p prepared) (eventlog.Outcome, error) {
	now := g.store.now().UTC().Round(0)
	out := eventlog.Outcome{Digest: p.Digest, Position: g.head.position + int64(len(p.rows)), Answer: p.Answer}
	if err := g.write(ctx); err != nil {
		return out, err
	}
	written, err := g.changed(ctx, `INSERT INTO outcomes (actor, command, digest, position, answer, time) VALUES (?,?,?,?,?,?) ON CONFLICT DO NOTHING`,
		p.Meta.Actor, p.Meta.Command, notNil(p.Digest), out.Position, notNil(p.Answer), now.UnixNano())
	if err != nil {
		return out, err
	}
	if !written {
		o, known, err := g.outcome(ctx, p.Meta)
		if err == nil && !known {
			err = fmt.Errorf("log: the outcome of %s was neither written nor found", p.Meta.Command)
		}
		return o, err
	}
	places, records, err := g.insertEvents(ctx, p, now)
	if err != nil {
		return out, err
	}
	for stream, at := range places {
		g.moved[stream] = at
	}
	for _, r := range records {
		if g.fresh == nil {
			g.fresh = map[events.Stream][]events.Record{}
		}
		g.fresh[r.Stream] = append(g.fresh[r.Stream], r)
	}
	return out, nil
}

// insertEvents writes the events of p, moves the head, and returns where their
// streams are then. Only the head of the working copy is changed, and only
// when all is written.
func (g *group) insertEvents(ctx context.Context, p prepared, now time.Time) (map[events.Stream]place, []events.Record, error) {
	if len(p.rows) == 0 {
		return nil, nil, nil
	}
	end := g.head
	places := make(map[events.Stream]place, 1)
	records := make([]events.Record, len(p.rows))
	for i := range p.rows {
		w := &p.rows[i]
		at, ok := places[w.stream]
		if !ok {
			at = g.moved[w.stream] // stale has looked at every stream of Expect
		}
		if at.number == 0 {
			res, err := g.exec(ctx, `INSERT INTO streams (name) VALUES (?)`, string(w.stream))
			if err != nil {
				return nil, nil, err
			}
			if at.number, err = res.LastInsertId(); err != nil {
				return nil, nil, failed(err)
			}
		}
		at.version++
		places[w.stream] = at
		var err error
		end.position++
		if end.id, err = nextID(end.id, now, g.store.fill); err != nil {
			return nil, nil, fmt.Errorf("log: event id: %w", err)
		}
		r := &records[i]
		*r = events.Record{
			Position: end.position, ID: end.id.String(), Workspace: p.Meta.Workspace, Stream: w.stream, Version: at.version,
			Type: w.typ, Schema: w.schema, Time: now, Actor: p.Meta.Actor, Session: p.Meta.Session, Command: p.Meta.Command,
			Cause: p.Meta.Cause, Correlation: p.Meta.Correlation, Data: w.data,
		}
		hash := eventlog.HashDigest(end.hash, r, w.digest)
		end.hash = hash[:]
		_, err = g.exec(ctx, `INSERT INTO events (position, id, workspace, stream, version, type, schema, time, actor, session, command, cause, correlation, data, hash)
			VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
			r.Position, r.ID, r.Workspace, at.number, r.Version, r.Type, r.Schema, now.UnixNano(), r.Actor, r.Session, r.Command, r.Cause, r.Correlation,
			w.data, end.hash)
		if err != nil {
			return nil, nil, fmt.Errorf("append %s: %w", w.typ, err)
		}
	}
	g.head = end
	return places, records, nil
}

func (s *Store) fill(b []byte) error {
	_, err := io.ReadFull(s.entropy, b)
	return err
}

// notNil makes an empty value of nil, which would be stored as NULL.
func notNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// A view is the log as the group has made it so far, for one decision.
type view struct {
	g   *group // nil when the decision is over
	err error  // of the database, met by the decision
}

// Stream returns the events of s after version.
func (v *view) Stream(ctx context.Context, s events.Stream, version int64) ([]events.Event, error) {
	if v.g == nil {
		return nil, errors.New("log: a view was used after its decision")
	}
	es, err := v.g.stream(context.WithoutCancel(ctx), s, version)
	if broken := (*sqlError)(nil); errors.As(err, &broken) {
		v.err = err
	}
	return es, err
}

// Memo holds folded states for the decisions of one group.
func (v *view) Memo() map[events.Stream]any {
	if v.g == nil {
		return nil
	}
	if v.g.memo == nil {
		v.g.memo = map[events.Stream]any{}
	}
	return v.g.memo
}

func (g *group) stream(ctx context.Context, s events.Stream, version int64) ([]events.Event, error) {
	at, err := g.place(ctx, s)
	if err != nil || version >= at.version {
		return nil, err
	}
	if fresh := g.fresh[s]; len(fresh) > 0 && version >= fresh[0].Version-1 {
		fresh = fresh[version-fresh[0].Version+1:]
		es := make([]events.Event, len(fresh))
		for i, r := range fresh {
			if es[i], err = r.Event(); err != nil {
				return nil, fmt.Errorf("event %d: %w", r.Position, err)
			}
		}
		return es, nil
	}
	rows, err := g.query(ctx, selectStream, string(s), version)
	if err != nil {
		return nil, err
	}
	es, err := scanEvents(rows, s)
	return es, err
}
