package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// committing is a venue that commits, with those who take part.
type committing struct {
	*venue
	coder, lead, other string // an implementer and two orchestrators
}

func servedCommitting(t *testing.T, flags ...string) committing {
	t.Helper()
	s := served(t, append([]string{"--apply-mode", "commit"}, flags...)...)
	return committing{s, s.join(t, "coder", "agent", "implementer"), s.join(t, "lead", "agent", "orchestrator", "implementer"), s.join(t, "other", "agent", "orchestrator")}
}

// git asks git about the repository.
func (s committing) git(t *testing.T, args ...string) string {
	t.Helper()
	return strings.TrimSuffix(sh(t, s.root, "git", args...), "\n")
}

// proposed is a proposal with a claim and a vote for it.
func (s committing) proposed(t *testing.T, patch, file string) string {
	t.Helper()
	s.post(t, s.coder, "~/claims", args{"resource_id": "file:" + file, "claim_type": "write"}, 201)
	p := s.post(t, s.coder, "~/proposals", args{"title": "Speak  German", "summary_md": "Text.\n", "patch": patch, "risk": "low"}, 201).at("proposal", "proposal_id")
	s.post(t, "", "~/proposals/"+p+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	return p
}

func (s committing) applied(t *testing.T, who, proposal string) answer {
	t.Helper()
	a := s.post(t, who, "~/proposals/"+proposal+"/apply", args{"wait_seconds": 60}, 200)
	if a.at("transaction", "applied") != "yes" {
		t.Fatalf("apply: %s", a)
	}
	return a
}

// TestCommitMode: an apply is one commit with its trailers, a person's work in
// other paths stays, and taking it back gives the tree that was there.
func TestCommitMode(t *testing.T) {
	t.Parallel()
	s := servedCommitting(t)
	ran := filepath.Join(t.TempDir(), "ran")
	for _, hook := range []string{"post-commit", "pre-commit", "reference-transaction", "post-index-change"} {
		writeFile(t, filepath.Join(s.root, ".git/hooks", hook), "#!/bin/sh\ntouch "+ran+"\n")
		if err := os.Chmod(filepath.Join(s.root, ".git/hooks", hook), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, filepath.Join(s.root, "b.txt"), "staged\n")
	s.git(t, "-c", "core.hooksPath=/dev/null", "add", "b.txt")
	writeFile(t, filepath.Join(s.root, "dir/c.txt"), "edited\n")
	status, old, tree := s.git(t, "--no-optional-locks", "status", "--porcelain"), s.git(t, "rev-parse", "HEAD"), s.git(t, "rev-parse", "HEAD^{tree}")
	if err := os.RemoveAll(ran); err != nil {
		t.Fatal(err)
	}
	p := s.proposed(t, diffA, "a.txt")
	a := s.applied(t, s.lead, p)
	tx, commit := a.at("transaction", "transaction_id"), a.at("transaction", "commit")
	if _, err := os.Stat(ran); err == nil {
		t.Error("a hook ran")
	}
	if head := s.git(t, "rev-parse", "main"); head != commit || a.at("transaction", "ref") != "refs/heads/main" || a.at("transaction", "parent") != old {
		t.Errorf("main is at %s: %s", head, a)
	}
	if got := s.git(t, "log", "--format=%s|%an|%cn|%(trailers:only,unfold,separator=%x2c)", "main", "^"+old); got != "Speak German|coder|Roundtable|Roundtable-Transaction: "+tx+
		",Roundtable-Proposal: "+p+",Roundtable-Patch: "+a.at("transaction", "patch_digest") {
		t.Errorf("the log is %s", got)
	}
	if got := s.git(t, "log", "-1", "--format=%ae|%ce|%P"); !strings.HasPrefix(got, "PR-") || !strings.HasSuffix(got, "@roundtable.invalid|roundtable@roundtable.invalid|"+old) {
		t.Errorf("the commit is by %s", got)
	}
	if got := s.git(t, "diff-tree", "-r", "--name-status", old, "main"); got != "M\ta.txt" {
		t.Errorf("the commit changes %s", got)
	}
	if got := s.git(t, "rev-parse", "main^{tree}"); got != a.at("transaction", "after_tree") || tree != a.at("transaction", "before_tree") {
		t.Errorf("the tree is %s: %s", got, a)
	}
	if got := s.git(t, "--no-optional-locks", "status", "--porcelain"); got != status {
		t.Errorf("the status was\n%s\nis\n%s", status, got)
	}
	if got := s.get(t, "", "~/transactions/"+tx+"/recovery"); got.at("repository_state") != "after" && got.at("recovery", "repository_state") != "after" {
		t.Errorf("recovery: %s", got)
	} else if !strings.Contains(string(got.raw), `"branch":{"ref":"refs/heads/main","commit":"`+commit+`","parent":"`+old+`","now":"`+commit+`","state":"after"}`) {
		t.Errorf("recovery says of the branch: %s", got)
	}
	back := s.post(t, s.lead, "~/transactions/"+tx+"/compensate", args{}, 201).at("proposal", "proposal_id")
	s.post(t, "", "~/proposals/"+back+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	b := s.applied(t, s.other, back)
	if got := s.git(t, "rev-parse", "main^{tree}"); got != tree || b.at("transaction", "parent") != commit {
		t.Errorf("taken back, the tree is %s, was %s: %s", got, tree, b)
	}
	if got := s.git(t, "--no-optional-locks", "status", "--porcelain"); got != status {
		t.Errorf("the status was\n%s\nis\n%s", status, got)
	}
}

// TestCommitModeDirty: uncommitted work in a touched path is never overwritten
// and never committed.
func TestCommitModeDirty(t *testing.T) {
	t.Parallel()
	s := servedCommitting(t)
	old := s.git(t, "rev-parse", "main")
	p := s.proposed(t, diffA, "a.txt") // what it is made on is the commit, whatever lies on disk
	writeFile(t, filepath.Join(s.root, "a.txt"), "mine\n")
	checked := func(status string) {
		t.Helper()
		v := s.get(t, s.coder, "~/proposals/"+p+"/checks")
		i := slices.IndexFunc(list(v.body, "checks"), func(c map[string]any) bool { return text(c, "check") == "base" })
		if base := list(v.body, "checks")[i]; text(base, "status") != status || (status == "failed") != strings.Contains(text(base, "detail"), "state.dirty: ") {
			t.Errorf("base: %v", base)
		}
	}
	checked("failed")
	for _, stage := range []bool{false, true} { // also where the index alone has it
		if stage {
			s.git(t, "add", "a.txt")
			writeFile(t, filepath.Join(s.root, "a.txt"), "one\ntwo\nthree\n")
		}
		a := s.refused(t, request{token: s.lead, path: "~/proposals/" + p + "/apply", body: args{}}, 409, "gates_not_met")
		if !strings.Contains(string(a.raw), "state.dirty") || !strings.Contains(string(a.raw), "a.txt") {
			t.Errorf("apply: %s", a)
		}
	}
	s.git(t, "reset", "-q")
	writeFile(t, filepath.Join(s.root, "a.txt"), "mine\n")
	if got := readFile(t, filepath.Join(s.root, "a.txt")); got != "mine\n" || s.git(t, "rev-parse", "main") != old {
		t.Errorf("a.txt holds %q", got)
	}
	s.git(t, "checkout", "--", "a.txt")
	checked("passed")
	s.applied(t, s.lead, p)
}

// TestCommitModeBranch: a branch that is checked out nowhere moves alone.
func TestCommitModeBranch(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	sh(t, s.root, "git", "branch", "release")
	sh(t, s.root, "git", "rm", "--quiet", "a.txt")
	writeFile(t, filepath.Join(s.data, "config.yaml"), "apply_mode: commit\napply_branch: release\n")
	s.start(t)
	t.Cleanup(func() { s.stop() })
	c := committing{s, s.join(t, "coder", "agent", "implementer"), s.join(t, "lead", "agent", "orchestrator"), ""}
	status, main := c.git(t, "status", "--porcelain"), c.git(t, "rev-parse", "main")
	a := c.applied(t, c.lead, c.proposed(t, diffA, "a.txt"))
	if got := c.git(t, "show", "release:a.txt"); got != "one\nzwei\nthree" || a.at("transaction", "ref") != "refs/heads/release" {
		t.Errorf("release has %q: %s", got, a)
	}
	if c.git(t, "status", "--porcelain") != status || c.git(t, "rev-parse", "main") != main {
		t.Error("something else has changed")
	}
}

// TestApplyFlags: a branch without commit mode is refused, and so is a mode
// that is none.
func TestApplyFlags(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	for _, flags := range [][]string{{"--apply-branch", "main"}, {"--apply-mode", "push"}} {
		var errs output
		args := append([]string{"serve", "--data", s.data, "--addr", "127.0.0.1:0"}, flags...)
		if code := run(t.Context(), args, terminal{out: io.Discard, err: &errs, env: environment(nil)}); code != 2 || !strings.Contains(errs.String(), "--apply-mode") {
			t.Errorf("%v: %d %s", flags, code, &errs)
		}
	}
}

// TestApplyBranchNames: what can be no branch is refused at start, before
// anything is opened.
func TestApplyBranchNames(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	for _, name := range []string{"HEAD", "@", "a..b", "refs/tags/x", "-x", "a b", "a.lock", "@{-1}", "x/", ".x", "a~1"} {
		for _, command := range []string{"serve", "mcp"} {
			code, _, errs := ran(t, map[string]string{"ROUNDTABLE_TOKEN": s.admin}, command, "--data", s.data, "--apply-mode", "commit", "--apply-branch="+name)
			if code != 2 || !strings.Contains(errs, "--apply-branch") {
				t.Errorf("%s %q: %d %s", command, name, code, errs)
			}
		}
	}
}

// TestApplyBranchMissing: a branch that is not there is told at start and by
// doctor, and the service runs.
func TestApplyBranchMissing(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	started := func(branch string) string {
		ctx, cancel := context.WithCancel(t.Context())
		ready, ended := make(chan string, 1), make(chan int, 1)
		var errs output
		args := []string{"serve", "--data", s.data, "--addr", "127.0.0.1:0", "--allow-unsandboxed", "--log-level", "warn", "--apply-mode", "commit", "--apply-branch", branch}
		go func() {
			ended <- run(ctx, args, terminal{out: io.Discard, err: &errs, env: environment(nil), ready: ready})
		}()
		select {
		case <-ready:
			cancel()
			if code := <-ended; code != 0 {
				t.Errorf("serve: %d", code)
			}
		case code := <-ended:
			t.Errorf("serve: %d", code)
		}
		cancel()
		return errs.String()
	}
	if got := started("feature/none"); !strings.Contains(got, "state.no_branch") || !strings.Contains(got, "there is no branch feature/none") || !strings.Contains(got, `"level":"WARN"`) {
		t.Errorf("at start: %s", got)
	}
	if got := started("main"); strings.Contains(got, "state.no_branch") {
		t.Errorf("at start: %s", got)
	}
	for branch, want := range map[string]string{"feature/none": "failed", "main": "passed"} {
		writeFile(t, filepath.Join(s.data, "config.yaml"), "apply_mode: commit\napply_branch: "+branch+"\n")
		all, _ := s.diagnosed(t, nil)
		if f := all["apply_branch"]; f.Status != want || want == "failed" && (!strings.Contains(f.Detail, "--apply-branch") || f.Next == "") {
			t.Errorf("%s: %+v", branch, f)
		}
	}
	writeFile(t, filepath.Join(s.data, "config.yaml"), "apply_mode: commit\napply_branch: a..b\n")
	if all, code := s.diagnosed(t, nil); code != 1 || all["configuration"].Status != "failed" {
		t.Errorf("%d %+v", code, all["configuration"])
	}
}
