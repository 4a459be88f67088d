package mcp_test

import (
	"context"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"roundtable/internal/auth"
	"roundtable/mcp"
)

func TestToken(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete, http.MethodHead, http.MethodPut} {
		resp := raw{t: t, url: url}.do(method, initialize)
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != `Bearer realm="roundtable"` {
			t.Errorf("%s without token: %s, %q", method, resp.Status, got)
		}
		resp = raw{t: t, url: url, token: "wrong"}.do(method, initialize)
		if got := resp.Header.Get("WWW-Authenticate"); resp.StatusCode != 401 || got != `Bearer realm="roundtable", error="invalid_token"` {
			t.Errorf("%s with a wrong token: %s, %q", method, resp.Status, got)
		}
	}
	for _, head := range []string{"Basic a", "Bearer", "Bearer ", "a", "Bearer a b"} {
		resp := raw{t: t, url: url}.do(http.MethodPost, initialize, "Authorization", head)
		if resp.StatusCode != 401 {
			t.Errorf("%q: %s", head, resp.Status)
		}
	}
	if resp := (raw{t: t, url: url + "?access_token=a"}).do(http.MethodPost, initialize); resp.StatusCode != 401 {
		t.Errorf("token in the URL: %s", resp.Status)
	}
	if strings.Contains(w.log(), "wrong") {
		t.Error("a token is in the log")
	}
}

func TestOriginAndPath(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{Origins: []string{"https://console.example"}}, nil)
	own := strings.TrimSuffix(url, "/mcp")
	for origin, want := range map[string]int{
		"": 200, own: 200, "https://console.example": 200,
		"http://evil.example": 403, own + ".evil.example": 403, "https://console.example.evil.example": 403,
		"null": 403, strings.TrimSuffix(own, own[strings.LastIndex(own, ":"):]): 403, "http://localhost": 403,
	} {
		resp := raw{t: t, url: url, token: "a", origin: origin}.do(http.MethodPost, initialize)
		if resp.StatusCode != want {
			t.Errorf("origin %q: %s", origin, resp.Status)
		}
	}
	for _, path := range []string{"", "/", "/mcp/", "/mcp/x", "/.well-known/oauth-protected-resource/mcp"} {
		for _, token := range []string{"", "a"} {
			if resp := (raw{t: t, url: own + path, token: token}).do(http.MethodPost, initialize); resp.StatusCode != 404 {
				t.Errorf("%q: %s", path, resp.Status)
			}
		}
	}
}

func TestBodyLimit(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{MaxBody: 1000}, nil)
	c := raw{t: t, url: url, token: "a"}
	pad := func(n int) string { return initialize + strings.Repeat(" ", n-len(initialize)) }
	if resp := c.do(http.MethodPost, pad(1000)); resp.StatusCode != 200 {
		t.Errorf("at the limit: %s", resp.Status)
	}
	resp := c.do(http.MethodPost, pad(1001))
	if code := problemOf(t, resp); resp.StatusCode != 413 || code != "body_too_large" {
		t.Errorf("one byte over: %s %s", resp.Status, code)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if resp := c.do(http.MethodPost, strings.Repeat("x", 64<<20)); resp.StatusCode != 413 {
		t.Errorf("64 MiB: %s", resp.Status)
	}
	runtime.ReadMemStats(&after)
	// The test's own copy of the text is in this figure.
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 80<<20 {
		t.Errorf("a refused body took %d MiB", grown>>20)
	}
}

func TestForeignSession(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	a := raw{t: t, url: url, token: "a"}.open()
	b := a
	b.token = "b"
	for _, method := range []string{http.MethodPost, http.MethodGet, http.MethodDelete} {
		resp := b.do(method, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		if code := problemOf(t, resp); resp.StatusCode != 403 || code != "session_not_yours" {
			t.Errorf("%s: %s %s", method, resp.Status, code)
		}
		invented := raw{t: t, url: url, token: "a", session: "mcp-session-6f1b2a50-0000-4000-8000-000000000000"}
		if resp := invented.do(method, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); resp.StatusCode != 404 {
			t.Errorf("%s with an invented id: %s", method, resp.Status)
		}
		if method != http.MethodPost {
			if resp := (raw{t: t, url: url, token: "a"}).do(method, ""); resp.StatusCode != 400 {
				t.Errorf("%s without a session: %s", method, resp.Status)
			}
		}
	}
	if status, body := a.rpc(1, "tools/list", nil); status != 200 || !strings.Contains(body, "note_create") {
		t.Errorf("the owner: %d %s", status, body)
	}
	if resp := a.do(http.MethodDelete, ""); resp.StatusCode != 200 {
		t.Errorf("the owner's DELETE: %s", resp.Status)
	}
	if status, _ := a.rpc(2, "tools/list", nil); status != 404 {
		t.Errorf("after DELETE: %d", status)
	}
}

// A session says nothing about who calls: the role is that of the token.
func TestHiddenTool(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	want := map[string]string{ // what else is seen besides what everybody sees
		"a":       `note_create note_fail note_get note_list note_panic note_refuse note_wait server_state`,
		"view":    `note_get note_list server_state`,
		"person":  `note_apply note_approve note_create note_fail note_get note_list note_panic note_refuse note_wait server_state`,
		"narrow":  `note_get`,
		"nothing": `server_state`,
	}
	for token, names := range want {
		for _, modern := range []bool{false, true} {
			c := raw{t: t, url: url, token: token, modern: modern}
			if !modern {
				c = c.open()
			}
			_, body := c.rpc(1, "tools/list", nil)
			for _, n := range strings.Fields(want["person"]) {
				if got := strings.Contains(body, `"`+n+`"`); got != strings.Contains(" "+names+" ", " "+n+" ") {
					t.Errorf("%s (modern %v) sees %s: %v", token, modern, n, got)
				}
			}
			if strings.Contains(names, "note_apply") {
				continue
			}
			if _, body := c.rpc(2, "tools/call", callArgs("note_apply", map[string]any{"title": "x"})); !strings.Contains(body, "-32602") {
				t.Errorf("%s (modern %v) calls a hidden tool: %s", token, modern, body)
			}
		}
	}
	if n := strings.Count(w.log(), "tool 'note_apply' not found"); n != 8 {
		t.Errorf("%d refused calls in the log", n)
	}
}

func TestForeignCancel(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	for _, modern := range []bool{true, false} {
		a, b := raw{t: t, url: url, token: "a", modern: modern}, raw{t: t, url: url, token: "b", modern: modern}
		if !modern {
			a, b = a.open(), b.open()
		}
		got := make(chan string, 1)
		go func() {
			_, body := a.rpc(1, "tools/call", callArgs("note_wait", map[string]any{"title": "x"}))
			got <- body
		}()
		<-w.started
		if status, body := b.rpc(-1, "notifications/cancelled", map[string]any{"requestId": 1}); status != 202 {
			t.Errorf("cancel: %d %s", status, body)
		}
		w.release <- struct{}{}
		if err := <-w.ended; err != nil {
			t.Errorf("modern %v: A's call was cancelled by B: %v", modern, err)
		}
		if body := <-got; !strings.Contains(body, "N-W") {
			t.Errorf("modern %v: %s", modern, body)
		}
	}
}

// The context of a call ends with the client's connection, in both eras.
func TestDisconnect(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	for _, modern := range []bool{true, false} {
		a := raw{t: t, url: url, token: "a", modern: modern}
		if !modern {
			a = a.open()
		}
		ctx, cancel := context.WithCancel(t.Context())
		a.ctx = ctx
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			a.rpc(1, "tools/call", callArgs("note_wait", map[string]any{"title": "x"}))
		}()
		<-w.started
		cancel()
		<-gone
		within(t, 5*time.Second, "cancelling", func() {
			if err := <-w.ended; err == nil {
				t.Error("the call went on")
			}
		})
	}
}

func TestPanicLeavesServerAlive(t *testing.T) {
	w := newWorld()
	c := raw{t: t, url: w.serve(t, mcp.HTTPConfig{}, nil), token: "a"}.open()
	_, body := c.rpc(1, "tools/call", callArgs("note_panic", map[string]any{"title": "x"}))
	if strings.Contains(body, "secret") || strings.Contains(body, "goroutine") || !strings.Contains(body, `"isError":true`) {
		t.Errorf("%s", body)
	}
	if status, body := c.rpc(2, "tools/call", callArgs("note_create", map[string]any{"title": "x"})); status != 200 || !strings.Contains(body, "N-1") {
		t.Errorf("%d %s", status, body)
	}
}

func TestLimits(t *testing.T) {
	w := newWorld()
	now := time.Unix(1e9, 0)
	url := w.serve(t, mcp.HTTPConfig{MaxSessions: 2, MaxCalls: 1}, func(c *mcp.Config) {
		c.Limiter = auth.NewLimiter(1, 5, func() time.Time { return now })
	})
	c := raw{t: t, url: url, token: "a"}
	in := c.open()
	c.open()
	resp := c.do(http.MethodPost, initialize)
	if code := problemOf(t, resp); resp.StatusCode != 429 || code != "too_many_sessions" || resp.Header.Get("Retry-After") != "60" {
		t.Errorf("third session: %s %s %s", resp.Status, code, resp.Header.Get("Retry-After"))
	}
	go in.rpc(1, "tools/call", callArgs("note_wait", map[string]any{"title": "x"}))
	<-w.started
	resp = in.do(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if code := problemOf(t, resp); resp.StatusCode != 429 || code != "too_many_at_once" {
		t.Errorf("second call at once: %s %s", resp.Status, code)
	}
	w.release <- struct{}{}
	<-w.ended
	resp = in.do(http.MethodPost, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`)
	if code := problemOf(t, resp); resp.StatusCode != 429 || code != "rate_limited" || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("sixth request: %s %s", resp.Status, code)
	}
	if resp := (raw{t: t, url: url, token: "b"}).do(http.MethodPost, initialize); resp.StatusCode != 200 {
		t.Errorf("another principal: %s", resp.Status)
	}
}
