package acp

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
)

// A Call is a request or a notification of the peer.
type Call struct {
	Message
	conn   *Conn
	ctx    context.Context
	cancel context.CancelFunc
	batch  *batch // nil if it came alone
	slot   int
	done   atomic.Bool
}

// Context ends when the peer cancels the request, when it is answered, and
// with the connection.
func (c *Call) Context() context.Context { return c.ctx }

// Reply answers the request: with err if it is not nil, else with result. An
// *Error goes out as it is, any other error as CodeInternal. What follows the
// first answer, and any answer to a notification, is dropped.
func (c *Call) Reply(result any, err error) { c.ReplyAs(c.ID, result, err) }

// ReplyAs is Reply under another id, for peers that misbehave on purpose.
func (c *Call) ReplyAs(id ID, result any, err error) {
	if c.Kind != Request || c.done.Swap(true) {
		return
	}
	c.conn.mu.Lock()
	if c.conn.calls[c.ID] == c {
		delete(c.conn.calls, c.ID)
	}
	c.conn.mu.Unlock()
	c.cancel()
	if c.batch != nil {
		c.batch.put(c.slot, id, result, err)
		return
	}
	c.conn.answer(id, result, err)
}

// A batch collects the answers to the entries of an array. They are written
// as one array, in the order of the entries, when the last one is there.
type batch struct {
	conn    *Conn
	mu      sync.Mutex
	answers []json.RawMessage
	open    int // entries without an answer, and one while entries are dispatched
}

func (b *batch) enter() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open++
}

func (b *batch) put(slot int, id ID, result any, failure error) {
	line, err := EncodeAnswer(id, result, failure)
	if err != nil {
		b.conn.cfg.Log.Warn("acp: answer not sent", "id", id.String(), "error", err)
	}
	b.mu.Lock()
	b.answers[slot] = line
	b.mu.Unlock()
	b.leave()
}

// leave ends one entry; the last one sends the array.
func (b *batch) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.open--
	if b.open > 0 {
		return
	}
	var all []json.RawMessage
	for _, a := range b.answers {
		if a != nil {
			all = append(all, a)
		}
	}
	if len(all) == 0 {
		return
	}
	line, err := Marshal(all)
	if err == nil {
		err = b.conn.put(line)
	}
	if err != nil {
		b.conn.cfg.Log.Warn("acp: answers not sent", "error", err)
	}
}
