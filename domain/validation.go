package domain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/policy"
)

// The stages of a validation, in the order in which they are shown.
const (
	StageParse  = "patch_parse"
	StageDryRun = "apply_dry_run"
	StageStatic = "static_checks"
	StageTests  = "tests"
	StagePolicy = "policy"
	StageBase   = "stale_base"
)

var stages = []string{StageParse, StageDryRun, StageStatic, StageTests, StagePolicy, StageBase}

// AskedStages returns the stages that were asked for, each once and in their
// order; all but the two that may run commands if none was named.
func AskedStages(asked []string) ([]string, error) {
	var f *fault.Error
	for i, s := range asked {
		if slices.Contains(stages, s) {
			continue
		}
		if f == nil {
			f = fault.Errorf(fault.Invalid, "invalid_validation_stage", "%.40q is no stage of a validation; the stages are %s", s, strings.Join(stages, ", ")).With("stages", stages)
		}
		f = f.At(fmt.Sprintf("/stages/%d", i), "no such stage")
	}
	if f != nil {
		return nil, f
	}
	return slices.DeleteFunc(slices.Clone(stages), func(s string) bool {
		if len(asked) == 0 {
			return s == StageStatic || s == StageTests
		}
		return !slices.Contains(asked, s)
	}), nil
}

// A Validation is stages that were run on what one revision gives. The zero
// value is none.
//
//	running, while stage tests waits for its runs ──▶ passed, failed or error
type Validation struct {
	Start  events.ValidationStarted
	Tests  events.ValidationTestsRequested
	Stages []events.ValidationStageFinished
	Status string // "" until it has ended
}

// Evolve returns v after e has happened.
func (v Validation) Evolve(e events.Payload) Validation {
	switch e := e.(type) {
	case events.ValidationStarted:
		return Validation{Start: e}
	case events.ValidationTestsRequested:
		v.Tests = e
	case events.ValidationStageFinished:
		v.Stages = append(slices.Clip(v.Stages), e)
	case events.ValidationFinished:
		v.Status = e.Status
	default:
		foreign("validation", e)
	}
	return v
}

// Begin starts v with the stages that have ended. It ends at once unless stage
// tests waits for runs.
func (v Validation) Begin(e events.ValidationStarted, ended []events.ValidationStageFinished, runs []string, now time.Time) []events.Payload {
	out := []events.Payload{e}
	for _, s := range ended {
		s.Validation = e.Validation
		v.Stages = append(slices.Clip(v.Stages), s)
		out = append(out, s)
	}
	if len(runs) > 0 {
		return append(out, events.ValidationTestsRequested{Validation: e.Validation, TestRuns: runs, At: now})
	}
	return append(out, v.finish(e.Validation, now))
}

// TestsEnded ends stage tests, and v with it, once all of its runs have ended.
func (v Validation) TestsEnded(runs []TestRun, pol policy.Policy, now time.Time) []events.Payload {
	if v.Start.Validation == "" || v.Status != "" || slices.ContainsFunc(runs, func(t TestRun) bool { return !t.Done() }) {
		return nil
	}
	s := TestsStage(runs, v.Start.Tree, pol)
	s.Validation, s.StartedAt, s.FinishedAt = v.Start.Validation, v.Tests.At, now
	s.DurationMS = max(now.Sub(v.Tests.At).Milliseconds(), 0)
	v.Stages = append(slices.Clip(v.Stages), s)
	return []events.Payload{s, v.finish(v.Start.Validation, now)}
}

// finish says what v came to. A stage that could not be run for want of a
// candidate tree is the patch's failure.
func (v Validation) finish(id string, now time.Time) events.ValidationFinished {
	has := func(status string) bool {
		return slices.ContainsFunc(v.Stages, func(s events.ValidationStageFinished) bool { return s.Status == status })
	}
	e := events.ValidationFinished{Validation: id, Status: Passed, FinishedAt: now}
	switch {
	case has("failed"), has("skipped"):
		e.Status = "failed"
	case has("error"):
		e.Status = "error"
	}
	return e
}

// MaxStageOutput bounds what a stage keeps of its output, in bytes.
const MaxStageOutput = 8 << 10

// CutOutput returns the whole lines of an output that fit, and whether there
// are more.
func CutOutput(s string) (string, bool) {
	if len(s) <= MaxStageOutput {
		return s, false
	}
	return s[:strings.LastIndexByte(s[:MaxStageOutput], '\n')+1], true
}

// TestsStage judges runs that have ended, as a stage of a validation of tree. A
// run that says nothing about that tree is an error and no failure.
func TestsStage(runs []TestRun, tree string, pol policy.Policy) events.ValidationStageFinished {
	s := events.ValidationStageFinished{Stage: StageTests, Status: Passed}
	var details []string
	var output strings.Builder
	exits := 0
	for _, t := range runs {
		status, why := t.verdict(tree, pol)
		if s.Status != "failed" && status != Passed {
			s.Status = status
		}
		s.TestRuns = append(s.TestRuns, t.Request.TestRun)
		details = append(details, t.Request.Command+": "+t.Request.TestRun+" "+why)
		fmt.Fprintf(&output, "$ %s\n%s\n", t.Request.Command, t.Result.Summary)
		if code := t.Result.ExitCode; code != nil {
			exits++
			if s.ExitCode == nil || *s.ExitCode == 0 {
				s.ExitCode = code
			}
		}
	}
	if s.ExitCode != nil && *s.ExitCode == 0 && exits < len(runs) {
		s.ExitCode = nil // not all of them have ended well
	}
	s.Detail = strings.Join(details, "; ")
	s.Output, s.Cut = CutOutput(output.String())
	return s
}

// verdict is what a run that has ended says about tree.
func (t TestRun) verdict(tree string, pol policy.Policy) (status, why string) {
	because := t.Result.Reason
	if because != "" {
		because = ": " + because
	}
	switch {
	case t.State != Passed && t.State != "failed" && t.State != "timed_out":
		return "error", "ended as " + t.State + because
	case t.Result.Tree != tree:
		return "error", fmt.Sprintf("%s on tree %.12s, and the candidate tree was %.12s: the workspace has changed since; ask for another validation", t.State, t.Result.Tree, tree)
	case t.State != Passed:
		return "failed", t.State + because
	case !pol.Isolated(t.Result.Isolation):
		return "failed", fmt.Sprintf("passed at isolation %s, and policy wants at least %s", t.Result.Isolation, pol.MinIsolation)
	}
	return Passed, "passed"
}

// PolicyStage says what policy demands of the newest revision beyond the tests,
// as its gates stand. What still waits for somebody's word is no failure.
func PolicyStage(f Facts, gates []Gate) (status, detail string) {
	risk, why := EffectiveRisk(f.Proposal, f.Policy)
	status, detail = Passed, fmt.Sprintf("policy %s; the risk is %s: %s", f.Policy.Digest(), risk, why)
	for _, g := range gates {
		if g.Gate != "votes" && g.Gate != "human_approval" {
			continue
		}
		if g.Status == "failed" || g.Status == "error" && status == Passed {
			status = g.Status
		}
		detail += "; " + g.Gate + " " + g.Status
		if g.Gate == "votes" && len(g.Because) > 0 {
			detail += " (" + strings.Join(g.Because, ", ") + ")"
		}
	}
	return status, detail
}
