package commands

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// A unit is one try at deciding. What it has read is what the append rests on:
// if any of it has moved by then, the command is decided again.
type unit struct {
	h        *Handler
	caller   Caller
	now      time.Time
	view     eventlog.View
	memo     map[events.Stream]any // of the group; nil outside
	gathered *gathered
	made     int                     // ids used by this try
	seen     map[events.Stream]int64 // the version of each stream read
	ids      map[string]string       // the answer
	request  string                  // what is decided is this earlier request's; "" is the caller's
}

// gathered is what all tries of one command share.
type gathered struct {
	now     time.Time
	ids     []string
	facts   map[string]any // from the world, by what was asked
	noticed *noticing      // what is to be recorded once the command is over
}

// id returns an id with the prefix; the n-th call of every try returns the
// same one.
func (u *unit) id(prefix string) string {
	if u.made == len(u.gathered.ids) {
		u.gathered.ids = append(u.gathered.ids, u.h.NewID())
	}
	u.made++
	return prefix + "-" + u.gathered.ids[u.made-1]
}

// fact asks the world once for each command and key. Inside a group the world
// is out of reach: the command is then decided again from the start.
func fact[T any](u *unit, key string, ask func() (T, error)) (v T, err error) {
	if got, ok := u.gathered.facts[key]; ok {
		return got.(T), nil
	}
	if u.memo != nil {
		return v, eventlog.ErrMoved
	}
	if v, err = ask(); err == nil {
		u.gathered.facts[key] = v
	}
	return v, err
}

// folded is an aggregate as of a version of its stream.
type folded struct {
	version int64
	state   any
	owned   bool // by the group that made it: may be folded on in place
}

// endless is an aggregate whose stream has no end: it is cloned before it is
// folded on, and snapshots of it are kept.
type endless[S any] interface {
	Clone() S
	Code() string // names the code and the JSON of the state; a change of either changes it
}

// snapshotEvery is how many events may be folded in one load before a snapshot
// is kept.
const snapshotEvery = 512

// load folds a stream into its aggregate, from where it was folded to before.
func load[S interface{ Evolve(events.Payload) S }](ctx context.Context, u *unit, stream events.Stream) (s S, err error) {
	f, err := start[S](ctx, u, stream)
	if err != nil {
		return s, err
	}
	es, err := u.view.Stream(ctx, stream, f.version)
	if err != nil {
		return s, err
	}
	s, _ = f.state.(S)
	if e, ok := any(s).(endless[S]); ok && len(es) > 0 && !f.owned {
		s = e.Clone()
	}
	for _, e := range es {
		s, f.version = s.Evolve(e.Payload), e.Version
	}
	if _, again := u.seen[stream]; !again { // else the append rests on what was seen first, and is refused if that has moved
		u.seen[stream] = f.version
	}
	if u.memo != nil {
		u.memo[stream] = folded{f.version, s, f.owned || len(es) > 0}
		return s, nil
	}
	u.h.cache.put(stream, folded{version: f.version, state: s})
	if e, ok := any(s).(endless[S]); ok && len(es) >= snapshotEvery {
		return s, u.keep(ctx, stream, e.Code(), f.version, s)
	}
	return s, nil
}

// begin loads an aggregate whose id this command has just made: there is
// nothing to read, and the append is guarded by that.
func begin[S any](u *unit, stream events.Stream) (s S) {
	u.seen[stream] = 0
	return s
}

// start returns the newest folded state that is at hand.
func start[S any](ctx context.Context, u *unit, stream events.Stream) (folded, error) {
	if f, ok := u.memo[stream].(folded); ok {
		return f, nil
	}
	if f, ok := u.h.cache.get(stream); ok {
		return f, nil
	}
	var s S
	e, ok := any(s).(endless[S])
	if !ok || u.memo != nil {
		return folded{state: s}, nil
	}
	version, data, ok, err := u.h.Log.Snapshot(ctx, stream, e.Code())
	if err != nil || !ok {
		return folded{state: s}, err
	}
	if json.Unmarshal(data, &s) != nil { // disposable: fold from the start instead
		var zero S
		return folded{state: zero}, nil
	}
	return folded{version: version, state: s}, nil
}

func (u *unit) keep(ctx context.Context, stream events.Stream, code string, version int64, s any) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return u.h.Log.KeepSnapshot(ctx, stream, code, version, data)
}

// A cache holds folded states of committed streams, the newest of each. It may
// be stale: what it lacks is read.
type cache struct {
	limit   int
	mu      sync.Mutex
	entries map[events.Stream]folded
}

func (c *cache) get(s events.Stream) (folded, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f, ok := c.entries[s]
	return f, ok
}

func (c *cache) put(s events.Stream, f folded) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if old, ok := c.entries[s]; ok && old.version >= f.version {
		return
	}
	for other := range c.entries { // any one makes room: order of maps is random
		if len(c.entries) < c.limit {
			break
		}
		delete(c.entries, other)
	}
	c.entries[s] = f
}
