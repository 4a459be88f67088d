package mcp

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// streamWriter passes an answer on. While it is an event stream, it writes a
// comment in each silent interval, since proxies cut idle streams, and asks
// again whether the credential still stands.
type streamWriter struct {
	http.ResponseWriter
	every    time.Duration
	onHeader func(http.Header)
	stands   func() bool // is called about once an interval while a stream is open
	end      func()      // ends the request

	stop chan struct{}
	wg   sync.WaitGroup

	mu     sync.Mutex // over all writing
	sent   bool       // the header
	silent bool       // nothing was written since the last tick
}

// WriteHeader sends the header; later calls are ignored.
func (w *streamWriter) WriteHeader(code int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.header(code)
}

func (w *streamWriter) header(code int) {
	if w.sent {
		return
	}
	w.sent = true
	w.onHeader(w.Header())
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		w.Header().Set("X-Accel-Buffering", "no")
		w.wg.Go(w.watch)
	}
	w.ResponseWriter.WriteHeader(code)
}

func (w *streamWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.header(http.StatusOK)
	w.silent = false
	return w.ResponseWriter.Write(b)
}

// Flush makes it an http.Flusher, without which the library does not stream.
func (w *streamWriter) Flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush()
}

func (w *streamWriter) flush() {
	// A writer that cannot flush sends when its buffer is full or the handler
	// returns; a connection that is gone shows at the next write.
	_ = http.NewResponseController(w.ResponseWriter).Flush()
}

func (w *streamWriter) watch() {
	t := time.NewTicker(w.every)
	defer t.Stop()
	for {
		select {
		case <-w.stop:
			return
		case <-t.C:
		}
		if !w.stands() {
			w.end()
			return
		}
		w.mu.Lock()
		if w.silent {
			if _, err := io.WriteString(w.ResponseWriter, ": keep-alive\n\n"); err != nil {
				w.mu.Unlock()
				w.end()
				return
			}
			w.flush()
		}
		w.silent = true
		w.mu.Unlock()
	}
}

// finish returns once nothing is written any more, as must be when a handler
// returns.
func (w *streamWriter) finish() {
	close(w.stop)
	w.wg.Wait()
}
