package acp

import (
	"context"
	"errors"
	"io"
	"sync"
)

// maxQueued is how many bytes wait for a peer that does not read before those
// who write have to wait as well.
const maxQueued = 16 << 20

// ErrClosed means that the connection is over.
var ErrClosed = errors.New("connection closed")

// A writer is the one owner of the outgoing stream.
type writer struct {
	out io.Writer
	tap func(line []byte)

	mu     sync.Mutex
	cond   *sync.Cond // anything below changed
	queue  [][]byte
	size   int // bytes queued or being written
	closed bool
	err    error
}

func newWriter(out io.Writer, tap func([]byte)) *writer {
	w := &writer{out: out, tap: tap}
	w.cond = sync.NewCond(&w.mu)
	return w
}

// put queues a line. It waits while too much is queued.
func (w *writer) put(line []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.size > maxQueued && w.err == nil && !w.closed {
		w.cond.Wait()
	}
	if w.err != nil {
		return w.err
	}
	if w.closed {
		return ErrClosed
	}
	w.tap(line)
	w.queue = append(w.queue, line)
	w.size += len(line) + 1
	w.cond.Broadcast()
	return nil
}

// run writes until the writer is closed and empty, or writing fails.
func (w *writer) run() {
	for {
		w.mu.Lock()
		for len(w.queue) == 0 && !w.closed && w.err == nil {
			w.cond.Wait()
		}
		queue := w.queue
		w.queue = nil
		w.mu.Unlock()
		if len(queue) == 0 {
			return
		}
		n, err := w.write(queue)
		w.mu.Lock()
		w.size -= n
		w.cond.Broadcast()
		w.mu.Unlock()
		if err != nil {
			w.fail(err)
		}
		if err != nil {
			return
		}
	}
}

func (w *writer) write(lines [][]byte) (n int, err error) {
	var chunk []byte
	for i, line := range lines {
		n += len(line) + 1
		chunk = append(append(chunk, line...), '\n')
		if i+1 < len(lines) && len(chunk)+len(lines[i+1]) < 64<<10 {
			continue
		}
		if _, err := w.out.Write(chunk); err != nil {
			return n, err
		}
		chunk = chunk[:0]
	}
	return n, nil
}

// flush waits until everything queued so far is written, the stream has
// failed, or ctx ends.
func (w *writer) flush(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.cond.Broadcast()
	})
	defer stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.size > 0 && w.err == nil && ctx.Err() == nil {
		w.cond.Wait()
	}
	if w.err != nil {
		return w.err
	}
	return ctx.Err()
}

// fail drops what is queued and refuses the rest.
func (w *writer) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.queue, w.size = err, nil, 0
	w.cond.Broadcast()
}

func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	w.cond.Broadcast()
}
