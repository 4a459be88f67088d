package api_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roundtable/api"
	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// fakeLog is a log in memory.
type fakeLog struct {
	mu      sync.Mutex
	recs    []events.Record
	changed chan struct{}
	reads   int
	fail    error
	failed  *sync.Once
	told    chan struct{}
}

// breakDown makes reading fail from now on, and no longer if err is nil. It
// returns a channel that is closed when a read has failed.
func (l *fakeLog) breakDown(err error) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail, l.failed, l.told = err, new(sync.Once), make(chan struct{})
	return l.told
}

func newLog() *fakeLog { return &fakeLog{changed: make(chan struct{})} }

func (l *fakeLog) add(n int, change func(*events.Record)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for range n {
		at := int64(len(l.recs) + 1)
		r := events.Record{Position: at, ID: fmt.Sprint("id", at), Workspace: "WS-1", Stream: "task/T-1", Version: at,
			Type: "task.created", Schema: 1, Actor: "PR-1", Data: json.RawMessage(fmt.Sprintf(`{"title":"<%d>"}`, at))}
		if change != nil {
			change(&r)
		}
		l.recs = append(l.recs, r)
	}
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *fakeLog) Since(_ context.Context, at int64, limit int) ([]events.Record, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	if l.fail != nil {
		l.failed.Do(func() { close(l.told) })
		return nil, l.fail
	}
	if at >= int64(len(l.recs)) {
		return nil, nil
	}
	rest := l.recs[at:]
	return append([]events.Record(nil), rest[:min(limit, len(rest))]...), nil
}

func (l *fakeLog) Head(context.Context) (int64, string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return int64(len(l.recs)), "", nil
}

func (l *fakeLog) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// users is who may sign in.
type users struct {
	mu      sync.Mutex
	by      map[string]auth.Principal
	changed chan struct{}
}

func (u *users) authenticate(_ context.Context, token string) (auth.Principal, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	p, ok := u.by[token]
	if !ok {
		return p, fault.Errorf(fault.Unauthenticated, "invalid_token", "the token is not valid, has expired or was revoked")
	}
	return p, nil
}

func (u *users) revoke(token string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.by, token)
	close(u.changed)
	u.changed = make(chan struct{})
}

func (u *users) revoked() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.changed
}

type echoIn struct {
	Proposal string   `json:"proposal_id"`
	Title    string   `json:"title,omitempty"`
	Revision int      `json:"expected_revision,omitempty" min:"1"`
	Tests    []string `json:"expected_tests,omitempty"`
	Patch    string   `json:"patch,omitempty" maxlen:"20000000"`
}

type listIn struct {
	State  string   `json:"state,omitempty" enum:"open,closed"`
	Limit  int      `json:"limit,omitempty" min:"1" max:"200"`
	Share  float64  `json:"share,omitempty"`
	Mine   bool     `json:"mine,omitempty"`
	Labels []string `json:"labels,omitempty"`
	Sizes  []int    `json:"sizes,omitempty"`
}

// ops are the operations of the tests; each answers what it was asked.
func ops() []op.Op {
	echo := func(_ context.Context, c op.Call, in echoIn) (map[string]any, error) {
		switch {
		case in.Proposal == "P-404":
			return nil, fault.Errorf(fault.NotFound, "proposal_not_found", "there is no proposal %s", in.Proposal).Then("proposal.list", nil, "", "it lists them")
		case in.Revision == 9:
			return nil, fault.Errorf(fault.Conflict, "stale_revision", "the newest revision is 2").With("revision", 2).
				Then("proposal.get", map[string]any{"proposal_id": in.Proposal}, "", "look at it first")
		case in.Title == "panic":
			panic("secret words")
		case in.Title == "internal":
			return nil, fmt.Errorf("secret words")
		}
		return map[string]any{"in": in, "key": c.Key, "body": fmt.Sprintf("%x", sha256.Sum256(c.Body)), "workspace": c.Workspace, "big": strings.Repeat("x", in.Revision)}, nil
	}
	return []op.Op{
		op.Of(op.Op{Name: "proposal.edit", Route: "POST /api/v1/workspaces/{workspace_id}/proposals/{proposal_id}/revisions", Status: 201,
			Doc: "Edit a proposal.", Effect: op.Records, May: op.May{Roles: []auth.Role{auth.Implementer}}}, echo),
		op.Of(op.Op{Name: "approval.approve", Route: "POST /api/v1/workspaces/{workspace_id}/proposals/{proposal_id}/approve",
			Doc: "Approve a proposal.", Effect: op.Records, May: op.May{Any: true, Human: true}}, echo),
		op.Of(op.Op{Name: "proposal.list", Route: "GET /api/v1/workspaces/{workspace_id}/proposals",
			Doc: "List the proposals.", May: op.May{Any: true}},
			func(_ context.Context, c op.Call, in listIn) (map[string]any, error) {
				return map[string]any{"in": in, "after": c.After}, nil
			}),
		op.Of(op.Op{Name: "proposal.get", Route: "GET /api/v1/workspaces/{workspace_id}/proposals/{proposal_id}",
			Doc: "Read one proposal.", May: op.May{Any: true}}, echo),
	}
}

// A rig is a service on a loopback port.
type rig struct {
	t     *testing.T
	url   string
	log   *fakeLog
	feed  *api.Feed
	users *users
	lines *lockedBuffer
	stop  context.CancelFunc // of the base context
	reg   *prometheus.Registry

	client *http.Transport
	config api.Config
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t *testing.T, change func(*api.Config, *api.FeedConfig)) *rig {
	t.Helper()
	r := &rig{t: t, log: newLog(), lines: &lockedBuffer{}, reg: prometheus.NewRegistry(), client: &http.Transport{DisableCompression: true}}
	one := func(kind auth.Kind, id string, ws string, role auth.Role) auth.Principal {
		return auth.Principal{ID: id, Kind: kind, Token: "TK-" + id, Grants: []auth.Grant{{Workspace: ws, Role: role}}}
	}
	r.users = &users{changed: make(chan struct{}), by: map[string]auth.Principal{
		"agent":   one(auth.Agent, "PR-1", "WS-1", auth.Implementer),
		"person":  one(auth.Human, "PR-2", "WS-1", auth.Viewer),
		"auditor": one(auth.Human, "PR-3", "*", auth.Auditor),
	}}
	lg := slog.New(slog.NewTextHandler(r.lines, &slog.HandlerOptions{Level: slog.LevelDebug}))
	fc := api.FeedConfig{Log: r.log, Revoked: r.users.revoked, Metrics: r.reg, Logger: lg, Now: time.Now,
		Known: func(_ context.Context, ws string) error {
			if ws != "WS-1" && ws != "WS-2" {
				return fault.Errorf(fault.NotFound, "workspace_not_found", "there is no workspace %s", ws)
			}
			return nil
		}}
	cfg := api.Config{Authenticate: r.users.authenticate, Metrics: r.reg, Logger: lg, Now: time.Now,
		Ready: func(context.Context) []api.Check { return []api.Check{{Name: "log", OK: true}} }}
	if change != nil {
		change(&cfg, &fc)
	}
	var err error
	if r.feed, err = api.NewFeed(fc); err != nil {
		t.Fatal(err)
	}
	cfg.Ops, cfg.Extras = append(ops(), r.feed.Ops()...), r.feed.Extras()
	r.config = cfg
	h, err := api.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	r.serve(h)
	return r
}

// serve starts the server and the feed, and ends both with the test.
func (r *rig) serve(h http.Handler) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	r.url = "http://" + l.Addr().String()
	base, stop := context.WithCancel(context.Background())
	r.stop = stop
	srv := api.NewServer(base, h)
	var wg sync.WaitGroup
	wg.Go(func() { srv.Serve(l) })
	wg.Go(func() {
		if err := r.feed.Run(base); err != nil {
			r.t.Errorf("feed: %v", err)
		}
	})
	r.t.Cleanup(func() {
		stop()
		r.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := srv.Shutdown(ctx); err != nil {
			r.t.Errorf("shutdown: %v", err)
		}
		wg.Wait()
	})
}

// An answer is what came back.
type answer struct {
	status int
	header http.Header
	raw    string
	body   map[string]any
}

func (a answer) code() string { c, _ := a.body["code"].(string); return c }

// do sends one request; headers are name, value, name, value.
func (r *rig) do(method, path, token string, body io.Reader, headers ...string) answer {
	r.t.Helper()
	req, err := http.NewRequest(method, r.url+path, body)
	if err != nil {
		r.t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	a := answer{status: resp.StatusCode, header: resp.Header, raw: string(b)}
	if strings.Contains(resp.Header.Get("Content-Type"), "json") && len(b) > 0 && resp.Header.Get("Content-Encoding") == "" {
		if err := json.Unmarshal(b, &a.body); err != nil {
			r.t.Fatalf("%s: %v", b, err)
		}
	}
	return a
}

// post sends a JSON body with a key.
func (r *rig) post(path, token, body string) answer {
	r.t.Helper()
	return r.do("POST", path, token, strings.NewReader(body), "Content-Type", "application/json", "Idempotency-Key", "k-1")
}
