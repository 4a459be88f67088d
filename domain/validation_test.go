package domain

import (
	"strings"
	"testing"
	"time"

	"roundtable/events"
	"roundtable/internal/policy"
)

func ran(command, state string, exit int, change func(*events.TestRunFinished)) TestRun {
	t := TestRun{}.Evolve(events.TestRunRequested{TestRun: "TR-" + command, Command: command})
	e := events.TestRunFinished{State: state, Tree: "tree", Isolation: "namespace", Summary: "out of " + command}
	if exit >= 0 {
		e.ExitCode = &exit
	}
	if change != nil {
		change(&e)
	}
	return t.Evolve(e)
}

// TestTestsStage: a pass is only what passed, isolated, on the candidate tree;
// a failure is what failed on it; all else says nothing.
func TestTestsStage(t *testing.T) {
	good, bad := ran("good", Passed, 0, nil), ran("bad", "failed", 3, nil)
	other := ran("other", "failed", 1, func(e *events.TestRunFinished) { e.Tree = "elsewhere" })
	weak := ran("weak", Passed, 0, func(e *events.TestRunFinished) { e.Isolation = "none" })
	killed := ran("killed", "failed", -1, func(e *events.TestRunFinished) { e.Signal, e.Reason = "killed", "signal: killed" })
	slow, off, broken := ran("slow", "timed_out", -1, nil), ran("off", Cancelled, -1, nil), ran("broken", "error", -1, func(e *events.TestRunFinished) { e.Tree = "" })
	for _, c := range []struct {
		runs   []TestRun
		status string
		exit   int // -1 for none
		says   string
	}{
		{[]TestRun{good}, "passed", 0, "good: TR-good passed"},
		{[]TestRun{good, bad, other}, "failed", 3, "TR-bad failed"},
		{[]TestRun{other, good}, "error", 1, "failed on tree elsewhere, and the candidate tree was tree"},
		{[]TestRun{other, bad}, "failed", 1, "ask for another validation"},
		{[]TestRun{weak}, "failed", 0, "isolation none, and policy wants at least process"},
		{[]TestRun{good, killed}, "failed", -1, "signal: killed"},
		{[]TestRun{good, slow}, "failed", -1, "timed_out"},
		{[]TestRun{good, off}, "error", -1, "ended as cancelled"},
		{[]TestRun{broken}, "error", -1, "ended as error"},
	} {
		s := TestsStage(c.runs, "tree", policy.Default())
		exit := -1
		if s.ExitCode != nil {
			exit = *s.ExitCode
		}
		if s.Status != c.status || exit != c.exit || !strings.Contains(s.Detail, c.says) || len(s.TestRuns) != len(c.runs) || !strings.HasPrefix(s.Output, "$ "+c.runs[0].Request.Command+"\nout of ") {
			t.Errorf("%s: %s, exit %d: %s", c.says, s.Status, exit, s.Detail)
		}
	}
}

// TestValidationEnds: with the last of its runs, once.
func TestValidationEnds(t *testing.T) {
	good, queued := ran("good", Passed, 0, nil), TestRun{}.Evolve(events.TestRunRequested{TestRun: "TR-1"})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	v := Validation{}
	for _, e := range v.Begin(events.ValidationStarted{Validation: "VA-1", Tree: "tree"}, nil, []string{"TR-good", "TR-1"}, at) {
		v = v.Evolve(e)
	}
	if out := v.TestsEnded([]TestRun{good, queued}, policy.Default(), at); out != nil || v.Status != "" {
		t.Errorf("%v", out)
	}
	out := v.TestsEnded([]TestRun{good, good}, policy.Default(), at.Add(time.Second))
	if len(out) != 2 || out[0].(events.ValidationStageFinished).DurationMS != 1000 || out[1].(events.ValidationFinished).Status != "passed" {
		t.Fatalf("%v", out)
	}
	for _, e := range out {
		v = v.Evolve(e)
	}
	if out := v.TestsEnded([]TestRun{good, good}, policy.Default(), at); out != nil {
		t.Errorf("it ends again: %v", out)
	}
}

func TestCutOutput(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	if s, cut := CutOutput(strings.Repeat(line, 80)); cut || len(s) != 8000 {
		t.Errorf("%d %v", len(s), cut)
	}
	if s, cut := CutOutput(strings.Repeat(line, 90)); !cut || len(s) != 8100 || !strings.HasSuffix(s, line) {
		t.Errorf("%d %v", len(s), cut)
	}
}
