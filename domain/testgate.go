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

// passedTest returns the newest verified pass of a command on the candidate
// tree.
func passedTest(f Facts, command string) (events.ProposalTested, bool) {
	found, _ := ended(f, command)
	return found[Passed], found[Passed].TestRun != ""
}

// ended returns the newest run of each state of a command on the candidate
// tree; a pass that is not isolated enough is "weak". elsewhere is a tree that
// it ran on too.
func ended(f Facts, command string) (found map[string]events.ProposalTested, elsewhere string) {
	p := f.Proposal
	found = map[string]events.ProposalTested{}
	for _, t := range p.Tests {
		switch {
		case t.Command != command || t.Revision != p.Current().Number:
		case t.Tree == "" || t.Tree != f.Patch.Tree:
			elsewhere = t.Tree
		case t.State == Passed && !f.Policy.Isolated(t.Isolation):
			found["weak"] = t
		default:
			found[t.State] = t
		}
	}
	return found, elsewhere
}

// testStatus says how one command stands on the candidate tree. A run that
// ended without a word on the tree (error, cancelled, interrupted) says
// nothing; a later pass answers one that ran out of time.
func testStatus(f Facts, command string) (status, why string) {
	p := f.Proposal
	found, elsewhere := ended(f, command)
	has := func(state string) bool { return found[state].TestRun != "" }
	said := func(state, how string) string { return found[state].TestRun + " " + how }
	switch {
	case has(Passed) && has("failed"):
		return "failed", "flaky: it passed and failed on one tree"
	case has("failed"):
		return "failed", said("failed", "failed")
	case has(Passed):
		t := found[Passed]
		return "passed", fmt.Sprintf("%s passed on tree %.12s at isolation %s", t.TestRun, t.Tree, t.Isolation)
	case p.testing(command):
		return "waiting", "a run is queued or running"
	case has("weak"):
		return "failed", said("weak", fmt.Sprintf("passed at isolation %s, and policy wants at least %s", found["weak"].Isolation, f.Policy.MinIsolation))
	case has("timed_out"):
		return "failed", said("timed_out", "ran out of time")
	case elsewhere != "":
		return "waiting", fmt.Sprintf("it ran on tree %.12s, and the candidate tree is %.12s now", elsewhere, f.Patch.Tree)
	}
	return "waiting", "no verified run on the candidate tree has said passed or failed"
}

// testing reports whether a run of the command on the newest revision has not
// ended.
func (p Proposal) testing(command string) bool {
	return slices.ContainsFunc(p.Running, func(r events.ProposalTestRequested) bool {
		return r.Command == command && r.Revision == p.Current().Number
	})
}

// Tested reports whether any run of the newest revision has ended: only then
// does the candidate tree matter to the gate.
func (p Proposal) Tested() bool {
	return len(p.ExpectedTests) > 0 && slices.ContainsFunc(p.Tests, func(t events.ProposalTested) bool { return t.Revision == p.Current().Number })
}

// Untested returns the expected tests that no run answers or is about to
// answer on tree, the candidate tree of the newest revision.
func (p Proposal) Untested(tree string) (commands []string) {
	for _, c := range p.ExpectedTests {
		if !slices.Contains(commands, c) && !p.testing(c) && !slices.ContainsFunc(p.Tests, func(t events.ProposalTested) bool {
			return t.Command == c && t.Revision == p.Current().Number && t.Tree == tree && (t.State == Passed || t.State == "failed")
		}) {
			commands = append(commands, c)
		}
	}
	return commands
}
