package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"
	"github.com/oklog/ulid/v2"

	"roundtable/internal/fault"
)

type args = map[string]any

// problem is what a refusal looks like, over every transport.
type problem struct {
	Status int          `json:"status"`
	Code   string       `json:"code"`
	Detail string       `json:"detail"`
	Next   []fault.Step `json:"next"`
}

func (p *problem) Error() string { return p.Code + ": " + p.Detail }

// refusal checks that err is a refusal with one of the codes.
func refusal(err error, codes ...string) (*problem, error) {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return nil, fmt.Errorf("expected a refusal (%s) and got: %w", strings.Join(codes, ", "), errOrNone(err))
	}
	for _, c := range codes {
		if p.Code == c {
			return p, nil
		}
	}
	return nil, fmt.Errorf("expected %s: %w", strings.Join(codes, " or "), err)
}

func errOrNone(err error) error {
	if err == nil {
		return errors.New("no error")
	}
	return err
}

func steps(next []fault.Step) string {
	var s []string
	for _, n := range next {
		s = append(s, n.Op+" by "+n.Who)
	}
	return strings.Join(s, ", ")
}

// text reads a value at a path of members, as text; "" if it is not there.
func text(m any, path ...string) string {
	for _, k := range path {
		o, ok := m.(map[string]any)
		if !ok {
			return ""
		}
		m = o[k]
	}
	switch v := m.(type) {
	case nil:
		return ""
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(m)
}

func list(m map[string]any, name string) (out []map[string]any) {
	all, _ := m[name].([]any)
	for _, x := range all {
		if o, ok := x.(map[string]any); ok {
			out = append(out, o)
		}
	}
	return out
}

func first(m map[string]any, name string) string {
	all, _ := m[name].([]any)
	if len(all) == 0 {
		return ""
	}
	return text(all[0])
}

// A person speaks HTTP.
type person struct{ base, workspace, token string }

func newPerson(at, workspace, token string) *person { return &person{at + "/api/v1", workspace, token} }

func (p *person) get(ctx context.Context, path string) (map[string]any, error) {
	return p.send(ctx, "GET", p.base+"/workspaces/"+p.workspace+path, p.token, nil)
}

func (p *person) post(ctx context.Context, path string, in args) (map[string]any, error) {
	return p.send(ctx, "POST", p.base+"/workspaces/"+p.workspace+path, p.token, in)
}

func (p *person) server(ctx context.Context, path string) (map[string]any, error) {
	return p.send(ctx, "GET", p.base+path, p.token, nil)
}

func (p *person) send(ctx context.Context, method, url, token string, in args) (out map[string]any, err error) {
	body, err := json.Marshal(in)
	if err != nil {
		return nil, err
	}
	if in == nil {
		body = nil
	}
	r, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	if method != "GET" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", ulid.Make().String())
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		p := &problem{}
		if err := json.NewDecoder(res.Body).Decode(p); err != nil {
			return nil, fmt.Errorf("%s %s: %s, and no problem: %w", method, url, res.Status, err)
		}
		return nil, p
	}
	return out, json.NewDecoder(res.Body).Decode(&out)
}

// invite makes a principal and gives its token.
func (p *person) invite(ctx context.Context, name, kind, owner string, roles ...string) (string, error) {
	in := args{"name": name, "kind": kind}
	if owner != "" {
		in["owner"] = owner
	}
	grants := []args{}
	for _, r := range roles {
		grants = append(grants, args{"workspace_id": p.workspace, "role": r})
	}
	in["roles"] = grants
	got, err := p.send(ctx, "POST", p.base+"/principals", p.token, in)
	if err != nil {
		return "", err
	}
	tok, err := p.send(ctx, "POST", p.base+"/tokens", p.token, args{"principal_id": text(got, "principal", "principal_id")})
	return text(tok, "token"), err
}

// An agent speaks MCP.
type agent struct {
	*client.Client
	token string
}

func connect(ctx context.Context, at, token string) (*agent, error) {
	c, err := client.NewStreamableHttpClient(at+"/mcp", transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
	if err != nil {
		return nil, err
	}
	if err := c.Start(ctx); err != nil {
		return nil, err
	}
	var hello mcpgo.InitializeRequest
	hello.Params.ProtocolVersion = mcpgo.LATEST_PROTOCOL_VERSION
	hello.Params.ClientInfo = mcpgo.Implementation{Name: "roundtable-demo", Version: version()}
	if _, err := c.Initialize(ctx, hello); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return &agent{c, token}, nil
}

func (a *agent) close() { a.Client.Close() }

// call calls a tool; a refusal is a *problem.
func (a *agent) call(ctx context.Context, tool string, in args) (out map[string]any, err error) {
	var r mcpgo.CallToolRequest
	r.Params.Name, r.Params.Arguments = tool, in
	res, err := a.CallTool(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	if res.IsError {
		p := &problem{}
		b, err := json.Marshal(res.Meta.AdditionalFields["roundtable/error"])
		if err == nil {
			err = json.Unmarshal(b, p)
		}
		return nil, errors.Join(p, err)
	}
	b, err := json.Marshal(res.StructuredContent)
	if err != nil {
		return nil, err
	}
	return out, json.Unmarshal(b, &out)
}

// post tries an HTTP call of a person with the agent's token.
func (a *agent) post(ctx context.Context, p *person, path string, in args) (map[string]any, error) {
	return p.send(ctx, "POST", p.base+"/workspaces/"+p.workspace+path, a.token, in)
}

// A stream follows the workspace's events as they come.
type stream struct {
	body io.Closer
	done chan struct{}

	mu     sync.Mutex
	events []streamed
	next   int           // the first that no await has passed
	more   chan struct{} // closed when there are more
	err    error
}

type streamed struct {
	position int64
	kind     string
	data     map[string]any
}

func (p *person) follow(ctx context.Context) (*stream, error) {
	r, err := http.NewRequestWithContext(ctx, "GET", p.base+"/workspaces/"+p.workspace+"/events/stream", nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.token)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("the stream answers %s", res.Status), res.Body.Close())
	}
	s := &stream{body: res.Body, done: make(chan struct{}), more: make(chan struct{})}
	go s.read(bufio.NewReader(res.Body)) // ends with the body; close waits for it
	return s, nil
}

func (s *stream) close() {
	s.body.Close()
	<-s.done
}

// read takes the stream apart: an event is its data lines up to an empty line.
func (s *stream) read(r *bufio.Reader) {
	defer close(s.done)
	var data []byte
	for {
		line, err := r.ReadString('\n')
		if err != nil {
			s.add(nil, err)
			return
		}
		line = strings.TrimRight(line, "\r\n")
		if text, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(text, " ")...)
		} else if line == "" && len(data) > 0 {
			s.add(data, nil)
			data = nil
		}
	}
}

func (s *stream) add(data []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	if data != nil {
		var e struct {
			Position int64          `json:"position"`
			Type     string         `json:"type"`
			Data     map[string]any `json:"data"`
		}
		if s.err = json.Unmarshal(data, &e); s.err == nil {
			s.events = append(s.events, streamed{e.Position, e.Type, e.Data})
		}
	}
	close(s.more)
	s.more = make(chan struct{})
}

// await returns what is read from the next event of a kind.
func (s *stream) await(ctx context.Context, kind string, read func(map[string]any) string) (string, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		s.mu.Lock()
		for ; s.next < len(s.events); s.next++ {
			if e := s.events[s.next]; e.kind == kind {
				s.next++
				s.mu.Unlock()
				return read(e.data), nil
			}
		}
		more, err := s.more, s.err
		s.mu.Unlock()
		if err != nil {
			return "", fmt.Errorf("the live stream ended: %w", err)
		}
		select {
		case <-more:
		case <-ctx.Done():
			return "", fmt.Errorf("the live stream did not bring %s: %w", kind, ctx.Err())
		}
	}
}

// position returns that of the newest event an await has passed.
func (s *stream) position() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == 0 {
		return 0
	}
	return s.events[s.next-1].position
}
