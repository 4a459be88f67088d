package projections

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"roundtable/events"
	"roundtable/internal/wire"
)

// TestOps: each op is complete, and every list is bounded and takes the same
// words for paging.
func TestOps(t *testing.T) {
	v, _ := newViews(t)
	tools := []string{}
	for _, o := range NewReader(v, nil, Limits{}).Ops() {
		if o.Doc == "" || !strings.HasSuffix(o.Doc, ".") || o.In == nil || o.Out == nil || o.Writes() {
			t.Errorf("%s is not complete", o.Name)
		}
		if o.InWorkspace() != o.May.Any {
			t.Errorf("%s: a read inside a workspace is for every role there", o.Name)
		}
		for _, p := range o.Params() {
			if p != "workspace_id" && o.In.Properties[p] == nil {
				t.Errorf("%s takes no %s", o.Name, p)
			}
		}
		if o.Out.Properties["next_cursor"] != nil {
			for _, f := range []string{"limit", "cursor", "order", "created_after", "created_before"} {
				if o.In.Properties[f] == nil {
					t.Errorf("%s takes no %s", o.Name, f)
				}
			}
		}
		if o.Tool {
			tools = append(tools, o.Name)
		}
	}
	slices.Sort(tools)
	want := []string{"human.approval_status", "proposal.list", "resource.claim_status", "table.get_state", "task.get", "task.list", "transaction.get", "transaction.list", "vote.list"}
	if d := cmp.Diff(want, tools); d != "" {
		t.Error(d)
	}
}

// TestFilters asks every list for parts of the scene.
func TestFilters(t *testing.T) {
	s := newScene(t)
	s.vote("V-1", "P-1", "eve", "revise", 1)
	s.add(events.ApprovalRequested{Approval: "H-1", Workspace: "WS-1", Proposal: "P-1", Subject: "s", Reason: "r", Revision: 1, By: "bot"},
		events.ApprovalRequested{Approval: "H-2", Workspace: "WS-2", Subject: "s", Reason: "r", By: "eve"})
	s.add(events.TransactionOpened{Transaction: "TX-1", Workspace: "WS-1", Proposal: "P-2", Revision: 1, By: "ann"})
	s.add(events.TransactionPhaseCompleted{Transaction: "TX-1", Attempt: 1, Phase: "stage", Actor: "ann", Status: "completed"},
		events.TransactionPhaseCompleted{Transaction: "TX-1", Attempt: 1, Phase: "apply", Actor: events.System, Status: "failed"})
	s.add(events.TestRunRequested{TestRun: "TR-1", Workspace: "WS-1", Proposal: "P-1", Task: "T-1", Command: "go test", By: "bot"})
	s.add(events.ValidationStarted{Validation: "VA-1", Workspace: "WS-1", Proposal: "P-1", Stages: []string{"tests"}, By: "ann"},
		events.ValidationFinished{Validation: "VA-1", Status: "passed"},
		events.ValidationStarted{Validation: "VA-2", Workspace: "WS-1", Proposal: "P-1", By: "eve"})
	s.add(events.ProposalRejected{Proposal: "P-2", By: "ann"})
	s.upToDate()
	for _, c := range []struct {
		op, ws, list, field string
		in                  obj
		want                string
	}{
		{"workspace.list", "", "workspaces", "workspace_id", obj{}, "WS-2 WS-1"},
		{"workspace.list", "", "workspaces", "workspace_id", obj{"kind": "folder"}, ""},
		{"principal.list", "", "principals", "principal_id", obj{"kind": "agent", "order": "oldest"}, "bot bot2 eves"},
		{"principal.list", "", "principals", "principal_id", obj{"owner": "eve"}, "eves eve"},
		{"principal.list", "", "principals", "principal_id", obj{"in_workspace": "WS-2"}, "eve ann"},
		{"principal.list", "", "principals", "principal_id", obj{"role": "reviewer", "in_workspace": "WS-1"}, "eves bot2"},
		{"token.list", "", "tokens", "token_id", obj{"state": "active"}, "TK-1"},
		{"token.list", "", "tokens", "token_id", obj{"state": "expired"}, "TK-2"},
		{"token.list", "", "tokens", "token_id", obj{"state": "revoked", "principal_id": "bot"}, "TK-3"},
		{"task.list", "WS-1", "tasks", "task_id", obj{}, "T-1"},
		{"task.list", "WS-1", "tasks", "task_id", obj{"assignee": "ann"}, ""},
		{"task.list", "WS-2", "tasks", "task_id", obj{"risk": "high", "status": "open"}, "T-2"},
		{"resource.claim_status", "WS-1", "claims", "claim_id", obj{}, "C-3 C-2 C-1"},
		{"resource.claim_status", "WS-1", "claims", "claim_id", obj{"state": "active"}, "C-1"},
		{"resource.claim_status", "WS-1", "claims", "claim_id", obj{"state": "expired"}, "C-2"},
		{"resource.claim_status", "WS-1", "claims", "claim_id", obj{"state": "released", "holder": "bot2"}, "C-3"},
		{"resource.claim_status", "WS-1", "claims", "claim_id", obj{"resource_id": "symbol:a/b.go#F"}, "C-3 C-2 C-1"},
		{"resource.claim_status", "WS-1", "claims", "claim_id", obj{"resource_id": "file:c.go"}, "C-3"},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{}, "P-2 P-1"},
		{"proposal.list", "WS-2", "proposals", "proposal_id", obj{}, ""},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"status": "in_review", "author": "bot", "task_id": "T-1", "risk": "normal"}, "P-1"},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"text": "PARSE é"}, "P-1"},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"text": "%"}, ""},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"path": "a"}, "P-1"},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"path": "a/b.go"}, "P-1"},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"path": "was/c.go"}, "P-2"},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"path": "a/b"}, ""},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"created_after": "2026-03-01T12:00:00Z", "created_before": "2026-03-01T12:00:01+00:00"}, ""},
		{"proposal.list", "WS-1", "proposals", "proposal_id", obj{"created_after": "0001-01-01T00:00:00Z", "created_before": "9999-01-01T00:00:00Z"}, "P-2 P-1"},
		{"vote.list", "WS-1", "votes", "vote_id", obj{"proposal_id": "P-1", "voter": "eve", "vote": "revise"}, "V-1"},
		{"approval.list", "WS-1", "approvals", "approval_id", obj{"status": "requested", "proposal_id": "P-1", "requested_by": "bot"}, "H-1"},
		{"approval.list", "WS-2", "approvals", "approval_id", obj{}, "H-2"},
		{"transaction.list", "WS-1", "transactions", "transaction_id", obj{"state": "pending", "proposal_id": "P-2", "opened_by": "ann"}, "TX-1"},
		{"transaction.list", "WS-1", "transactions", "transaction_id", obj{"compensates_transaction_id": "TX-1"}, ""},
		{"transaction.phases", "WS-1", "phases", "phase", obj{"transaction_id": "TX-1"}, "stage apply"},
		{"transaction.phases", "WS-1", "phases", "phase", obj{"transaction_id": "TX-1", "order": "newest", "actor": "ann"}, "stage"},
		{"test_run.list", "WS-1", "test_runs", "test_run_id", obj{"state": "queued", "proposal_id": "P-1", "task_id": "T-1", "requested_by": "bot"}, "TR-1"},
		{"validation.list", "WS-1", "validations", "validation_id", obj{"proposal_id": "P-1"}, "VA-2 VA-1"},
		{"validation.list", "WS-1", "validations", "validation_id", obj{"proposal_id": "P-1", "status": "running", "requested_by": "eve"}, "VA-2"},
		{"validation.list", "WS-1", "validations", "validation_id", obj{"proposal_id": "P-2"}, ""},
	} {
		m := s.ask(c.op, "ann", c.ws, c.in)
		if got := strings.Join(values(t, m[c.list], c.field), " "); got != c.want {
			t.Errorf("%s %v: %q, want %q", c.op, c.in, got, c.want)
		}
		if string(m["next_cursor"]) != "null" || string(m["position"]) != fmt.Sprint(len(s.log.records)) {
			t.Errorf("%s: cursor %s, position %s", c.op, m["next_cursor"], m["position"])
		}
	}
	if b, _ := json.Marshal(s.ask("token.list", "ann", "", obj{})); strings.Contains(string(b), "secret-hash") {
		t.Error("a hash is shown")
	}
}

// TestRefused: what can never be right is refused, with a code.
func TestRefused(t *testing.T) {
	s := newScene(t)
	s.add(events.TransactionOpened{Transaction: "TX-1", Workspace: "WS-1", Proposal: "P-2", Revision: 1, By: "ann"},
		events.ApprovalRequested{Approval: "H-1", Workspace: "WS-1", Subject: "s"})
	s.upToDate()
	for _, c := range []struct {
		op, who, ws string
		in          obj
		code        string
	}{
		{"proposal.list", "ann", "WS-1", obj{"limit": 201}, "invalid_field"},
		{"proposal.list", "ann", "WS-1", obj{"limit": -1}, "invalid_field"},
		{"proposal.list", "ann", "WS-1", obj{"order": "random"}, "invalid_field"},
		{"proposal.list", "ann", "WS-1", obj{"status": "open"}, "invalid_field"},
		{"proposal.list", "ann", "WS-1", obj{"created_after": "yesterday"}, "invalid_field"},
		{"proposal.list", "ann", "WS-1", obj{"state": "pending"}, "unknown_field"},
		{"proposal.list", "ann", "WS-1", obj{"cursor": "AAAA"}, "invalid_cursor"},
		{"proposal.list", "ann", "WS-1", obj{"cursor": "AAAAAAAAAAAAAAAAAAAAAA"}, "invalid_cursor"},
		{"proposal.list", "ann", "WS-1", obj{"cursor": "\x00' OR 1"}, "invalid_cursor"},
		{"resource.claim_status", "ann", "WS-1", obj{"resource_id": "a/b.go"}, "invalid_resource"},
		{"resource.claim_status", "ann", "WS-1", obj{"resource_id": "file:"}, "invalid_resource"},
		{"resource.claim_status", "ann", "WS-1", obj{"resource_id": "file:../x"}, "invalid_resource"},
		{"resource.claim_status", "ann", "WS-1", obj{"resource_id": "symbol:a.go"}, "invalid_resource"},
		{"resource.claim_status", "ann", "WS-1", obj{"resource_id": "file:" + strings.Repeat("a/", 9000)}, "invalid_resource"},
		{"task.get", "ann", "WS-1", obj{"task_id": "T-2"}, "task_not_found"},
		{"task.get", "ann", "WS-2", obj{"task_id": "T-1"}, "task_not_found"},
		{"claim.get", "ann", "WS-2", obj{"claim_id": "C-1"}, "claim_not_found"},
		{"vote.list", "ann", "WS-2", obj{"proposal_id": "P-1"}, "proposal_not_found"},
		{"human.approval_status", "ann", "WS-2", obj{"approval_id": "H-1"}, "approval_not_found"},
		{"transaction.get", "ann", "WS-2", obj{"transaction_id": "TX-1"}, "transaction_not_found"},
		{"transaction.phases", "ann", "WS-2", obj{"transaction_id": "TX-1"}, "transaction_not_found"},
		{"workspace.get", "ann", "WS-3", obj{}, "workspace_not_found"},
		{"workspace.get", "bot", "WS-2", obj{}, "workspace_not_found"},
		{"task.list", "bot", "WS-2", obj{}, "workspace_not_found"},
		{"task.list", "ann", "WS-3", obj{}, "workspace_not_found"},
		{"table.get_state", "ann", "WS-3", obj{}, "workspace_not_found"},
		{"task.get", "ann", "WS-1", obj{"task_id": strings.Repeat("é", 9000)}, "task_not_found"},
		{"principal.get", "bot", "", obj{"principal_id": "nobody"}, "principal_not_found"},
		{"principal.list", "bot", "", obj{"in_workspace": "WS-2"}, "workspace_not_found"},
		{"token.list", "bot", "", obj{}, "people_only"},
		{"token.list", "eve", "", obj{}, "forbidden"},
	} {
		if got := s.refused(c.op, c.who, c.ws, c.in); got != c.code {
			t.Errorf("%s %.60v: %s, want %s", c.op, c.in, got, c.code)
		}
	}
}

// TestSeen: callers see the workspaces they have a role in, and of others'
// roles only those there.
func TestSeen(t *testing.T) {
	s := newScene(t)
	s.upToDate()
	for caller, want := range map[string]string{"ann": "WS-2 WS-1", "bot": "WS-1", "eve": "WS-2 WS-1", "nobody": ""} {
		if got := strings.Join(values(t, s.ask("workspace.list", caller, "", obj{})["workspaces"], "workspace_id"), " "); got != want {
			t.Errorf("%s sees %q, want %q", caller, got, want)
		}
	}
	v, _, err := s.r.Show(t.Context(), "token", "", "TK-3", 0)
	if token, ok := v.(wire.Token); err != nil || !ok || token.RevokedAt == nil {
		t.Error(v, err)
	}
	for caller, want := range map[string]string{"ann": "reviewer viewer", "bot": "viewer", "eve": "reviewer viewer", "nobody": ""} {
		var p struct{ Roles json.RawMessage }
		if err := json.Unmarshal(s.ask("principal.get", caller, "", obj{"principal_id": "eve"})["principal"], &p); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(values(t, p.Roles, "role"), " "); got != want {
			t.Errorf("%s sees eve as %q, want %q", caller, got, want)
		}
	}
	if got := values(t, s.ask("principal.list", "bot", "", obj{"role": "reviewer"})["principals"], "principal_id"); slices.Contains(got, "eve") {
		t.Errorf("bot learns of a role in a workspace it cannot see: %v", got)
	}
}
