package domain

import (
	"slices"
	"testing"

	"roundtable/events"
	"roundtable/internal/fault"
)

// states are transactions in each state, with the tree and the proposal around
// them.
func txStates() map[string]func() (Transaction, Tree, Proposal) {
	opened := []events.Payload{events.TransactionOpened{Transaction: "TX", Workspace: "w", Proposal: "P", Revision: 1}}
	make := func(tree Tree, busy bool, es ...events.Payload) func() (Transaction, Tree, Proposal) {
		return func() (Transaction, Tree, Proposal) {
			var t Transaction
			for _, e := range append(slices.Clone(opened), es...) {
				t = t.Evolve(e)
			}
			p := proposed(events.ProposalTransactionOpened{Transaction: "TX"})
			if !busy {
				p = p.Evolve(events.ProposalTransactionFailed{Transaction: "TX"})
			}
			return t, tree, p
		}
	}
	line := Tree{Applying: []string{"TX-other"}, Waiting: []string{"TX"}}
	failed := events.TransactionFailed{Code: "state.stale"}
	return map[string]func() (Transaction, Tree, Proposal){
		"pending":   make(line, true),
		"first":     make(Tree{Waiting: []string{"TX"}}, true),
		"wished":    make(line, true, events.TransactionApplyQueued{Transaction: "TX", By: "bob"}),
		"staged":    make(Tree{}, true, events.TransactionStaged{}),
		"blocked":   make(Tree{Applying: []string{"TX-other"}}, true, events.TransactionStaged{}),
		"applying":  make(Tree{Applying: []string{"TX"}}, true, events.TransactionApplyRequested{Attempt: 1}),
		"applied":   make(Tree{}, false, events.TransactionApplied{}),
		"failed":    make(Tree{}, false, failed),
		"again":     make(Tree{}, true, failed, events.TransactionRetried{}, events.TransactionStaged{}),
		"in line":   make(line, true, failed, events.TransactionRetried{}, events.TransactionApplyQueued{Transaction: "TX", By: "bob"}),
		"stuck":     make(Tree{}, false, events.TransactionFailed{Code: NeedsAttention}),
		"resolved":  make(Tree{}, false, events.TransactionFailed{Code: NeedsAttention}, events.TransactionResolved{Transaction: "TX"}),
		"cancelled": make(Tree{}, false, events.TransactionCancelled{}),
	}
}

// TestTransactionMoves: what each state allows, what repeats change nothing,
// and how the rest is refused.
func TestTransactionMoves(t *testing.T) {
	by := Asker{ID: "bob", Reason: "since", Request: "req", Now: noon}
	ops := map[string]func(Transaction, Tree, Proposal) ([]events.Payload, error){
		"stage": func(x Transaction, tree Tree, _ Proposal) ([]events.Payload, error) { return x.Stage(by, tree) },
		"apply": func(x Transaction, tree Tree, _ Proposal) ([]events.Payload, error) {
			es, now, err := x.Ask(by, tree)
			if now {
				es = []events.Payload{nil}
			}
			return es, err
		},
		"retry":   func(x Transaction, tree Tree, p Proposal) ([]events.Payload, error) { return x.Retry(by, p, tree) },
		"cancel":  func(x Transaction, _ Tree, p Proposal) ([]events.Payload, error) { return x.Cancel(by, p) },
		"resolve": func(x Transaction, _ Tree, _ Proposal) ([]events.Payload, error) { return x.Resolve(by) },
	}
	// +: does something; =: changes nothing; else the code of the refusal.
	const no = "illegal_transaction_transition"
	want := map[string]map[string]string{
		"pending":   {"stage": "transaction_waits", "apply": "+", "retry": no, "cancel": "+", "resolve": no},
		"first":     {"stage": "+", "apply": "+", "retry": no, "cancel": "+", "resolve": no},
		"wished":    {"stage": "transaction_waits", "apply": "=", "retry": no, "cancel": "+", "resolve": no},
		"staged":    {"stage": "=", "apply": "+", "retry": no, "cancel": "+", "resolve": no},
		"blocked":   {"stage": "=", "apply": "+", "retry": no, "cancel": "+", "resolve": no},
		"applying":  {"stage": no, "apply": "=", "retry": no, "cancel": no, "resolve": no},
		"applied":   {"stage": no, "apply": "=", "retry": no, "cancel": no, "resolve": "+"},
		"failed":    {"stage": no, "apply": no, "retry": "+", "cancel": "+", "resolve": no},
		"again":     {"stage": "=", "apply": "+", "retry": "=", "cancel": "+", "resolve": no},
		"in line":   {"stage": "transaction_waits", "apply": "=", "retry": "=", "cancel": "+", "resolve": no},
		"stuck":     {"stage": no, "apply": no, "retry": NeedsAttention, "cancel": NeedsAttention, "resolve": "+"},
		"resolved":  {"stage": no, "apply": no, "retry": "+", "cancel": "+", "resolve": "="},
		"cancelled": {"stage": no, "apply": no, "retry": no, "cancel": "=", "resolve": no},
	}
	for state, in := range txStates() {
		for name, op := range ops {
			es, err := op(in())
			got := "="
			switch {
			case err != nil:
				got = fault.CodeOf(err)
			case len(es) > 0:
				got = "+"
			}
			if got != want[state][name] {
				t.Errorf("%s of %s: %s (%v, %v), want %s", name, state, got, es, err, want[state][name])
			}
			if f, ok := err.(*fault.Error); ok && (f.Kind != fault.Conflict || f.Context["allowed"] == nil || len(f.Next) == 0) {
				t.Errorf("%s of %s says %+v", name, state, f)
			}
		}
	}
}

// TestRetryRefused: what is around a failed transaction keeps it from being
// tried again.
func TestRetryRefused(t *testing.T) {
	x, tree, p := txStates()["failed"]()
	for code, around := range map[string]Proposal{
		"illegal_proposal_transition": p.Evolve(events.ProposalRejected{}),
		"stale_revision":              p.Evolve(events.ProposalRevisionAttached{Number: 2}),
		"transaction_busy":            p.Evolve(events.ProposalTransactionOpened{Transaction: "TX-2"}),
	} {
		if es, err := x.Retry(Asker{ID: "bob"}, around, tree); len(es) > 0 || fault.CodeOf(err) != code {
			t.Errorf("%s: %v, %v", code, es, err)
		}
	}
	full := Tree{Applying: []string{"TX-other"}, Waiting: []string{"TX-2"}, Room: 1}
	if es, err := x.Retry(Asker{ID: "bob"}, p, full); len(es) > 0 || fault.CodeOf(err) != "queue_full" {
		t.Errorf("%v, %v", es, err)
	}
	es, err := x.Retry(Asker{ID: "bob"}, p, Tree{Applying: []string{"TX-other"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		switch e := e.(type) {
		case events.WorkspaceTransactionQueued:
			if e.Behind != "TX-other" {
				t.Errorf("%+v", e)
			}
		case events.TransactionStaged:
			t.Error("staged while another applies")
		}
	}
}

// TestLeft: what an applied transaction made of its paths is known until
// another changes them, and a failed one leaves nothing.
func TestLeft(t *testing.T) {
	state := func(path, sum string) events.PathState {
		return events.PathState{Path: path, Kind: "file", SHA256: sum}
	}
	var tree Tree
	happen := func(es ...events.Payload) {
		for _, e := range tree.Follow("w", es) {
			tree = tree.Clone().Evolve(e)
		}
	}
	begin := func(tx string) { happen(events.TransactionApplyRequested{Transaction: tx}) }
	begin("TX-1")
	happen(events.TransactionApplied{Transaction: "TX-1", Files: []events.ChangedPath{{Path: "a", After: state("a", "1")}, {Path: "b", After: state("b", "1")}}})
	begin("TX-2")
	happen(events.TransactionFailed{Transaction: "TX-2"})
	begin("TX-3")
	happen(events.TransactionApplied{Transaction: "TX-3", Files: []events.ChangedPath{{Path: "a", After: state("a", "3")}}})
	if a, b := tree.Left["a"], tree.Left["b"]; len(tree.Left) != 2 || a.Transaction != "TX-3" || a.State.SHA256 != "3" || b.Transaction != "TX-1" {
		t.Errorf("%+v", tree.Left)
	}
}
