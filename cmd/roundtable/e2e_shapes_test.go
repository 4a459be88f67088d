package main

import (
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// members of an answer, in order.
func membersOf(a answer) []string { return slices.Sorted(maps.Keys(a.body)) }

// wants checks the members that an answer has, all of them.
func (a answer) wants(t *testing.T, names ...string) {
	t.Helper()
	slices.Sort(names)
	if got := membersOf(a); !slices.Equal(got, names) {
		t.Errorf("members %v, want %v: %s", got, names, a)
	}
}

// TestWireShapes: every operation answers what it declares (each answer of
// these tests is held to its schema), in the shapes and with the statuses that
// clients rely on. At the end no operation is left unseen.
func TestWireShapes(t *testing.T) {
	t.Parallel()
	s := served(t)
	s.serverShapes(t)
	coder := s.join(t, "coder", "agent", "implementer")
	p := s.workShapes(t, coder)
	s.reviewShapes(t, coder, p)
	s.transactionShapes(t, coder, p)
	s.otherEnds(t, coder)
	s.transactionControl(t, coder)
	s.validationShapes(t, coder)
	s.verifyShapes(t)
	s.repositoryShapes(t)
	for _, r := range s.seen.routes {
		if s.seen.done[r.Name] == 0 {
			t.Errorf("no success of %s was seen", r.Name)
		}
	}
}

// repositoryShapes edits a file that a transaction has left, and has it found.
func (s *venue) repositoryShapes(t *testing.T) {
	a := s.get(t, "", "~/repository")
	a.wants(t, "position", "repository")
	if a.at("repository", "branch") != "main" || a.at("repository", "known_paths") == "0" || len(list(a.body["repository"].(map[string]any), "foreign_changes")) != 0 {
		t.Errorf("repository: %s", a)
	}
	writeFile(t, filepath.Join(s.root, "a.txt"), "edited by hand\n")
	for _, changed := range []string{"1", "0"} {
		a = s.post(t, "", "~/repository/check", args{}, 200)
		a.wants(t, "check", "position", "repository")
		if a.at("check", "paths_changed") != changed || len(list(a.body["check"].(map[string]any), "foreign_changes")) != len(strings.Trim(changed, "0")) {
			t.Errorf("check: %s", a)
		}
	}
	a = s.get(t, "", "~/repository/foreign-changes?found_at=doctor")
	a.wants(t, "foreign_changes", "next_cursor", "position")
	if all := list(a.body, "foreign_changes"); len(all) != 1 || text(list(all[0], "paths")[0], "path") != "a.txt" {
		t.Errorf("foreign changes: %s", a)
	}
}

func (s *venue) serverShapes(t *testing.T) {
	a := s.post(t, "", "/principals", args{"name": "bob", "kind": "human", "roles": []args{{"workspace_id": s.workspace, "role": "viewer"}}}, 201)
	a.wants(t, "position", "principal")
	who := a.at("principal", "principal_id")
	if a.at("principal", "owner") != who {
		t.Errorf("a person's owner is themselves by default: %s", a)
	}
	issue := request{path: "/tokens", key: "once", body: args{"principal_id": who, "expires_in_seconds": 60, "scope": args{"workspace_id": s.workspace, "operations": []string{"task.list"}}}}
	a = s.send(t, issue)
	a.wants(t, "expires_at", "position", "token", "token_id")
	again := s.send(t, issue)
	again.wants(t, "expires_at", "position", "token_id")
	if a.status != 201 || again.status != 201 || again.at("token_id") != a.at("token_id") || again.at("position") != a.at("position") {
		t.Errorf("issue %s, again %s", a, again)
	}
	s.send(t, request{method: "DELETE", path: "/tokens/" + a.at("token_id")}).wants(t, "position", "token")
	for _, list := range []string{"workspaces", "principals", "tokens"} {
		s.get(t, "", "/"+list).wants(t, list, "next_cursor", "position")
	}
	if raw := string(s.get(t, "", "/tokens").raw); strings.Contains(raw, "rt_") || strings.Contains(raw, "hash") {
		t.Errorf("the list of tokens shows secrets: %s", raw)
	}
	s.get(t, "", "/principals/"+who).wants(t, "position", "principal")
	s.get(t, "", "/me")
	s.get(t, "", "/keys").wants(t, "keys", "next_cursor", "position")
	s.get(t, "", "/workspaces/"+s.workspace).wants(t, "position", "workspace")
	s.post(t, "", "/workspaces", args{"root": repository(t), "name": "second"}, 201).wants(t, "position", "workspace")
}

// workShapes makes a task, a claim and a proposal with two revisions.
func (s *venue) workShapes(t *testing.T, coder string) (proposal string) {
	a := s.post(t, "", "~/tasks", args{"title": "one", "body_md": "two"}, 201)
	a.wants(t, "position", "task")
	task := a.at("task", "task_id")
	s.get(t, "", "~/tasks/"+task).wants(t, "position", "task")
	a = s.post(t, coder, "~/claims", args{"resource_id": "file:a.txt", "claim_type": "write", "task_id": task, "ttl_seconds": 60}, 201)
	a.wants(t, "claim", "position")
	s.get(t, "", "~/claims/"+a.at("claim", "claim_id")).wants(t, "claim", "position")
	b := s.post(t, coder, "~/claims", args{"resource_id": "directory:dir", "claim_type": "read"}, 201)
	b = s.post(t, coder, "~/claims/"+b.at("claim", "claim_id")+"/release", args{}, 200)
	if b.at("claim", "state") != "released" {
		t.Errorf("release: %s", b)
	}
	a = s.post(t, coder, "~/proposals", args{"title": " one ", "summary_md": "two", "patch": diffWrong, "task_id": task, "risk": "high",
		"expected_tests": []string{"git hash-object a.txt"}}, 201)
	a.wants(t, "appliable", "gates", "position", "proposal")
	if a.at("proposal", "title") != "one" || a.at("proposal", "revision") != "1" {
		t.Errorf("create: %s", a)
	}
	proposal = a.at("proposal", "proposal_id")
	a = s.post(t, coder, "~/proposals/"+proposal+"/revisions", args{"patch": diffA, "expected_revision": 1}, 201)
	a.wants(t, "appliable", "gates", "position", "proposal")
	revisions := list(a.body["proposal"].(map[string]any), "revisions")
	if len(revisions) != 2 || text(revisions[1], "number") != "2" {
		t.Errorf("attach: %s", a)
	}
	s.get(t, "", "~/proposals/"+proposal+"/checks")
	s.get(t, "", "~/proposals/"+proposal+"/patch").wants(t, "patch", "position")
	s.get(t, "", "~/proposals/"+proposal+"/patch/files?limit=1").wants(t, "files", "next_cursor", "patch_digest", "position", "proposal_id", "revision")
	s.get(t, "", "~/proposals/"+proposal+"/patch/diff").wants(t, "files", "next_cursor", "patch_digest", "position", "proposal_id", "revision")
	s.get(t, "", "~/proposals/"+proposal+"/patch/diff?from=2").wants(t, "files", "from_revision", "next_cursor", "patch_digest", "position", "proposal_id", "revision")
	s.get(t, "", "~/proposals/"+proposal+"/patch/symbols").wants(t, "files", "next_cursor", "patch_digest", "position", "proposal_id", "revision")
	s.get(t, "", "~/proposals/"+proposal+"/patch/rebase").wants(t, "files", "next_cursor", "patch_digest", "position", "proposal_id", "rebase", "revision")
	s.get(t, "", "~/proposals/"+proposal+"/patch/symbols").wants(t, "files", "next_cursor", "patch_digest", "position", "proposal_id", "revision")
	s.get(t, "", "~/state")
	return proposal
}

func (s *venue) reviewShapes(t *testing.T, coder, p string) {
	a := s.post(t, coder, "~/proposals/"+p+"/request-review", args{}, 200)
	a.wants(t, "position", "proposal")
	a = s.post(t, "", "~/proposals/"+p+"/votes", args{"vote": "approve", "reason_md": "Read.", "confidence": 1}, 201)
	a.wants(t, "position", "vote")
	for _, verdict := range []string{"defer", "request-changes", "reject", "approve"} {
		a = s.post(t, coder, "~/approvals", args{"subject": "May it?", "reason_md": "High risk.", "proposal_id": p}, 201)
		a.wants(t, "approval", "position")
		h := a.at("approval", "approval_id")
		if a = s.post(t, "", "~/approvals/"+h+"/"+verdict, args{"reason_md": "So be it."}, 200); a.at("approval", "status") == "requested" {
			t.Errorf("%s: %s", verdict, a)
		}
		s.get(t, "", "~/approvals/"+h).wants(t, "approval", "position")
	}
	a = s.get(t, "", "~/proposals/"+p+"/gates")
	if list(a.body, "gates") == nil || a.body["appliable"] == nil {
		t.Errorf("gates: %s", a)
	}
	s.get(t, "", "~/proposals/"+p).wants(t, "appliable", "gates", "position", "proposal")
}

func (s *venue) transactionShapes(t *testing.T, coder, p string) {
	run := s.post(t, coder, "~/test-runs", args{"command": "git hash-object b.txt", "proposal_id": p}, 202)
	run.wants(t, "position", "test_run")
	eventually(t, func() bool {
		a := s.get(t, "", "~/test-runs/"+run.at("test_run", "test_run_id"))
		a.wants(t, "log", "position", "test_run")
		b := s.get(t, "", "~/proposals/"+p+"/gates")
		return a.at("test_run", "ended_at") != "" && b.body["appliable"] == true
	})
	a := s.post(t, "", "~/transactions", args{"proposal_id": p}, 201)
	a.wants(t, "position", "transaction")
	tx := "~/transactions/" + a.at("transaction", "transaction_id")
	s.post(t, "", tx+"/stage", args{}, 200).wants(t, "position", "transaction")
	a = s.post(t, "", tx+"/apply", args{}, 200)
	a.wants(t, "position", "transaction")
	if a.at("transaction", "applied") != "yes" || len(list(a.body["transaction"].(map[string]any), "phases")) != 6 {
		t.Errorf("apply: %s", a)
	}
	s.get(t, "", tx).wants(t, "position", "transaction")
	s.get(t, "", tx+"/phases").wants(t, "next_cursor", "phases", "position")
	if a = s.get(t, "", tx+"/recovery"); a.at("repository_state") != "after" && a.at("recovery", "repository_state") != "after" {
		t.Errorf("recovery: %s", a)
	}
	s.get(t, "", tx+"/rollback").wants(t, "position", "rollback")
	a = s.post(t, "", tx+"/compensate", args{}, 201)
	a.wants(t, "position", "proposal", "transaction")
	s.post(t, "", "~/proposals/"+a.at("proposal", "proposal_id")+"/withdraw", args{}, 200).wants(t, "position", "proposal")
}

// otherEnds sees what the way of the one proposal has not.
func (s *venue) otherEnds(t *testing.T, coder string) {
	diffB := strings.NewReplacer("a.txt", "b.txt", "one", "uno", "-two", "-dos", "three", "tres").Replace(diffA)
	p := s.post(t, coder, "~/proposals", args{"title": "b", "summary_md": "b", "patch": diffB, "risk": "low"}, 201).at("proposal", "proposal_id")
	s.post(t, coder, "~/claims", args{"resource_id": "file:b.txt", "claim_type": "write"}, 201)
	run := s.post(t, coder, "~/test-runs", args{"command": "git cat-file --batch", "proposal_id": p, "timeout_seconds": 60}, 202)
	s.send(t, request{path: "~/test-runs/" + run.at("test_run", "test_run_id") + "/cancel", token: coder, body: args{}})
	s.post(t, "", "~/proposals/"+p+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	eventually(t, func() bool {
		return s.get(t, "", "~/test-runs/"+run.at("test_run", "test_run_id")).at("test_run", "ended_at") != ""
	})
	a := s.post(t, s.join(t, "lead", "agent", "orchestrator"), "~/proposals/"+p+"/apply", args{"wait_seconds": 60}, 200)
	a.wants(t, "position", "transaction")
	if a.at("transaction", "applied") != "yes" {
		t.Errorf("apply: %s", a)
	}
	p = s.post(t, coder, "~/proposals", args{"title": "c", "summary_md": "c", "patch": strings.ReplaceAll(diffA, "a.txt", "dir/c.txt")}, 201).at("proposal", "proposal_id")
	s.post(t, "", "~/proposals/"+p+"/reject", args{"reason_md": "No."}, 200).wants(t, "position", "proposal")
	s.get(t, "", "~/proposals/"+p+"/votes").wants(t, "counts", "next_cursor", "position", "votes")
	for path, name := range map[string]string{"tasks": "tasks", "claims": "claims", "proposals": "proposals", "approvals": "approvals",
		"transactions": "transactions", "test-runs": "test_runs", "events": "events"} {
		s.pages(t, path, name)
	}
}

// pages reads a list one by one, by its cursor, and compares it with the
// whole.
func (s *venue) pages(t *testing.T, path, name string) {
	t.Helper()
	all := s.get(t, "", "~/"+path+"?limit=200")
	all.wants(t, name, "next_cursor", "position")
	if all.body["next_cursor"] != nil || len(list(all.body, name)) == 0 {
		t.Errorf("%s: all of them: %s", path, all)
	}
	one, cursor := []map[string]any{}, "cursor"
	if path == "events" {
		cursor = "after"
	}
	for next := ""; ; {
		q := query("limit", "1")
		if next != "" {
			q = query("limit", "1", cursor, next)
		}
		a := s.get(t, "", "~/"+path+"?"+q)
		one = append(one, list(a.body, name)...)
		var more bool
		if next, more = a.body["next_cursor"].(string); !more {
			break
		}
	}
	if asJSON(t, one) != asJSON(t, list(all.body, name)) {
		t.Errorf("%s: one by one is another list", path)
	}
}

func (s *venue) verifyShapes(t *testing.T) {
	a := s.get(t, "", "/events/verify")
	if a.body["ok"] != true || a.at("events") != s.head(t) || len(a.at("root_hash")) != 64 {
		t.Errorf("verify: %s", a)
	}
	for _, path := range []string{"/api/v1/openapi.json", "/healthz", "/readyz", "/metrics"} {
		res, err := http.Get(s.at + path)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 {
			t.Errorf("%s: %s", path, res.Status)
		}
	}
}

// TestReadAfterWrite: what was written is read by whoever waits for its
// position, at once.
func TestReadAfterWrite(t *testing.T) {
	t.Parallel()
	s := served(t)
	last := 0
	for i := range 200 {
		a := s.post(t, "", "~/tasks", args{"title": strconv.Itoa(i), "body_md": ""}, 201)
		at, err := strconv.Atoi(a.at("position"))
		if err != nil || at <= last {
			t.Fatalf("position %d after %d: %v", at, last, err)
		}
		last = at
		b := s.get(t, "", "~/tasks?limit=1&after="+a.at("position"))
		if newest := list(b.body, "tasks"); len(newest) != 1 || text(newest[0], "task_id") != a.at("task", "task_id") {
			t.Fatalf("write %d is not read: %s", i, b)
		}
		if at, err = strconv.Atoi(b.at("position")); err != nil || at < last {
			t.Fatalf("read at %d after %d: %v", at, last, err)
		}
	}
}
