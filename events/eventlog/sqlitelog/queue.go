package sqlitelog

import (
	"context"
	"slices"
	"sync"

	"roundtable/events/eventlog"
)

// Bounds of the queue and of a group.
const (
	maxWaiting  = 4096    // requests in the queue
	maxGroup    = 1024    // requests committed together
	maxGroupLen = 1 << 20 // bytes of data committed together; one request may have more
)

// A request is one write on its way into the file: a command, or something
// about jobs.
type request struct {
	// run writes through the group. It runs on the leader's goroutine, inside
	// the group's transaction, and may leave nothing half done behind an
	// error: see group.attempt.
	run  func(ctx context.Context, g *group) error
	size int // bytes of data, about

	turn chan bool // buffered; true: lead the next group, false: err is set
	err  error     // what the caller is told; owned by the leader until turn says false
}

func newRequest(size int, run func(ctx context.Context, g *group) error) *request {
	return &request{run: run, size: size, turn: make(chan bool, 1)}
}

// A queue makes groups of requests without a goroutine of its own: the caller
// that finds nobody leading leads, commits all that waits, and names the first
// of those that came meanwhile.
type queue struct {
	mu      sync.Mutex
	waiting []*request // of a named leader only the first may be out of reach of its context
	named   *request   // the first of waiting once it has been told to lead
	leading bool       // a leader runs or has been named
	closed  bool
	idle    chan struct{} // closed when closed and nobody leads
}

func newQueue() *queue { return &queue{idle: make(chan struct{})} }

// enter joins the queue; lead says that r is the first and must lead.
func (q *queue) enter(r *request) (lead bool, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return false, eventlog.ErrClosed
	case len(q.waiting) >= maxWaiting:
		return false, eventlog.ErrFull
	}
	q.waiting = append(q.waiting, r)
	lead = !q.leading
	if lead {
		q.leading, q.named = true, r
	}
	return lead, nil
}

// wait returns when r must lead (true) or has been answered (false). While r
// is in the queue its context may take it out; once it has been taken into a
// group or named leader, it waits for what becomes of it.
func (q *queue) wait(ctx context.Context, r *request) (lead bool) {
	select {
	case lead = <-r.turn:
		return lead
	case <-ctx.Done():
	}
	if q.leave(r) {
		r.err = ctx.Err()
		return false
	}
	return <-r.turn
}

func (q *queue) leave(r *request) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting, r)
	if i < 0 || r == q.named {
		return false
	}
	q.waiting = slices.Delete(q.waiting, i, i+1)
	return true
}

// take removes the next group from the queue, in order. The leader is its first.
func (q *queue) take() []*request {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.waiting) && n < maxGroup {
		if size += q.waiting[n].size; n > 0 && size > maxGroupLen {
			break
		}
		n++
	}
	group := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	q.named = nil
	return group
}

// pass names the next leader, and then answers the group; leader is the caller
// itself and needs no answer.
func (q *queue) pass(group []*request, leader *request) {
	q.mu.Lock()
	if len(q.waiting) > 0 {
		q.named = q.waiting[0]
		q.named.turn <- true
	} else {
		q.leading = false
		if q.closed {
			close(q.idle)
		}
	}
	q.mu.Unlock()
	for _, r := range group {
		if r != leader {
			r.turn <- false
		}
	}
}

// close refuses new requests and waits until those in the queue are answered.
// It must be called once.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	if !q.leading {
		close(q.idle)
	}
	q.mu.Unlock()
	<-q.idle
}
