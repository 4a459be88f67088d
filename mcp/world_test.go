package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/mcp"
)

// A world is a service with a few ops, of which some misbehave.
type world struct {
	mu      sync.Mutex
	tokens  map[string]auth.Principal
	calls   []op.Call // of the ops, in order
	next    int64
	started chan string   // op that has begun to wait
	ended   chan error    // why it ended
	release chan struct{} // lets one that waits end well
	logged  strings.Builder
}

type noteIn struct {
	Title string `json:"title" jsonschema:"what it is about"`
	Size  int64  `json:"size,omitempty"`
}
type note struct {
	ID    string   `json:"note_id"`
	Title string   `json:"title"`
	Size  int64    `json:"size"`
	Tags  []string `json:"tags"`
}
type none struct{}
type listIn struct {
	Limit int `json:"limit,omitempty"`
}

func newWorld() *world {
	agent := func(id string, roles ...auth.Role) auth.Principal {
		p := auth.Principal{ID: id, Name: id, Kind: auth.Agent, Owner: "PR-O"}
		for _, r := range roles {
			p.Grants = append(p.Grants, auth.Grant{Workspace: "WS-1", Role: r})
		}
		return p
	}
	person := agent("PR-H", auth.Admin)
	person.Kind = auth.Human
	two := agent("PR-2WS", auth.Implementer)
	two.Grants = append(two.Grants, auth.Grant{Workspace: "WS-2", Role: auth.Viewer})
	narrow := agent("PR-N", auth.Implementer)
	narrow.Scope = auth.Scope{Workspace: "WS-1", Operations: []string{"note.get"}}
	return &world{
		tokens: map[string]auth.Principal{
			"a": agent("PR-A", auth.Implementer), "b": agent("PR-B", auth.Implementer),
			"view": agent("PR-V", auth.Viewer), "person": person, "two": two, "narrow": narrow, "nothing": agent("PR-0"),
		},
		started: make(chan string, 64), ended: make(chan error, 64), release: make(chan struct{}),
	}
}

func (w *world) authenticate(_ context.Context, token string) (auth.Principal, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p, ok := w.tokens[token]
	if !ok {
		return p, fault.Errorf(fault.Unauthenticated, "token_invalid", "This token is not valid.")
	}
	return p, nil
}

func (w *world) revoke(token string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.tokens, token)
}

func (w *world) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logged.Write(b)
}

func (w *world) log() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.logged.String()
}

func (w *world) saw(c op.Call) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls = append(w.calls, c)
	w.next++
	return w.next * 10
}

func (w *world) last(t *testing.T) op.Call {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) == 0 {
		t.Fatal("no call came in")
	}
	return w.calls[len(w.calls)-1]
}

// ops are what the world offers.
func (w *world) ops() []op.Op {
	const ws = "/api/v1/workspaces/{workspace_id}"
	one := op.OneOf[note]("note", nil)
	by := op.May{Roles: []auth.Role{auth.Implementer}}
	write := func(name, route string, may op.May, e op.Effect, f func(context.Context, op.Call, noteIn) (op.Answer, error)) op.Op {
		return op.Of(op.Op{Name: name, Route: route, Doc: "Do " + name + ", when it is wanted.", Tool: true, May: may, Effect: e, Out: one}, f)
	}
	made := func(_ context.Context, c op.Call, in noteIn) (op.Answer, error) {
		return op.Answer{Name: "note", Value: note{"N-1", in.Title, in.Size, []string{}}, Position: w.saw(c)}, nil
	}
	return []op.Op{
		write("note.create", "POST "+ws+"/notes", by, op.Records, made),
		write("note.apply", "POST "+ws+"/notes/apply", op.May{Roles: []auth.Role{auth.Orchestrator}}, op.Changes, made),
		write("note.approve", "POST "+ws+"/notes/approve", op.May{Human: true}, op.Records, made),
		write("note.wait", "POST "+ws+"/notes/wait", by, op.Records, w.wait),
		write("note.panic", "POST "+ws+"/notes/panic", by, op.Records, func(context.Context, op.Call, noteIn) (op.Answer, error) {
			panic("secret panic text")
		}),
		write("note.fail", "POST "+ws+"/notes/fail", by, op.Records, func(context.Context, op.Call, noteIn) (op.Answer, error) {
			return op.Answer{}, errors.New("secret error text")
		}),
		write("note.refuse", "POST "+ws+"/notes/refuse", by, op.Records, func(context.Context, op.Call, noteIn) (op.Answer, error) {
			return op.Answer{}, fault.Errorf(fault.Conflict, "note_conflict", "N-1 is held by PR-B.").
				With("holder", "PR-B").Then("note.get", map[string]any{"note_id": "N-1"}, "", "to see it").At("/title", "taken")
		}),
		op.Of(op.Op{Name: "note.get", Route: "GET " + ws + "/notes/{note_id}", Doc: "Read one note.", Tool: true, May: op.May{Any: true}, Out: one},
			func(_ context.Context, c op.Call, in struct {
				ID string `json:"note_id"`
			}) (op.Answer, error) {
				return op.Answer{Name: "note", Value: note{in.ID, "a title", 0, []string{}}, Position: w.saw(c)}, nil
			}),
		op.Of(op.Op{Name: "note.list", Route: "GET " + ws + "/notes", Doc: "List notes.", Tool: true, May: op.May{Any: true}, Out: op.ListOf[note]("notes")},
			func(_ context.Context, c op.Call, in listIn) (op.Answer, error) {
				return op.Answer{Name: "notes", Value: []note{{"N-1", "one", 1, []string{}}, {"N-2", "two", 2, []string{"x"}}}, List: true, Next: "c2", Position: w.saw(c)}, nil
			}),
		op.Of(op.Op{Name: "server.state", Route: "GET /api/v1/state", Doc: "Say how the server is.", Tool: true},
			func(_ context.Context, c op.Call, _ none) (struct {
				Up bool `json:"up"`
			}, error) {
				w.saw(c)
				return struct {
					Up bool `json:"up"`
				}{true}, nil
			}),
		op.Of(op.Op{Name: "token.issue", Route: "POST /api/v1/tokens", Doc: "Not offered over MCP.", May: op.May{Human: true}, Effect: op.Records},
			func(context.Context, op.Call, none) (none, error) { return none{}, nil }),
	}
}

// wait holds a call until it is released or cancelled.
func (w *world) wait(ctx context.Context, c op.Call, in noteIn) (op.Answer, error) {
	w.started <- in.Title
	select {
	case <-w.release:
		w.ended <- nil
		return op.Answer{Name: "note", Value: note{"N-W", in.Title, 0, []string{}}, Position: w.saw(c)}, nil
	case <-ctx.Done():
		w.ended <- ctx.Err()
		return op.Answer{}, ctx.Err()
	}
}

func (w *world) server(t *testing.T, change func(*mcp.Config)) *mcp.Server {
	t.Helper()
	cfg := mcp.Config{
		Ops: w.ops(), Authenticate: w.authenticate, Version: "test", Now: time.Now,
		Logger: slog.New(slog.NewTextHandler(w, nil)),
		Workspaces: func(_ context.Context, who auth.Principal) ([]string, error) {
			return who.Workspaces(), nil
		},
	}
	if change != nil {
		change(&cfg)
	}
	s, err := mcp.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// serve is the world over HTTP; it returns the endpoint.
func (w *world) serve(t *testing.T, cfg mcp.HTTPConfig, change func(*mcp.Config)) string {
	t.Helper()
	h := mcp.Handler(w.server(t, change), cfg)
	mux := http.NewServeMux()
	mux.Handle("/mcp", h)
	srv := httptest.NewServer(mux)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := h.Close(ctx); err != nil {
			t.Error(err)
		}
		srv.Close()
	})
	return srv.URL + "/mcp"
}

// bearer adds a token to each request.
type bearer struct{ token string }

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return http.DefaultTransport.RoundTrip(r)
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return string(b)
}

// stdio is the one principal of token.
func (w *world) stdio(token string) mcp.StdioConfig {
	return mcp.StdioConfig{Who: func(ctx context.Context) (auth.Principal, error) { return w.authenticate(ctx, token) }}
}
