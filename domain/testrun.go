package domain

import (
	"roundtable/events"
	"roundtable/internal/fault"
)

// The states of a test run.
const (
	Queued      = "queued"
	Running     = "running"
	Passed      = "passed"
	Interrupted = "interrupted"
	Cancelled   = "cancelled"
)

// A TestRun is one command on one tree. The zero value is none.
//
//	queued ──▶ running ──▶ passed, failed, error, timed_out, cancelled or interrupted
type TestRun struct {
	Request   events.TestRunRequested
	State     string
	Tree      string
	Cancelled bool // somebody asked for its end
	Result    events.TestRunFinished
}

// Evolve returns t after e has happened.
func (t TestRun) Evolve(e events.Payload) TestRun {
	switch e := e.(type) {
	case events.TestRunRequested:
		return TestRun{Request: e, State: Queued}
	case events.TestRunStarted:
		t.State, t.Tree = Running, e.Tree
	case events.TestRunCancelRequested:
		t.Cancelled = true
	case events.TestRunFinished:
		t.State, t.Result = e.State, e
	default:
		foreign("test run", e)
	}
	return t
}

// Done reports whether t has ended.
func (t TestRun) Done() bool { return t.State != "" && t.State != Queued && t.State != Running }

// In checks that t is a test run of workspace.
func (t TestRun) In(workspace, id string) error {
	if t.Request.TestRun == "" || t.Request.Workspace != workspace {
		return fault.Errorf(fault.NotFound, "test_run_not_found", "there is no test run %s in this workspace", id)
	}
	return nil
}

// Start takes the word that a worker begins. It is refused once the run has
// begun or ended: after a crash a run is not begun again.
func (t TestRun) Start(tree string) []events.Payload {
	if t.State != Queued || t.Cancelled {
		return nil
	}
	return []events.Payload{events.TestRunStarted{TestRun: t.Request.TestRun, Tree: tree}}
}

// Cancel asks for the end of t. Repeating it changes nothing. A run that was
// not begun ends at once, and p, the proposal that it is for, is told.
func (t TestRun) Cancel(by string, p Proposal) ([]events.Payload, error) {
	switch {
	case t.Done():
		return nil, fault.Errorf(fault.Conflict, "test_run_ended", "test run %s has ended: %s", t.Request.TestRun, t.State).With("state", t.State)
	case t.Cancelled:
		return nil, nil
	}
	out := []events.Payload{events.TestRunCancelRequested{TestRun: t.Request.TestRun, By: by}}
	if t.State == Queued {
		out = append(out, t.Finish(events.TestRunFinished{TestRun: t.Request.TestRun, State: Cancelled, Reason: "cancelled before it began", Summary: NoOutput}, p)...)
	}
	return out, nil
}

// NoOutput is the summary of a run that printed nothing.
const NoOutput = "No test output captured."

// Finish takes the result. It tells the proposal, if there is one.
func (t TestRun) Finish(e events.TestRunFinished, p Proposal) []events.Payload {
	if t.State == "" || t.Done() {
		return nil
	}
	out := []events.Payload{e}
	if p.ID == "" {
		return out
	}
	return append(out, p.RecordTest(events.ProposalTested{Proposal: p.ID, TestRun: e.TestRun, Revision: t.Request.Revision,
		Command: t.Request.Command, Tree: e.Tree, State: e.State, Isolation: e.Isolation})...)
}
