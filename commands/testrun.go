package commands

import (
	"context"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
)

// Bounds on the time of a test run, in seconds.
const (
	DefaultTestTimeout = 600
	MaxTestTimeout     = 4 * 3600
)

// RunTest runs a command on the tree that a proposal would give, or on the
// workspace as it is.
type RunTest struct {
	Command  string `json:"command" jsonschema:"split into words without a shell"`
	Proposal string `json:"proposal_id,omitempty"`
	Task     string `json:"task_id,omitempty"`
	Timeout  int    `json:"timeout_seconds,omitempty" jsonschema:"default 600, at most 14400" min:"1" max:"14400"`
}

// Name is the command's on the wire.
func (RunTest) Name() string { return "test.run" }

func (c RunTest) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	if err := u.checkTask(ctx, c.Task); err != nil {
		return nil, err
	}
	if c.Timeout < 0 || c.Timeout > MaxTestTimeout {
		return nil, fault.Errorf(fault.Invalid, "invalid_field", "timeout_seconds is from 1 to %d", MaxTestTimeout).At("/timeout_seconds", "out of bounds")
	}
	var p domain.Proposal
	if c.Proposal != "" {
		var err error
		if p, err = u.proposal(ctx, c.Proposal); err != nil {
			return nil, err
		}
	}
	if err := mayTest(u, p); err != nil {
		return nil, err
	}
	e, err := u.testRun(p, c.Command, c.Timeout)
	if err != nil {
		return nil, err
	}
	e.Task = c.Task
	u.ids["test_run"] = e.TestRun
	return requested(e), nil
}

// mayTest lets an implementer who is no tester test only what they wrote.
func mayTest(u *unit, p domain.Proposal) error {
	if u.caller.Who.Has(u.caller.Workspace, testers...) {
		return nil
	}
	for _, a := range p.Authors() {
		if a == u.caller.Who.ID {
			return nil
		}
	}
	return fault.Errorf(fault.Forbidden, "forbidden", "an implementer runs tests on own proposals only; a tester on all")
}

// testRun makes the request of a run on p's newest revision, or on the
// workspace if p is none.
func (u *unit) testRun(p domain.Proposal, command string, timeout int) (e events.TestRunRequested, err error) {
	argv, err := u.h.World.Argv(command)
	if err != nil {
		return e, err
	}
	if timeout == 0 {
		timeout = DefaultTestTimeout
	}
	e = events.TestRunRequested{TestRun: u.id("TR"), Workspace: u.caller.Workspace, Proposal: p.ID, Revision: p.Current().Number,
		PatchDigest: p.Current().PatchDigest, Command: command, Argv: argv, Timeout: timeout, By: u.caller.Who.ID}
	begin[domain.TestRun](u, e.Stream())
	return e, nil
}

// requested tells also the proposal, if the run is for one.
func requested(e events.TestRunRequested) []events.Payload {
	if e.Proposal == "" {
		return []events.Payload{e}
	}
	return []events.Payload{e, events.ProposalTestRequested{Proposal: e.Proposal, TestRun: e.TestRun, Revision: e.Revision, Command: e.Command}}
}

// startTests requests a run of every expected test that none answers on the
// candidate tree as it is now.
func (u *unit) startTests(ctx context.Context, p domain.Proposal) (out []events.Payload, err error) {
	f, err := u.facts(ctx, p)
	if err != nil {
		return nil, err
	}
	if f.Patch.Refused != nil {
		return nil, nil // there is no tree to test
	}
	for _, command := range p.Untested(f.Patch.Tree) {
		e, err := u.testRun(p, command, 0)
		if err != nil {
			return nil, err
		}
		out = append(out, requested(e)...)
	}
	return out, nil
}

// CancelTest asks for the end of a run.
type CancelTest struct {
	TestRun string `json:"test_run_id"`
}

// Name is the command's on the wire.
func (CancelTest) Name() string { return "test.cancel" }

func (c CancelTest) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.TestRun](ctx, u, events.TestRunStream(c.TestRun))
	if err != nil {
		return nil, err
	}
	if err := t.In(u.caller.Workspace, c.TestRun); err != nil {
		return nil, err
	}
	if by := u.caller.Who; by.ID != t.Request.By && !by.Has(u.caller.Workspace, testers...) {
		return nil, fault.Errorf(fault.Forbidden, "forbidden", "a run is cancelled by whoever asked for it, or by a tester")
	}
	var p domain.Proposal
	if t.Request.Proposal != "" {
		if p, err = u.proposal(ctx, t.Request.Proposal); err != nil {
			return nil, err
		}
	}
	u.ids["test_run"] = c.TestRun
	happened, err := t.Cancel(u.caller.Who.ID, p)
	if err != nil {
		return nil, err
	}
	return u.validated(ctx, t, happened)
}
