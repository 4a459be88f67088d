package client

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"roundtable/internal/acp"
)

// handle routes what the agent sends; it runs on the reading goroutine.
func (c *Client) handle(call *acp.Call) {
	if call.Method == "session/update" && call.Kind == acp.Notification {
		c.update(call.Params)
		return
	}
	if call.Kind == acp.Notification {
		c.cfg.Log.Info("acp: notification ignored", "method", call.Method)
		return
	}
	serve := c.server(call.Method)
	if serve == nil {
		call.Reply(nil, acp.NewError(acp.CodeMethodNotFound, call.Method))
		return
	}
	asks := c.asks(call.Params)
	c.conn.Go(func(context.Context) {
		ctx, cancel := context.WithCancel(asks)
		defer cancel()
		defer context.AfterFunc(call.Context(), cancel)()
		result, err := serve(ctx, call.Params)
		if errors.Is(err, context.Canceled) {
			err = acp.NewError(acp.CodeCancelled, nil)
		}
		call.Reply(result, err)
	})
}

type server func(ctx context.Context, params json.RawMessage) (any, error)

// server is who answers a method that was offered.
func (c *Client) server(method string) server {
	switch {
	case method == "session/request_permission":
		return c.permission
	case method == "elicitation/create" && c.cfg.Elicit != nil:
		return c.elicit
	case c.version >= 2: // the rest is version 1
	case method == "fs/read_text_file" && c.cfg.Files:
		return c.readFile
	case method == "fs/write_text_file" && c.cfg.Files:
		return c.writeFile
	case strings.HasPrefix(method, "terminal/") && c.cfg.Terminals:
		return c.terminalServer(method)
	}
	return nil
}

// asks is the context of what the agent asks in a session.
func (c *Client) asks(params json.RawMessage) context.Context {
	var p struct {
		SessionID string `json:"sessionId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return context.Background()
	}
	c.mu.Lock()
	s := c.sessions[p.SessionID]
	c.mu.Unlock()
	if s == nil {
		return context.Background()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asks
}

// params reads what a method needs; missing properties are an error.
func params[T any](raw json.RawMessage, need ...string) (p T, err error) {
	var f map[string]json.RawMessage
	if err := json.Unmarshal(raw, &f); err != nil {
		return p, acp.InvalidParams("%v", err)
	}
	for _, name := range need {
		if len(f[name]) == 0 || string(f[name]) == "null" {
			return p, acp.InvalidParams("missing field `%s`", name)
		}
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, acp.InvalidParams("%v", err)
	}
	return p, nil
}
