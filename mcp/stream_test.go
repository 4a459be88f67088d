package mcp_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"roundtable/mcp"
)

// stream opens a listening stream of the older era.
func (c raw) stream() *http.Response {
	c.t.Helper()
	resp := c.do(http.MethodGet, "")
	if resp.StatusCode != 200 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		c.t.Fatalf("GET: %s %s", resp.Status, resp.Header.Get("Content-Type"))
	}
	if resp.Header.Get("X-Accel-Buffering") != "no" {
		c.t.Error("a proxy would hold the stream back")
	}
	return resp
}

func TestKeepAlive(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{KeepAlive: 5 * time.Millisecond}, nil)
	resp := raw{t: t, url: url, token: "a"}.open().stream()
	within(t, 10*time.Second, "three comments", func() {
		if err := comments(resp.Body, 3); err != nil {
			t.Error(err)
		}
	})
}

// Nothing can be subscribed to, so a listen stream of the newer era ends by
// itself.
func TestListen(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	within(t, 10*time.Second, "listening to nothing", func() {
		status, body := raw{t: t, url: url, token: "a", modern: true}.rpc(1, "subscriptions/listen",
			map[string]any{"notifications": map[string]any{"toolsListChanged": true}})
		if status != 200 || !strings.Contains(body, `"resultType":"complete"`) {
			t.Errorf("%d %s", status, body)
		}
	})
}

func TestRevokedCredentialEndsStream(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{KeepAlive: 5 * time.Millisecond}, nil)
	a, b := raw{t: t, url: url, token: "a"}.open().stream(), raw{t: t, url: url, token: "b"}.open().stream()
	if err := comments(a.Body, 1); err != nil {
		t.Fatal(err)
	}
	w.revoke("a")
	within(t, 10*time.Second, "ending the stream", func() {
		if _, err := io.Copy(io.Discard, a.Body); err != nil {
			t.Errorf("it did not end well: %v", err)
		}
	})
	if err := comments(b.Body, 2); err != nil {
		t.Errorf("another's stream: %v", err)
	}
}

// Close ends streams at once and lets a call finish.
func TestShutdown(t *testing.T) {
	w := newWorld()
	h := mcp.Handler(w.server(t, nil), mcp.HTTPConfig{})
	srv := httptest.NewServer(h)
	defer srv.Close()
	c := raw{t: t, url: srv.URL, token: "a"}.open()
	streams := []*http.Response{c.stream(), raw{t: t, url: srv.URL, token: "b"}.open().stream()}
	answer := make(chan string, 1)
	go func() {
		_, body := c.rpc(1, "tools/call", callArgs("note_wait", map[string]any{"title": "x"}))
		answer <- body
	}()
	<-w.started
	closed := make(chan error, 1)
	began := time.Now()
	go func() { closed <- h.Close(t.Context()) }()
	for _, s := range streams {
		if _, err := io.Copy(io.Discard, s.Body); err != nil {
			t.Error(err)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("the streams ended after %s", took)
	}
	resp := c.do(http.MethodPost, initialize)
	if code := problemOf(t, resp); resp.StatusCode != 503 || code != "shutting_down" || resp.Header.Get("Retry-After") == "" {
		t.Errorf("a new request: %s", resp.Status)
	}
	w.release <- struct{}{}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if body := <-answer; !strings.Contains(body, "N-W") {
		t.Errorf("the call in flight: %s", body)
	}
}

// A call that does not end holds the shutdown only as long as it may.
func TestShutdownDeadline(t *testing.T) {
	w := newWorld()
	h := mcp.Handler(w.server(t, nil), mcp.HTTPConfig{})
	srv := httptest.NewServer(h)
	defer srv.Close()
	c := raw{t: t, url: srv.URL, token: "a"}.open()
	go c.rpc(1, "tools/call", callArgs("note_wait", map[string]any{"title": "x"}))
	<-w.started
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	within(t, time.Second, "closing", func() {
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := <-w.ended; err == nil {
		t.Error("the call was not cancelled")
	}
}

// 5,000 sessions that nobody ends are forgotten, and so is their memory.
func TestIdleSessions(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{IdleTTL: 50 * time.Millisecond, MaxSessions: 100000}, nil)
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	c := raw{t: t, url: url, token: "a"}
	first := c.open()
	before := heap()
	for range 5000 {
		resp, err := http.DefaultClient.Do(newInitialize(t, url))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != 200 {
			t.Fatal(resp.Status)
		}
	}
	full := int64(heap()) - int64(before)
	within(t, 20*time.Second, "forgetting", func() {
		for int64(heap())-int64(before) > max(full/4, 2<<20) {
			runtime.Gosched()
		}
	})
	if status, _ := first.rpc(1, "ping", nil); status != 404 {
		t.Errorf("the first session answers %d", status)
	}
	t.Logf("%d KiB with 5,000 sessions, %d KiB after", full>>10, (int64(heap())-int64(before))>>10)
}

func newInitialize(t *testing.T, url string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(initialize))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer a")
	return r
}
