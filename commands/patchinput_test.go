package commands_test

import (
	"encoding/base64"
	"errors"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// odd is a patch that no JSON text can hold.
const odd = "--- /dev/null\n+++ b/café.txt\n@@ -0,0 +1,2 @@\n+\xff\xfe\n+\x00\xed\xa0\x80\n"

// TestPatchInput: a patch is one of text, base64 and body, and is what its
// sender says of it; what is refused leaves nothing.
func TestPatchInput(t *testing.T) {
	x := setUp(t)
	x.join("ann", auth.Agent, "blue", auth.Implementer)
	x.join("vic", auth.Human, "", auth.Viewer)
	b64 := base64.StdEncoding.EncodeToString
	sum := patch.Digest([]byte(odd))
	type in = commands.PatchInput
	size := func(n int64) *int64 { return &n }
	for _, c := range []struct {
		in    in
		body  string
		want  string // code and fields; "": taken
		bytes string
	}{
		{in{Patch: change}, "", "", change},
		{in{Base64: b64([]byte(odd))}, "", "", odd},
		{in{}, odd, "", odd},
		{in{Base64: b64([]byte(odd)), SHA256: sum, Bytes: size(int64(len(odd)))}, "", "", odd},
		{in{SHA256: sum}, odd, "", odd},
		{in{}, "", "missing_field /patch", ""},
		{in{Patch: change, Base64: b64([]byte(odd))}, "", "invalid_field /patch_base64", ""},
		{in{Base64: b64([]byte(odd))}, odd, "invalid_field /patch_base64", ""},
		{in{Base64: b64([]byte(odd)) + "!"}, "", "invalid_field /patch_base64", ""},
		{in{Base64: base64.URLEncoding.EncodeToString([]byte(odd))}, "", "invalid_field /patch_base64", ""},
		{in{SHA256: sum}, odd[:len(odd)-1], "patch_not_as_sent /patch_sha256", ""},
		{in{Bytes: size(int64(len(odd)))}, odd + "\n", "patch_not_as_sent /patch_bytes", ""},
		{in{Patch: change, Bytes: size(0), SHA256: sum}, "", "patch_not_as_sent /patch_sha256 /patch_bytes", ""},
		{in{SHA256: strings.ToUpper(sum)}, odd, "invalid_field /patch_sha256", ""},
		{in{SHA256: "abc"}, odd, "invalid_field /patch_sha256", ""},
	} {
		head, _, err := x.Log.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if c.body != "" {
			c.in.SetBody([]byte(c.body))
		}
		r, err := x.Do(t.Context(), x.as("ann"), commands.CreateProposal{Title: "t", Summary: "s", PatchInput: c.in})
		if c.want == "" {
			if err != nil {
				t.Errorf("%+v: %v", c.in, err)
				continue
			}
			raw := seen[commands.RawPatch](x, "proposal.patch_raw", map[string]any{"proposal_id": r.IDs["proposal"]})
			if string(raw.Data) != c.bytes || raw.Digest != patch.Digest([]byte(c.bytes)) {
				t.Errorf("%+v: %q is kept, want %q", c.in, raw.Data, c.bytes)
			}
			continue
		}
		f, _ := errors.AsType[*fault.Error](err)
		if f == nil {
			t.Errorf("%+v is taken: %v", c.in, err)
			continue
		}
		got := f.Code
		for _, field := range f.Fields {
			got += " " + field.Pointer
		}
		if got != c.want {
			t.Errorf("%+v: %s (%v), want %s", c.in, got, err, c.want)
		}
		if now, _, err := x.Log.Head(t.Context()); err != nil || now != head {
			t.Errorf("%s left something: %d → %d, %v", got, head, now, err)
		}
	}
}

// TestPatchInputKey: two patches that differ only in bytes that are no text
// are two inputs.
func TestPatchInputKey(t *testing.T) {
	x := setUp(t)
	x.join("ann", auth.Agent, "blue", auth.Implementer)
	by := x.as("ann")
	one := x.must(by, propose(odd)).IDs["proposal"]
	if again := x.must(by, propose(odd)); !again.Repeated || again.IDs["proposal"] != one {
		t.Errorf("%+v", again)
	}
	x.refused(by, propose(strings.Replace(odd, "\xff\xfe", "\xfe\xff", 1)), "idempotency_key_reused")
	x.refused(x.as("ann"), commands.AttachPatch{Proposal: one, Expected: 1, Rebase: true, PatchInput: commands.PatchInput{Base64: "aGVsbG8="}}, "invalid_field")
}
