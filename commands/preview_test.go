package commands_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/patch"
	"roundtable/internal/wire"
)

// sent sends an op and reads its answer.
func sent[O any](x *table, name, who string, in map[string]any) (out O, err error) {
	x.t.Helper()
	ops := append(x.Ops(), x.RawPatchOp())
	i := slices.IndexFunc(ops, func(o op.Op) bool { return o.Name == name })
	raw, err := json.Marshal(in)
	if err != nil {
		x.t.Fatal(err)
	}
	v, err := ops[i].Run(x.t.Context(), op.Call{Who: x.who[who], Workspace: x.ws}, raw)
	if err != nil {
		return out, err
	}
	if raw, err = json.Marshal(v); err != nil {
		x.t.Fatal(err)
	}
	if err := op.Decode(raw, ops[i].Out, &out); err != nil {
		x.t.Fatalf("%s answers what its schema does not have: %v\n%s", name, err, raw)
	}
	return out, nil
}

func seen[O any](x *table, name string, in map[string]any) O {
	x.t.Helper()
	out, err := sent[O](x, name, "vic", in)
	if err != nil {
		x.t.Fatalf("%s: %v", name, err)
	}
	return out
}

type onePatch struct {
	Patch    wire.Patch `json:"patch"`
	Position int64      `json:"position"`
}

type files struct {
	Files []wire.PatchFile `json:"files"`
	Next  *string          `json:"next_cursor"`
	From  int              `json:"from_revision"`
}

// preview makes a proposal of a patch, and somebody who only reads.
func preview(t *testing.T, patch string) (x *table, id string) {
	x = setUp(t)
	x.join("ann", auth.Agent, "blue", auth.Implementer)
	x.join("vic", auth.Human, "", auth.Viewer)
	return x, x.must(x.as("ann"), propose(patch)).IDs["proposal"]
}

const several = `diff --git a/a.txt b/b.txt
old mode 100644
new mode 100755
similarity index 60%
rename from a.txt
rename to b.txt
--- a/a.txt
+++ b/b.txt
@@ -1,3 +1,4 @@ top
 one
-two
+2
+zwei
 three
diff --git a/bin b/bin
new file mode 100644
index 0000000000000000000000000000000000000000..f76dd238ade08917e6712764a16a22005a50573d
GIT binary patch
literal 1
IcmZPo000310RR91

diff --git a/new.txt b/new.txt
new file mode 100644
--- /dev/null
+++ b/new.txt
@@ -0,0 +1 @@
+n` + "\u202e" + `ew
\ No newline at end of file
`

// TestPreview: the counts, files and lines are those of the patch, and the raw
// bytes are what was sent.
func TestPreview(t *testing.T) {
	x, id := preview(t, several)
	in := map[string]any{"proposal_id": id}
	one := seen[onePatch](x, "proposal.patch", in).Patch
	if one.Digest != patch.Digest([]byte(several)) || one.Bytes != int64(len(several)) || one.Files != 3 || one.Added != 3 || one.Removed != 1 || one.Binaries != 1 ||
		one.Stale || one.Head == "" || one.Head != one.Base.Commit || !one.Newest || len(one.Notes) != 1 || one.NotesAll != 1 || one.Notes[0].Kind != "review.bidi" {
		t.Errorf("%+v", one)
	}
	raw := seen[commands.RawPatch](x, "proposal.patch_raw", in)
	if string(raw.Data) != several || raw.Digest != one.Digest {
		t.Errorf("raw is %q", raw.Data)
	}
	all := seen[files](x, "proposal.patch_files", in)
	var got []string
	for _, f := range all.Files {
		got = append(got, fmt.Sprintf("%s %s %s>%s %s>%s %v +%d-%d", f.Op, f.Path, f.OldPath, f.NewPath, f.OldMode, f.NewMode, f.Binary, f.Added, f.Removed))
	}
	want := []string{"rename b.txt a.txt>b.txt 100644>100755 false +2-1", "create bin >bin >100644 true +0-0", "create new.txt >new.txt >100644 false +1-0"}
	if !slices.Equal(got, want) {
		t.Errorf("files\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	diff := seen[files](x, "proposal.patch_diff", in)
	if got := lined(diff.Files); got != "b.txt @@ 1,3 1,4 top\n context 1:1 one\n remove 2:0 two\n add 0:2 2\n add 0:3 zwei\n context 3:4 three\nbin\nnew.txt @@ 0,0 1,1 \n add 0:1 n\\u202eew none escaped\n" {
		t.Errorf("diff\n%s", got)
	}
	x.write("a.txt", "changed\n")
	if moved := seen[onePatch](x, "proposal.patch", in).Patch; !moved.Stale || !slices.Equal(moved.Changed, []string{"a.txt"}) {
		t.Errorf("%+v", moved)
	}
	x.must(x.as("ann"), commands.WithdrawProposal{Proposal: id})
	if ended := seen[onePatch](x, "proposal.patch", in).Patch; ended.Stale || len(ended.Changed) > 0 {
		t.Errorf("%+v", ended)
	}
}

// lined writes a diff down for comparison.
func lined(files []wire.PatchFile) string {
	var b strings.Builder
	for _, f := range files {
		b.WriteString(f.Path)
		for _, h := range f.Hunks {
			fmt.Fprintf(&b, " @@ %d,%d %d,%d %s\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines, h.Section)
			for _, l := range h.Lines {
				fmt.Fprintf(&b, " %s %d:%d %s", l.Op, l.Old, l.New, l.Text)
				if l.End != "" {
					b.WriteString(" " + l.End)
				}
				if l.Escaped {
					b.WriteString(" escaped")
				}
				b.WriteByte('\n')
			}
		}
		if len(f.Hunks) == 0 {
			b.WriteByte('\n')
		}
	}
	return b.String()
}

// TestPreviewPages: whatever the size of the pages, all lines come, each once
// and in order, and a cursor of another list is refused.
func TestPreviewPages(t *testing.T) {
	var b strings.Builder
	for f := range 3 {
		fmt.Fprintf(&b, "--- /dev/null\n+++ b/f%d\n@@ -0,0 +1,%d @@\n", f, 7*f+1)
		for l := range 7*f + 1 {
			fmt.Fprintf(&b, "+line %d\n", l)
		}
	}
	b.WriteString("--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,2 @@\n one\n+x\n@@ -3,1 +4,2 @@\n three\n+y\n")
	x, id := preview(t, b.String())
	whole := flat(seen[files](x, "proposal.patch_diff", map[string]any{"proposal_id": id}).Files)
	if len(whole) != 1+8+15+4 {
		t.Fatalf("%d lines", len(whole))
	}
	for _, limit := range []int{1, 3, 8, 28, 1000} {
		var all []string
		in, pages := map[string]any{"proposal_id": id, "limit": limit}, 0
		for ; pages < 200; pages++ {
			p := seen[files](x, "proposal.patch_diff", in)
			if len(flat(p.Files)) > limit {
				t.Fatalf("%d lines on a page of %d", len(flat(p.Files)), limit)
			}
			all = append(all, flat(p.Files)...)
			if p.Next == nil {
				break
			}
			in["cursor"] = *p.Next
		}
		if !slices.Equal(all, whole) {
			t.Errorf("limit %d: %d pages with %d lines, want %d\n%s", limit, pages, len(all), len(whole), strings.Join(all, "\n"))
		}
	}
	first := seen[files](x, "proposal.patch_files", map[string]any{"proposal_id": id, "limit": 2})
	rest := seen[files](x, "proposal.patch_files", map[string]any{"proposal_id": id, "limit": 2, "cursor": *first.Next})
	if len(first.Files) != 2 || len(rest.Files) != 2 || rest.Next != nil || rest.Files[1].Path != "a.txt" {
		t.Errorf("%+v %+v", first, rest)
	}
	other := x.must(x.as("ann"), propose(change)).IDs["proposal"]
	for _, cursor := range []string{*first.Next, "x", "AAAA", strings.Repeat("A", 300)} {
		if _, err := sent[files](x, "proposal.patch_diff", "vic", map[string]any{"proposal_id": other, "cursor": cursor}); fault.CodeOf(err) != "invalid_cursor" {
			t.Errorf("%q: %v", cursor, err)
		}
	}
	for _, bad := range []map[string]any{{"limit": 0.5}, {"limit": 5001}, {"limit": -1}, {"revision": 0}, {"as": "x"}} {
		bad["proposal_id"] = id
		if _, err := sent[files](x, "proposal.patch_diff", "vic", bad); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

// flat gives each line of a diff with its place.
func flat(files []wire.PatchFile) (all []string) {
	for _, f := range files {
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				all = append(all, fmt.Sprintf("%s %s %d:%d %s", f.Path, l.Op, l.Old, l.New, l.Text))
			}
		}
	}
	return all
}

// TestPreviewSecrets: known secrets are masked line by line, also those that
// begin on an earlier page; the raw patch keeps them.
func TestPreviewSecrets(t *testing.T) {
	const token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
	lines := []string{"+-----BEGIN RSA PRIVATE KEY-----", "+MIIEsecretsecret", "+moresecret", "+-----END RSA PRIVATE KEY-----", "+t = " + token, "+tail\\x" + "\x1b[2J", "+" + strings.Repeat("é", 9000)}
	text := fmt.Sprintf("--- /dev/null\n+++ b/key\n@@ -0,0 +1,%d @@\n%s\n", len(lines), strings.Join(lines, "\n"))
	x, id := preview(t, text)
	in := map[string]any{"proposal_id": id, "limit": 1}
	var shown []wire.DiffLine
	for {
		p := seen[files](x, "proposal.patch_diff", in)
		shown = append(shown, p.Files[0].Hunks[0].Lines...)
		if p.Next == nil {
			break
		}
		in["cursor"] = *p.Next
	}
	for i, want := range []string{"[redacted:private-key]", "[redacted:private-key]", "[redacted:private-key]", "[redacted:private-key]", "t = [redacted:github-token]", `tail\\x\x1b[2J`} {
		if shown[i].Text != want {
			t.Errorf("line %d is %q, want %q", i+1, shown[i].Text, want)
		}
	}
	if last := shown[len(shown)-1]; !last.Cut || len(last.Text) > 8<<10 || strings.Trim(last.Text, "é") != "" {
		t.Errorf("a long line has %d bytes, cut %v", len(last.Text), last.Cut)
	}
	if raw := seen[commands.RawPatch](x, "proposal.patch_raw", map[string]any{"proposal_id": id}); string(raw.Data) != text {
		t.Error("the raw patch is not what was sent")
	}
}

// attach adds a revision to a proposal.
func attach(x *table, id, patch string, expected int) {
	x.t.Helper()
	x.must(x.as("ann"), commands.AttachPatch{Proposal: id, Expected: expected, PatchInput: commands.PatchInput{Patch: patch}})
}

// TestInterdiff: what differs is between what both revisions give, each on its
// own base, whatever lies in the tree now.
func TestInterdiff(t *testing.T) {
	x, id := preview(t, change)
	attach(x, id, strings.Replace(change, "+2", "+zwei", 1)+"--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+n\n", 1)
	attach(x, id, change, 2)
	x.write("a.txt", "base\none\ntwo\nthree\n") // a new base
	attach(x, id, "--- a/a.txt\n+++ b/a.txt\n@@ -2,3 +2,3 @@\n one\n-two\n+2\n three\n", 3)
	x.write("a.txt", "nobody knows\n")
	diff := func(from, to int) string {
		t.Helper()
		d := seen[files](x, "proposal.patch_diff", map[string]any{"proposal_id": id, "revision": to, "from": from})
		if d.From != from {
			t.Errorf("from %d", d.From)
		}
		return lined(d.Files)
	}
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{1, 2, "a.txt @@ 1,3 1,3 \n context 1:1 one\n remove 2:0 2\n add 0:2 zwei\n context 3:3 three\nnew @@ 0,0 1,1 \n add 0:1 n\n"},
		{2, 1, "a.txt @@ 1,3 1,3 \n context 1:1 one\n remove 2:0 zwei\n add 0:2 2\n context 3:3 three\nnew @@ 1,1 0,0 \n remove 1:0 n\n"},
		{1, 3, ""},
		{2, 2, ""},
		{3, 4, "a.txt @@ 1,3 1,4 \n add 0:1 base\n context 1:2 one\n context 2:3 2\n context 3:4 three\n"},
	} {
		if got := diff(c.from, c.to); got != c.want {
			t.Errorf("from %d to %d\n%s\nwant\n%s", c.from, c.to, got, c.want)
		}
	}
	_, err := sent[files](x, "proposal.patch_diff", "vic", map[string]any{"proposal_id": id, "from": 9})
	if fault.CodeOf(err) != "revision_not_found" {
		t.Errorf("%v", err)
	}
	_, err = sent[onePatch](x, "proposal.patch", "vic", map[string]any{"proposal_id": "P-none"})
	if fault.CodeOf(err) != "proposal_not_found" {
		t.Errorf("%v", err)
	}
}

// TestNoInterdiff: a revision that does not fit its own base gives nothing to
// compare, and says so; nor does one whose base was lost.
func TestNoInterdiff(t *testing.T) {
	x, id := preview(t, change)
	attach(x, id, strings.Replace(change, "-two", "-nothing", 1), 1)
	in := map[string]any{"proposal_id": id, "from": 1}
	if _, err := sent[files](x, "proposal.patch_diff", "vic", in); fault.CodeOf(err) != "no_interdiff" || !strings.Contains(err.Error(), "apply.context_mismatch") {
		t.Errorf("%v", err)
	}
	attach(x, id, strings.Replace(change, "+2", "+zwei", 1), 2)
	base := patch.Digest([]byte("one\ntwo\nthree\n"))
	blob := filepath.Join(filepath.Dir(x.root), "blobs", base[:2], base[2:])
	if err := os.Remove(blob); err != nil {
		t.Fatalf("the base is not kept: %v", err)
	}
	if d := seen[files](x, "proposal.patch_diff", in); len(d.Files) != 1 {
		t.Errorf("while the base lies in the tree: %+v", d)
	}
	x.write("a.txt", "other\n")
	if _, err := sent[files](x, "proposal.patch_diff", "vic", in); fault.CodeOf(err) != "no_interdiff" {
		t.Errorf("%v", err)
	}
}

// TestPreviewScope: whoever may not read the workspace, or not this proposal,
// sees nothing of the patch.
func TestPreviewScope(t *testing.T) {
	x, id := preview(t, change)
	narrow, stranger := x.who["vic"], x.who["vic"]
	narrow.Scope.Proposal = "P-other"
	stranger.Grants = nil
	x.who["narrow"], x.who["stranger"] = narrow, stranger
	for _, name := range []string{"proposal.patch", "proposal.patch_raw", "proposal.patch_files", "proposal.patch_diff"} {
		for who, want := range map[string]fault.Kind{"narrow": fault.Forbidden, "stranger": fault.NotFound, "nobody": fault.Unauthenticated} {
			if _, err := sent[map[string]any](x, name, who, map[string]any{"proposal_id": id}); fault.KindOf(err) != want {
				t.Errorf("%s by %s: %v, want %s", name, who, err, want)
			}
		}
	}
}

// TestPreviewBounds: however many findings there are, an answer names some and
// counts all; a page of long lines ends before its lines are many.
func TestPreviewBounds(t *testing.T) {
	const n = 3000
	long := "+\u202e" + strings.Repeat("x", 4000) + "\n"
	x, id := preview(t, fmt.Sprintf("--- /dev/null\n+++ b/f\n@@ -0,0 +1,%d @@\n%s", n, strings.Repeat(long, n)))
	in := map[string]any{"proposal_id": id}
	if p := seen[onePatch](x, "proposal.patch", in).Patch; len(p.Notes) != 100 || p.NotesAll != n {
		t.Errorf("%d of %d notes", len(p.Notes), p.NotesAll)
	}
	in["limit"] = 5000
	lines := 0
	for pages := 1; ; pages++ {
		p := seen[files](x, "proposal.patch_diff", in)
		size := 0
		for _, l := range p.Files[0].Hunks[0].Lines {
			lines, size = lines+1, size+len(l.Text)
		}
		if size > 2<<20+4100 {
			t.Fatalf("a page of %d bytes", size)
		}
		if p.Next == nil {
			break
		}
		in["cursor"] = *p.Next
	}
	if lines != n {
		t.Errorf("%d lines, want %d", lines, n)
	}
}
