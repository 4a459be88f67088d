package commands

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/domain"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

const (
	server = "/api/v1"
	ws     = "/api/v1/workspaces/{workspace_id}"
)

// testers may test what is not theirs.
var testers = []auth.Role{auth.Tester}

func by(roles ...auth.Role) op.May { return op.May{Roles: roles} }

func people(roles ...auth.Role) op.May { return op.May{Roles: roles, Human: true} }

// Ops lists the commands and questions that outsiders may send.
func (h *Handler) Ops() []op.Op {
	ops := h.serverOps()
	ops = append(ops, h.proposalOps()...)
	ops = append(ops, h.previewOps()...)
	ops = append(ops, h.reviewOps()...)
	ops = append(ops, h.transactionOps()...)
	ops = append(ops, h.attestOps()...)
	ops = append(ops, h.repositoryOps()...)
	ops = append(ops, h.validationOps()...)
	return append(ops, h.testOps()...)
}

func (h *Handler) serverOps() []op.Op {
	admins := op.May{Roles: []auth.Role{auth.Admin}, Human: true, Server: true}
	return []op.Op{
		command[AddWorkspace, wire.Workspace](h, "workspace", op.Op{Route: "POST " + server + "/workspaces", Status: http.StatusCreated,
			May: op.May{Roles: []auth.Role{auth.Admin}, Human: true, Everywhere: true},
			Doc: "Put a Git work tree or folder of the server under governance."}),
		command[CreatePrincipal, wire.Principal](h, "principal", op.Op{Route: "POST " + server + "/principals", Status: http.StatusCreated, May: admins, Rights: true,
			Doc: "Make a person, agent or service known, with its roles."}),
		h.issueToken(op.Op{Name: "token.issue", Route: "POST " + server + "/tokens", Status: http.StatusCreated, May: admins, Effect: op.Records, Rights: true,
			Doc: "Make a credential of a principal and show it this once."}),
		command[RevokeToken, wire.Token](h, "token", op.Op{Route: "DELETE " + server + "/tokens/{token_id}", May: admins,
			Doc: "End a credential at once."}),
		question(h, op.Op{Name: "principal.me", Route: "GET " + server + "/me", Out: op.OneOf[wire.Principal]("principal", nil),
			Doc: "Say whom your token stands for."}, h.me),
		command[CreateTask, wire.Task](h, "task", op.Op{Route: "POST " + ws + "/tasks", Status: http.StatusCreated, Tool: true, May: by(auth.Orchestrator),
			Doc: "Ask for a piece of work that others can claim and propose for."}),
		command[ClaimResource, wire.Claim](h, "claim", op.Op{Route: "POST " + ws + "/claims", Status: http.StatusCreated, Tool: true, May: by(auth.Implementer),
			Doc: "Claim a file or directory before you change it; a conflict names the holder and when the claim ends."}),
		command[ReleaseClaim, wire.Claim](h, "claim", op.Op{Route: "POST " + ws + "/claims/{claim_id}/release", Tool: true, May: by(auth.Implementer, auth.Orchestrator),
			Doc: "Give a claim of yours back when you no longer need it."}),
	}
}

func (h *Handler) proposalOps() []op.Op {
	const p = ws + "/proposals/{proposal_id}"
	return []op.Op{
		proposed[CreateProposal](h, op.Op{Route: "POST " + ws + "/proposals", Status: http.StatusCreated, Tool: true, May: by(auth.Implementer),
			Doc: "Propose a change as a patch on the tree as it is; the answer's gates say what it still needs."}),
		proposed[AttachPatch](h, op.Op{Route: "POST " + p + "/revisions", Status: http.StatusCreated, Tool: true, May: by(auth.Implementer, auth.Orchestrator),
			Doc: "Replace the patch of your proposal by a new revision; votes and approvals on the old one become stale."}),
		question(h, op.Op{Name: "proposal.get", Route: "GET " + p, Tool: true, Doc: "Read one proposal with its revisions, votes, approvals and gates.",
			Out: op.OneOf[wire.Proposal]("proposal", gateFields())}, h.get),
		command[RequestReview, wire.Proposal](h, "proposal", op.Op{Route: "POST " + p + "/request-review", Tool: true, May: by(auth.Implementer, auth.Orchestrator),
			Doc: "Put a proposal up for review and start the tests it expects."}),
		command[WithdrawProposal, wire.Proposal](h, "proposal", op.Op{Route: "POST " + p + "/withdraw", Tool: true, May: by(auth.Implementer, auth.Orchestrator),
			Doc: "Take your proposal back and release its claims."}),
		question(h, op.Op{Name: "proposal.explain", Route: "GET " + p + "/gates", Tool: true,
			Doc: "Say which gates stand between a proposal and its application, and which calls would open them."}, h.explain),
		question(h, op.Op{Name: "patch.validate", Route: "GET " + p + "/checks", Tool: true, Shortfall: notValid,
			Doc: "Run every check on a proposal's newest revision without changing anything."}, h.validate),
		command[RejectPatch, wire.Proposal](h, "proposal", op.Op{Route: "POST " + p + "/reject", Tool: true, May: by(auth.Reviewer, auth.Security, auth.Operator, auth.Admin),
			Doc: "Turn a proposal down for good, with a reason."}),
	}
}

func (h *Handler) reviewOps() []op.Op {
	const a = ws + "/approvals/{approval_id}"
	decide := []auth.Role{auth.Reviewer, auth.Security, auth.Operator, auth.Admin}
	return []op.Op{
		command[CastVote, wire.Vote](h, "vote", op.Op{Route: "POST " + ws + "/proposals/{proposal_id}/votes", Status: http.StatusCreated, Tool: true, May: by(auth.Reviewer, auth.Security, auth.Operator, auth.Admin),
			Doc: "Give your word on a revision you have read: approve, approve_with_notes, revise, reject, veto or abstain."}),
		command[RequestApproval, wire.Approval](h, "approval", op.Op{Route: "POST " + ws + "/approvals", Status: http.StatusCreated, Tool: true, May: by(auth.Implementer, auth.Orchestrator, auth.Reviewer),
			Doc: "Ask people to decide something, such as a change of high risk."}),
		command[Approve, wire.Approval](h, "approval", op.Op{Route: "POST " + a + "/approve", May: people(decide...), Doc: "Say yes to what was asked."}),
		command[Reject, wire.Approval](h, "approval", op.Op{Route: "POST " + a + "/reject", May: people(decide...), Doc: "Say no to what was asked, with a reason."}),
		command[RequestChanges, wire.Approval](h, "approval", op.Op{Route: "POST " + a + "/request-changes", May: people(decide...), Doc: "Want another revision first, with a reason."}),
		command[Defer, wire.Approval](h, "approval", op.Op{Route: "POST " + a + "/defer", May: people(decide...), Doc: "Put the decision off, with a reason."}),
	}
}

func (h *Handler) transactionOps() []op.Op {
	const t = ws + "/transactions/{transaction_id}"
	apply := by(auth.Orchestrator)
	return []op.Op{
		command[OpenTransaction, wire.Transaction](h, "transaction", op.Op{Route: "POST " + ws + "/transactions", Status: http.StatusCreated, May: apply,
			Doc: "Open and stage a transaction of a proposal's newest revision."}),
		command[StageTransaction, wire.Transaction](h, "transaction", op.Op{Route: "POST " + t + "/stage", Tool: true, May: apply,
			Doc: "Make a pending transaction ready to be applied."}),
		applying(h, func(c ApplyTransaction) *int { return c.Wait }, op.Op{Route: "POST " + t + "/apply", May: apply, Effect: op.Changes,
			Doc: "Apply a staged transaction to the repository, all or nothing, and wait for the outcome."}),
		applying(h, func(c ApplyPatch) *int { return c.Wait }, op.Op{Route: "POST " + ws + "/proposals/{proposal_id}/apply", Tool: true, May: apply, Effect: op.Changes,
			Doc: "Apply a proposal whose gates have all passed, all or nothing, and wait for the outcome."}),
		validating(h, op.Op{Route: "POST " + t + "/validate", Tool: true, May: apply,
			Doc: "Run every check on a transaction's revision without moving it."}),
		command[RetryTransaction, wire.Transaction](h, "transaction", op.Op{Route: "POST " + t + "/retry", May: people(auth.Orchestrator),
			Doc: "Open a failed transaction again; it is staged, or waits for its turn."}),
		command[CancelTransaction, wire.Transaction](h, "transaction", op.Op{Route: "POST " + t + "/cancel", May: people(auth.Orchestrator),
			Doc: "End a transaction that has changed nothing and free its proposal for another."}),
		commanding(h, "transaction", op.Op{Route: "POST " + t + "/resolve", May: people(auth.Operator), Effect: op.Changes,
			Doc: "Keep what now lies at paths that an apply left to a person."}, op.OneOf[wire.Transaction]("transaction", nil), h.resolved),
		compensating(h, op.Op{Route: "POST " + t + "/compensate", Status: http.StatusCreated, Tool: true, May: apply,
			Doc: "Propose the exact reverse of an applied transaction; it goes through the normal gates."}),
		question(h, op.Op{Name: "transaction.recovery", Route: "GET " + t + "/recovery", Tool: true,
			Doc: "Look at the files, the journal and the log, and say what state a transaction left and what can be done."}, h.recovery),
	}
}

// A bodied input takes a raw body.
type bodied interface{ SetBody([]byte) }

// command makes an op of a command. Its answer is the entity, read again once
// the views hold what the command did.
func command[C Command, E any](h *Handler, entity string, o op.Op) op.Op {
	return commanding[C](h, entity, o, op.OneOf[E](entity, nil), nil)
}

func commanding[C Command](h *Handler, entity string, o op.Op, out *jsonschema.Schema, then func(context.Context, op.Call, C, Result) (op.Answer, error)) op.Op {
	var zero C
	o.Name, o.Out, o.Effect = zero.Name(), out, max(o.Effect, op.Records)
	return op.Of(o, func(ctx context.Context, c op.Call, cmd C) (op.Answer, error) {
		if b, ok := any(&cmd).(bodied); ok && c.Body != nil {
			b.SetBody(c.Body)
		}
		r, err := h.Do(ctx, Caller{Who: c.Who, Workspace: c.Workspace, Key: c.Key, Request: c.Request}, cmd)
		if err != nil {
			return op.Answer{}, err
		}
		if then != nil {
			return then(ctx, c, cmd, r)
		}
		return h.answer(ctx, c, entity, r)
	})
}

// answer reads the entity of a result again.
func (h *Handler) answer(ctx context.Context, c op.Call, entity string, r Result) (op.Answer, error) {
	v, _, err := h.Show(ctx, entity, c.Workspace, r.IDs[entity], r.Position)
	if fault.CodeOf(err) == "view_behind" {
		return op.Answer{}, fault.Errorf(fault.Unavailable, "done_not_readable", "it is done, at position %d, and the views do not show it yet; send it again under the same key to read it", r.Position).
			With("position", r.Position).With(entity+"_id", r.IDs[entity])
	}
	return op.Answer{Name: entity, Value: v, Position: r.Position}, err
}

// Bounds on the wait for an apply, in seconds.
const (
	defaultWait = 30
	maxWait     = 300
)

// applying makes an op of a command after which the transaction's end is
// waited for. When the time is over the answer says how far it is.
func applying[C Command](h *Handler, wait func(C) *int, o op.Op) op.Op {
	o.Shortfall = notApplied
	return commanding(h, "transaction", o, op.OneOf[wire.Transaction]("transaction", nil), func(ctx context.Context, c op.Call, cmd C, r Result) (op.Answer, error) {
		return h.awaited(ctx, c, wait(cmd), r, domain.Transaction.Done)
	})
}

// awaited answers the transaction once over says so, or as it is when the time
// is over.
func (h *Handler) awaited(ctx context.Context, c op.Call, wait *int, r Result, over func(domain.Transaction) bool) (op.Answer, error) {
	seconds := defaultWait
	if wait != nil {
		seconds = min(max(*wait, 0), maxWait)
	}
	waiting, stop := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer stop()
	if err := h.wait(waiting, c, r.IDs["transaction"], over); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return op.Answer{}, err
	}
	head, _, err := h.Log.Head(ctx)
	if err != nil {
		return op.Answer{}, err
	}
	return h.answer(ctx, c, "transaction", Result{Position: head, IDs: r.IDs})
}

// validating answers the checks beside the transaction.
func validating(h *Handler, o op.Op) op.Op {
	o.Shortfall = notValid
	out := op.OneOf[wire.Transaction]("transaction", map[string]*jsonschema.Schema{
		"checks": op.SchemaOf[[]wire.Check](), "valid": {Type: "boolean"}, "appliable": {Type: "boolean"}})
	return commanding(h, "transaction", o, out, func(ctx context.Context, c op.Call, _ ValidateTransaction, r Result) (op.Answer, error) {
		a, err := h.answer(ctx, c, "transaction", r)
		if t, ok := a.Value.(wire.Transaction); ok && err == nil {
			a.More, err = h.checked(ctx, c, t)
		}
		return a, err
	})
}

// compensating answers the new proposal beside the transaction.
func compensating(h *Handler, o op.Op) op.Op {
	out := op.OneOf[wire.Transaction]("transaction", map[string]*jsonschema.Schema{"proposal": op.SchemaOf[wire.Proposal]()})
	return commanding(h, "transaction", o, out, func(ctx context.Context, c op.Call, _ Compensate, r Result) (op.Answer, error) {
		a, err := h.answer(ctx, c, "transaction", r)
		if err != nil {
			return a, err
		}
		p, err := h.answer(ctx, c, "proposal", r)
		a.More = map[string]any{"proposal": p.Value}
		return a, err
	})
}

// question makes an op of a question: anyone who reads the workspace may ask.
func question[I, O any](h *Handler, o op.Op, ask func(context.Context, op.Call, I) (O, error)) op.Op {
	o.May.Any = true
	return op.Of(o, ask)
}

// issueToken makes the token outside the command, so that it is never part of
// an outcome: a repeat answers without it.
func (h *Handler) issueToken(o op.Op) op.Op {
	o.Out = &jsonschema.Schema{Type: "object", Required: []string{"position", "token_id", "expires_at"}, Properties: map[string]*jsonschema.Schema{
		"position": {Type: "integer"}, "token": {Type: "string"}, "token_id": {Type: "string"}, "expires_at": {Type: "string"},
	}}
	return op.Of(o, func(ctx context.Context, c op.Call, in IssueToken) (map[string]any, error) {
		token, r, err := h.Issue(ctx, Caller{Who: c.Who, Key: c.Key, Request: c.Request}, in)
		if err != nil {
			return nil, err
		}
		v, _, err := h.Show(ctx, "token", "", r.IDs["token"], r.Position)
		if err != nil {
			return nil, err
		}
		t, ok := v.(wire.Token)
		if !ok {
			return nil, fault.Errorf(fault.Internal, "internal", "a token was read as %T", v)
		}
		m := map[string]any{"position": r.Position, "token_id": t.ID, "expires_at": t.ExpiresAt}
		if token != "" {
			m["token"] = token
		}
		return m, nil
	})
}

// Issue makes a token and returns its text; "" if the same call was made
// before.
func (h *Handler) Issue(ctx context.Context, by Caller, in IssueToken) (token string, r Result, err error) {
	in.id = "TK-" + h.NewID()
	token, in.hash = auth.NewToken(in.id)
	r, err = h.Do(ctx, by, in)
	if r.Repeated {
		token = ""
	}
	return token, r, err
}
