package main

import (
	"bytes"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/patch"
	"roundtable/internal/wire"
)

// TestRawPatch: over HTTP the bytes of a patch come as they were sent, to
// whoever may read the workspace and this proposal.
func TestRawPatch(t *testing.T) {
	dir, _ := folder(t)
	a, err := open(t.Context(), t.TempDir(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	ws, token, err := a.bootstrap(t.Context(), dir, "admin")
	if err != nil {
		t.Fatal(err)
	}
	do := func(key string, c commands.Command) map[string]string {
		t.Helper()
		r, err := a.handler.Do(t.Context(), commands.System(ws, key), c)
		if err != nil {
			t.Fatal(err)
		}
		return r.IDs
	}
	sent := onePatch[:len(onePatch)-1] + " caf\xe9\r\n"
	propose := func(key string) string {
		return do(key, commands.CreateProposal{Title: "t", Summary: "s", PatchInput: commands.PatchInput{Patch: sent}})["proposal"]
	}
	id, other := propose("1"), propose("2")
	viewer := do("3", commands.CreatePrincipal{Label: "vic", Kind: string(auth.Human), Roles: []wire.Role{{Workspace: ws, Role: "viewer"}}})["principal"]
	narrow, _, err := a.handler.Issue(t.Context(), system("4"), commands.IssueToken{Principal: viewer, Scope: auth.Scope{Workspace: ws, Proposal: other}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := a.web(serveFlags{MaxStreams: 1, MCPNames: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w.handler)
	t.Cleanup(srv.Close)
	get := func(token, proposal, query string, header ...string) (int, http.Header, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/api/v1/workspaces/"+ws+"/proposals/"+proposal+"/patch/raw"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		if len(header) == 2 {
			req.Header.Set(header[0], header[1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, res.Header, string(body)
	}
	code, h, body := get(token, id, "?revision=1")
	if code != http.StatusOK || body != sent || h.Get("Content-Type") != "text/x-patch" || h.Get("ETag") != `"`+patch.Digest([]byte(sent))+`"` {
		t.Errorf("%d %v %q", code, h, body)
	}
	for _, c := range []struct {
		token, proposal, query string
		header                 []string
		want                   int
	}{
		{token, id, "", []string{"If-None-Match", h.Get("ETag")}, http.StatusNotModified},
		{token, id, "", []string{"Range", "bytes=0-3"}, http.StatusPartialContent},
		{token, id, "?revision=2", nil, http.StatusNotFound},
		{token, id, "?revision=x", nil, http.StatusBadRequest},
		{token, id, "?as=x", nil, http.StatusBadRequest},
		{token, "P-none", "", nil, http.StatusNotFound},
		{narrow, other, "", nil, http.StatusOK},
		{narrow, id, "", nil, http.StatusForbidden},
		{"x", id, "", nil, http.StatusUnauthorized},
	} {
		if code, _, body := get(c.token, c.proposal, c.query, c.header...); code != c.want {
			t.Errorf("%s%s %v: %d, want %d: %s", c.proposal, c.query, c.header, code, c.want, body)
		}
	}
	env := map[string]string{"ROUNDTABLE_SERVER": srv.URL, "ROUNDTABLE_TOKEN": token, "ROUNDTABLE_WORKSPACE": ws}
	var out, errs bytes.Buffer
	code = run(t.Context(), []string{"proposal", "patch-raw", id}, terminal{out: &out, err: &errs, env: func(k string) string { return env[k] }})
	if code != 0 || out.String() != sent {
		t.Errorf("by command: %d %q %s", code, out.String(), errs.String())
	}
}
