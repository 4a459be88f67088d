package commands

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// The questions of this file load and judge like a command and append nothing.

// A proposalQuestion names one proposal.
type proposalQuestion struct {
	Proposal string `json:"proposal_id"`
}

// judge gathers the facts about a proposal and judges its gates.
func (h *Handler) judge(ctx context.Context, c op.Call, id string) (*unit, domain.Facts, []domain.Gate, error) {
	u := h.question(c.Who, c.Workspace)
	p, err := u.proposal(ctx, id)
	if err != nil {
		return u, domain.Facts{}, nil, err
	}
	f, err := u.facts(ctx, p)
	if err == nil && h.record(ctx, c.Workspace, u.gathered.noticed) {
		u = h.question(c.Who, c.Workspace) // the claims are other ones now
		f, err = u.facts(ctx, p)
	}
	if err != nil {
		return u, f, nil, err
	}
	return u, f, domain.Gates(f), nil
}

// explain says which gates are open, why, and what would close them.
func (h *Handler) explain(ctx context.Context, c op.Call, in proposalQuestion) (wire.Gates, error) {
	_, f, gates, err := h.judge(ctx, c, in.Proposal)
	if err != nil {
		return wire.Gates{}, err
	}
	r := f.Proposal.Current()
	return wire.Gates{Proposal: f.Proposal.ID, Revision: r.Number, Gates: wireGates(gates, r.PatchDigest), Appliable: !f.Proposal.Terminal() && domain.Appliable(gates)}, nil
}

// get reads a proposal with its gates.
func (h *Handler) get(ctx context.Context, c op.Call, in proposalQuestion) (op.Answer, error) {
	v, position, err := h.Show(ctx, "proposal", c.Workspace, in.Proposal, c.After)
	if err != nil {
		return op.Answer{}, err
	}
	p, ok := v.(wire.Proposal)
	if !ok {
		return op.Answer{}, fault.Errorf(fault.Internal, "internal", "a proposal was read as %T", v)
	}
	return op.Answer{Name: "proposal", Value: p, Position: position, More: h.gatesOf(ctx, c, p)}, nil
}

// gateFields are what an answer about a proposal holds besides it.
func gateFields() map[string]*jsonschema.Schema {
	return map[string]*jsonschema.Schema{"gates": op.SchemaOf[[]wire.Gate](), "appliable": {Type: "boolean"}}
}

// gatesOf answers the gates of a proposal that has not come to its end. That
// they cannot be judged, as while the folder is away, is one gate in error: the
// proposal can be read all the same.
func (h *Handler) gatesOf(ctx context.Context, c op.Call, p wire.Proposal) map[string]any {
	if p.Status == domain.Accepted || p.Status == domain.Rejected || p.Status == domain.Withdrawn {
		return map[string]any{"gates": []wire.Gate{}, "appliable": false}
	}
	g, err := h.explain(ctx, c, proposalQuestion{p.ID})
	if err != nil {
		why := "the gates cannot be judged now"
		if f, ok := errors.AsType[*fault.Error](err); ok && f.Kind != fault.Internal {
			why += ": " + f.Detail
		}
		g.Gates = []wire.Gate{{Gate: "patch", Status: "error", Because: []string{why}, Needs: []string{}, Next: []fault.Step{}}}
	}
	return map[string]any{"gates": g.Gates, "appliable": g.Appliable}
}

// proposed answers a proposal that was created or revised, with its gates.
func proposed[C Command](h *Handler, o op.Op) op.Op {
	return commanding(h, "proposal", o, op.OneOf[wire.Proposal]("proposal", gateFields()), func(ctx context.Context, c op.Call, _ C, r Result) (op.Answer, error) {
		a, err := h.answer(ctx, c, "proposal", r)
		if p, ok := a.Value.(wire.Proposal); ok {
			a.More = h.gatesOf(ctx, c, p)
		}
		return a, err
	})
}

// checkOf says which gate answers a check of patch_validate.
var checkOf = map[string]string{"claims": "claims", "resource_coverage": "coverage", "base": "base", "votes": "votes", "human_approval": "human_approval", "tests": "tests"}

// checkOrder lists the checks in the order in which they are answered.
var checkOrder = []string{"patch_exists", "patch_parse", "path_safety", "claims", "resource_coverage", "base", "temp_apply", "policy", "votes", "human_approval", "security_review", "tests"}

// validity lists the checks that patch_validate's valid covers.
var validity = map[string]bool{"patch_exists": true, "patch_parse": true, "path_safety": true, "claims": true, "resource_coverage": true, "base": true, "temp_apply": true}

// validate runs every check and changes nothing.
func (h *Handler) validate(ctx context.Context, c op.Call, in proposalQuestion) (wire.Validation, error) {
	_, f, gates, err := h.judge(ctx, c, in.Proposal)
	if err != nil {
		return wire.Validation{}, err
	}
	by := byGate(gates)
	v := wire.Validation{Proposal: in.Proposal, Revision: f.Proposal.Current().Number, Valid: true, Appliable: !f.Proposal.Terminal() && domain.Appliable(gates)}
	for _, name := range checkOrder {
		k := check(name, f, by)
		if validity[name] && k.Status != "passed" {
			v.Valid = false
		}
		v.Checks = append(v.Checks, k)
	}
	v.Legacy = legacy(f, v)
	return v, nil
}

func byGate(gates []domain.Gate) map[string]domain.Gate {
	by := map[string]domain.Gate{}
	for _, g := range gates {
		by[g.Gate] = g
	}
	return by
}

// together is what checks came to: the first that has not passed, or all that
// was found if all have.
func together(all ...wire.Check) (status, detail string) {
	var found []string
	for _, k := range all {
		if k.Status != "passed" {
			return k.Status, k.Detail
		}
		found = append(found, k.Detail)
	}
	return "passed", strings.Join(found, "; ")
}

func check(name string, f domain.Facts, by map[string]domain.Gate) wire.Check {
	if g, ok := by[checkOf[name]]; ok {
		return wire.Check{Check: name, Status: g.Status, Detail: strings.Join(g.Because, "; "), Ran: true, Next: steps(g.Next)}
	}
	refused := f.Patch.Refused
	is := func(prefixes ...string) bool {
		for _, p := range prefixes {
			if refused != nil && strings.HasPrefix(refused.Code, p) {
				return true
			}
		}
		return false
	}
	pass := wire.Check{Check: name, Status: "passed", Ran: true, Next: []fault.Step{}}
	fail := wire.Check{Check: name, Status: "failed", Ran: true, Next: []fault.Step{}}
	if refused != nil {
		fail.Detail, fail.Next = refused.Code+": "+refused.Detail, steps(by["patch"].Next)
	}
	switch name {
	case "patch_exists":
		pass.Detail = "patch " + f.Proposal.Current().PatchDigest
		return pass
	case "patch_parse": // a patch that does not parse was never stored
		pass.Detail = "every byte of the patch is accounted for"
		return pass
	case "path_safety":
		if is("path.", "symlink.") {
			return fail
		}
		pass.Detail = "no path leaves the repository or lies behind a link"
		return pass
	case "temp_apply":
		if is("path.", "symlink.") {
			return wire.Check{Check: name, Status: "skipped", Detail: "the paths are not safe", Next: []fault.Step{}}
		}
		if refused != nil {
			if said := f.Patch.Rebase.Sentence(); said != "" {
				fail.Detail += "; " + said
			}
			return fail
		}
		pass.Detail = "the patch fits the tree as it lies now"
		return pass
	case "policy":
		pass.Detail = "the built-in default policy " + f.Policy.Digest()
		return pass
	}
	return wire.Check{Check: name, Status: "not_applicable", Detail: "the built-in default policy does not ask for it", Next: []fault.Step{}}
}

// legacy gives the predecessor's field names, null where nothing was run.
func legacy(f domain.Facts, v wire.Validation) map[string]any {
	files := []string{}
	for _, x := range f.Proposal.Current().Files {
		files = append(files, x.Path)
	}
	m := map[string]any{"patch_exists": true, "patch_files": files, "patch_parse_error": "", "stale_claims": staleClaims(f), "security_review": nil, "valid": v.Valid}
	for _, k := range v.Checks {
		detail := ""
		if k.Status != "passed" {
			detail = k.Detail
		}
		switch k.Check {
		case "claims":
			m["claims_valid"], m["claim_error"] = k.Status == "passed", detail
		case "resource_coverage":
			m["resource_coverage"], m["resource_error"] = k.Status == "passed", detail
		case "temp_apply":
			m["temp_apply_error"] = any(detail)
			if !k.Ran {
				m["temp_apply_error"] = nil
			}
		}
	}
	return m
}

// staleClaims lists the claims that would back the newest revision, were they
// not stale for it.
func staleClaims(f domain.Facts) []map[string]any {
	out := []map[string]any{}
	for _, s := range domain.StaleClaims(f) {
		out = append(out, map[string]any{"claim_id": s.Claim.ID, "resource_id": s.Claim.Resource.ID(), "holder": s.Claim.Holder, "because": s.Because})
	}
	return out
}

// wait returns once over says so of the transaction, or when the time is over.
func (h *Handler) wait(ctx context.Context, c op.Call, id string, over func(domain.Transaction) bool) error {
	for {
		changed := h.Log.Changed()
		u := h.question(c.Who, c.Workspace)
		t, err := load[domain.Transaction](ctx, u, events.TransactionStream(id))
		if err != nil || over(t) {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// me says whom the caller's token stands for.
func (h *Handler) me(ctx context.Context, c op.Call, _ struct{}) (op.Answer, error) {
	v, position, err := h.Show(ctx, "principal", "", c.Who.ID, c.After)
	return op.Answer{Name: "principal", Value: v, Position: position}, err
}

// Narrowed returns ops that a token narrowed to a task can ask only about
// proposals of that task, wherever an input names one.
func (h *Handler) Narrowed(ops []op.Op) []op.Op {
	out := make([]op.Op, len(ops))
	for i, o := range ops {
		out[i] = o
		if o.In == nil || o.In.Properties["proposal_id"] == nil || o.Run == nil {
			continue
		}
		run := o.Run
		out[i].Run = func(ctx context.Context, c op.Call, in []byte) (any, error) {
			var named proposalQuestion
			if c.Who.Scope.Task != "" && o.Allows(c) == nil && json.Unmarshal(in, &named) == nil && named.Proposal != "" {
				if _, err := h.question(c.Who, c.Workspace).proposal(ctx, named.Proposal); err != nil {
					return nil, err
				}
			}
			return run(ctx, c, in)
		}
	}
	return out
}
