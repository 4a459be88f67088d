package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// TestPatchForms: a patch with bytes that are no text comes in by every way
// that takes any bytes, and what is kept is what was sent; by those that do
// not, it is refused and told how else to send it.
func TestPatchForms(t *testing.T) {
	t.Parallel()
	s := served(t)
	sent := func(n int) string {
		return fmt.Sprintf("--- /dev/null\n+++ b/café-%d.txt\n@@ -0,0 +1,3 @@\n+\xff\xfe\x00\n+crlf\r\n+\xed\xa0\x80 no end\n\\ No newline at end of file\n", n)
	}
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	kept := func(how, proposal, want string) {
		t.Helper()
		raw := s.get(t, "", "~/proposals/"+proposal+"/patch/raw")
		if string(raw.raw) != want || raw.header.Get("ETag") != `"`+patch.Digest([]byte(want))+`"` {
			t.Errorf("%s: %q is kept, sent was %q", how, raw.raw, want)
		}
	}
	head := query("title", "t", "summary_md", "s")
	a := s.send(t, request{path: "~/proposals?" + head + "&patch_sha256=" + patch.Digest([]byte(sent(1))), media: "text/x-patch", body: sent(1)})
	kept("as the body", a.at("proposal", "proposal_id"), sent(1))
	kept("as base64", s.post(t, "", "~/proposals", args{"title": "t", "summary_md": "s", "patch_base64": b64(sent(2))}, 201).at("proposal", "proposal_id"), sent(2))

	c := connected(t, s.overHTTP(s.admin))
	defer c.Close()
	in := args{"title": "t", "summary_md": "s", "patch_base64": b64(sent(3)), "patch_bytes": len(sent(3))}
	kept("by a tool", text(c.do(t, "proposal_create", in), "proposal", "proposal_id"), sent(3))
	in["patch_bytes"] = 7
	c.refused(t, "proposal_create", in, "patch_not_as_sent")

	file := filepath.Join(t.TempDir(), "p")
	if err := os.WriteFile(file, []byte(sent(4)), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"ROUNDTABLE_SERVER": s.at, "ROUNDTABLE_TOKEN": s.admin}
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"proposal", "create", "--title", "t", "--summary-md", "s", "--patch", file, "--json"}, terminal{out: &out, err: &errs, env: func(k string) string { return env[k] }})
	var made map[string]any
	if err := json.Unmarshal(out.Bytes(), &made); code != 0 || err != nil {
		t.Fatalf("%d %v %s", code, err, errs.String())
	}
	kept("by the command", text(made, "proposal", "proposal_id"), sent(4))

	for name, body := range map[string]string{
		"invalid UTF-8":  "{\"title\":\"t\",\"summary_md\":\"s\",\"patch\":\"--- a/\xff\"}",
		"lone surrogate": `{"title":"t","summary_md":"s","patch":"--- a/\udcff"}`,
	} {
		a := s.refused(t, request{path: "~/proposals", body: body}, 400, "malformed_json")
		if !strings.Contains(string(a.raw), `"/patch"`) || !strings.Contains(string(a.raw), "patch_base64") {
			t.Errorf("%s: %s", name, a.raw)
		}
	}
	s.refused(t, request{path: "~/proposals?" + head + "&patch_base64=eA==", media: "text/x-patch", body: sent(1)}, 400, "unknown_field")
	s.refused(t, request{path: "~/proposals?" + head + "&patch_sha256=" + patch.Digest([]byte(sent(1))), media: "text/x-patch", body: sent(1)[:90]}, 422, "patch_not_as_sent")
}
