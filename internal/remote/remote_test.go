package remote_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"roundtable/api"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/remote"
)

type in struct {
	ID    string            `json:"note_id"`
	Title string            `json:"title,omitempty"`
	Size  int64             `json:"size,omitempty"`
	Loud  bool              `json:"loud,omitempty"`
	Tags  []string          `json:"tags,omitempty"`
	More  map[string]string `json:"more,omitempty"`
}

type out struct {
	Call op.Call `json:"call"`
	In   in      `json:"in"`
}

// ops are echoes, and one that refuses.
func ops(refusal *error) []op.Op {
	const ws = "/api/v1/workspaces/{workspace_id}"
	echo := func(_ context.Context, c op.Call, i in) (out, error) {
		if *refusal != nil {
			return out{}, *refusal
		}
		return out{c, i}, nil
	}
	type noMap struct {
		ID    string   `json:"note_id"`
		Title string   `json:"title,omitempty"`
		Size  int64    `json:"size,omitempty"`
		Loud  bool     `json:"loud,omitempty"`
		Tags  []string `json:"tags,omitempty"`
	}
	return []op.Op{
		op.Of(op.Op{Name: "note.put", Route: "POST " + ws + "/notes/{note_id}", Effect: op.Records, Doc: "Echo."}, echo),
		op.Of(op.Op{Name: "note.get", Route: "GET " + ws + "/notes/{note_id}", Doc: "Echo."}, func(ctx context.Context, c op.Call, i noMap) (out, error) {
			return echo(ctx, c, in{ID: i.ID, Title: i.Title, Size: i.Size, Loud: i.Loud, Tags: i.Tags})
		}),
		op.Of(op.Op{Name: "note.drop", Route: "DELETE /api/v1/notes/{note_id}", Effect: op.Records, Doc: "Echo."}, echo),
	}
}

// serve answers ops over HTTP as the product does.
func serve(t *testing.T, list []op.Op) string {
	t.Helper()
	h, err := api.New(api.Config{
		Ops: list, Ready: func(context.Context) []api.Check { return nil },
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Now: time.Now,
		Authenticate: func(_ context.Context, token string) (auth.Principal, error) {
			if token != "good" {
				return auth.Principal{}, fault.Errorf(fault.Unauthenticated, "invalid_token", "no")
			}
			return auth.Principal{ID: "PR-1", Grants: []auth.Grant{{Workspace: "WS-1", Role: auth.Admin}}}, nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

func dial(t *testing.T, list []op.Op, c remote.Client) map[string]op.Op {
	t.Helper()
	there, err := remote.Ops(list, c)
	if err != nil {
		t.Fatal(err)
	}
	by := map[string]op.Op{}
	for _, o := range there {
		by[o.Name] = o
	}
	return by
}

func TestRoundTrip(t *testing.T) {
	var refusal error
	list := ops(&refusal)
	there := dial(t, list, remote.Client{Base: serve(t, list) + "/", Token: "good"})
	for _, c := range []struct {
		op   string
		call op.Call
		in   in
	}{
		{"note.put", op.Call{Workspace: "WS-1", Key: "k 1"}, in{ID: "a/b c%?#é", Title: "x\n\"é", Size: 9007199254740993, Loud: true, Tags: []string{"a,b", "c"}, More: map[string]string{"k": "v"}}},
		{"note.put", op.Call{Workspace: "WS-1", Key: "k2"}, in{ID: "N-1"}},
		{"note.get", op.Call{Workspace: "WS-1", After: 77}, in{ID: "../x", Title: "a&b=c", Size: -3, Loud: true, Tags: []string{"a,b"}}},
		{"note.get", op.Call{Workspace: "WS-1"}, in{ID: "N-1", Title: "123"}},
		{"note.drop", op.Call{Key: "k3"}, in{ID: "N-1"}},
	} {
		raw, err := json.Marshal(c.in)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := there[c.op].Run(t.Context(), c.call, raw)
		if err != nil {
			t.Errorf("%s: %v", c.op, err)
			continue
		}
		var got out
		if err := json.Unmarshal(answer.(json.RawMessage), &got); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(c.in, got.In); d != "" {
			t.Errorf("%s: %s", c.op, d)
		}
		if g := got.Call; g.Workspace != c.call.Workspace || g.Key != c.call.Key || g.After != c.call.After || g.Who.ID != "PR-1" {
			t.Errorf("%s: %+v", c.op, g)
		}
	}
}

func TestFaultsSurvive(t *testing.T) {
	var refusal error
	list := ops(&refusal)
	there := dial(t, list, remote.Client{Base: serve(t, list), Token: "good"})
	for _, k := range fault.Kinds {
		if k == fault.Internal {
			continue
		}
		f := fault.Errorf(k, "some_code", "What is wrong.").With("holder", "PR-2").With("fence", 3.0).
			At("/title", "bad").Then("note.get", map[string]any{"note_id": "N"}, "admin", "why")
		refusal = f
		_, err := there["note.get"].Run(t.Context(), op.Call{Workspace: "WS-1"}, []byte(`{"note_id":"N"}`))
		if d := cmp.Diff(error(f), err); d != "" {
			t.Errorf("%s: %s", k, d)
		}
	}
	refusal = io.ErrUnexpectedEOF
	_, err := there["note.get"].Run(t.Context(), op.Call{Workspace: "WS-1"}, []byte(`{"note_id":"N"}`))
	f, ok := err.(*fault.Error)
	if !ok || f.Kind != fault.Internal || f.Context["request_id"] == "" || strings.Contains(f.Detail, "EOF") {
		t.Errorf("internal: %#v", err)
	}
}

// What would change on its way is refused before it is sent.
func TestStrict(t *testing.T) {
	list := ops(new(error))
	there := dial(t, list, remote.Client{Base: "http://127.0.0.1:1"})
	for _, raw := range []string{`{"note_id":"a","note_id":"b"}`, "{\"note_id\":\"\xff\"}", `{"note_id":"a","x":1}`, `{"note_id":"a"} 1`, `{`, `[]`, `{}`, `{"note_id":""}`, `{"note_id":".."}`} {
		if _, err := there["note.put"].Run(t.Context(), op.Call{Workspace: "WS-1", Key: "k"}, []byte(raw)); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := there["note.put"].Run(t.Context(), op.Call{Key: "k"}, []byte(`{"note_id":"a"}`)); fault.CodeOf(err) != "workspace_required" {
		t.Errorf("%v", err)
	}
	for _, key := range []string{"", " ", "a\nb", "é", strings.Repeat("k", 256)} {
		if _, err := there["note.put"].Run(t.Context(), op.Call{Workspace: "WS-1", Key: key}, []byte(`{"note_id":"a"}`)); fault.CodeOf(err) != "invalid_idempotency_key" {
			t.Errorf("key %q: %v", key, err)
		}
	}
	for _, base := range []string{"", "127.0.0.1:1", "ftp://x", "http://", "http://u:p@x", "http://x?y=1", "::"} {
		if _, err := remote.Ops(list, remote.Client{Base: base}); fault.CodeOf(err) != "server_address" {
			t.Errorf("%q: %v", base, err)
		}
	}
}

// answering is a server that says the same to everyone.
func answering(t *testing.T, f http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(f)
	t.Cleanup(srv.Close)
	return srv.URL
}

// A write whose answer is lost is of unknown outcome; a read, or a write that
// was never sent, is not.
func TestLost(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	hangUp := func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		panic(http.ErrAbortHandler)
	}
	for _, c := range []struct {
		name, base  string
		write, read string // codes
	}{
		{"not there", "http://" + closed.Addr().String(), "server_unreachable", "server_unreachable"},
		{"no such host", "http://nowhere.invalid", "server_unreachable", "server_unreachable"},
		{"hangs up", answering(t, hangUp), "unknown_outcome", "server_unreachable"},
		{"half an answer", answering(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, `{"a":`)
		}), "unknown_outcome", "server_unreachable"},
		{"no JSON", answering(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "<html>") }), "unknown_outcome", "unexpected_answer"},
		{"a proxy's", answering(t, func(w http.ResponseWriter, r *http.Request) { http.Error(w, "bad gateway", http.StatusBadGateway) }), "unknown_outcome", "unexpected_answer"},
		{"another program's", answering(t, http.NotFound), "unexpected_answer", "unexpected_answer"},
		{"a redirect", answering(t, func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/steal", http.StatusTemporaryRedirect)
		}), "unexpected_answer", "unexpected_answer"},
		{"an odd problem", answering(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(409)
			io.WriteString(w, `{"kind":"odd","code":"x"}`)
		}), "unexpected_answer", "unexpected_answer"},
		{"too much", answering(t, func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, `"`+strings.Repeat("x", 2000)+`"`)
		}), "answer_too_large", "answer_too_large"},
	} {
		there := dial(t, ops(new(error)), remote.Client{Base: c.base, Token: "secret-token", MaxAnswer: 1000})
		_, err := there["note.put"].Run(t.Context(), op.Call{Workspace: "WS-1", Key: "key-1"}, []byte(`{"note_id":"N"}`))
		if fault.CodeOf(err) != c.write || strings.Contains(err.Error(), "secret-token") {
			t.Errorf("%s: write: %v", c.name, err)
		}
		if f, _ := err.(*fault.Error); c.write == "unknown_outcome" && f.Context["idempotency_key"] != "key-1" {
			t.Errorf("%s: the key is not named: %v", c.name, f.Context)
		}
		if _, err := there["note.get"].Run(t.Context(), op.Call{Workspace: "WS-1"}, []byte(`{"note_id":"N"}`)); fault.CodeOf(err) != c.read {
			t.Errorf("%s: read: %v", c.name, err)
		}
	}
}

func TestCancelled(t *testing.T) {
	arrived := make(chan struct{}, 2)
	base := answering(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		arrived <- struct{}{}
		<-r.Context().Done()
	})
	there := dial(t, ops(new(error)), remote.Client{Base: base})
	for name, want := range map[string]string{"note.put": "unknown_outcome", "note.get": ""} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		_, err := there[name].Run(ctx, op.Call{Workspace: "WS-1", Key: "k"}, []byte(`{"note_id":"N"}`))
		if want != "" && fault.CodeOf(err) != want || want == "" && err != context.Canceled {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
	}
}

// A raw patch goes as it stands, and the rest as query.
func TestRawBody(t *testing.T) {
	patch := "diff --git a/x b/x\n\x00\xff"
	var got string
	var query url.Values
	base := answering(t, func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "text/x-patch" {
			t.Errorf("%v %v", err, r.Header)
		}
		got, query = string(b), r.URL.Query()
		io.WriteString(w, "{}")
	})
	there := dial(t, ops(new(error)), remote.Client{Base: base})
	if _, err := there["note.put"].Run(t.Context(), op.Call{Workspace: "WS-1", Key: "k", Body: []byte(patch)}, []byte(`{"note_id":"N","title":"a b","tags":["a,b"]}`)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(url.Values{"title": {"a b"}, "tags": {`["a,b"]`}}, query); got != patch || d != "" {
		t.Errorf("%q %s", got, d)
	}
}

// TestFiles: a success comes as the bytes that the server sent, a fault as the
// fault that it was.
func TestFiles(t *testing.T) {
	const sent = "diff\r\n\xff\x00"
	raw := op.Op{Name: "note.raw", Route: "GET /api/v1/workspaces/{workspace_id}/notes/{note_id}/raw", Doc: "Raw.", May: op.May{Any: true}, In: op.SchemaOf[struct {
		ID string `json:"note_id"`
	}]()}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/workspaces/WS-1/notes/{id}/raw", func(w http.ResponseWriter, r *http.Request) {
		switch r.PathValue("id") {
		case "N-1":
			w.Header().Set("Content-Type", "text/x-patch")
			io.WriteString(w, sent) //nolint:errcheck // the test sees what came
		case "N-2":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"kind":"not_found","code":"note_not_found","detail":"none"}`) //nolint:errcheck // the same
		default:
			w.WriteHeader(http.StatusBadGateway)
		}
	})
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	files, err := remote.Files([]op.Op{raw}, remote.Client{Base: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(id string) (any, error) {
		return files[0].Run(t.Context(), op.Call{Workspace: "WS-1"}, []byte(`{"note_id":"`+id+`"}`))
	}
	if got, err := ask("N-1"); err != nil || string(got.(op.File)) != sent {
		t.Errorf("%q %v", got, err)
	}
	if _, err := ask("N-2"); fault.CodeOf(err) != "note_not_found" {
		t.Errorf("%v", err)
	}
	if _, err := ask("N-3"); fault.CodeOf(err) != "unexpected_answer" {
		t.Errorf("%v", err)
	}
}
