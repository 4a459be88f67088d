package commands

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

func (h *Handler) validationOps() []op.Op {
	const p = ws + "/proposals/{proposal_id}"
	out := op.OneOf[wire.StagedValidation]("validation", nil)
	run := commanding(h, "validation", op.Op{Route: "POST " + p + "/validation", Later: true, Shortfall: notPassed,
		May: people(auth.Implementer, auth.Reviewer, auth.Security, auth.Tester, auth.Orchestrator),
		Doc: "Run stages on the tree that a proposal's newest revision would give, tests and static checks among them if you name them."},
		out, func(ctx context.Context, c op.Call, _ RunValidation, r Result) (op.Answer, error) {
			a, err := h.answer(ctx, c, "validation", r)
			if v, ok := a.Value.(wire.StagedValidation); ok {
				a.Later = slices.ContainsFunc(v.Stages, func(s wire.ValidationStage) bool { return len(s.TestRuns) > 0 })
			}
			return a, err
		})
	return []op.Op{run,
		question(h, op.Op{Name: "validation.get", Route: "GET " + p + "/validations/{validation_id}", Out: out,
			Doc: "Read a validation, stage by stage; those that wait for tests are running."}, h.validationOf),
	}
}

type validationQuestion struct {
	Proposal   string `json:"proposal_id"`
	Validation string `json:"validation_id"`
}

// validationOf reads a validation of that proposal.
func (h *Handler) validationOf(ctx context.Context, c op.Call, in validationQuestion) (op.Answer, error) {
	v, position, err := h.Show(ctx, "validation", c.Workspace, in.Validation, c.After)
	if err != nil {
		return op.Answer{}, err
	}
	shown, ok := v.(wire.StagedValidation)
	switch {
	case !ok:
		return op.Answer{}, fault.Errorf(fault.Internal, "internal", "a validation was read as %T", v)
	case shown.Proposal != in.Proposal:
		return op.Answer{}, fault.Errorf(fault.NotFound, "validation_not_found", "%s is no validation of %.80q", in.Validation, in.Proposal).
			Then("validation.list", map[string]any{"proposal_id": in.Proposal}, "you", "see which there are")
	}
	return op.Answer{Name: "validation", Value: shown, Position: position}, nil
}

// notPassed is the shortfall of a validation: stages that were run have not
// passed. One that still waits for tests is as it was asked for.
func notPassed(answer []byte) *fault.Error {
	var a struct {
		Validation wire.StagedValidation `json:"validation"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return fault.Errorf(fault.Unavailable, "unknown_outcome", "the answer cannot be read: %v", err)
	}
	v := a.Validation
	if v.Status != "failed" && v.Status != "error" {
		return nil
	}
	var unmet []string
	for _, s := range v.Stages {
		if s.Status != "passed" && s.Status != "not_applicable" {
			unmet = append(unmet, s.Stage+" "+s.Status)
		}
	}
	return fault.Errorf(fault.Conflict, "not_valid", "it is not valid: %s", strings.Join(unmet, ", ")).
		Then("proposal.explain", map[string]any{"proposal_id": v.Proposal}, "you", "see what the proposal still needs")
}
