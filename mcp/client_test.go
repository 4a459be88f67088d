package mcp_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	lib "github.com/mark3labs/mcp-go/mcp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"roundtable/mcp"
)

// A result is what any client makes of a call.
type result struct {
	isError    bool
	text       string
	structured string // JSON, or ""
	meta       map[string]any
}

// A peer is one real client at work.
type peer struct {
	list func(t *testing.T) []string
	call func(t *testing.T, tool string, args map[string]any) (result, error)
}

// goSDK connects the official client, which speaks the newest revision.
func goSDK(t *testing.T, tr sdk.Transport) (*sdk.ClientSession, peer) {
	t.Helper()
	cs, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), tr, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cs.Close() })
	if v := cs.InitializeResult().ProtocolVersion; v != modernVersion {
		t.Errorf("the official client speaks %s", v)
	}
	return cs, peer{
		list: func(t *testing.T) (names []string) {
			r, err := cs.ListTools(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range r.Tools {
				names = append(names, tool.Name)
			}
			return names
		},
		call: func(t *testing.T, tool string, args map[string]any) (result, error) {
			r, err := cs.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
			if err != nil {
				return result{}, err
			}
			out := result{isError: r.IsError, text: r.Content[0].(*sdk.TextContent).Text, meta: r.Meta}
			if r.StructuredContent != nil {
				out.structured = toJSON(t, r.StructuredContent)
			}
			return out, nil
		},
	}
}

// mcpGo connects mcp-go's client with the handshake of the older era.
func mcpGo(t *testing.T, tr transport.Interface, version string) peer {
	t.Helper()
	c := client.NewClient(tr)
	if err := c.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	req := lib.InitializeRequest{}
	req.Params.ProtocolVersion = version
	req.Params.ClientInfo = lib.Implementation{Name: "test", Version: "1"}
	if _, err := c.Initialize(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	return peer{
		list: func(t *testing.T) (names []string) {
			r, err := c.ListTools(t.Context(), lib.ListToolsRequest{})
			if err != nil {
				t.Fatal(err)
			}
			for _, tool := range r.Tools {
				names = append(names, tool.Name)
			}
			return names
		},
		call: func(t *testing.T, tool string, args map[string]any) (result, error) {
			req := lib.CallToolRequest{}
			req.Params.Name, req.Params.Arguments = tool, args
			r, err := c.CallTool(t.Context(), req)
			if err != nil {
				return result{}, err
			}
			out := result{isError: r.IsError, text: r.Content[0].(lib.TextContent).Text}
			if r.StructuredContent != nil {
				out.structured = toJSON(t, r.StructuredContent)
			}
			if r.Meta != nil {
				out.meta = r.Meta.AdditionalFields
			}
			return out, nil
		},
	}
}

// overPipes serves w on a pair of pipes to one principal.
func overPipes(t *testing.T, w *world, token string) (toServer io.WriteCloser, fromServer io.ReadCloser) {
	t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	done := make(chan error, 1)
	s := w.server(t, nil)
	go func() {
		err := mcp.ServeStdio(context.WithoutCancel(t.Context()), s, w.stdio(token), inR, outW)
		outW.Close()
		done <- err
	}()
	t.Cleanup(func() {
		inW.Close()
		if err := <-done; err != nil {
			t.Errorf("ServeStdio: %v", err)
		}
	})
	return inW, outR
}

// peers are the real clients, over each transport and in each era.
func peers(t *testing.T, w *world, token string) map[string]peer {
	url := w.serve(t, mcp.HTTPConfig{}, nil)
	_, newer := goSDK(t, &sdk.StreamableClientTransport{Endpoint: url, HTTPClient: &http.Client{Transport: bearer{token}}})
	out := map[string]peer{"go-sdk http": newer}
	for _, v := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		tr, err := transport.NewStreamableHTTP(url, transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + token}))
		if err != nil {
			t.Fatal(err)
		}
		out["mcp-go http "+v] = mcpGo(t, tr, v)
	}
	in, from := overPipes(t, w, token)
	_, out["go-sdk stdio"] = goSDK(t, &sdk.IOTransport{Reader: from, Writer: in})
	in, from = overPipes(t, w, token)
	out["mcp-go stdio"] = mcpGo(t, transport.NewIO(from, in, io.NopCloser(strings.NewReader(""))), "2025-11-25")
	return out
}

func TestRealClients(t *testing.T) {
	w := newWorld()
	for name, p := range peers(t, w, "a") {
		t.Run(name, func(t *testing.T) {
			names := p.list(t)
			want := []string{"note_create", "note_fail", "note_get", "note_list", "note_panic", "note_refuse", "note_wait", "server_state"}
			if !slices.Equal(names, want) {
				t.Errorf("listed %q", names)
			}
			for _, n := range names {
				if !regexp.MustCompile(`^[a-z][a-z0-9]*(_[a-z0-9]+)+$`).MatchString(n) {
					t.Errorf("some clients refuse the name %q", n)
				}
			}
			for _, spelling := range []string{"note_create", "note.create"} {
				r, err := p.call(t, spelling, map[string]any{"title": "x", "size": 9007199254740993})
				if err != nil || r.isError {
					t.Fatalf("%s: %v %+v", spelling, err, r)
				}
				checkDone(t, r)
				if c := w.last(t); c.Who.ID != "PR-A" || c.Workspace != "WS-1" || len(c.Key) != 26 || c.Request == "" {
					t.Errorf("call %+v", c)
				}
			}
			r, err := p.call(t, "note_refuse", map[string]any{"title": "x", "idempotency_key": "k"})
			if err != nil {
				t.Fatal(err)
			}
			checkRefused(t, r)
			for _, hidden := range []string{"note_apply", "note.apply", "note_approve", "token_issue", "no_such"} {
				if _, err := p.call(t, hidden, map[string]any{"title": "x"}); err == nil || !strings.Contains(err.Error(), "not found") {
					t.Errorf("%s: %v", hidden, err)
				}
			}
			for tool, secret := range map[string]string{"note_panic": "secret", "note_fail": "secret"} {
				r, err := p.call(t, tool, map[string]any{"title": "x"})
				if err != nil || !r.isError || strings.Contains(toJSON(t, []any{r.text, r.meta, r.structured}), secret) {
					t.Errorf("%s: %v %+v", tool, err, r)
				}
			}
		})
	}
	if log := w.log(); !strings.Contains(log, "secret panic text") || !strings.Contains(log, "secret error text") || !strings.Contains(log, "tool 'note_apply' not found") {
		t.Errorf("log: %s", log)
	}
}

// checkDone: the answer is there whole, and the text alone would do.
func checkDone(t *testing.T, r result) {
	t.Helper()
	if r.structured == "" { // a client of before structured content
		if !strings.Contains(r.text, `"note_id":"N-1"`) {
			t.Errorf("text %q", r.text)
		}
		return
	}
	var a struct {
		Note     note  `json:"note"`
		Position int64 `json:"position"`
	}
	if err := json.Unmarshal([]byte(r.structured), &a); err != nil || a.Note.ID != "N-1" || a.Position == 0 {
		t.Errorf("%v: %s", err, r.structured)
	}
	if !strings.Contains(r.text, "note_id=N-1") {
		t.Errorf("text %q", r.text)
	}
}

// checkRefused: text and _meta carry one and the same problem.
func checkRefused(t *testing.T, r result) {
	t.Helper()
	sentence, rest, _ := strings.Cut(r.text, "\n")
	var inText map[string]any
	if err := json.Unmarshal([]byte(rest), &inText); err != nil {
		t.Fatalf("%v: %q", err, r.text)
	}
	if !r.isError || r.structured != "" || sentence != "N-1 is held by PR-B." {
		t.Errorf("%+v", r)
	}
	if a, b := toJSON(t, inText), toJSON(t, r.meta["roundtable/error"]); a != b {
		t.Errorf("text %s, meta %s", a, b)
	}
	want := `{"code":"note_conflict","detail":"N-1 is held by PR-B.","errors":[{"message":"taken","pointer":"/title"}],"holder":"PR-B","kind":"conflict","next":[{"args":{"note_id":"N-1"},"op":"note.get","why":"to see it"}],"request_id":"`
	if got := toJSON(t, inText); !strings.Contains(got, want) {
		t.Errorf("problem %s", got)
	}
}
