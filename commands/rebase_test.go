package commands_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/wire"
)

type rebaseAnswer struct {
	Files  []wire.PatchFile `json:"files"`
	Rebase wire.Rebase      `json:"rebase"`
	Next   *string          `json:"next_cursor"`
}

const numbers = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

// drafted gives a proposal that changes line 2 of n.txt, of nine, and the id of
// its old content on the index line where exact.
func drafted(t *testing.T, exact bool) (x *table, id string) {
	x = cast(t)
	x.join("vic", auth.Human, "", auth.Viewer)
	x.write("n.txt", numbers)
	index := ""
	if exact {
		index = "index " + patch.BlobID([]byte(numbers), false) + ".." + patch.BlobID([]byte(strings.Replace(numbers, "2", "two", 1)), false) + " 100644\n"
	}
	p := propose("diff --git a/n.txt b/n.txt\n" + index + "--- a/n.txt\n+++ b/n.txt\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n")
	id = x.must(x.as("coder"), p).IDs["proposal"]
	x.must(x.as("coder"), commands.ClaimResource{Resource: "file:n.txt", Type: "write"})
	return x, id
}

// attached is the newest revision of a proposal, as the log has it.
func (x *table) attached(proposal string) (last events.ProposalRevisionAttached) {
	x.t.Helper()
	for r, err := range eventlog.Records(x.t.Context(), x.Log, 0, 0) {
		if err != nil {
			x.t.Fatal(err)
		}
		if e, err := r.Event(); err == nil {
			if a, ok := e.Payload.(events.ProposalRevisionAttached); ok && a.Proposal == proposal {
				last = a
			}
		}
	}
	return last
}

// TestRebaseClean: a moved base is merged, shown, and attached only when an
// author says so.
func TestRebaseClean(t *testing.T) {
	for _, exact := range []bool{false, true} {
		x, id := drafted(t, exact)
		in := map[string]any{"proposal_id": id}
		if r := seen[rebaseAnswer](x, "proposal.patch_rebase", in); r.Rebase.Outcome != "up_to_date" || len(r.Files) > 0 || len(r.Rebase.Changed) > 0 {
			t.Fatalf("%+v", r)
		}
		x.refused(x.as("coder"), commands.AttachPatch{Proposal: id, Expected: 1, Rebase: true}, "nothing_to_rebase")
		x.write("n.txt", "0\n"+strings.Replace(numbers, "8", "acht", 1))
		at := x.head()
		r := seen[rebaseAnswer](x, "proposal.patch_rebase", in)
		if r.Rebase.Outcome != "clean_rebase" || !slices.Equal(r.Rebase.Changed, []string{"n.txt"}) || !slices.Equal(r.Rebase.Merged, []string{"n.txt"}) ||
			r.Rebase.Files != 1 || r.Rebase.Added != 1 || r.Rebase.Removed != 1 || len(r.Rebase.Conflicts) > 0 ||
			lined(r.Files) != "n.txt @@ 1,6 1,6 \n context 1:1 0\n context 2:2 1\n remove 3:0 2\n add 0:3 two\n context 4:4 3\n context 5:5 4\n context 6:6 5\n" {
			t.Errorf("%+v\n%s", r.Rebase, lined(r.Files))
		}
		if x.head() != at {
			t.Error("asking has changed something")
		}
		v := ask[wire.Validation](x, "patch.validate", id)
		for _, c := range v.Checks {
			if want := c.Check == "base" || exact && c.Check == "temp_apply"; want != strings.Contains(c.Detail, "clean_rebase") {
				t.Errorf("exact %t: %s: %s", exact, c.Check, c.Detail)
			}
			if c.Check == "base" && (c.Status != "failed" || !strings.Contains(c.Detail, "n.txt") || len(c.Next) != 1 || c.Next[0].Op != "proposal.attach_patch" || c.Next[0].Args["rebase"] != true) {
				t.Errorf("%+v", c)
			}
		}
		attach := commands.AttachPatch{Proposal: id, Expected: 1, Rebase: true}
		x.refused(x.as("ada"), attach, "not_author")
		both := attach
		both.Patch = change
		x.refused(x.as("coder"), both, "invalid_field")
		x.must(x.as("coder"), attach)
		a := seen[commands.RawPatch](x, "proposal.patch_raw", in)
		if !strings.Contains(string(a.Data), "@@ -1,6 +1,6 @@\n 0\n 1\n-2\n+two\n") {
			t.Errorf("%s", a.Data)
		}
		if g := status(ask[wire.Gates](x, "proposal.explain", id)); g["base"] != "passed" || g["patch"] != "passed" || g["claims"] != "passed" {
			t.Errorf("after: %v", g)
		}
		x.refused(x.as("coder"), attach, "stale_revision")
		if e := x.attached(id); e.RebasedFrom != 1 || e.Number != 2 || !slices.Equal(e.Merged, []string{"n.txt"}) || !slices.Equal(e.Resources, []string{"file:n.txt"}) {
			t.Errorf("%+v", e)
		}
	}
}

// TestRebaseConflict: what cannot be merged is shown with its lines, without
// secrets, and not attached.
func TestRebaseConflict(t *testing.T) {
	x, id := drafted(t, false)
	in := map[string]any{"proposal_id": id}
	secret := "ghp_" + strings.Repeat("a1B2", 9)
	x.write("n.txt", strings.Replace(numbers, "2\n", "zwei \u202e"+secret+"\r\n", 1))
	r := seen[rebaseAnswer](x, "proposal.patch_rebase", in).Rebase
	if r.Outcome != "conflict" || r.ConflictCount != 1 || len(r.Conflicts) != 1 || r.Conflicts[0].Path != "n.txt" || r.Conflicts[0].Reason != "lines" || r.Conflicts[0].HunkCount != 1 {
		t.Fatalf("%+v", r)
	}
	h := r.Conflicts[0].Hunks[0]
	if h.Base.Lines[0].Text != "2" || h.Theirs.Lines[0].Text != "two" || h.Ours.Start != 2 || h.Ours.Count != 1 {
		t.Errorf("%+v", h)
	}
	if l := h.Ours.Lines[0]; strings.Contains(l.Text, secret) || !strings.HasPrefix(l.Text, `zwei \u202e`) || !l.Escaped || l.End != "crlf" {
		t.Errorf("%+v", l)
	}
	f := x.refused(x.as("coder"), commands.AttachPatch{Proposal: id, Expected: 1, Rebase: true}, "rebase_conflict")
	if c, _ := f.Context["conflicts"].([]wire.MergeConflict); len(c) != 1 || len(f.Next) == 0 {
		t.Errorf("%+v", f)
	}
	g := ask[wire.Gates](x, "proposal.explain", id)
	for _, gate := range g.Gates {
		if (gate.Gate == "base" || gate.Gate == "patch") && !strings.Contains(strings.Join(gate.Because, "; "), "conflict: it cannot be merged with what was done since: n.txt: both sides changed the same lines") {
			t.Errorf("%+v", gate)
		}
		for _, s := range gate.Next {
			if s.Args["rebase"] != nil {
				t.Errorf("%s offers what cannot be: %+v", gate.Gate, s)
			}
		}
	}
	x.write("n.txt", strings.Replace(numbers, "2", "two", 1))
	if r := seen[rebaseAnswer](x, "proposal.patch_rebase", in).Rebase; r.Outcome != "already_applied" {
		t.Errorf("%+v", r)
	}
	x.refused(x.as("coder"), commands.AttachPatch{Proposal: id, Expected: 1, Rebase: true}, "nothing_to_rebase")

	draft := x.must(x.as("coder"), propose(strings.Replace(change, "-two", "-deux", 1))).IDs["proposal"]
	x.write("a.txt", "other\n")
	if r := seen[rebaseAnswer](x, "proposal.patch_rebase", map[string]any{"proposal_id": draft}).Rebase; r.Outcome != "impossible" || r.Why == "" {
		t.Errorf("%+v", r)
	}
	x.refused(x.as("coder"), commands.AttachPatch{Proposal: draft, Expected: 1, Rebase: true}, "rebase_impossible")
	if _, err := sent[rebaseAnswer](x, "proposal.patch_rebase", "vic", map[string]any{"proposal_id": draft, "cursor": "x"}); fault.CodeOf(err) != "invalid_cursor" {
		t.Error(err)
	}
}

// TestRebaseOfCommitted: a patch that git made against a commit, sent when the
// files had changed already, is merged on what the commit has, and only on what
// it has at that path.
func TestRebaseOfCommitted(t *testing.T) {
	x := cast(t)
	x.join("vic", auth.Human, "", auth.Viewer)
	const was, secret = "one\ntwo\nthree\n", "not for everyone\n"
	exact := strings.Replace(change, "--- a/a.txt", "index "+patch.BlobID([]byte(was), false)+"..1234567 100644\n--- a/a.txt", 1)
	x.write("a.txt", "zero\nnull\n"+was)
	id := x.must(x.as("coder"), propose(exact)).IDs["proposal"]
	g := ask[wire.Gates](x, "proposal.explain", id).Gates[0]
	if g.Status != "failed" || !strings.Contains(g.Because[0], "apply.preimage_mismatch") || !strings.Contains(strings.Join(g.Because, "; "), "clean_rebase") ||
		g.Next[len(g.Next)-1].Args["rebase"] != true {
		t.Errorf("%+v", g)
	}
	r := seen[rebaseAnswer](x, "proposal.patch_rebase", map[string]any{"proposal_id": id})
	if r.Rebase.Outcome != "clean_rebase" || len(r.Rebase.Changed) > 0 || len(r.Files) != 1 {
		t.Errorf("%+v", r)
	}
	x.must(x.as("coder"), commands.AttachPatch{Proposal: id, Expected: 1, Rebase: true})
	if g := status(ask[wire.Gates](x, "proposal.explain", id)); g["patch"] != "passed" || g["base"] != "passed" {
		t.Error(g)
	}
	x.write("a.txt", "one\nzwei\nthree\n")
	id = x.must(x.as("coder"), propose(exact)).IDs["proposal"]
	if r := seen[rebaseAnswer](x, "proposal.patch_rebase", map[string]any{"proposal_id": id}).Rebase; r.Outcome != "conflict" {
		t.Errorf("%+v", r)
	}

	x.write("other.txt", secret)
	for _, args := range [][]string{{"add", "other.txt"}, {"-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "other"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = x.root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	probe := "diff --git a/a.txt b/a.txt\nindex " + patch.BlobID([]byte(secret), false) + "..1234567 100644\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-not for everyone\n+x\n"
	id = x.must(x.as("coder"), propose(probe)).IDs["proposal"]
	if r := seen[rebaseAnswer](x, "proposal.patch_rebase", map[string]any{"proposal_id": id}).Rebase; r.Outcome != "impossible" {
		t.Errorf("what lies elsewhere was found by its id: %+v", r)
	}
}

// TestOlderBase: a patch made on a commit that is no longer the newest is taken
// with that commit as its base, and can be rebased.
func TestOlderBase(t *testing.T) {
	x, _ := drafted(t, false)
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", x.root, "-c", "user.name=T", "-c", "user.email=t@example.org"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return strings.TrimSpace(string(out))
	}
	git("add", "-A")
	git("commit", "-q", "--allow-empty", "-m", "before")
	old := git("rev-parse", "HEAD")
	x.write("n.txt", strings.Replace(numbers, "8", "acht", 1))
	git("commit", "-qam", "after")
	index := "index " + patch.BlobID([]byte(numbers), false) + ".." + patch.BlobID([]byte(strings.Replace(numbers, "2", "two", 1)), false) + " 100644\n"
	p := propose("diff --git a/n.txt b/n.txt\n" + index + "--- a/n.txt\n+++ b/n.txt\n@@ -1,5 +1,5 @@\n 1\n-2\n+two\n 3\n 4\n 5\n")
	p.Base = old[:12]
	x.must(x.as("coder"), p)
	p.Base = old
	id := x.must(x.as("coder"), p).IDs["proposal"]
	if got := x.attached(id); got.Base.Commit != git("rev-parse", "HEAD") {
		t.Errorf("the base is %s", got.Base.Commit)
	}
	x.must(x.as("coder"), commands.AttachPatch{Proposal: id, Expected: 1, Rebase: true})
	p.Base = strings.Repeat("0", 40)
	x.refused(x.as("coder"), p, "unknown_base")
}
