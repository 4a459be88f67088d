package main

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// playFixture makes the fixture from a session over the real interface in
// which every type of event comes up.
func playFixture(t *testing.T) {
	if _, err := os.Stat(fixtureDir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("%s is there: it is never made again; a newer version gets one of its own", fixtureDir)
	}
	dir, err := os.MkdirTemp("", "roundtable-fixture-")
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}()
	s := foundIn(t, filepath.Join(dir, "repository"), filepath.Join(dir, "data"), func(root string) {
		write(t, root, "a.txt", "0\n", 0o644)
		write(t, root, "b.txt", "0\n", 0o644)
		write(t, root, "go.mod", "module example.org/slow\n\ngo 1.21\n", 0o644)
		write(t, root, "slow_test.go", "package slow\n\nimport \"testing\"\n\nfunc TestSlow(t *testing.T) { select {} }\n", 0o644)
	})
	v := serving(t, s.data)
	s.people(t, v.at, "coder")
	s.join(t, v.at, "lead", "agent", "blue", "orchestrator", "implementer")
	f := fixturePlay{t, s, v.at}
	f.work()
	f.accept()
	f.refuse()
	f.cancel()
	last := f.doomed()
	v.stop(t)
	f.fail(last)
	s.keepFixture(t)
}

type fixturePlay struct {
	t  *testing.T
	s  *site
	at string
}

func (f fixturePlay) post(who, path string, in args) map[string]any {
	f.t.Helper()
	return f.s.must(f.t, f.at, who, "POST", f.s.here(path), in)
}

// step is a patch that counts one on in a file.
func step(file string, n int) string {
	return fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-%[2]d\n+%[3]d\n", file, n, n+1)
}

// work has tokens, a task and claims that end.
func (f fixturePlay) work() {
	f.s.join(f.t, f.at, "guest", "agent", "green", "viewer")
	tokens := list(f.s.must(f.t, f.at, "admin", "GET", "/tokens", nil), "tokens")
	f.s.must(f.t, f.at, "admin", "DELETE", "/tokens/"+text(tokens[0], "token_id"), nil)
	f.post("lead", "/tasks", args{"title": "Count on", "body_md": "One by one."})
	c := f.post("coder", "/claims", args{"resource_id": "file:a.txt", "claim_type": "write", "ttl_seconds": 1})
	for state := ""; state != "expired"; { // only when the fixture is made
		state = text(f.s.must(f.t, f.at, "coder", "GET", f.s.here("/claims/"+text(c, "claim", "claim_id")), nil), "claim", "state")
	}
	c = f.post("coder", "/claims", args{"resource_id": "file:a.txt", "claim_type": "write"})
	f.post("coder", "/claims/"+text(c, "claim", "claim_id")+"/release", args{})
}

// propose makes a proposal with its claim.
func (f fixturePlay) propose(title, risk, file string) string {
	f.post("coder", "/claims", args{"resource_id": "file:" + file, "claim_type": "write"})
	p := f.post("coder", "/proposals", args{"title": title, "summary_md": "By one.", "risk": risk, "patch": step(file, 0), "expected_tests": []string{"git hash-object " + file}})
	return text(p, "proposal", "proposal_id")
}

func (f fixturePlay) approval(who, proposal, verdict string) {
	a := f.post(who, "/approvals", args{"subject": "Count on?", "reason_md": "The risk is high.", "proposal_id": proposal})
	f.post("ada", "/approvals/"+text(a, "approval", "approval_id")+"/"+verdict, args{"reason_md": "Seen."})
}

// accept has a proposal that is sent back, corrected, applied and taken back.
func (f fixturePlay) accept() {
	p := f.propose("Count on in a", "high", "a.txt")
	f.post("coder", "/proposals/"+p+"/request-review", args{})
	f.approval("coder", p, "request-changes")
	f.post("coder", "/proposals/"+p+"/revisions", args{"patch": step("a.txt", 0), "expected_revision": 1})
	f.pass(p, "coder")
	tx := f.post("ada", "/proposals/"+p+"/apply", args{})
	back := f.post("lead", "/transactions/"+text(tx, "transaction", "transaction_id")+"/compensate", args{})
	p = text(back, "proposal", "proposal_id")
	f.pass(p, "lead")
	f.post("ada", "/proposals/"+p+"/apply", args{})
}

func (f fixturePlay) pass(proposal, author string) {
	f.post(author, "/proposals/"+proposal+"/request-review", args{})
	f.s.idle(f.t)
	for _, run := range list(f.s.must(f.t, f.at, "ada", "GET", f.s.here("/test-runs"), nil), "test_runs") {
		if text(run, "state") != "passed" {
			f.t.Fatal(run)
		}
	}
	f.approval(author, proposal, "approve")
	f.post("critic", "/proposals/"+proposal+"/votes", args{"vote": "approve", "reason_md": "Counted.", "confidence": 0.9})
}

func (f fixturePlay) refuse() {
	p := f.propose("Count on in b", "normal", "b.txt")
	f.post("critic", "/proposals/"+p+"/reject", args{"reason_md": "Not this one."})
	p = f.propose("Count on in b again", "low", "b.txt")
	f.post("coder", "/proposals/"+p+"/withdraw", args{"reason_md": "Neither."})
}

func (f fixturePlay) cancel() {
	run := text(f.post("ada", "/test-runs", args{"command": "go test ./..."}), "test_run", "test_run_id")
	f.s.started(f.t, f.at, run)
	f.post("ada", "/test-runs/"+run+"/cancel", args{})
	f.s.idle(f.t)
}

// doomed brings a proposal to where it can be applied.
func (f fixturePlay) doomed() string {
	p := f.propose("Count on in b at last", "normal", "b.txt")
	f.post("coder", "/proposals/"+p+"/request-review", args{})
	f.s.idle(f.t)
	f.post("critic", "/proposals/"+p+"/votes", args{"vote": "approve_with_notes", "reason_md": "Fine."})
	return p
}

// fail has somebody write into the file between the gates and the apply.
func (f fixturePlay) fail(proposal string) {
	v := serving(f.t, f.s.data, failpointVar+"=apply:intent")
	if _, err := f.s.do(f.t, v.at, "ada", "POST", f.s.here("/proposals/"+proposal+"/apply"), "doomed", args{}); err == nil {
		f.t.Fatal("not killed")
	}
	v.dead(f.t)
	write(f.t, f.s.root, "b.txt", "mine\n", 0o644)
	v = serving(f.t, f.s.data)
	f.s.idle(f.t)
	f.s.head(f.t, v.at)
	v.stop(f.t)
	f.s.sound(f.t)
}

// keepFixture writes the data folder and what it must give.
func (s *site) keepFixture(t *testing.T) {
	t.Helper()
	var have []string
	for r, err := range eventlog.Import(bytes.NewReader(offlineRun(t, "log", "export", "--data", s.data))) {
		if err != nil {
			t.Fatal(err)
		}
		have = append(have, r.Type)
	}
	for _, p := range events.Zeros() {
		name, _, _, err := events.Encode(p)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(have, name) {
			t.Errorf("no %s comes up", name)
		}
	}
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(s.data, "log.db"))
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"PRAGMA wal_checkpoint(TRUNCATE)", "VACUUM"} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(q, err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	to := filepath.Join(fixtureDir, "data")
	err = errors.Join(os.CopyFS(filepath.Join(to, "blobs"), os.DirFS(filepath.Join(s.data, "blobs"))))
	log, err2 := os.ReadFile(filepath.Join(s.data, "log.db"))
	v := s.verified(t)
	err = errors.Join(err, err2, os.WriteFile(filepath.Join(to, "log.db"), log, 0o644),
		os.WriteFile(filepath.Join(fixtureDir, "replay.json"), offlineRun(t, "log", "replay", "--data", s.data), 0o644),
		os.WriteFile(filepath.Join(fixtureDir, "head"), []byte(text(v, "events")+":"+text(v, "head_hash")+"\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
}
