package domain

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/internal/fault"
)

// A workshop plays the commands on the transactions of one workspace, as they
// are decided and appended, and checks after each what always holds.
type workshop struct {
	*rapid.T
	proposals map[string]Proposal
	txs       map[string]Transaction
	order     []string // of transactions, as they were made
	tree      Tree
}

func newWorkshop(t *rapid.T, proposals int) *workshop {
	w := &workshop{T: t, proposals: map[string]Proposal{}, txs: map[string]Transaction{}}
	for i := range proposals {
		id := fmt.Sprintf("P-%d", i)
		w.proposals[id] = Proposal{}.Evolve(events.ProposalCreated{Proposal: id, Workspace: "w", Author: "ann"}).
			Evolve(events.ProposalRevisionAttached{Proposal: id, Number: 1, AttachedBy: "ann"})
	}
	return w
}

// happen appends what was decided, with what follows for the tree.
func (w *workshop) happen(es []events.Payload) {
	es = append(es, w.tree.Follow("w", es)...)
	for _, e := range es {
		switch e := e.(type) {
		case events.TransactionOpened:
			w.order = append(w.order, e.Transaction)
		case events.WorkspaceApplyBegun:
			if len(w.tree.Applying) > 0 || len(w.tree.Waiting) > 0 && w.tree.Waiting[0] != e.Transaction {
				w.Fatalf("%s passed %v, %v", e.Transaction, w.tree.Applying, w.tree.Waiting)
			}
		}
		kind, id := split(e.Stream())
		switch kind {
		case "proposal":
			w.proposals[id] = w.proposals[id].Evolve(e)
		case "transaction":
			w.txs[id] = w.txs[id].Evolve(e)
		case "tree":
			w.tree = w.tree.Clone().Evolve(e)
		}
	}
	w.holds()
}

func split(s events.Stream) (kind, id string) {
	for i, c := range s {
		if c == '/' {
			return string(s[:i]), string(s[i+1:])
		}
	}
	return string(s), ""
}

// holds checks what always does.
func (w *workshop) holds() {
	w.Helper()
	var applying, pending []string
	open := map[string][]string{}
	for id, t := range w.txs {
		switch t.State {
		case TxApplying:
			applying = append(applying, id)
		case TxPending:
			pending = append(pending, id)
		}
		if !t.Done() {
			open[t.Proposal] = append(open[t.Proposal], id)
		}
	}
	slices.Sort(pending)
	waiting := slices.Sorted(slices.Values(w.tree.Waiting))
	if len(applying) > 1 || !slices.Equal(applying, w.tree.Applying) {
		w.Fatalf("applying %v, the tree says %v", applying, w.tree.Applying)
	}
	if !slices.Equal(pending, waiting) {
		w.Fatalf("pending %v, the tree says %v", pending, waiting)
	}
	for id, p := range w.proposals {
		if p.Busy != (len(open[id]) == 1) || len(open[id]) > 1 || p.Busy && open[id][0] != p.Transaction {
			w.Fatalf("%s: busy %v with %s, open are %v", id, p.Busy, p.Transaction, open[id])
		}
	}
}

// refused checks that a refusal is one of state.
func (w *workshop) refused(err error) {
	w.Helper()
	if err != nil && fault.KindOf(err) != fault.Conflict {
		w.Fatalf("%v", err)
	}
}

// step does something to something; what is refused changes nothing.
func (w *workshop) step() {
	by := Asker{ID: "bob"}
	p := w.proposals[rapid.SampledFrom(slices.Sorted(maps.Keys(w.proposals))).Draw(w.T, "proposal")]
	var t Transaction
	if len(w.order) > 0 {
		t = w.txs[rapid.SampledFrom(w.order).Draw(w.T, "transaction")]
	}
	var es []events.Payload
	var err error
	switch what := rapid.SampledFrom([]string{"open", "open", "apply", "apply", "apply", "stage", "retry", "cancel", "attach", "withdraw", "end", "end", "end", "turn", "turn"}).Draw(w.T, "what"); {
	case what == "open":
		es, err = p.Open(fmt.Sprintf("TX-%02d", len(w.order)), by, w.tree)
	case what == "attach":
		es, err = p.Attach(events.ProposalRevisionAttached{AttachedBy: "ann"}, p.Current().Number, w.txs[p.Transaction])
	case what == "withdraw" && rapid.IntRange(0, 3).Draw(w.T, "sure") == 0:
		es, err = p.Withdraw("ann", "", Claims{}, w.txs[p.Transaction])
	case what == "end":
		es = w.end()
	case what == "turn":
		es = w.turn()
	case t.ID == "":
	case what == "apply":
		es, err = w.ask(t, by)
	case what == "stage":
		es, err = t.Stage(by, w.tree)
	case what == "retry":
		es, err = t.Retry(by, w.proposals[t.Proposal], w.tree)
	case what == "cancel":
		es, err = t.Cancel(by, w.proposals[t.Proposal])
	}
	w.refused(err)
	if err == nil {
		w.happen(es)
	}
}

func (w *workshop) passes() bool { return rapid.Bool().Draw(w.T, "gates pass") }

func (w *workshop) ask(t Transaction, by Asker) ([]events.Payload, error) {
	es, now, err := t.Ask(by, w.tree)
	if now && w.passes() {
		es = t.Apply(events.TransactionApplyRequested{}, w.proposals[t.Proposal], by)
	}
	return es, err
}

// end ends what is applying.
func (w *workshop) end() []events.Payload {
	for _, t := range w.txs {
		switch {
		case t.State != TxApplying:
		case w.passes():
			return t.RecordApplied(events.TransactionApplied{Transaction: t.ID, Attempt: t.Attempt, Files: []events.ChangedPath{{Path: "a", After: events.PathState{Path: "a"}}}}, nil, w.proposals[t.Proposal], Claims{}, nil)
		default:
			code := rapid.SampledFrom([]string{"state.stale", NeedsAttention}).Draw(w.T, "code")
			return t.RecordFailed(events.TransactionFailed{Transaction: t.ID, Proposal: t.Proposal, Attempt: t.Attempt, Code: code}, nil)
		}
	}
	return nil
}

// turn is the service's command: see commands.TakeTurn.
func (w *workshop) turn() (out []events.Payload) {
	tree := w.tree
	for next := tree.Next(); next != ""; next = tree.Next() {
		t := w.txs[next]
		es, wish := t.Turn(tree, noon)
		switch {
		case wish != nil && len(out) > 0:
			return out
		case wish != nil && w.passes():
			return t.Apply(events.TransactionApplyRequested{}, w.proposals[t.Proposal], *wish)
		case wish != nil:
			return t.Unmet(fault.Errorf(fault.Conflict, "gates_not_met", "no"))
		}
		tree = tree.Evolve(events.WorkspaceTransactionUnqueued{Transaction: next})
		out = append(out, es...)
	}
	return out
}

// TestTurns: whatever is asked, in whatever order, one transaction of a
// workspace applies at a time, in the order in which they came; none is lost;
// and a proposal is busy exactly while a transaction of it is open.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorkshop(t, rapid.IntRange(1, 5).Draw(t, "proposals"))
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			w.step()
		}
		for n := 0; len(w.tree.Applying)+len(w.tree.Waiting) > 0; n++ { // the service goes on by itself
			if n > 200 {
				t.Fatalf("%v wait for ever", w.tree.Waiting)
			}
			w.happen(w.end())
			w.happen(w.turn())
		}
		for _, id := range w.order {
			if s := w.txs[id].State; s == TxPending || s == TxApplying {
				t.Fatalf("%s is left %s", id, s)
			}
		}
	})
}
