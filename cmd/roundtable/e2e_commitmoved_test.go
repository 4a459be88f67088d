package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// gate returns the status of one gate of a proposal, and what it says.
func (s committing) gate(t *testing.T, proposal, name string) (status, because string) {
	t.Helper()
	gates := list(s.get(t, s.coder, "~/proposals/"+proposal+"/gates").body, "gates")
	g := gates[slices.IndexFunc(gates, func(g map[string]any) bool { return text(g, "gate") == name })]
	return text(g, "status"), fmt.Sprint(g["because"])
}

// commitByHand commits one file as a person does.
func (s committing) commitByHand(t *testing.T, name, content string) (commit string) {
	t.Helper()
	writeFile(t, filepath.Join(s.root, name), content)
	s.git(t, "add", name)
	s.git(t, "-c", "user.name=Eve", "-c", "user.email=eve@example.org", "commit", "-q", "-m", "By hand")
	return s.git(t, "rev-parse", "HEAD")
}

// found lists the paths of the foreign changes that were recorded.
func (s committing) found(t *testing.T) (paths []string) {
	t.Helper()
	for _, f := range list(s.get(t, "", "~/repository/foreign-changes").body, "foreign_changes") {
		for _, p := range list(f, "paths") {
			paths = append(paths, text(f, "head")+" "+text(p, "path"))
		}
	}
	return paths
}

// TestCommitModeMoved: a commit by hand on the branch moves the base of what
// touches its paths, and of nothing else; a rebase merges with it.
func TestCommitModeMoved(t *testing.T) {
	t.Parallel()
	s := servedCommitting(t)
	p := s.proposed(t, diffA, "a.txt")
	s.commitByHand(t, "b.txt", "by hand\n")
	if status, because := s.gate(t, p, "base"); status != "passed" {
		t.Errorf("another path was committed: %s", because)
	}
	hand := s.commitByHand(t, "a.txt", "one\ntwo\nthree\nfour\n")
	if status, because := s.gate(t, p, "base"); status != "failed" || !strings.Contains(because, "a.txt") {
		t.Errorf("base: %s %s", status, because)
	}
	s.refused(t, request{token: s.lead, path: "~/proposals/" + p + "/apply", body: args{}}, 409, "gates_not_met")
	s.post(t, s.coder, "~/claims", args{"resource_id": "file:a.txt", "claim_type": "write"}, 201)
	a := s.post(t, s.coder, "~/proposals/"+p+"/revisions", args{"rebase": true, "expected_revision": 1}, 201)
	s.post(t, "", "~/proposals/"+p+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	if status, because := s.gate(t, p, "base"); status != "passed" {
		t.Errorf("rebased: %s: %s", because, a)
	}
	done := s.applied(t, s.lead, p)
	if done.at("transaction", "parent") != hand || s.git(t, "show", "main:a.txt") != "one\nzwei\nthree\nfour" {
		t.Errorf("%s", done)
	}
	if status := s.git(t, "status", "--porcelain"); status != "" {
		t.Errorf("the status is %s", status)
	}
}

// TestCommitModeLaterWork: taking a commit back keeps what was committed later,
// and where that stands in the way it is named and nothing is done.
func TestCommitModeLaterWork(t *testing.T) {
	t.Parallel()
	s := servedCommitting(t)
	tx := s.applied(t, s.lead, s.proposed(t, diffA, "a.txt")).at("transaction", "transaction_id")
	s.commitByHand(t, "a.txt", "one\nzwei\nthree\nfour\n")
	a := s.post(t, s.lead, "~/transactions/"+tx+"/compensate", args{}, 201)
	back := a.at("proposal", "proposal_id")
	s.post(t, "", "~/proposals/"+back+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	hand := s.commitByHand(t, "a.txt", "one\ndrei\nthree\nfour\n")
	s.refused(t, request{token: s.other, path: "~/proposals/" + back + "/apply", body: args{}}, 409, "gates_not_met")
	s.post(t, s.lead, "~/proposals/"+back+"/withdraw", args{"reason_md": "Later work."}, 200)
	a = s.refused(t, request{token: s.lead, path: "~/transactions/" + tx + "/compensate", body: args{}}, 409, "compensation_conflict")
	if fmt.Sprint(a.body["paths"]) != "[a.txt]" || fmt.Sprint(a.body["changed_outside"]) != "[a.txt]" || s.git(t, "rev-parse", "main") != hand {
		t.Errorf("%s", a)
	}
	s.commitByHand(t, "a.txt", "one\nzwei\nthree\nfour\n")
	back = s.post(t, s.lead, "~/transactions/"+tx+"/compensate", args{}, 201).at("proposal", "proposal_id")
	s.post(t, "", "~/proposals/"+back+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	s.applied(t, s.other, back)
	if got := s.git(t, "show", "main:a.txt"); got != "one\ntwo\nthree\nfour" || readFile(t, filepath.Join(s.root, "a.txt")) != got+"\n" {
		t.Errorf("a.txt is %q", got)
	}
}

// TestCommitModeForeign: what somebody commits by hand to the branch, on paths
// that are known, is a foreign change. What lies in the work tree or on another
// branch is none: the branch is what is governed.
func TestCommitModeForeign(t *testing.T) {
	t.Parallel()
	s := servedCommitting(t)
	s.applied(t, s.lead, s.proposed(t, diffA, "a.txt"))
	check := func(changed string) {
		t.Helper()
		if a := s.post(t, "", "~/repository/check", args{}, 200); a.at("check", "paths_changed") != changed {
			t.Errorf("check: %s", a)
		}
	}
	writeFile(t, filepath.Join(s.root, "a.txt"), "not committed\n")
	check("0")
	s.git(t, "add", "a.txt")
	check("0")
	topic := s.git(t, "-c", "user.name=Eve", "-c", "user.email=eve@example.org", "commit-tree", "-p", "HEAD", "-m", "Topic", s.git(t, "write-tree"))
	s.git(t, "update-ref", "refs/heads/topic", topic)
	check("0")
	s.git(t, "reset", "-q", "--hard")
	s.commitByHand(t, "b.txt", "nothing is known of it\n")
	check("0")
	hand := s.commitByHand(t, "a.txt", "by hand\n")
	check("1")
	check("0")
	if got := s.found(t); fmt.Sprint(got) != "["+hand+" a.txt]" {
		t.Errorf("found %q", got)
	}
}

const diffCR = "diff --git a/cr.txt b/cr.txt\n--- a/cr.txt\n+++ b/cr.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+zwei\n three\n"

// TestCommitModeLineEnds: where attributes or the configuration give the work
// tree CR LF, the branch is changed as any other and the work tree gets what a
// checkout writes.
func TestCommitModeLineEnds(t *testing.T) {
	t.Parallel()
	for name, setup := range map[string][2]string{"eol": {"*.txt text eol=crlf\n", "false"}, "autocrlf": {"", "true"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := servedCommitting(t)
			file := filepath.Join(s.root, "cr.txt")
			if setup[0] != "" {
				s.commitByHand(t, ".gitattributes", setup[0])
			}
			s.git(t, "config", "core.autocrlf", setup[1])
			s.commitByHand(t, "cr.txt", "one\r\ntwo\r\nthree\r\n")
			old := s.git(t, "rev-parse", "HEAD^{tree}")
			clone := filepath.Join(t.TempDir(), "clone")
			s.git(t, "clone", "-q", "-c", "core.autocrlf="+setup[1], s.root, clone)
			writeFile(t, filepath.Join(clone, "p"), diffCR)
			sh(t, clone, "git", "apply", "--index", "p")
			want := strings.TrimSpace(sh(t, clone, "git", "write-tree"))
			a := s.applied(t, s.lead, s.proposed(t, diffCR, "cr.txt"))
			tx := a.at("transaction", "transaction_id")
			as := func(tree, content string) {
				t.Helper()
				if got := s.git(t, "rev-parse", "main^{tree}"); got != tree || readFile(t, file) != content || s.git(t, "status", "--porcelain") != "" {
					t.Errorf("tree %s, want %s; the file is %q, want %q; status %q", got, tree, readFile(t, file), content, s.git(t, "status", "--porcelain"))
				}
			}
			as(want, readFile(t, filepath.Join(clone, "cr.txt")))
			if got := s.git(t, "cat-file", "blob", "main:cr.txt"); got != "one\nzwei\nthree" || a.at("transaction", "after_tree") != want {
				t.Errorf("kept as %q: %s", got, a)
			}
			if got := s.get(t, "", "~/transactions/"+tx+"/recovery"); !strings.Contains(string(got.raw), `"repository_state":"after"`) {
				t.Errorf("recovery: %s", got)
			}
			s.receiptHolds(t, tx)
			back := s.post(t, s.lead, "~/transactions/"+tx+"/compensate", args{}, 201).at("proposal", "proposal_id")
			s.post(t, "", "~/proposals/"+back+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
			s.applied(t, s.other, back)
			as(old, "one\r\ntwo\r\nthree\r\n")
		})
	}
}

// receiptHolds verifies the receipt of a transaction beside the repository.
func (s committing) receiptHolds(t *testing.T, tx string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "receipt.json")
	env := map[string]string{"ROUNDTABLE_SERVER": s.at, "ROUNDTABLE_TOKEN": s.coder}
	if code, _, errs := ran(t, env, "tx", "receipt", tx, "--out", file); code != 0 {
		t.Fatal(code, errs)
	}
	if v := checked(t, 0, file, "--data", s.data, "--repo", s.root); v.Repository.Tree != "as_after" || v.Repository.Commit != "there" || len(v.Repository.Changed) > 0 {
		t.Errorf("%+v", v.Repository)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
}
