package commands_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// cast gives the table an author, reviewers and an orchestrator.
func cast(t *testing.T) *table {
	x := setUp(t)
	x.join("coder", auth.Agent, "blue", auth.Implementer, auth.Orchestrator)
	x.join("critic", auth.Agent, "red", auth.Reviewer)
	x.join("ada", auth.Human, "", auth.Operator)
	return x
}

// ask answers a question about a proposal through its op.
func ask[O any](x *table, name, proposal string) O {
	x.t.Helper()
	for _, o := range x.Ops() {
		if o.Name != name {
			continue
		}
		v, err := o.Run(x.t.Context(), op.Call{Who: x.who["ada"], Workspace: x.ws}, []byte(`{"proposal_id":"`+proposal+`"}`))
		if err != nil {
			x.t.Fatal(err)
		}
		return v.(O)
	}
	x.t.Fatal("no op ", name)
	panic("unreachable")
}

func status(g wire.Gates) map[string]string {
	m := map[string]string{}
	for _, x := range g.Gates {
		m[x.Gate] = x.Status
	}
	return m
}

// TestGates: each gate opens by what its next steps say, and the last one
// lets the proposal be applied.
func TestGates(t *testing.T) {
	x := cast(t)
	create := propose(change)
	create.Risk = "high"
	p := x.must(x.as("coder"), create).IDs["proposal"]
	gates := func() map[string]string { return status(ask[wire.Gates](x, "proposal.explain", p)) }

	if g := gates(); g["patch"] != "passed" || g["claims"] != "failed" || g["coverage"] != "passed" || g["base"] != "passed" || g["votes"] != "waiting" || g["human_approval"] != "waiting" || g["tests"] != "not_applicable" {
		t.Fatalf("at first: %v", g)
	}
	f := x.refused(x.as("ada"), commands.ApplyPatch{Proposal: p}, "gates_not_met")
	var ops []string
	for _, s := range f.Next {
		ops = append(ops, s.Op)
	}
	if got := strings.Join(ops, " "); got != "resource.claim vote.cast human.request_approval" {
		t.Errorf("next: %s", got)
	}
	x.must(x.as("coder"), commands.ClaimResource{Resource: "file:a.txt", Type: "write"})
	x.must(x.as("critic"), commands.CastVote{Proposal: p, Vote: "approve", Reason: "fine"})
	h := x.must(x.as("coder"), commands.RequestApproval{Subject: "s", Reason: "r", Proposal: p}).IDs["approval"]
	if g := gates(); g["claims"] != "passed" || g["votes"] != "passed" || g["human_approval"] != "waiting" {
		t.Fatalf("before the approval: %v", g)
	}
	approve := commands.Approve{}
	approve.Approval = h
	x.must(x.as("ada"), approve)
	x.refused(x.as("coder"), commands.ApplyPatch{Proposal: p}, "author_may_not_apply")
	by := x.as("ada")
	r := x.must(by, commands.ApplyPatch{Proposal: p})
	if r.IDs["transaction"] == "" {
		t.Fatal("no transaction")
	}
	if again := x.must(x.as("ada"), commands.ApplyPatch{Proposal: p}); again.IDs["transaction"] != r.IDs["transaction"] {
		t.Error("a second apply opened another transaction")
	}
	x.refused(x.as("coder"), commands.AttachPatch{Proposal: p, Expected: 1, PatchInput: commands.PatchInput{Patch: change}}, "transaction_busy")
}

// TestBaseMoves: an edit of a touched path behind everyone's back is seen, and makes
// the claim on it stale.
func TestBaseMoves(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose(change)).IDs["proposal"]
	x.must(x.as("coder"), commands.ClaimResource{Resource: "directory:", Type: "exclusive"})
	x.write("b.txt", "elsewhere\n")
	if v := ask[wire.Validation](x, "patch.validate", p); !v.Valid {
		t.Fatalf("an edit elsewhere matters: %+v", v.Checks)
	}
	x.write("a.txt", "one\ntwo\nthree\nfour\n")
	v := ask[wire.Validation](x, "patch.validate", p)
	if v.Valid || v.Appliable {
		t.Fatal("an edit of the path does not matter")
	}
	for _, c := range v.Checks {
		if want := map[string]string{"base": "failed", "temp_apply": "passed", "claims": "failed"}[c.Check]; want != "" && c.Status != want {
			t.Errorf("%s: %s, %s", c.Check, c.Status, c.Detail)
		}
	}
	stale, ok := v.Legacy["stale_claims"].([]map[string]any)
	if !ok || len(stale) != 1 || stale[0]["resource_id"] != "directory:" || stale[0]["because"] == "" {
		t.Errorf("stale claims: %v", v.Legacy["stale_claims"])
	}
}

// TestDraft: a patch that does not fit is kept and answered as a failing
// check; one that can never be valid is refused and leaves nothing.
func TestDraft(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose(strings.Replace(change, "-two", "-deux", 1))).IDs["proposal"]
	if g := ask[wire.Gates](x, "proposal.explain", p); status(g)["patch"] != "failed" || !strings.Contains(g.Gates[0].Because[0], "apply.context_mismatch") {
		t.Errorf("%+v", g.Gates[0])
	}
	at := x.head()
	for patch, code := range map[string]string{
		"":                               "missing_field",
		"hello":                          "parse.not_a_diff",
		strings.TrimSuffix(change, "\n"): "parse.truncated",
		strings.ReplaceAll(change, "a.txt", "../a.txt"):                                                                          "path.traversal",
		strings.ReplaceAll(change, "a.txt", ".git/config"):                                                                       "path.dotgit",
		strings.ReplaceAll(change, "a.txt", ".roundtable.yaml"):                                                                  "policy_not_supported",
		"diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n": "symlink.escape",
	} {
		x.refused(x.as("coder"), propose(patch), code)
	}
	if x.head() != at {
		t.Error("a refusal left events")
	}
	if f := x.refused(x.as("coder"), commands.AttachPatch{Proposal: p, Expected: 7, PatchInput: commands.PatchInput{Patch: change}}, "stale_revision"); len(f.Next) == 0 {
		t.Error("nothing says what to do")
	}
	bad := propose(change)
	bad.ExpectedTests = []string{"go test ./... | tee log"}
	x.refused(x.as("coder"), bad, "command_shell_syntax")
	bad.ExpectedTests = []string{"curl http://localhost"}
	x.refused(x.as("coder"), bad, "command_not_allowed")
	bad = propose(change)
	bad.Task = "T-none"
	x.refused(x.as("coder"), bad, "task_not_found")
	bad = propose(change)
	bad.Resources = []string{"file:./a.txt"}
	x.refused(x.as("coder"), bad, "invalid_resource")
}

// TestPolicyFile: a policy file is refused and never ignored.
func TestPolicyFile(t *testing.T) {
	x := cast(t)
	x.write(".roundtable.yaml", "profiles: {}\n")
	x.refused(x.as("coder"), propose(change), "policy_not_supported")
	if err := os.Remove(filepath.Join(x.root, ".roundtable.yaml")); err != nil {
		t.Fatal(err)
	}
	x.must(x.as("coder"), propose(change))
}

// TestExpiry: a claim that has lapsed authorizes nobody and blocks nobody.
func TestExpiry(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose(change)).IDs["proposal"]
	c := x.must(x.as("coder"), commands.ClaimResource{Resource: "file:a.txt", Type: "write", TTL: 60}).IDs["claim"]
	if g := status(ask[wire.Gates](x, "proposal.explain", p)); g["claims"] != "passed" {
		t.Fatal(g)
	}
	x.pass(time.Minute)
	if g := status(ask[wire.Gates](x, "proposal.explain", p)); g["claims"] != "failed" {
		t.Fatal(g)
	}
	x.join("other", auth.Agent, "green", auth.Implementer)
	x.must(x.as("other"), commands.ClaimResource{Resource: "file:a.txt", Type: "exclusive"})
	x.refused(x.as("coder"), commands.ReleaseClaim{Claim: c}, "claim_not_found")
}

// TestTokens: a token stands for its principal until it is revoked or over.
func TestTokens(t *testing.T) {
	x := setUp(t)
	x.join("ann", auth.Human, "", auth.Viewer)
	by := commands.System("", "issue")
	token, r, err := x.Issue(t.Context(), by, commands.IssueToken{Principal: "ann", ExpiresIn: 3600})
	if err != nil {
		t.Fatal(err)
	}
	if who, err := x.Authenticate(t.Context(), token); err != nil || who.ID != x.who["ann"].ID || who.Token != r.IDs["token"] {
		t.Fatal(who, err)
	}
	again, r2, err := x.Issue(t.Context(), by, commands.IssueToken{Principal: "ann", ExpiresIn: 3600})
	if err != nil || again != "" || r2.IDs["token"] != r.IDs["token"] {
		t.Errorf("a repeat shows %q, %v, %v", again, r2, err)
	}
	for _, bad := range []string{"", "x", token + "x", token[:len(token)-1] + "_", strings.Replace(token, "TK-", "TK-0", 1)} {
		if _, err := x.Authenticate(t.Context(), bad); err == nil {
			t.Errorf("%q is a token", bad)
		}
	}
	x.pass(time.Hour)
	if _, err := x.Authenticate(t.Context(), token); err == nil {
		t.Error("the token has no end")
	}
	token, r, err = x.Issue(t.Context(), commands.System("", "issue 2"), commands.IssueToken{Principal: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	x.must(commands.System("", "revoke"), commands.RevokeToken{Token: r.IDs["token"]})
	if _, err := x.Authenticate(t.Context(), token); err == nil {
		t.Error("a revoked token is good")
	}
}

// TestCopySource: what a copy reads is bound like what a patch changes.
func TestCopySource(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose("diff --git a/a.txt b/b.txt\nsimilarity index 100%\ncopy from a.txt\ncopy to b.txt\n")).IDs["proposal"]
	if g := status(ask[wire.Gates](x, "proposal.explain", p)); g["base"] != "passed" || g["patch"] != "passed" {
		t.Fatal(g)
	}
	x.write("a.txt", "what nobody has read\n")
	if g := ask[wire.Gates](x, "proposal.explain", p); status(g)["base"] != "failed" || !strings.Contains(strings.Join(g.Gates[3].Because, ""), "a.txt") {
		t.Errorf("%+v", g.Gates[3])
	}
}

// TestIgnoredFiles: a file that git ignores can be neither changed nor copied,
// and nothing of it is told; nor is one made.
func TestIgnoredFiles(t *testing.T) {
	x := cast(t)
	x.write(".gitignore", "*.env\n")
	x.write("p.env", "PASSWORD=hunter2\n")
	for _, patch := range []string{
		"diff --git a/p.env b/leak.txt\nsimilarity index 100%\ncopy from p.env\ncopy to leak.txt\n",
		"diff --git a/p.env b/p.env\n--- a/p.env\n+++ b/p.env\n@@ -1 +1 @@\n-guess\n+other\n",
		"diff --git a/p.env b/q.txt\nsimilarity index 100%\nrename from p.env\nrename to q.txt\n",
	} {
		f := x.refused(x.as("coder"), propose(patch), "path.ignored")
		if strings.Contains(fmt.Sprint(f.Detail, f.Fields, f.Context), "hunter2") {
			t.Errorf("the refusal tells what the file holds: %+v", f)
		}
	}
	for _, patch := range []string{
		"diff --git a/new.env b/new.env\nnew file mode 100644\n--- /dev/null\n+++ b/new.env\n@@ -0,0 +1 @@\n+mine\n",
		"diff --git a/a.txt b/a.env\nsimilarity index 100%\nrename from a.txt\nrename to a.env\n",
		"diff --git a/a.txt b/a.env\nsimilarity index 100%\ncopy from a.txt\ncopy to a.env\n",
	} {
		x.refused(x.as("coder"), propose(patch), "path.ignored")
	}
}

// TestOpenTwice: opening a transaction starts no test that a run answers, that
// cannot have a tree, or that is named twice.
func TestOpenTwice(t *testing.T) {
	x := cast(t)
	runs := func() (n int) {
		records, err := x.store.Since(t.Context(), 0, 10_000)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if r.Type == "test_run.requested" {
				n++
			}
		}
		return n
	}
	create := propose(change)
	create.ExpectedTests = []string{"make ok", "make ok"}
	p := x.must(x.as("coder"), create).IDs["proposal"]
	for range 3 {
		x.must(x.as("ada"), commands.OpenTransaction{Proposal: p})
	}
	if n := runs(); n != 1 {
		t.Errorf("%d runs", n)
	}
	create = propose(strings.Replace(change, "-two", "-deux", 1))
	create.ExpectedTests = []string{"make ok"}
	x.must(x.as("ada"), commands.OpenTransaction{Proposal: x.must(x.as("coder"), create).IDs["proposal"]})
	if n := runs(); n != 1 {
		t.Errorf("a patch that does not fit is tested: %d runs", n)
	}
}

// TestEndedTransaction: one that has failed is refused as that, and not by
// gates.
func TestEndedTransaction(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose(change)).IDs["proposal"]
	tx := x.must(x.as("ada"), commands.OpenTransaction{Proposal: p}).IDs["transaction"]
	x.must(x.as("coder"), commands.WithdrawProposal{Proposal: p})
	x.refused(x.as("ada"), commands.ApplyTransaction{Transaction: tx}, "illegal_transaction_transition")
}
