package main

import (
	"bytes"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"roundtable/commands"
)

// TestPatchSymbols: over HTTP, by the command, symbols come from a process of
// their own, and text that makes that fail costs its file and nothing else.
func TestPatchSymbols(t *testing.T) {
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
	patch := "--- /dev/null\n+++ b/a.py\n@@ -0,0 +1,2 @@\n+def fine():\n+    pass\n--- /dev/null\n+++ b/b.java\n@@ -0,0 +1 @@\n+" + strings.Repeat("a<", 1<<19-1) + "\n"
	r, err := a.handler.Do(t.Context(), commands.System(ws, "1"), commands.CreateProposal{Title: "t", Summary: "s", PatchInput: commands.PatchInput{Patch: patch}})
	if err != nil {
		t.Fatal(err)
	}
	w, err := a.web(serveFlags{MaxStreams: 1, MCPNames: "plain"})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w.handler)
	t.Cleanup(srv.Close)
	env := map[string]string{"ROUNDTABLE_SERVER": srv.URL, "ROUNDTABLE_TOKEN": token, "ROUNDTABLE_WORKSPACE": ws}
	var out, errs bytes.Buffer
	if code := run(t.Context(), []string{"proposal", "patch-symbols", r.IDs["proposal"]}, terminal{out: &out, err: &errs, env: func(k string) string { return env[k] }}); code != 0 {
		t.Fatalf("%d: %s", code, errs.String())
	}
	for _, want := range []string{"b.java  too_large: ", "added   function fine  (lines 1-2 after)"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
