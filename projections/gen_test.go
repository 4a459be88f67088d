package projections

import (
	"fmt"
	"time"

	"github.com/oklog/ulid/v2"
	"pgregory.net/rapid"

	"roundtable/events"
)

// A world makes histories as the rules would let them happen, near enough:
// every event is about things that earlier events have told of.
type world struct {
	t     *rapid.T
	n     int // of ids made
	clock time.Time

	workspaces, principals, tokens, tasks, claims, runs []string
	proposals                                           []*genProposal
	approvals                                           []genApproval
	transactions                                        []genTransaction
	validations                                         []events.ValidationStarted
}

type genProposal struct {
	id, workspace string
	revision      int
}

type genApproval struct {
	id       string
	proposal *genProposal // nil of one about something else
}

type genTransaction struct {
	id       string
	proposal *genProposal
}

func newWorld(t *rapid.T) *world {
	return &world{t: t, clock: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
}

func (w *world) id(prefix string) string {
	w.n++
	return fmt.Sprintf("%s-%04d", prefix, w.n)
}

func pick[E any](w *world, of []E) E { return of[rapid.IntRange(0, len(of)-1).Draw(w.t, "which")] }

func (w *world) word(words ...string) string { return pick(w, words) }

func (w *world) text() string {
	return w.word("", "fix the parser", "Größe prüfen", "line\nbreak", `quote " and ' and \`, "\u2028 nul\x00", "x")
}

func (w *world) later() time.Time {
	w.clock = w.clock.Add(time.Duration(rapid.IntRange(-5, 900).Draw(w.t, "seconds")) * time.Second)
	return w.clock
}

// history makes at least n events.
func (w *world) history(n int) []events.Payload {
	all := []events.Payload{w.workspace(), w.principal(), w.principal(), w.task()}
	for len(all) < n {
		all = append(all, w.step()...)
	}
	return all
}

// step makes what one command might have done.
func (w *world) step() []events.Payload {
	makers := []func() []events.Payload{w.directory, w.claim, w.propose, w.test, w.askApproval}
	if len(w.proposals) > 0 {
		makers = append(makers, w.propose, w.review, w.review, w.review, w.open, w.validate)
	}
	if len(w.approvals) > 0 {
		makers = append(makers, w.decide)
	}
	if len(w.transactions) > 0 {
		makers = append(makers, w.transact, w.transact)
	}
	return pick(w, makers)()
}

func (w *world) workspace() events.Payload {
	id := w.id("WS")
	w.workspaces = append(w.workspaces, id)
	return events.WorkspaceAdded{Workspace: id, Name: w.text() + id, Root: "/srv/" + id, Kind: w.word("git", "folder")}
}

func (w *world) principal() events.Payload {
	id := w.id("PR")
	w.principals = append(w.principals, id)
	return events.PrincipalCreated{Principal: id, Name: id, Kind: w.word("human", "agent", "service"), Owner: pick(w, w.principals), Vendor: w.text(), Model: w.text()}
}

func (w *world) task() events.Payload {
	id := w.id("T")
	w.tasks = append(w.tasks, id)
	return events.TaskCreated{Task: id, Workspace: pick(w, w.workspaces), Title: w.text(), Body: w.text(), Priority: rapid.IntRange(-3, 3).Draw(w.t, "priority"), Risk: w.word(risks()...), Assignee: pick(w, w.principals)}
}

func (w *world) directory() []events.Payload {
	switch w.word("workspace", "principal", "task", "role", "token", "revoke") {
	case "workspace":
		return []events.Payload{w.workspace()}
	case "principal":
		return []events.Payload{w.principal()}
	case "task":
		return []events.Payload{w.task()}
	case "role":
		return []events.Payload{events.RoleGranted{Principal: pick(w, w.principals), Workspace: pick(w, append(w.workspaces[:len(w.workspaces):len(w.workspaces)], "*")), Role: w.word("admin", "reviewer", "viewer")}}
	case "revoke":
		if len(w.tokens) > 0 {
			return []events.Payload{events.TokenRevoked{Token: pick(w, w.tokens)}}
		}
	}
	id := w.id("TK")
	w.tokens = append(w.tokens, id)
	return []events.Payload{events.TokenIssued{Token: id, Principal: pick(w, w.principals), Hash: "h", ExpiresAt: w.later(), Scope: events.TokenScope{Workspace: pick(w, w.workspaces)}}}
}

func (w *world) claim() []events.Payload {
	ws := pick(w, w.workspaces)
	if len(w.claims) > 0 {
		switch id := pick(w, w.claims); w.word("release", "expire", "stale", "stale", "grant", "grant") {
		case "stale":
			foreign := events.WorkspaceForeignChange{Workspace: ws, FoundAt: w.word("claim", "doctor"), Transaction: w.word("", "TX-1"), Head: w.text()}
			for n := range w.n % 150 {
				foreign.Paths = append(foreign.Paths, events.ForeignPath{Path: fmt.Sprint(w.text(), n), Is: events.PathState{Kind: "absent"}, Held: &events.PathState{Kind: "file", SHA256: w.text()}})
			}
			return []events.Payload{foreign, events.ClaimBecameStale{Claim: id, Workspace: ws, Cause: w.word("foreign_change", "transaction"), Transaction: w.word("", "TX-1"),
				Paths: []events.PathState{{Path: w.word("a/b.go", "a/c.go", "d"), Kind: "file", SHA256: w.text()}}, More: w.n % 3}}
		case "release":
			return []events.Payload{events.ClaimReleased{Claim: id, Workspace: ws, Cause: "holder"}}
		case "expire":
			return []events.Payload{events.ClaimExpired{Claim: id, Workspace: ws, Cause: "ttl"}}
		}
	}
	id := w.id("C")
	w.claims = append(w.claims, id)
	return []events.Payload{events.ClaimGranted{Claim: id, Workspace: ws, Resource: w.word("file:a/b.go", "directory:a", "directory:"), Type: w.word("read", "write"),
		Holder: pick(w, w.principals), Task: pick(w, w.tasks), Rationale: w.text(), Fence: int64(w.n),
		Base: events.BaseHash{State: w.word("present", "absent"), Hash: w.text()}, GrantedAt: w.later(), ExpiresAt: w.later()}}
}

func (w *world) propose() []events.Payload {
	p := &genProposal{w.id("P"), pick(w, w.workspaces), 0}
	w.proposals = append(w.proposals, p)
	return []events.Payload{events.ProposalCreated{Proposal: p.id, Workspace: p.workspace, Task: pick(w, w.tasks), Author: pick(w, w.principals),
		Title: w.text(), Summary: w.text(), Risk: w.word(risks()...), ExpectedTests: w.words(), RollbackNotes: w.text()}, w.attach(p)}
}

func (w *world) words() []string {
	return rapid.SliceOfN(rapid.SampledFrom([]string{"go test ./...", "make check", "ü"}), 0, 3).Draw(w.t, "words")
}

func (w *world) attach(p *genProposal) events.Payload {
	p.revision++
	var files []events.PatchedFile
	for range rapid.IntRange(0, 3).Draw(w.t, "files") {
		files = append(files, events.PatchedFile{Op: w.word("create", "rename"), Path: w.word("a/b.go", "a", "c"), OldPath: w.word("", "old/x"), Binary: w.n%2 == 0, Added: w.n})
	}
	return events.ProposalRevisionAttached{Proposal: p.id, Number: p.revision, PatchDigest: fmt.Sprint(w.n), PatchBytes: int64(w.n),
		Base:  events.Base{Commit: w.text(), PathsDigest: w.text(), Paths: []events.PathState{{Path: "a", Kind: "file"}}},
		Files: files, Resources: w.words(), AttachedBy: pick(w, w.principals)}
}

func (w *world) review() []events.Payload {
	p, who := pick(w, w.proposals), pick(w, w.principals)
	switch w.word("attach", "ask", "revise", "reject", "withdraw", "tested", "decision", "vote", "vote", "vote") {
	case "attach":
		return []events.Payload{w.attach(p)}
	case "ask":
		return []events.Payload{events.ProposalReviewRequested{Proposal: p.id, Revision: p.revision, By: who}}
	case "revise":
		return []events.Payload{events.ProposalRevisionRequested{Proposal: p.id, Revision: p.revision, By: who, Cause: "vote"}}
	case "reject":
		return []events.Payload{events.ProposalRejected{Proposal: p.id, By: who, Reason: w.text()}}
	case "withdraw":
		return []events.Payload{events.ProposalWithdrawn{Proposal: p.id, By: who, Reason: w.text()}}
	case "tested":
		return []events.Payload{events.ProposalTested{Proposal: p.id, TestRun: w.id("TR"), Revision: p.revision, Command: "go test", Tree: w.word("", "tree1", "tree2"), State: "passed", Isolation: "namespace"}}
	case "decision":
		return []events.Payload{events.DecisionRecorded{Decision: w.id("D"), Workspace: p.workspace, Proposal: p.id, Word: "keep", Rationale: w.text(), By: who}}
	}
	v := events.VoteCast{Vote: w.id("V"), Proposal: p.id, Revision: rapid.IntRange(1, p.revision).Draw(w.t, "revision"), Voter: who, Choice: w.word(choices()...), Reason: w.text()}
	if rapid.Bool().Draw(w.t, "sure") {
		v.Confidence = new(rapid.Float64Range(0, 1).Draw(w.t, "confidence"))
	}
	return []events.Payload{v}
}

func (w *world) askApproval() []events.Payload {
	e := events.ApprovalRequested{Approval: w.id("H"), Workspace: pick(w, w.workspaces), Subject: w.text(), Reason: w.text(), By: pick(w, w.principals)}
	if len(w.proposals) == 0 || rapid.Bool().Draw(w.t, "about nothing") {
		w.approvals = append(w.approvals, genApproval{e.Approval, nil})
		return []events.Payload{e}
	}
	p := pick(w, w.proposals)
	w.approvals = append(w.approvals, genApproval{e.Approval, p})
	e.Workspace, e.Proposal, e.Revision = p.workspace, p.id, p.revision
	return []events.Payload{e, events.ApprovalFiled{Approval: e.Approval, Workspace: p.workspace, Proposal: p.id}}
}

func (w *world) decide() []events.Payload {
	a := pick(w, w.approvals)
	e := events.ApprovalDecided{Approval: a.id, Verdict: w.word("approved", "rejected", "changes_requested", "deferred"), Reason: w.text(), By: pick(w, w.principals)}
	if a.proposal != nil {
		e.Proposal, e.Revision = a.proposal.id, rapid.IntRange(1, a.proposal.revision).Draw(w.t, "revision")
	}
	return []events.Payload{e}
}

func (w *world) open() []events.Payload {
	p := pick(w, w.proposals)
	x := genTransaction{w.id("TX"), p}
	w.transactions = append(w.transactions, x)
	return []events.Payload{
		events.TransactionOpened{Transaction: x.id, Workspace: p.workspace, Proposal: p.id, Revision: p.revision, PatchDigest: w.text(), PathsDigest: w.text(), By: pick(w, w.principals),
			Before: []events.PathState{{Path: "a", Kind: "absent"}}},
		events.ProposalTransactionOpened{Proposal: p.id, Transaction: x.id, Revision: p.revision},
	}
}

func (w *world) transact() []events.Payload {
	x := pick(w, w.transactions)
	attempt, p := rapid.IntRange(1, 3).Draw(w.t, "attempt"), x.proposal
	switch w.word("queue", "wish", "retry", "cancel", "resolve", "stage", "apply", "phase", "applied", "failed", "recovered", "compensated", "restored", "proposed") {
	case "queue":
		return []events.Payload{events.WorkspaceTransactionQueued{Workspace: p.workspace, Transaction: x.id, Behind: pick(w, w.transactions).id}}
	case "wish":
		return []events.Payload{events.TransactionApplyQueued{Transaction: x.id, By: pick(w, w.principals), Reason: w.text()}}
	case "retry":
		return []events.Payload{events.TransactionRetried{Transaction: x.id, Proposal: p.id, Revision: p.revision, By: pick(w, w.principals), Reason: w.text()}}
	case "cancel":
		return []events.Payload{events.TransactionCancelled{Transaction: x.id, Proposal: p.id, By: pick(w, w.principals), Reason: w.text()}}
	case "resolve":
		return []events.Payload{events.TransactionResolved{Transaction: x.id, Attempt: attempt, Repository: w.word("before", "mixed", ""), Kept: []events.PathState{{Path: "a", Kind: "file", SHA256: "s"}}}}
	case "stage":
		return []events.Payload{events.TransactionStaged{Transaction: x.id, By: pick(w, w.principals)}}
	case "apply":
		return []events.Payload{events.TransactionApplyRequested{Transaction: x.id, Workspace: p.workspace, Proposal: p.id, Revision: p.revision, Attempt: attempt,
			PatchDigest: "d", PathsDigest: "e", PolicyDigest: "f", Gates: []events.GateResult{{Gate: "votes", Status: "passed", Because: w.words()}}, By: pick(w, w.principals), Votes: w.words()}}
	case "phase":
		return []events.Payload{events.TransactionPhaseCompleted{Transaction: x.id, Attempt: attempt, Phase: w.word("prepare", "apply"), Status: w.word("completed", "failed"), Actor: events.System,
			Inputs: map[string]any{"z": 1, "a": []string{w.text()}}, FailureCode: w.text(), StartedAt: w.later(), EndedAt: w.later()}}
	case "applied":
		return []events.Payload{events.TransactionApplied{Transaction: x.id, Proposal: p.id, Attempt: attempt, BeforePaths: "b", AfterPaths: "a", AfterTree: w.text(),
			Files: []events.ChangedPath{{Path: "a", Before: events.PathState{Kind: "absent"}, After: events.PathState{Kind: "file", SHA256: "s"}}}},
			events.ProposalAccepted{Proposal: p.id, Transaction: x.id, Revision: p.revision}}
	case "failed":
		return []events.Payload{events.TransactionFailed{Transaction: x.id, Proposal: p.id, Attempt: attempt, Code: w.word("conflict", "state.needs_attention"), Detail: w.text(), Paths: w.words()},
			events.ProposalTransactionFailed{Proposal: p.id, Transaction: x.id, Code: "conflict"}}
	case "restored":
		return []events.Payload{events.TransactionRestored{Transaction: x.id, By: pick(w, w.transactions).id}}
	case "recovered":
		return []events.Payload{events.TransactionRecovered{Transaction: x.id, Attempt: attempt, Found: w.word("rolled_back", "attention"), FoundAt: "start", Folder: w.text(),
			Stuck: []events.StuckPath{{Path: "a", Reason: w.text()}}, Kept: []events.PathState{{Path: "a", Kind: "file", SHA256: "s"}}, More: 1}}
	case "compensated":
		return []events.Payload{events.TransactionCompensated{Transaction: x.id, By: pick(w, w.transactions).id}}
	}
	return []events.Payload{events.TransactionCompensationProposed{Transaction: x.id, Proposal: p.id}}
}

func (w *world) test() []events.Payload {
	if len(w.runs) > 0 {
		switch id := pick(w, w.runs); w.word("start", "cancel", "finish", "request") {
		case "start":
			return []events.Payload{events.TestRunStarted{TestRun: id, Tree: w.text()}}
		case "cancel":
			return []events.Payload{events.TestRunCancelRequested{TestRun: id, By: pick(w, w.principals)}}
		case "finish":
			e := events.TestRunFinished{TestRun: id, State: w.word("passed", "failed", "interrupted"), Reason: w.text(), Tree: w.text(), DurationMS: int64(w.n), OutputBytes: int64(w.n), Summary: w.text()}
			if rapid.Bool().Draw(w.t, "exited") {
				e.ExitCode, e.StartedAt, e.EndedAt = new(w.n%3), new(w.later()), new(w.later())
			}
			return []events.Payload{e}
		}
	}
	id := w.id("TR")
	w.runs = append(w.runs, id)
	return []events.Payload{events.TestRunRequested{TestRun: id, Workspace: pick(w, w.workspaces), Task: pick(w, w.tasks), Command: "go test", Argv: w.words(), Timeout: 600, By: pick(w, w.principals)}}
}

func (w *world) validate() []events.Payload {
	if len(w.validations) > 0 && rapid.Bool().Draw(w.t, "go on") {
		v := pick(w, w.validations)
		switch w.word("tests", "stage", "stage", "finish") {
		case "tests":
			return []events.Payload{events.ValidationTestsRequested{Validation: v.Validation, TestRuns: w.words(), At: w.later()}}
		case "finish":
			return []events.Payload{events.ValidationFinished{Validation: v.Validation, Status: w.word("passed", "error"), FinishedAt: w.later()}}
		}
		e := events.ValidationStageFinished{Validation: v.Validation, Stage: pick(w, v.Stages), Status: w.word("passed", "skipped"), Detail: w.text(), Output: w.text(),
			Cut: w.n%2 == 0, TestRuns: w.words(), StartedAt: w.later(), FinishedAt: w.later(), DurationMS: int64(w.n)}
		if rapid.Bool().Draw(w.t, "exited") {
			e.ExitCode = new(w.n % 3)
		}
		return []events.Payload{e}
	}
	p := pick(w, w.proposals)
	e := events.ValidationStarted{Validation: w.id("VA"), Workspace: p.workspace, Proposal: p.id, Revision: p.revision, PatchDigest: w.text(), PathsDigest: w.text(),
		PolicyDigest: w.text(), Tree: w.text(), Stages: []string{"tests", "policy"}, By: pick(w, w.principals), StartedAt: w.later()}
	w.validations = append(w.validations, e)
	return []events.Payload{e}
}

// record makes a log row of a payload.
func record(position int64, at time.Time, p events.Payload) events.Record {
	name, schema, data, err := events.Encode(p)
	if err != nil {
		panic(err)
	}
	return events.Record{Position: position, ID: ulid.ULID{15: byte(position), 14: byte(position >> 8)}.String(), Stream: p.Stream(), Version: position,
		Type: name, Schema: schema, Time: at, Actor: "PR-0002", Data: data}
}
