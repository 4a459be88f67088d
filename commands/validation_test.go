package commands_test

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/auth"
)

// validate runs stages and returns the validation as the log has it, with its
// stages by name.
func (x *table) validate(proposal string, stages ...string) (v domain.Validation, by map[string]events.ValidationStageFinished) {
	x.t.Helper()
	id := x.must(x.as("ada"), commands.RunValidation{Proposal: proposal, Stages: stages}).IDs["validation"]
	es, err := x.store.Stream(x.t.Context(), events.ValidationStream(id), 0)
	if err != nil {
		x.t.Fatal(err)
	}
	by = map[string]events.ValidationStageFinished{}
	for _, e := range es {
		v = v.Evolve(e.Payload)
		if s, ok := e.Payload.(events.ValidationStageFinished); ok {
			by[s.Stage] = s
		}
	}
	return v, by
}

func names(v domain.Validation) string {
	var all []string
	for _, s := range v.Stages {
		all = append(all, s.Stage+" "+s.Status)
	}
	return v.Status + ": " + strings.Join(all, ", ")
}

// TestValidationStages: exactly the stages asked for are run, each once, and
// without any all those that run no command.
func TestValidationStages(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose(change)).IDs["proposal"]
	for _, c := range []struct {
		asked []string
		want  string
	}{
		{nil, "passed: patch_parse passed, apply_dry_run passed, policy passed, stale_base passed"},
		{[]string{}, "passed: patch_parse passed, apply_dry_run passed, policy passed, stale_base passed"},
		{[]string{"stale_base", "patch_parse", "stale_base"}, "passed: patch_parse passed, stale_base passed"},
		{[]string{"tests"}, "passed: tests not_applicable"},
		{[]string{"static_checks"}, "passed: static_checks passed"},
	} {
		v, _ := x.validate(p, c.asked...)
		if got := names(v); got != c.want {
			t.Errorf("%v: %s, want %s", c.asked, got, c.want)
		}
		if r := v.Start; r.Revision != 1 || len(r.Tree) != 40 || r.PolicyDigest != x.Policy.Digest() || r.By != x.who["ada"].ID || r.PatchDigest == "" || r.PathsDigest == "" {
			t.Errorf("%+v", r)
		}
	}
	f := x.refused(x.as("ada"), commands.RunValidation{Proposal: p, Stages: []string{"tests", "lint", "", "policy"}}, "invalid_validation_stage")
	if len(f.Fields) != 2 || f.Fields[0].Pointer != "/stages/1" || f.Fields[1].Pointer != "/stages/2" {
		t.Errorf("%+v", f.Fields)
	}
	x.refused(x.as("ada"), commands.RunValidation{Proposal: "P-none"}, "proposal_not_found")
	x.join("reader", auth.Human, "", auth.Reviewer)
	x.refused(x.as("reader"), commands.RunValidation{Proposal: p, Stages: []string{"tests"}}, "forbidden")
	x.must(x.as("reader"), commands.RunValidation{Proposal: p, Stages: []string{"policy"}})
	for _, o := range x.Ops() {
		if o.Name == "validation.run" && (!o.May.Human || o.Tool) {
			t.Errorf("%s is for people, and no tool", o.Name)
		}
	}
	by := x.as("ada")
	first := x.must(by, commands.RunValidation{Proposal: p})
	if again := x.must(by, commands.RunValidation{Proposal: p}); again.IDs["validation"] != first.IDs["validation"] || !again.Repeated {
		t.Errorf("%+v, then %+v", first, again)
	}
	x.refused(by, commands.RunValidation{Proposal: p, Stages: []string{"policy"}}, "idempotency_key_reused")
}

// TestValidationFails: what stands against a patch is the failure of the stage
// that looks for it, and what cannot be looked for is no pass.
func TestValidationFails(t *testing.T) {
	x := cast(t)
	create := propose(change)
	create.ExpectedTests = []string{"git status"}
	p := x.must(x.as("coder"), create).IDs["proposal"]
	x.write("a.txt", "one\ntwo\nthree\nfour\n")
	if v, by := x.validate(p); names(v) != "failed: patch_parse passed, apply_dry_run passed, policy passed, stale_base failed" || !strings.Contains(by["stale_base"].Detail, "a.txt") {
		t.Error(names(v), by["stale_base"].Detail)
	}
	x.write("a.txt", "something else\n")
	at := x.head()
	v, by := x.validate(p, "apply_dry_run", "static_checks", "tests")
	if names(v) != "failed: apply_dry_run failed, static_checks skipped, tests skipped" || v.Start.Tree != "" || !strings.Contains(by["tests"].Detail, "no candidate tree: apply.") {
		t.Error(names(v), by)
	}
	if n := x.head() - at; n != 6 { // the foreign change stands among them
		t.Errorf("%d events", n)
	}
	if v, _ := x.validate(p, "tests"); v.Status != "failed" {
		t.Error("nothing could be run, and that is a pass:", names(v))
	}
	x.write("a.txt", "one\ntwo\nthree\n")
	x.must(x.as("critic"), commands.CastVote{Proposal: p, Vote: "veto", Reason: "no"})
	if v, by := x.validate(p, "policy"); v.Status != "failed" || !strings.Contains(by["policy"].Detail, "critic voted veto") {
		t.Error(names(v), by["policy"].Detail)
	}
}

// TestValidationStatic: the added lines of a patch are looked through, and no
// others; the history has where flaws are and not what stands there.
func TestValidationStatic(t *testing.T) {
	x := cast(t)
	x.write("old.txt", "keeps  \nold \tblanks\t\n"+strings.Repeat("more\n", 20))
	x.write("crlf.txt", "one\r\n")
	x.write(".gitattributes", "win.txt text eol=crlf\n")
	x.write("win.txt", "one\r\n") // which git keeps with LF
	patch := strings.Replace(change, "+2\n", "+2 \n", 1) +
		"diff --git a/old.txt b/new.txt\nsimilarity index 60%\nrename from old.txt\nrename to new.txt\n--- a/old.txt\n+++ b/new.txt\n@@ -1,3 +1,4 @@\n keeps  \n old \tblanks\t\n+<<<<<<< token=sk_live_4242\n more\n" +
		"diff --git a/end.txt b/end.txt\nnew file mode 100644\n--- /dev/null\n+++ b/end.txt\n@@ -0,0 +1,2 @@\n+x\n+\n" +
		"diff --git a/crlf.txt b/crlf.txt\n--- a/crlf.txt\n+++ b/crlf.txt\n@@ -1 +1,2 @@\n one\r\n+two\r\n" +
		"diff --git a/win.txt b/win.txt\n--- a/win.txt\n+++ b/win.txt\n@@ -1 +1,2 @@\n one\n+two\n"
	p := x.must(x.as("coder"), propose(patch)).IDs["proposal"]
	began := x.clock()
	v, by := x.validate(p, "static_checks")
	s := by["static_checks"]
	const want = "a.txt:2: trailing whitespace\ncrlf.txt:2: trailing whitespace\nend.txt:2: new blank line at EOF\nnew.txt:3: leftover conflict marker\n"
	if v.Status != "failed" || s.Output != want || s.Cut || s.ExitCode != nil || !strings.Contains(s.Detail, "4 ") {
		t.Errorf("%s: %+v", names(v), s)
	}
	if s.StartedAt != began || s.FinishedAt != began || s.DurationMS != 0 {
		t.Errorf("%+v", s)
	}
	if git := x.said(patch); git != want {
		t.Errorf("git says %q", git)
	}
}

// said is what git diff --check says of a patch of the work tree.
func (x *table) said(patch string) string {
	x.t.Helper()
	git := func(args ...string) string {
		cmd := exec.CommandContext(x.t.Context(), "git", args...)
		cmd.Dir, cmd.Stdin = x.root, strings.NewReader(patch)
		out, err := cmd.Output()
		if err != nil && len(out) == 0 {
			x.t.Fatal(args, err)
		}
		return string(out)
	}
	git("add", "-A")
	before := strings.TrimSpace(git("write-tree"))
	git("apply", "--cached", "--whitespace=nowarn")
	var lines []string
	for line := range strings.SplitSeq(git("diff", "--check", "--cached", before), "\n") {
		if line != "" && line[0] != '+' {
			lines = append(lines, strings.TrimSuffix(line, ".")+"\n")
		}
	}
	return strings.Join(lines, "")
}

// TestValidationOutputIsBounded: of very many flaws the first are named and all
// counted; a policy with commands that cannot be run is no pass.
func TestValidationOutputIsBounded(t *testing.T) {
	x := cast(t)
	patch := fmt.Sprintf("diff --git a/big.txt b/big.txt\nnew file mode 100644\n--- /dev/null\n+++ b/big.txt\n@@ -0,0 +1,3000 @@\n%s", strings.Repeat("+x \n", 3000))
	p := x.must(x.as("coder"), propose(patch)).IDs["proposal"]
	_, by := x.validate(p, "static_checks")
	s := by["static_checks"]
	if len(s.Output) > domain.MaxStageOutput || len(s.Output) < domain.MaxStageOutput-100 || !strings.HasSuffix(s.Output, " trailing whitespace\n") || !s.Cut || !strings.HasPrefix(s.Detail, "3000 ") {
		t.Errorf("%d bytes, cut %v: %s", len(s.Output), s.Cut, s.Detail)
	}
	x.Policy.StaticCommands = []string{"go vet ./..."}
	p = x.must(x.as("coder"), propose(change)).IDs["proposal"]
	if v, by := x.validate(p, "static_checks"); v.Status != "error" || !strings.Contains(by["static_checks"].Detail, "go vet") {
		t.Errorf("%s: %+v", names(v), by)
	}
}

// A meddler changes a file while it is looked at.
type meddler struct {
	commands.World
	meddle func()
}

func (m meddler) Flaws(ctx context.Context, root string, patch []byte) (commands.Flaws, error) {
	f, err := m.World.Flaws(ctx, root, patch)
	m.meddle()
	return f, err
}

// TestValidationOfOneTree: what somebody changes while stages are run is not
// told as what one tree came to.
func TestValidationOfOneTree(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose(change)).IDs["proposal"]
	w, text := x.World, "one\ntwo\nthree\nfour\n"
	x.World = meddler{w, func() { x.write("a.txt", text) }}
	at := x.head()
	if f := x.refused(x.as("ada"), commands.RunValidation{Proposal: p, Stages: []string{"static_checks", "tests"}}, "state.stale"); !strings.Contains(f.Detail, "a.txt") {
		t.Error(f)
	}
	if x.head() != at {
		t.Error("something was kept")
	}
	if v, _ := x.validate(p, "static_checks"); v.Status != "passed" { // it is written again, as it is
		t.Error(names(v))
	}
}

// TestValidationTimes: a stage's times are those of the look that it was judged from.
func TestValidationTimes(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose(change)).IDs["proposal"]
	tick := x.Now
	x.Now = func() time.Time { x.pass(time.Millisecond); return tick() }
	v, by := x.validate(p, "patch_parse", "stale_base", "static_checks")
	a, b, c := by["patch_parse"], by["stale_base"], by["static_checks"]
	if a.DurationMS < 1 || a.StartedAt != b.StartedAt || a.FinishedAt != c.StartedAt || c.DurationMS < 1 || v.Start.StartedAt != a.StartedAt {
		t.Errorf("%+v", v)
	}
}
