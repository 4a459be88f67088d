package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"

	"github.com/mark3labs/mcp-go/server"
)

// replay keeps the newest messages of each session of the older era, so that
// a client whose stream broke can ask for what it missed. An id whose message
// has been dropped is unknown.
type replay struct {
	maxEvents, maxBytes int // of one session

	mu       sync.Mutex
	last     int64
	sessions map[string]*kept
}

type kept struct {
	events []sent // oldest first
	bytes  int
}

type sent struct {
	id      int64
	stream  string
	message json.RawMessage
}

func newReplay(maxEvents, maxBytes int) *replay {
	return &replay{maxEvents: maxEvents, maxBytes: maxBytes, sessions: map[string]*kept{}}
}

// StoreEvent keeps message and drops the session's oldest past the bounds.
func (r *replay) StoreEvent(_ context.Context, session, stream string, message json.RawMessage) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.sessions[session]
	if k == nil {
		k = &kept{}
		r.sessions[session] = k
	}
	r.last++
	k.events = append(k.events, sent{r.last, stream, slices.Clone(message)})
	k.bytes += len(message)
	drop := 0
	for drop < len(k.events) && (len(k.events)-drop > r.maxEvents || k.bytes > r.maxBytes) {
		k.bytes -= len(k.events[drop].message)
		drop++
	}
	k.events = slices.Delete(k.events, 0, drop)
	return strconv.FormatInt(r.last, 10), nil
}

// ReplayEventsAfter sends what the stream of lastID had after it.
func (r *replay) ReplayEventsAfter(_ context.Context, session, lastID string, send func(string, json.RawMessage) error) (string, error) {
	stream, tail, ok := r.tail(session, lastID)
	if !ok {
		return "", fmt.Errorf("%w: %q", server.ErrUnknownEventID, lastID)
	}
	for _, e := range tail {
		if err := send(strconv.FormatInt(e.id, 10), e.message); err != nil {
			return "", err
		}
	}
	return stream, nil
}

func (r *replay) tail(session, lastID string) (stream string, tail []sent, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := r.sessions[session]
	id, err := strconv.ParseInt(lastID, 10, 64)
	if k == nil || err != nil {
		return "", nil, false
	}
	at := slices.IndexFunc(k.events, func(e sent) bool { return e.id == id })
	if at < 0 {
		return "", nil, false
	}
	stream = k.events[at].stream
	for _, e := range k.events[at+1:] {
		if e.stream == stream {
			tail = append(tail, e)
		}
	}
	return stream, tail, true
}

// PurgeSession forgets a session.
func (r *replay) PurgeSession(_ context.Context, session string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.sessions, session)
	return nil
}
