package mcp_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// A raw is a client that does what no library would.
type raw struct {
	t       *testing.T
	url     string
	token   string
	session string
	modern  bool
	origin  string
	ctx     context.Context
}

const modernVersion = "2026-07-28"

func (c raw) do(method, body string, more ...string) *http.Response {
	c.t.Helper()
	ctx := c.ctx
	if ctx == nil {
		ctx = c.t.Context()
	}
	r, err := http.NewRequestWithContext(ctx, method, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return &http.Response{Header: http.Header{}, Body: http.NoBody}
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for k, v := range map[string]string{"Mcp-Session-Id": c.session, "Origin": c.origin} {
		if v != "" {
			r.Header.Set(k, v)
		}
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if c.modern {
		r.Header.Set("Mcp-Protocol-Version", modernVersion)
	}
	for i := 0; i < len(more); i += 2 {
		r.Header.Set(more[i], more[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		if ctx.Err() == nil {
			c.t.Error(err)
		}
		return &http.Response{Header: http.Header{}, Body: http.NoBody}
	}
	c.t.Cleanup(func() { resp.Body.Close() })
	return resp
}

// rpc sends one message of the client's era and returns status and body.
func (c raw) rpc(id int, method string, params map[string]any) (int, string) {
	c.t.Helper()
	resp := c.post(id, method, params)
	b, err := io.ReadAll(resp.Body)
	if err != nil && c.t.Context().Err() == nil {
		c.t.Error(err)
	}
	return resp.StatusCode, string(b)
}

func (c raw) post(id int, method string, params map[string]any) *http.Response {
	c.t.Helper()
	if params == nil {
		params = map[string]any{}
	}
	var more []string
	if c.modern {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    modernVersion,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "raw", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
		more = append(more, "Mcp-Method", method)
		if name, ok := params["name"].(string); ok {
			more = append(more, "Mcp-Name", name)
		}
	}
	m := map[string]any{"jsonrpc": "2.0", "method": method, "params": params}
	if id >= 0 {
		m["id"] = id
	}
	return c.do(http.MethodPost, toJSON(c.t, m), more...)
}

// open begins a session of the older era and returns the client in it.
func (c raw) open() raw {
	c.t.Helper()
	resp := c.do(http.MethodPost, initialize)
	if resp.StatusCode != 200 || resp.Header.Get("Mcp-Session-Id") == "" {
		c.t.Fatalf("initialize: %s", resp.Status)
	}
	c.session = resp.Header.Get("Mcp-Session-Id")
	return c
}

const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}`

func callArgs(tool string, args map[string]any) map[string]any {
	return map[string]any{"name": tool, "arguments": args}
}

// problemOf decodes the body of a refusal outside the protocol.
func problemOf(t *testing.T, resp *http.Response) (code string) {
	t.Helper()
	var p struct {
		Code   string `json:"code"`
		Status int    `json:"status"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&p); err != nil || resp.Header.Get("Content-Type") != "application/problem+json" || p.Status != resp.StatusCode {
		t.Errorf("%s: no problem: %v", resp.Status, err)
	}
	return p.Code
}

// comments reads n keep-alives of a stream, or until it ends.
func comments(body io.Reader, n int) error {
	for s := bufio.NewScanner(body); n > 0; {
		if !s.Scan() {
			return fmt.Errorf("the stream ended: %v", s.Err())
		}
		if strings.HasPrefix(s.Text(), ": keep-alive") {
			n--
		}
	}
	return nil
}

// within runs f and fails when that takes longer than d.
func within(t *testing.T, d time.Duration, what string, f func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	select {
	case <-done:
	case <-time.After(d):
		t.Fatalf("%s took longer than %s", what, d)
	}
}
