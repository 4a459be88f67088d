package commands

import (
	"context"

	"roundtable/domain"
	"roundtable/events"
)

// The commands of this file are reports of workers: no op offers them.

// RecordPhase reports what one step of an apply came to.
type RecordPhase struct {
	events.TransactionPhaseCompleted
}

// Name is the command's in the log of outcomes.
func (RecordPhase) Name() string { return "transaction.record_phase" }

func (c RecordPhase) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.Transaction](ctx, u, c.TransactionPhaseCompleted.Stream())
	if err != nil {
		return nil, err
	}
	return t.RecordPhase(c.TransactionPhaseCompleted), nil
}

// RecordApplied reports that the repository holds the change. From here on it
// counts: claims end and the proposal is accepted, in one append.
type RecordApplied struct{ events.TransactionApplied }

// Name is the command's in the log of outcomes.
func (RecordApplied) Name() string { return "transaction.record_applied" }

func (c RecordApplied) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.Transaction](ctx, u, c.TransactionApplied.Stream())
	if err != nil {
		return nil, err
	}
	p, err := load[domain.Proposal](ctx, u, events.ProposalStream(t.Proposal))
	if err != nil {
		return nil, err
	}
	claims, err := u.claims(ctx)
	if err != nil {
		return nil, err
	}
	var of domain.Transaction
	if t.Compensates != "" {
		if of, err = load[domain.Transaction](ctx, u, events.TransactionStream(t.Compensates)); err != nil {
			return nil, err
		}
	}
	c.Proposal = t.Proposal
	return t.RecordApplied(c.TransactionApplied, p, claims, of), nil
}

// RecordFailed reports that an apply ended without the change.
type RecordFailed struct{ events.TransactionFailed }

// Name is the command's in the log of outcomes.
func (RecordFailed) Name() string { return "transaction.record_failed" }

func (c RecordFailed) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.Transaction](ctx, u, c.TransactionFailed.Stream())
	if err != nil {
		return nil, err
	}
	if _, err := load[domain.Proposal](ctx, u, events.ProposalStream(t.Proposal)); err != nil {
		return nil, err
	}
	c.Proposal = t.Proposal
	return t.RecordFailed(c.TransactionFailed), nil
}

// StartTest reports that a worker has a run's tree ready. It answers whether
// the run may begin: the result's IDs hold "begun".
type StartTest struct{ events.TestRunStarted }

// Name is the command's in the log of outcomes.
func (StartTest) Name() string { return "test_run.start" }

func (c StartTest) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.TestRun](ctx, u, c.TestRunStarted.Stream())
	if err != nil {
		return nil, err
	}
	out := t.Start(c.Tree)
	if len(out) > 0 {
		u.ids["begun"] = c.TestRun
	}
	return out, nil
}

// FinishTest reports how a run ended.
type FinishTest struct{ events.TestRunFinished }

// Name is the command's in the log of outcomes.
func (FinishTest) Name() string { return "test_run.finish" }

func (c FinishTest) decide(ctx context.Context, u *unit) ([]events.Payload, error) {
	t, err := load[domain.TestRun](ctx, u, c.TestRunFinished.Stream())
	if err != nil {
		return nil, err
	}
	var p domain.Proposal
	if t.Request.Proposal != "" {
		if p, err = load[domain.Proposal](ctx, u, events.ProposalStream(t.Request.Proposal)); err != nil {
			return nil, err
		}
	}
	return t.Finish(c.TestRunFinished, p), nil
}
