package process_test

import (
	"slices"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/auth"
)

// validation folds a validation from the log.
func (b *bench) validation(id string) (v domain.Validation) {
	b.t.Helper()
	es, err := b.store.Stream(b.t.Context(), events.ValidationStream(id), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range es {
		v = v.Evolve(e.Payload)
	}
	return v
}

// validated waits for the end of a validation, and returns it with its stage tests.
func (b *bench) validated(id string) (v domain.Validation, tests events.ValidationStageFinished) {
	b.t.Helper()
	b.await("the end of "+id, func() bool { v = b.validation(id); return v.Status != "" })
	for _, s := range v.Stages {
		if s.Stage == domain.StageTests {
			tests = s
		}
	}
	return v, tests
}

func (b *bench) validate(proposal string, stages ...string) string {
	b.t.Helper()
	return b.must(b.as("ada"), commands.RunValidation{Proposal: proposal, Stages: stages}).IDs["validation"]
}

const makefile = "ok:\n\t@cat a.txt; echo all well\nbad:\n\t@echo broken; exit 3\nwait:\n\t@sleep 600\n"

// TestValidationTests: stage tests runs the commands of the gate on the
// candidate tree, each once, and ends with the last of them.
func TestValidationTests(t *testing.T) {
	b := setUp(t, map[string]string{"a.txt": "before\n", "Makefile": makefile})
	defer b.run()()
	const after = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-before\n+after\n"
	p := b.ready(after, "make ok", "make ok")
	v, tests := b.validated(b.validate(p, "tests", "stale_base", "tests"))
	if v.Status != "passed" || len(v.Stages) != 2 || len(tests.TestRuns) != 1 || tests.ExitCode == nil || *tests.ExitCode != 0 || !strings.Contains(tests.Output, "$ make ok\nafter\nall well\n") {
		t.Errorf("%+v", v)
	}
	if r := b.tested(tests.TestRuns[0]); r.Request.Validation != v.Start.Validation || r.Tree != v.Start.Tree || r.Tree == "" {
		t.Errorf("the run: %+v", r)
	}
	b.file("a.txt", "before\n")

	bad := b.ready(after, "make ok", "make bad")
	v, tests = b.validated(b.validate(bad, "tests"))
	if v.Status != "failed" || tests.Status != "failed" || len(tests.TestRuns) != 2 || tests.ExitCode == nil || *tests.ExitCode != 2 || !strings.Contains(tests.Output, "broken") {
		t.Errorf("%+v", v)
	}
	if got := strings.Join(b.types(v.Start.Stream()), " "); got != "validation.started validation.tests_requested validation.stage_finished validation.finished" {
		t.Error(got)
	}
}

// TestValidationKeepsItsRevision: a revision that comes while tests run changes
// nothing for the validation, and a run that was cancelled is no failure.
func TestValidationKeepsItsRevision(t *testing.T) {
	b := setUp(t, map[string]string{"a.txt": "before\n", "Makefile": makefile})
	defer b.run()()
	p := b.ready("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-before\n+after\n", "make wait")
	id := b.validate(p, "tests")
	run := b.validation(id).Tests.TestRuns[0]
	b.await("its beginning", func() bool {
		r, err := b.TestRun(t.Context(), run)
		return err == nil && r.State == domain.Running
	})
	b.must(b.as("coder"), commands.AttachPatch{Proposal: p, Expected: 1, PatchInput: commands.PatchInput{Patch: "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-before\n+later\n"}})
	b.must(b.as("ada"), commands.CancelTest{TestRun: run})
	v, tests := b.validated(id)
	if v.Start.Revision != 1 || v.Status != "error" || tests.Status != "error" || !strings.Contains(tests.Detail, "cancelled") || tests.ExitCode != nil {
		t.Errorf("%+v", v)
	}
	if r := b.tested(run); r.Request.Revision != 1 || r.Tree != v.Start.Tree {
		t.Errorf("%+v", r)
	}
}

// TestValidationOfAnotherTree: what a run says about a tree that somebody has
// changed meanwhile is not said about the one that was to be tested.
func TestValidationOfAnotherTree(t *testing.T) {
	b := setUp(t, map[string]string{"a.txt": "before\n", "Makefile": makefile})
	p := b.ready("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-before\n+after\n", "make ok")
	id := b.validate(p, "tests")
	b.lay(tree{"a.txt": "-before\n", "Makefile": "-" + makefile, "b.txt": "-new\n"})
	defer b.run()()
	if v, tests := b.validated(id); v.Status != "error" || !strings.Contains(tests.Detail, "passed on tree") {
		t.Errorf("%+v", v)
	}
}

// TestValidationAfterCrash: a service that starts again ends the validations
// that the one before it had begun: what had not begun is run, what had begun
// is interrupted.
func TestValidationAfterCrash(t *testing.T) {
	b := setUp(t, map[string]string{"a.txt": "before\n", "Makefile": makefile})
	b.join("tess", auth.Human, "", auth.Tester)
	p := b.ready("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-before\n+after\n", "make ok", "make wait")
	id := b.validate(p, "tests", "patch_parse")
	v := b.validation(id)
	if v.Status != "" || len(v.Stages) != 1 || v.Stages[0].Status != "passed" || len(v.Tests.TestRuns) != 2 {
		t.Fatalf("%+v", v)
	}
	begun := v.Tests.TestRuns[1]
	b.must(commands.System(b.ws, "begun"), commands.StartTest{TestRunStarted: events.TestRunStarted{TestRun: begun, Tree: v.Start.Tree}})
	b.open() // the process that had begun it is gone
	defer b.run()()
	v, tests := b.validated(id)
	if v.Status != "error" || tests.Status != "error" || !strings.Contains(tests.Detail, "interrupted") {
		t.Errorf("%+v", v)
	}
	if r := b.tested(v.Tests.TestRuns[0]); r.State != domain.Passed {
		t.Errorf("what had not begun: %+v", r)
	}
}

// TestValidationsAtOnce: runs that end together end their validation once.
func TestValidationsAtOnce(t *testing.T) {
	b := setUp(t, map[string]string{"a.txt": "before\n", "Makefile": makefile})
	p := b.ready("--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-before\n+after\n", "make ok", "make ok all", "make ok x=1", "make ok x=2")
	id := b.validate(p, "tests")
	v := b.validation(id)
	done := make(chan error)
	for i, run := range v.Tests.TestRuns {
		by := commands.System(b.ws, "end."+run)
		go func() {
			_, err := b.Do(b.t.Context(), by, commands.FinishTest{TestRunFinished: events.TestRunFinished{TestRun: run, State: "passed", Tree: v.Start.Tree, ExitCode: new(0), Isolation: "namespace", Summary: string(rune('a' + i))}})
			done <- err
		}()
	}
	for range v.Tests.TestRuns {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	v, tests := b.validated(id)
	if v.Status != "passed" || tests.Output != "$ make ok\na\n$ make ok all\nb\n$ make ok x=1\nc\n$ make ok x=2\nd\n" {
		t.Errorf("%+v", v)
	}
	if n := len(slices.DeleteFunc(b.types(v.Start.Stream()), func(s string) bool { return s != "validation.finished" })); n != 1 {
		t.Errorf("it ended %d times", n)
	}
}
