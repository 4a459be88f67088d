package commands

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/policy"
)

// RunValidation runs stages on the tree that a proposal's newest revision
// would give.
type RunValidation struct {
	Proposal string   `json:"proposal_id"`
	Stages   []string `json:"stages,omitempty" jsonschema:"out of patch_parse, apply_dry_run, static_checks, tests, policy, stale_base; all but static_checks and tests if none is named"`
}

// Name is the command's on the wire.
func (RunValidation) Name() string { return "validation.run" }

func (c RunValidation) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	stages, err := domain.AskedStages(c.Stages)
	if err != nil {
		return nil, err
	}
	p, err := u.proposal(ctx, c.Proposal)
	if err != nil {
		return nil, err
	}
	if slices.Contains(stages, domain.StageTests) {
		if err := mayTest(u, p); err != nil {
			return nil, err
		}
	}
	l, err := u.lookAt(ctx, p)
	if err != nil {
		return nil, err
	}
	r := p.Current()
	e := events.ValidationStarted{Validation: u.id("VA"), Workspace: u.caller.Workspace, Proposal: p.ID, Revision: r.Number,
		PatchDigest: r.PatchDigest, PathsDigest: r.Base.PathsDigest, PolicyDigest: u.h.Policy.Digest(), Tree: l.tree, Stages: stages,
		By: u.caller.Who.ID, StartedAt: l.began}
	u.ids["validation"] = e.Validation
	v := begin[domain.Validation](u, e.Stream())
	var ended []events.ValidationStageFinished
	var requests []events.TestRunRequested
	for _, stage := range stages {
		if stage == domain.StageTests && l.tree != "" && len(p.ExpectedTests) > 0 {
			if requests, err = u.testsOf(p, e.Validation); err != nil {
				return nil, err
			}
			continue
		}
		s, err := u.stage(ctx, stage, l)
		if err != nil {
			return nil, err
		}
		ended = append(ended, s)
	}
	if err := u.unmoved(ctx, p, l); err != nil {
		return nil, err
	}
	now, err := u.moment("finished")
	if err != nil {
		return nil, err
	}
	var runs []string
	var asked []events.Payload
	for _, r := range requests {
		runs, asked = append(runs, r.TestRun), append(asked, requested(r)...)
	}
	return append(v.Begin(e, ended, runs, now), asked...), nil
}

// moment is the time at which the command came here: every try that rests on
// the same look at the world has the same.
func (u *unit) moment(what string) (time.Time, error) {
	return fact(u, "moment "+what, func() (time.Time, error) { return u.h.Now().UTC().Round(0), nil })
}

// A look at what a revision's patch meets and gives, from which stages are
// judged.
type look struct {
	facts         domain.Facts
	gates         []domain.Gate
	root, tree    string // tree is "" where the patch gives none
	began, looked time.Time
}

func (u *unit) lookAt(ctx context.Context, p domain.Proposal) (l look, err error) {
	if l.began, err = u.moment("began"); err != nil {
		return l, err
	}
	if l.root, err = u.root(ctx); err != nil {
		return l, err
	}
	if l.facts, err = u.facts(ctx, p); err != nil {
		return l, err
	}
	if l.facts.Patch.Refused == nil {
		if l.tree, err = u.tree(ctx, l.root, p.Current().PatchDigest); err != nil {
			return l, err
		}
	}
	l.gates = domain.Gates(l.facts)
	l.looked, err = u.moment("looked")
	return l, err
}

// unmoved checks that the touched paths are as they were at the first look at
// them: what the stages found is then about one tree.
func (u *unit) unmoved(ctx context.Context, p domain.Proposal, l look) error {
	found, err := u.inspect(ctx, l.root, p.Current().PatchDigest)
	if err != nil {
		return err
	}
	changed, err := fact(u, "unmoved "+l.root+" "+p.Current().PatchDigest, func() ([]string, error) {
		_, changed, err := u.h.World.Since(ctx, l.root, slices.Concat(found.Base.Paths, found.Base.Sources))
		return changed, err
	})
	if err == nil && len(changed) > 0 {
		return fault.Errorf(fault.Conflict, "state.stale", "these paths changed while they were looked at: %s; send it again", named(changed)).With("paths", changed)
	}
	return err
}

// testsOf requests a run of each command of gate tests, whatever ran before: who
// asks for the stage wants to see it run.
func (u *unit) testsOf(p domain.Proposal, validation string) (all []events.TestRunRequested, err error) {
	for i, command := range p.ExpectedTests {
		if slices.Contains(p.ExpectedTests[:i], command) {
			continue
		}
		e, err := u.testRun(p, command, 0)
		if err != nil {
			return nil, err
		}
		e.Validation = validation
		all = append(all, e)
	}
	return all, nil
}

// stage judges one stage that runs no command.
func (u *unit) stage(ctx context.Context, stage string, l look) (s events.ValidationStageFinished, err error) {
	s = events.ValidationStageFinished{Stage: stage, StartedAt: l.began, FinishedAt: l.looked}
	by := byGate(l.gates)
	switch stage {
	case domain.StageParse:
		s.Status, s.Detail = together(check("patch_parse", l.facts, by), check("path_safety", l.facts, by))
	case domain.StageDryRun:
		s.Status, s.Detail = together(check("temp_apply", l.facts, by))
	case domain.StageBase:
		s.Status, s.Detail = together(check("base", l.facts, by))
	case domain.StagePolicy:
		s.Status, s.Detail = domain.PolicyStage(l.facts, l.gates)
	default:
		switch {
		case l.tree == "":
			s.Status, s.Detail = "skipped", "there is no candidate tree: "+l.facts.Patch.Refused.Code+": "+l.facts.Patch.Refused.Detail
		case stage == domain.StageTests:
			s.Status, s.Detail = "not_applicable", "the proposal expects no test"
		default:
			err = u.static(ctx, l, &s)
		}
	}
	s.DurationMS = max(s.FinishedAt.Sub(s.StartedAt).Milliseconds(), 0)
	return s, err
}

// static looks through the added lines of the candidate tree.
func (u *unit) static(ctx context.Context, l look, s *events.ValidationStageFinished) (err error) {
	digest := l.facts.Proposal.Current().PatchDigest
	found, err := fact(u, "flaws "+l.root+" "+digest, func() (Flaws, error) {
		patch, err := u.h.World.Kept(ctx, digest)
		if err != nil {
			return Flaws{}, err
		}
		return u.h.World.Flaws(ctx, l.root, patch)
	})
	if err != nil {
		return err
	}
	s.StartedAt = l.looked
	if s.FinishedAt, err = u.moment("static"); err != nil {
		return err
	}
	s.Status, s.Detail = staticVerdict(found, u.h.Policy)
	s.Output, s.Cut = domain.CutOutput(strings.Join(found.Lines, ""))
	s.Cut = s.Cut || found.All > len(found.Lines)
	return nil
}

func staticVerdict(found Flaws, pol policy.Policy) (status, detail string) {
	switch {
	case found.All > 0:
		return "failed", fmt.Sprintf("%d whitespace errors and conflict markers in added lines", found.All)
	case len(pol.StaticCommands) > 0:
		return "error", "policy names static_commands, and this version runs none of them: " + named(pol.StaticCommands)
	}
	return "passed", "no whitespace error and no conflict marker in an added line; policy names no static command"
}

// Flaws are whitespace errors and conflict markers in the added lines of a
// candidate tree.
type Flaws struct {
	Lines []string // "path:line: what", each with its line end, the first of them
	All   int
}

// validated adds what the end of a run means for the validation that waits for
// it.
func (u *unit) validated(ctx context.Context, t domain.TestRun, happened []events.Payload) ([]events.Payload, error) {
	if t.Request.Validation == "" || len(happened) == 0 {
		return happened, nil
	}
	v, err := load[domain.Validation](ctx, u, events.ValidationStream(t.Request.Validation))
	if err != nil {
		return nil, err
	}
	var runs []domain.TestRun
	for _, id := range v.Tests.TestRuns {
		run, err := load[domain.TestRun](ctx, u, events.TestRunStream(id))
		if err != nil {
			return nil, err
		}
		for _, e := range happened {
			if e.Stream() == events.TestRunStream(id) {
				run = run.Evolve(e)
			}
		}
		runs = append(runs, run)
	}
	return append(happened, v.TestsEnded(runs, u.h.Policy, u.now)...), nil
}
