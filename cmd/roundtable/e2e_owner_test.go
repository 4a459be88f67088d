package main

import (
	"path/filepath"
	"testing"
)

// TestOthersAndOwn: a right to attach, withdraw or release is one to do it to
// what is one's own, also for an orchestrator, who owns what takes back, and
// for an operator, who owns nothing of the rest.
func TestOthersAndOwn(t *testing.T) {
	t.Parallel()
	s := served(t)
	coder := s.join(t, "coder", "agent", "implementer")
	lead, boss, reader := s.join(t, "lead", "agent", "orchestrator"), s.join(t, "boss", "human", "operator"), s.join(t, "reader", "agent", "viewer")

	s.post(t, coder, "~/claims", args{"resource_id": "file:a.txt", "claim_type": "write"}, 201)
	p := s.post(t, coder, "~/proposals", args{"title": "t", "summary_md": "s", "patch": diffA}, 201).at("proposal", "proposal_id")
	s.post(t, "", "~/proposals/"+p+"/votes", args{"vote": "approve", "reason_md": "Read."}, 201)
	a := s.post(t, lead, "~/proposals/"+p+"/apply", args{"wait_seconds": 60}, 200)
	a.state(t, "applied", "yes")
	tx := a.at("transaction", "transaction_id")

	claim := s.post(t, coder, "~/claims", args{"resource_id": "file:theirs.txt", "claim_type": "write"}, 201).at("claim", "claim_id")
	theirs := s.post(t, coder, "~/proposals", args{"title": "t", "summary_md": "s", "patch": makesFile("theirs.txt")}, 201).at("proposal", "proposal_id")
	attach := args{"patch": makesFile("theirs.txt"), "expected_revision": 1}
	for _, who := range []struct{ name, token, attach, withdraw, release string }{
		{"an orchestrator", lead, "not_author", "not_author", "not_holder"},
		{"an operator", boss, "not_author", "not_author", "not_holder"},
		{"the admin", "", "not_author", "not_author", "not_holder"},
		{"a viewer", reader, "forbidden", "forbidden", "forbidden"},
	} {
		before := s.head(t)
		s.refused(t, request{token: who.token, path: "~/proposals/" + theirs + "/revisions", body: attach}, 403, who.attach)
		s.refused(t, request{token: who.token, path: "~/proposals/" + theirs + "/withdraw", body: args{}}, 403, who.withdraw)
		s.refused(t, request{token: who.token, path: "~/claims/" + claim + "/release", body: args{}}, 403, who.release)
		if s.head(t) != before {
			t.Errorf("what %s was refused left events", who.name)
		}
	}
	s.post(t, lead, "~/proposals/"+theirs+"/request-review", args{}, 200)

	mine := s.post(t, lead, "~/transactions/"+tx+"/compensate", args{}, 201).at("proposal", "proposal_id")
	writeFile(t, filepath.Join(s.root, "a.txt"), "one\nzwei\nthree\nfour\n")
	if a = s.post(t, lead, "~/proposals/"+mine+"/revisions", args{"rebase": true, "expected_revision": 1}, 201); a.at("proposal", "revision") != "2" {
		t.Errorf("attached by the orchestrator: %s", a)
	}
	s.refused(t, request{token: coder, path: "~/proposals/" + mine + "/withdraw", body: args{}}, 403, "not_author")
	for _, c := range list(s.get(t, lead, "~/claims?state=active").body, "claims") {
		if text(c, "resource_id") == "file:a.txt" {
			s.refused(t, request{token: coder, path: "~/claims/" + text(c, "claim_id") + "/release", body: args{}}, 403, "not_holder")
			s.post(t, lead, "~/claims/"+text(c, "claim_id")+"/release", args{}, 200)
			claim = ""
		}
	}
	if claim != "" {
		t.Error("the orchestrator holds no claim on what it takes back")
	}
	if a = s.post(t, lead, "~/proposals/"+mine+"/withdraw", args{"reason_md": "It may stay."}, 200); a.at("proposal", "status") != "withdrawn" {
		t.Errorf("withdrawn by the orchestrator: %s", a)
	}
}
