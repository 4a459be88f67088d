package domain

import (
	"fmt"
	"slices"

	"roundtable/events"
	"roundtable/internal/fault"
)

// testsGate wants a verified pass of every expected test on the candidate tree
// of the newest revision. A command that both passed and did not pass on one
// tree is flaky and does not count.
func testsGate(f Facts) Gate {
	p := f.Proposal
	if len(p.ExpectedTests) == 0 {
		return Gate{Gate: "tests", Status: "not_applicable", Because: []string{"the proposal expects no test"}}
	}
	g := Gate{Gate: "tests", Status: "passed"}
	for _, command := range p.ExpectedTests {
		status, why := testStatus(f, command)
		g.Because = append(g.Because, command+": "+why)
		if status == "passed" {
			continue
		}
		if g.Status != "failed" {
			g.Status = status
		}
		g.Needs = append(g.Needs, "a passed run of "+command+" on the candidate tree")
		g.Next = append(g.Next, fault.Step{Op: "test.run", Args: map[string]any{"proposal_id": p.ID, "command": command}, Who: p.Author, Why: why})
	}
	return g
}

func testStatus(f Facts, command string) (status, why string) {
	p := f.Proposal
	var last *events.ProposalTested
	passed, other := false, false
	for _, t := range p.Tests {
		if t.Command != command || t.Revision != p.Current().Number {
			continue
		}
		if t.Tree != f.Patch.Tree {
			if last == nil {
				status, why = "waiting", fmt.Sprintf("%s ran on tree %.12s, and the candidate tree is %.12s now", t.TestRun, t.Tree, f.Patch.Tree)
			}
			continue
		}
		last = &t
		if t.State == Passed {
			passed = true
		} else if t.State == "failed" || t.State == "timed_out" {
			other = true
		}
	}
	switch {
	case last == nil && status != "":
		return status, why
	case last == nil:
		return "waiting", "no verified run on the candidate tree has ended"
	case passed && other:
		return "failed", "flaky: it passed and failed on one tree"
	case other:
		return "failed", fmt.Sprintf("%s %s", last.TestRun, last.State)
	case !passed:
		return "waiting", fmt.Sprintf("%s ended as %s", last.TestRun, last.State)
	case !f.Policy.Isolated(last.Isolation):
		return "failed", fmt.Sprintf("%s passed at isolation %s, and policy wants at least %s", last.TestRun, last.Isolation, f.Policy.MinIsolation)
	}
	return "passed", fmt.Sprintf("%s passed on tree %.12s at isolation %s", last.TestRun, last.Tree, last.Isolation)
}

// Tested reports whether any run of the newest revision has ended: only then
// does the candidate tree matter to the gate.
func (p Proposal) Tested() bool {
	return len(p.ExpectedTests) > 0 && slices.ContainsFunc(p.Tests, func(t events.ProposalTested) bool { return t.Revision == p.Current().Number })
}

// Untested returns the expected tests of which no run on the newest revision
// has ended.
func (p Proposal) Untested() (commands []string) {
	for _, c := range p.ExpectedTests {
		if !slices.ContainsFunc(p.Tests, func(t events.ProposalTested) bool { return t.Command == c && t.Revision == p.Current().Number }) {
			commands = append(commands, c)
		}
	}
	return commands
}
