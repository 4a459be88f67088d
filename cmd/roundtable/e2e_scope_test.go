package main

import (
	"strings"
	"testing"

	"roundtable/internal/auth"
)

// TestNarrowedTokens: a token does what its principal may, and of that only
// what it is narrowed to.
func TestNarrowedTokens(t *testing.T) {
	t.Parallel()
	s := served(t)
	all, _ := ruled(t)
	other := s.post(t, "", "/workspaces", args{"root": repository(t), "name": "other"}, 201).at("workspace", "workspace_id")
	who, _ := s.joinAs(t, "grace", "human", "", auth.AllWorkspaces, "admin", "auditor", "security")
	narrowed := func(scope args) string { return s.token(t, args{"principal_id": who, "scope": scope}) }

	only := narrowed(args{"operations": []string{"vote.cast", "task.list"}})
	here := narrowed(args{"workspace_id": s.workspace})
	for _, r := range all {
		status, code := s.probe(t, r, s.workspace, only)
		if want := r.op == "vote.cast" || r.op == "task.list"; want != neither(status) || !want && code != "token_scope" {
			t.Errorf("narrowed to two operations, %s: %d %s", r.op, status, code)
		}
		inside := strings.Contains(r.path, "{workspace_id}")
		status, code = s.probe(t, r, s.workspace, here)
		if inside && !neither(status) {
			t.Errorf("narrowed to the workspace, %s: %d %s", r.op, status, code)
		}
		if status, code = s.probe(t, r, other, here); inside && (status != 403 || code != "token_scope") {
			t.Errorf("narrowed to another workspace, %s: %d %s", r.op, status, code)
		}
		if !inside && r.marks["viewer"] == "" && code != "token_scope" {
			t.Errorf("narrowed to a workspace, %s of the server: %d %s", r.op, status, code)
		}
	}
}

// TestTokensOfOneTask: a token for a task or a proposal writes nothing else.
func TestTokensOfOneTask(t *testing.T) {
	t.Parallel()
	s := served(t)
	who, _ := s.joinAs(t, "grace", "human", "", s.workspace, "operator")
	narrowed := func(scope args) string { return s.token(t, args{"principal_id": who, "scope": scope}) }
	mine := s.post(t, "", "~/tasks", args{"title": "mine", "body_md": ""}, 201).at("task", "task_id")
	task := narrowed(args{"task_id": mine})
	yours := s.post(t, "", "~/tasks", args{"title": "yours", "body_md": ""}, 201).at("task", "task_id")
	draft := func(task string) args {
		in := args{"title": "x", "summary_md": "y", "patch": diffA}
		if task != "" {
			in["task_id"] = task
		}
		return in
	}
	p := s.post(t, task, "~/proposals", draft(mine), 201).at("proposal", "proposal_id")
	q := s.post(t, "", "~/proposals", draft(yours), 201).at("proposal", "proposal_id")
	s.get(t, task, "~/tasks/"+mine)
	proposal := narrowed(args{"proposal_id": p})
	s.get(t, proposal, "~/proposals/"+p+"/gates")
	s.post(t, proposal, "~/proposals/"+p+"/withdraw", args{"reason_md": "enough"}, 200)
	for _, r := range []request{
		{token: task, path: "~/proposals", body: draft(yours)},
		{token: task, path: "~/proposals", body: draft("")},
		{token: task, path: "~/claims", body: args{"resource_id": "file:a.txt", "claim_type": "read"}},
		{token: task, path: "~/tasks/" + yours, method: "GET"},
		{token: task, path: "~/proposals/" + q, method: "GET"},
		{token: task, path: "~/proposals/" + q + "/votes", method: "GET"},
		{token: task, path: "~/proposals/" + q + "/votes", body: args{"vote": "approve", "reason_md": "x"}},
		{token: task, path: "~/test-runs", body: args{"command": "go test ./...", "task_id": mine, "proposal_id": q}},
		{token: task, path: "~/tasks", body: args{"title": "another", "body_md": ""}},
		{token: proposal, path: "~/proposals", body: draft(mine)},
		{token: proposal, path: "~/proposals/" + q + "/votes", body: args{"vote": "approve", "reason_md": "x"}},
		{token: proposal, path: "~/proposals/" + q + "/gates", method: "GET"},
		{token: proposal, path: "~/claims", body: args{"resource_id": "file:a.txt", "claim_type": "read"}},
	} {
		s.refused(t, r, 403, "token_scope")
	}
	c := connected(t, s.overHTTP(proposal))
	defer c.Close()
	c.refused(t, "vote_cast", args{"proposal_id": q, "vote": "approve", "reason_md": "x"}, "token_scope")
	c.do(t, "proposal_explain", args{"proposal_id": p})
}
