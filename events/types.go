package events

import (
	"encoding/json"
	"fmt"
	"reflect"
)

// types lists every payload. To add one: write its struct next to its
// aggregate's others, and add its line here.
//
// The name is what the log stores; it never changes, whatever the Go type is
// called. The functions after it bring data written by schema 1, 2, … up to
// the next one.
var types = index(
	of[PrincipalCreated]("principal.created"),
	of[RoleGranted]("role.granted"),
	of[TokenIssued]("token.issued"),
	of[TokenRevoked]("token.revoked"),
	of[WorkspaceAdded]("workspace.added"),
	of[WorkspaceTransactionQueued]("workspace.transaction_queued"),
	of[WorkspaceTransactionUnqueued]("workspace.transaction_unqueued"),
	of[WorkspaceApplyBegun]("workspace.apply_begun"),
	of[WorkspaceApplyEnded]("workspace.apply_ended"),
	of[WorkspaceApplyModeSet]("workspace.apply_mode_set"),
	of[WorkspaceForeignChange]("workspace.foreign_change"),
	of[TaskCreated]("task.created"),
	of[ClaimGranted]("claim.granted"),
	of[ClaimReleased]("claim.released"),
	of[ClaimExpired]("claim.expired"),
	of[ClaimBecameStale]("claim.became_stale"),
	of[ProposalCreated]("proposal.created"),
	of[ProposalRevisionAttached]("proposal.revision_attached"),
	of[ProposalReviewRequested]("proposal.review_requested"),
	of[ProposalRevisionRequested]("proposal.revision_requested"),
	of[ProposalRejected]("proposal.rejected"),
	of[ProposalWithdrawn]("proposal.withdrawn"),
	of[ProposalTransactionOpened]("proposal.transaction_opened"),
	of[ProposalTransactionFailed]("proposal.transaction_failed"),
	of[ProposalTransactionCancelled]("proposal.transaction_cancelled"),
	of[ProposalAccepted]("proposal.accepted"),
	of[ProposalTestRequested]("proposal.test_requested"),
	of[ProposalTested]("proposal.tested"),
	of[VoteCast]("vote.cast"),
	of[DecisionRecorded]("decision.recorded"),
	of[ApprovalRequested]("approval.requested"),
	of[ApprovalFiled]("approval.filed"),
	of[ApprovalDecided]("approval.decided"),
	of[TransactionOpened]("transaction.opened"),
	of[TransactionStaged]("transaction.staged"),
	of[TransactionApplyRequested]("transaction.apply_requested"),
	of[TransactionPhaseCompleted]("transaction.phase_completed"),
	of[TransactionApplied]("transaction.applied"),
	of[TransactionFailed]("transaction.failed"),
	of[TransactionRecovered]("transaction.recovered"),
	of[TransactionCompensated]("transaction.compensated"),
	of[TransactionApplyQueued]("transaction.apply_queued"),
	of[TransactionRetried]("transaction.retried"),
	of[TransactionCancelled]("transaction.cancelled"),
	of[TransactionResolveRequested]("transaction.resolve_requested"),
	of[TransactionResolved]("transaction.resolved"),
	of[TransactionResolveFailed]("transaction.resolve_failed"),
	of[TransactionRestored]("transaction.restored"),
	of[TransactionCompensationProposed]("transaction.compensation_proposed"),
	of[TestRunRequested]("test_run.requested"),
	of[TestRunStarted]("test_run.started"),
	of[TestRunCancelRequested]("test_run.cancel_requested"),
	of[TestRunFinished]("test_run.finished"),
	of[ValidationStarted]("validation.started"),
	of[ValidationTestsRequested]("validation.tests_requested"),
	of[ValidationStageFinished]("validation.stage_finished"),
	of[ValidationFinished]("validation.finished"),
)

// Encode returns a payload's stored name, schema and data.
func Encode(p Payload) (name string, schema int, data []byte, err error) {
	t, ok := types.byType[reflect.TypeOf(p)]
	if !ok {
		return "", 0, nil, fmt.Errorf("events: %T is not in types", p)
	}
	data, err = json.Marshal(p)
	return t.name, t.schema(), data, err
}

// Decode returns the payload that was stored under name.
func Decode(name string, schema int, data []byte) (Payload, error) {
	t, ok := types.byName[name]
	if !ok {
		return nil, fmt.Errorf("events: unknown type %q", name)
	}
	if schema < 1 || schema > t.schema() {
		return nil, fmt.Errorf("events: %s has schema %d, this program knows up to %d", name, schema, t.schema())
	}
	for _, up := range t.upcasts[schema-1:] {
		var err error
		if data, err = up(data); err != nil {
			return nil, fmt.Errorf("events: upcast %s: %w", name, err)
		}
	}
	return t.decode(data)
}

// Zeros returns a zero value of every payload, for tests that must cover all.
func Zeros() []Payload { return types.zeros }

type upcast func(json.RawMessage) (json.RawMessage, error)

type typ struct {
	name    string
	goType  reflect.Type
	zero    Payload
	upcasts []upcast
	decode  func([]byte) (Payload, error)
}

func (t typ) schema() int { return len(t.upcasts) + 1 }

func of[P Payload](name string, ups ...func(json.RawMessage) (json.RawMessage, error)) typ {
	t := typ{name: name, goType: reflect.TypeFor[P](), zero: *new(P)}
	for _, u := range ups {
		t.upcasts = append(t.upcasts, u)
	}
	t.decode = func(b []byte) (Payload, error) {
		var p P
		if err := json.Unmarshal(b, &p); err != nil {
			return nil, fmt.Errorf("events: decode %s: %w", name, err)
		}
		return p, nil
	}
	return t
}

type table struct {
	byName map[string]typ
	byType map[reflect.Type]typ
	zeros  []Payload
}

func index(ts ...typ) table {
	x := table{byName: map[string]typ{}, byType: map[reflect.Type]typ{}}
	for _, t := range ts {
		if _, dup := x.byName[t.name]; dup {
			panic("events: " + t.name + " is listed twice")
		}
		x.byName[t.name], x.byType[t.goType] = t, t
		x.zeros = append(x.zeros, t.zero)
	}
	return x
}
