package domain

import (
	"slices"
	"strings"
	"testing"

	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/policy"
)

func proposed(es ...events.Payload) Proposal {
	p := Proposal{}.Evolve(events.ProposalCreated{Proposal: "P", Workspace: "w", Author: "ann", Title: "t", Risk: "normal", ExpectedTests: []string{"go test"}})
	p = p.Evolve(events.ProposalRevisionAttached{Proposal: "P", Number: 1, PatchDigest: "d1", AttachedBy: "ann", Resources: []string{"file:a"},
		Base: events.Base{Paths: []events.PathState{{Path: "a"}}}})
	for _, e := range es {
		p = p.Evolve(e)
	}
	return p
}

// people: ann and her agent bot; bob and his agent rob; eve may only read.
var people = Directory{Principals: map[string]auth.Principal{
	"ann": {ID: "ann", Name: "ann", Kind: auth.Human, Owner: "ann", Grants: []auth.Grant{{Workspace: "w", Role: auth.Admin}}},
	"bot": {ID: "bot", Name: "bot", Kind: auth.Agent, Owner: "ann", Grants: []auth.Grant{{Workspace: "w", Role: auth.Reviewer}}},
	"bob": {ID: "bob", Name: "bob", Kind: auth.Human, Owner: "bob", Grants: []auth.Grant{{Workspace: "w", Role: auth.Operator}}},
	"rob": {ID: "rob", Name: "rob", Kind: auth.Agent, Owner: "bob", Grants: []auth.Grant{{Workspace: "*", Role: auth.Reviewer}}},
	"eve": {ID: "eve", Name: "eve", Kind: auth.Human, Owner: "eve", Grants: []auth.Grant{{Workspace: "w", Role: auth.Viewer}}},
	"out": {ID: "out", Name: "out", Kind: auth.Human, Owner: "out", Grants: []auth.Grant{{Workspace: "other", Role: auth.Admin}}},
}}

func TestTransitions(t *testing.T) {
	states := map[string]Proposal{
		Pending:           proposed(),
		InReview:          proposed(events.ProposalReviewRequested{}),
		RevisionRequested: proposed(events.ProposalReviewRequested{}, events.ProposalRevisionRequested{}),
		Accepted:          proposed(events.ProposalAccepted{}),
		Rejected:          proposed(events.ProposalRejected{}),
		Withdrawn:         proposed(events.ProposalWithdrawn{}),
		"busy":            proposed(events.ProposalTransactionOpened{Transaction: "TX"}),
	}
	applying := Transaction{ID: "TX", State: TxApplying}
	ops := map[string]func(Proposal) ([]events.Payload, error){
		"request": func(p Proposal) ([]events.Payload, error) { return p.RequestReview("ann") },
		"attach": func(p Proposal) ([]events.Payload, error) {
			return p.Attach(events.ProposalRevisionAttached{AttachedBy: "ann"}, 1, applying)
		},
		"reject":   func(p Proposal) ([]events.Payload, error) { return p.Reject("bob", "no", "D", Claims{}, applying) },
		"withdraw": func(p Proposal) ([]events.Payload, error) { return p.Withdraw("ann", "", Claims{}, applying) },
		"vote": func(p Proposal) ([]events.Payload, error) {
			return p.Vote(events.VoteCast{Choice: "approve", Reason: "fine"}, people.Principals["rob"], people, applying)
		},
		"open": func(p Proposal) ([]events.Payload, error) { return p.Open("TX", Asker{ID: "bob", Now: noon}, Tree{}) },
	}
	allowed := map[string]string{
		Pending: "request attach reject withdraw vote open", InReview: "request attach reject withdraw vote open",
		RevisionRequested: "attach reject withdraw vote open", Accepted: "", Rejected: "", Withdrawn: "withdraw", "busy": "request",
	}
	for state, p := range states {
		for name, op := range ops {
			_, err := op(p)
			want := slices.Contains(strings.Fields(allowed[state]), name)
			if (err == nil) != want || err != nil && fault.KindOf(err) != fault.Conflict {
				t.Errorf("%s of %s: %v", name, state, err)
			}
		}
	}
}

func TestAttachNeedsTheNewest(t *testing.T) {
	for _, x := range []struct {
		by       string
		expected int
		code     string
	}{{"ann", 1, ""}, {"ann", 0, "stale_revision"}, {"ann", 2, "stale_revision"}, {"bob", 1, "not_author"}} {
		_, err := proposed().Attach(events.ProposalRevisionAttached{AttachedBy: x.by}, x.expected, Transaction{})
		if x.code == "" && err != nil || x.code != "" && fault.CodeOf(err) != x.code {
			t.Errorf("%+v: %v", x, err)
		}
	}
}

func vote(who, choice string, revision int) events.VoteCast {
	return events.VoteCast{Voter: who, Choice: choice, Revision: revision}
}

func TestVotesGate(t *testing.T) {
	second := events.ProposalRevisionAttached{Number: 2, AttachedBy: "ann"}
	for name, x := range map[string]struct {
		happened []events.Payload
		want     string
	}{
		"nobody":                          {nil, "waiting"},
		"an agent of another owner":       {[]events.Payload{vote("rob", "approve", 1)}, "passed"},
		"a person":                        {[]events.Payload{vote("bob", "approve_with_notes", 1)}, "passed"},
		"the author":                      {[]events.Payload{vote("ann", "approve", 1)}, "waiting"},
		"the author's agent":              {[]events.Payload{vote("bot", "approve", 1)}, "waiting"},
		"a viewer":                        {[]events.Payload{vote("eve", "approve", 1)}, "waiting"},
		"an admin of elsewhere":           {[]events.Payload{vote("out", "approve", 1)}, "waiting"},
		"nobody known":                    {[]events.Payload{vote("zoe", "approve", 1)}, "waiting"},
		"abstention":                      {[]events.Payload{vote("rob", "abstain", 1)}, "waiting"},
		"approval, and a revise":          {[]events.Payload{vote("rob", "approve", 1), vote("bob", "revise", 1)}, "failed"},
		"a changed mind":                  {[]events.Payload{vote("bob", "reject", 1), vote("bob", "approve", 1)}, "passed"},
		"a stale approval":                {[]events.Payload{vote("rob", "approve", 1), second}, "waiting"},
		"an objection does not wash off":  {[]events.Payload{vote("rob", "veto", 1), second, vote("bob", "approve", 2)}, "failed"},
		"a veto taken back":               {[]events.Payload{vote("rob", "veto", 1), second, vote("rob", "approve", 2)}, "passed"},
		"an ineligible veto":              {[]events.Payload{vote("eve", "veto", 1), vote("bob", "approve", 1)}, "passed"},
		"a co-author who approves":        {[]events.Payload{events.ProposalRevisionAttached{Number: 2, AttachedBy: "bob"}, vote("bob", "approve", 2)}, "waiting"},
		"an approval, then an abstention": {[]events.Payload{vote("rob", "approve", 1), vote("rob", "abstain", 1)}, "waiting"},
	} {
		g := votesGate(Facts{Proposal: proposed(x.happened...), Directory: people, Policy: policy.Default(), Now: noon})
		if g.Status != x.want {
			t.Errorf("%s: %s, want %s: %v", name, g.Status, x.want, g.Because)
		}
		if g.Status != "passed" && (len(g.Needs) == 0 || len(g.Next) == 0) {
			t.Errorf("%s: nothing says what to do", name)
		}
	}
}

func TestApprovalGate(t *testing.T) {
	asked := events.ApprovalRequested{Approval: "H", Proposal: "P", Revision: 1}
	says := func(who, verdict string, revision int) events.Payload {
		return events.ApprovalDecided{Approval: "H", Proposal: "P", By: who, Verdict: verdict, Revision: revision}
	}
	for name, x := range map[string]struct {
		risk     string
		happened []events.Payload
		want     string
	}{
		"normal risk":               {"normal", nil, "not_applicable"},
		"high risk":                 {"high", nil, "waiting"},
		"asked":                     {"critical", []events.Payload{asked}, "waiting"},
		"approved":                  {"high", []events.Payload{asked, says("bob", "approved", 1)}, "passed"},
		"approved, then rejected":   {"high", []events.Payload{asked, says("bob", "approved", 1), says("bob", "rejected", 1)}, "failed"},
		"one approves, one rejects": {"high", []events.Payload{asked, says("bob", "approved", 1), says("eve", "rejected", 1)}, "failed"},
		"an agent's word":           {"high", []events.Payload{asked, says("rob", "approved", 1)}, "waiting"},
		"a later no to an older request": {"high", []events.Payload{asked, events.ApprovalRequested{Approval: "H2", Proposal: "P", Revision: 1},
			events.ApprovalDecided{Approval: "H2", Proposal: "P", By: "bob", Verdict: "approved", Revision: 1}, says("bob", "rejected", 1)}, "failed"},
		"of an older revision":         {"high", []events.Payload{asked, says("bob", "approved", 1), events.ProposalRevisionAttached{Number: 2, AttachedBy: "ann"}}, "waiting"},
		"refused though nothing asked": {"low", []events.Payload{asked, says("bob", "rejected", 1)}, "failed"},
	} {
		p := proposed(x.happened...)
		p.Risk = x.risk
		g := approvalGate(Facts{Proposal: p, Directory: people, Policy: policy.Default(), Now: noon})
		if g.Status != x.want {
			t.Errorf("%s: %s, want %s: %v", name, g.Status, x.want, g.Because)
		}
	}
}

func TestTestsGate(t *testing.T) {
	ran := func(state, tree, level string, revision int) events.Payload {
		return events.ProposalTested{Proposal: "P", TestRun: "TR", Revision: revision, Command: "go test", Tree: tree, State: state, Isolation: level}
	}
	for name, x := range map[string]struct {
		happened []events.Payload
		want     string
	}{
		"no run":            {nil, "waiting"},
		"passed":            {[]events.Payload{ran("passed", "T", "namespace", 1)}, "passed"},
		"failed":            {[]events.Payload{ran("failed", "T", "namespace", 1)}, "failed"},
		"error":             {[]events.Payload{ran("error", "T", "namespace", 1)}, "waiting"},
		"interrupted":       {[]events.Payload{ran("interrupted", "T", "namespace", 1)}, "waiting"},
		"timed out":         {[]events.Payload{ran("timed_out", "T", "namespace", 1)}, "failed"},
		"another tree":      {[]events.Payload{ran("passed", "U", "namespace", 1)}, "waiting"},
		"another revision":  {[]events.Payload{ran("passed", "T", "namespace", 0)}, "waiting"},
		"flaky":             {[]events.Payload{ran("passed", "T", "namespace", 1), ran("failed", "T", "namespace", 1)}, "failed"},
		"late, then passed": {[]events.Payload{ran("timed_out", "T", "namespace", 1), ran("passed", "T", "namespace", 1)}, "passed"},
		"weak, then passed": {[]events.Payload{ran("passed", "T", "namespace", 1), ran("passed", "T", "none", 1)}, "passed"},
		"queued":            {[]events.Payload{events.ProposalTestRequested{TestRun: "TR2", Revision: 1, Command: "go test"}}, "waiting"},
		"no tree":           {[]events.Payload{ran("error", "", "", 1)}, "waiting"},
		"no isolation":      {[]events.Payload{ran("passed", "T", "none", 1)}, "failed"},
		"unknown level":     {[]events.Payload{ran("passed", "T", "", 1)}, "failed"},
		"least isolation":   {[]events.Payload{ran("passed", "T", "process", 1)}, "passed"},
	} {
		g := testsGate(Facts{Proposal: proposed(x.happened...), Policy: policy.Default(), Patch: PatchFacts{Tree: "T"}})
		if g.Status != x.want {
			t.Errorf("%s: %s, want %s: %v", name, g.Status, x.want, g.Because)
		}
	}
}

// TestEndReleases: what ends a proposal releases its claims, and none that is
// wider or another's.
func TestEndReleases(t *testing.T) {
	c := Claims{Live: map[string]Claim{
		"own":   {ID: "own", Resource: FileResource("a"), Type: "write", Holder: "ann", Fence: 1},
		"wider": {ID: "wider", Resource: Resource{Kind: "directory"}, Type: "write", Holder: "ann", Fence: 2},
		"bobs":  {ID: "bobs", Resource: FileResource("a"), Type: "read", Holder: "bob", Fence: 3},
	}}
	es, err := proposed().Withdraw("ann", "", c, Transaction{})
	if err != nil || len(es) != 2 {
		t.Fatal(es, err)
	}
	if r, ok := es[1].(events.ClaimReleased); !ok || r.Claim != "own" || r.Cause != "proposal_withdrawn" {
		t.Errorf("%+v", es[1])
	}
}

// TestFreed: a transaction that only waits does not hold its proposal fast; it
// fails, and says why.
func TestFreed(t *testing.T) {
	staged := Transaction{ID: "TX", State: TxStaged}
	p := proposed(events.ProposalTransactionOpened{Transaction: "TX"})
	for code, op := range map[string]func() ([]events.Payload, error){
		"stale_revision": func() ([]events.Payload, error) {
			return p.Attach(events.ProposalRevisionAttached{AttachedBy: "ann"}, 1, staged)
		},
		"proposal_rejected":  func() ([]events.Payload, error) { return p.Reject("bob", "no", "D", Claims{}, staged) },
		"proposal_withdrawn": func() ([]events.Payload, error) { return p.Withdraw("ann", "", Claims{}, staged) },
	} {
		es, err := op()
		if err != nil || len(es) < 3 {
			t.Errorf("%s: %v, %v", code, es, err)
			continue
		}
		if f, ok := es[0].(events.TransactionFailed); !ok || f.Code != code || f.Transaction != "TX" {
			t.Errorf("%s: first %+v", code, es[0])
		}
		q := p
		for _, e := range es[1:3] {
			q = q.Evolve(e)
		}
		if q.Busy {
			t.Errorf("%s: still busy", code)
		}
	}
}

func TestUntested(t *testing.T) {
	ran := func(state, tree string) events.Payload {
		return events.ProposalTested{TestRun: "TR", Revision: 1, Command: "go test", State: state, Tree: tree}
	}
	asked := events.ProposalTestRequested{TestRun: "TR", Revision: 1, Command: "go test"}
	for name, x := range map[string]struct {
		happened []events.Payload
		missing  bool
	}{
		"nothing": {nil, true}, "asked for": {[]events.Payload{asked}, false}, "passed": {[]events.Payload{asked, ran("passed", "T")}, false},
		"failed": {[]events.Payload{asked, ran("failed", "T")}, false}, "cancelled": {[]events.Payload{asked, ran("cancelled", "T")}, true},
		"interrupted": {[]events.Payload{asked, ran("interrupted", "T")}, true}, "on another tree": {[]events.Payload{asked, ran("passed", "U")}, true},
		"before a tree": {[]events.Payload{asked, ran("cancelled", "")}, true},
	} {
		if got := len(proposed(x.happened...).Untested("T")) > 0; got != x.missing {
			t.Errorf("%s: missing is %v", name, got)
		}
	}
}
