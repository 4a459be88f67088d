package mcp

import (
	"container/list"
	"sync"
)

// positions remembers, for the principals seen last, the newest position that
// a write of theirs was answered with, so that their reads can wait for it.
// Forgetting one costs freshness of a read that names no position, no more.
type positions struct {
	max int

	mu    sync.Mutex
	order *list.List // of *position, the one seen last in front
	by    map[string]*list.Element
}

type position struct {
	who string
	at  int64
}

func newPositions(max int) *positions {
	return &positions{max: max, order: list.New(), by: map[string]*list.Element{}}
}

// wrote notes that a write of who was answered with at.
func (p *positions) wrote(who string, at int64) {
	if at <= 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.by[who]; ok {
		v := e.Value.(*position)
		v.at = max(v.at, at)
		p.order.MoveToFront(e)
		return
	}
	p.by[who] = p.order.PushFront(&position{who, at})
	if p.order.Len() > p.max {
		old := p.order.Remove(p.order.Back()).(*position)
		delete(p.by, old.who)
	}
}

// of returns the newest position that who knows of, or 0.
func (p *positions) of(who string) int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e, ok := p.by[who]; ok {
		return e.Value.(*position).at
	}
	return 0
}
