package acp

import (
	"context"
	"encoding/json"
	"fmt"
)

// A Pending is an own request that has been sent.
type Pending struct {
	ID   ID
	conn *Conn
	then func(json.RawMessage, error)
	done chan struct{}
	// result and err are set before done is closed.
	result json.RawMessage
	err    error
}

// Send sends a request. If then is not nil, it is called with the answer: on
// the reading goroutine, before any later message is handled, and at most once.
func (c *Conn) Send(method string, params any, then func(json.RawMessage, error)) (*Pending, error) {
	p := &Pending{conn: c, then: then, done: make(chan struct{})}
	c.mu.Lock()
	if c.over != nil {
		defer c.mu.Unlock()
		return nil, c.over
	}
	c.nextID++
	p.ID = IntID(int64(c.nextID))
	if c.cfg.IDPrefix != "" {
		p.ID = StringID(fmt.Sprintf("%s%d", c.cfg.IDPrefix, c.nextID))
	}
	c.pending[p.ID] = p
	c.mu.Unlock()
	line, err := EncodeCall(p.ID, method, params)
	if err == nil {
		err = c.put(line)
	}
	if err != nil {
		c.take(p.ID)
		return nil, err
	}
	return p, nil
}

// Wait returns the result, or an *Error if the peer answered with one. When
// ctx ends first, the request is given up: the peer is told by
// $/cancel_request, and a late answer is ignored.
func (p *Pending) Wait(ctx context.Context) (json.RawMessage, error) {
	select {
	case <-p.done:
		return p.result, p.err
	case <-ctx.Done():
	}
	if p.conn.take(p.ID) == nil {
		<-p.done // the answer was just coming in
		return p.result, p.err
	}
	if err := p.conn.Notify("$/cancel_request", map[string]ID{"requestId": p.ID}); err != nil {
		p.conn.cfg.Log.Warn("acp: cancellation not sent", "id", p.ID.String(), "error", err)
	}
	return nil, context.Cause(ctx)
}

// Done is closed when the answer is there.
func (p *Pending) Done() <-chan struct{} { return p.done }

// Call sends a request and waits for its answer as [Pending.Wait] does.
func (c *Conn) Call(ctx context.Context, method string, params any) (json.RawMessage, error) {
	p, err := c.Send(method, params, nil)
	if err != nil {
		return nil, err
	}
	return p.Wait(ctx)
}

// take removes an open request; nil means that it is not open.
func (c *Conn) take(id ID) *Pending {
	c.mu.Lock()
	defer c.mu.Unlock()
	p := c.pending[id]
	delete(c.pending, id)
	return p
}

func (p *Pending) settle(result json.RawMessage, err error) {
	p.result, p.err = result, err
	if p.then != nil {
		p.then(result, err)
	}
	close(p.done)
}

// settle hands a response to its request.
func (c *Conn) settle(m Message) {
	p := c.take(m.ID)
	if p == nil {
		c.cfg.Log.Warn("acp: response to no open request ignored", "id", m.ID.String())
		return
	}
	if m.Error != nil {
		p.settle(nil, m.Error)
		return
	}
	p.settle(m.Result, nil)
}

// fail ends all open requests, and every later one.
func (c *Conn) fail(cause error) {
	c.mu.Lock()
	open := c.pending
	c.pending, c.over = map[ID]*Pending{}, cause
	c.mu.Unlock()
	for _, p := range open {
		p.settle(nil, cause)
	}
}

// Ended reports whether the incoming stream has ended.
func (c *Conn) Ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.over != nil
}

// Interrupt fails every open request with cause, as the end of the stream
// would. Later requests fail too; reading goes on.
func (c *Conn) Interrupt(cause error) { c.fail(cause) }

// Forget gives the request up without telling the peer: a late answer is
// ignored.
func (p *Pending) Forget() { p.conn.take(p.ID) }
