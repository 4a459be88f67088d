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
	line      []string // those that are pending, as they came to be: kept without the tree
	tree      Tree
	wrong     wrong
}

// A wrong makes the tree another than it is, for the tests of the checks.
type wrong struct {
	events func(happened []events.Payload) []events.Payload // what is appended; nil: what was decided
	tree   func(Tree) Tree                                  // what the rules are given; nil: the tree
}

// A broken is panicked with where something does not hold.
type broken string

func (w *workshop) breaks(format string, args ...any) { panic(broken(fmt.Sprintf(format, args...))) }

// given is the tree that the rules are given.
func (w *workshop) given() Tree {
	if w.wrong.tree != nil {
		return w.wrong.tree(w.tree.Clone())
	}
	return w.tree
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
	if w.wrong.events != nil {
		es = w.wrong.events(es)
	}
	for _, e := range es {
		switch e := e.(type) {
		case events.TransactionOpened:
			w.order = append(w.order, e.Transaction)
		case events.TransactionApplyRequested:
			if len(w.line) > 0 && w.line[0] != e.Transaction {
				w.breaks("%s passed %v", e.Transaction, w.line)
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
	w.line = slices.DeleteFunc(w.line, func(id string) bool { return w.txs[id].State != TxPending })
	for _, id := range w.order {
		if w.txs[id].State == TxPending && !slices.Contains(w.line, id) {
			w.line = append(w.line, id)
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
	var applying []string
	open := map[string][]string{}
	for id, t := range w.txs {
		if t.State == TxApplying {
			applying = append(applying, id)
		}
		if !t.Done() {
			open[t.Proposal] = append(open[t.Proposal], id)
		}
	}
	if len(applying) > 1 || !slices.Equal(applying, w.tree.Applying) {
		w.breaks("applying %v, the tree says %v", applying, w.tree.Applying)
	}
	if !slices.Equal(w.line, w.tree.Waiting) {
		w.breaks("pending %v, the tree says %v", w.line, w.tree.Waiting)
	}
	for id, p := range w.proposals {
		if p.Busy != (len(open[id]) == 1) || len(open[id]) > 1 || p.Busy && open[id][0] != p.Transaction {
			w.breaks("%s: busy %v with %s, open are %v", id, p.Busy, p.Transaction, open[id])
		}
	}
}

// refused checks that a refusal is one of state.
func (w *workshop) refused(err error) {
	if err != nil && fault.KindOf(err) != fault.Conflict {
		w.breaks("%v", err)
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
		es, err = p.Open(fmt.Sprintf("TX-%02d", len(w.order)), by, w.given())
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
		es, err = t.Stage(by, w.given())
	case what == "retry":
		es, err = t.Retry(by, w.proposals[t.Proposal], w.given())
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
	es, now, err := t.Ask(by, w.given())
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
	tree := w.given()
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

// play does steps until nothing waits any more, and says what did not hold; ""
// if all did.
func play(t *rapid.T, by wrong) (found string) {
	defer func() {
		r := recover()
		if b, is := r.(broken); is {
			found = string(b)
		} else if r != nil {
			panic(r)
		}
	}()
	w := newWorkshop(t, rapid.IntRange(1, 5).Draw(t, "proposals"))
	w.wrong = by
	for range rapid.IntRange(1, 60).Draw(t, "steps") {
		w.step()
	}
	for n := 0; len(w.tree.Applying)+len(w.tree.Waiting) > 0; n++ { // the service goes on by itself
		if n > 200 {
			w.breaks("%v wait for ever", w.tree.Waiting)
		}
		w.happen(w.end())
		w.happen(w.turn())
	}
	for _, id := range w.order {
		if s := w.txs[id].State; s == TxPending || s == TxApplying {
			w.breaks("%s is left %s", id, s)
		}
	}
	return ""
}

// TestTurns: whatever is asked, in whatever order, one transaction of a
// workspace applies at a time, in the order in which they came; none is lost;
// and a proposal is busy exactly while a transaction of it is open.
func TestTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if found := play(t, wrong{}); found != "" {
			t.Fatal(found)
		}
	})
}

// TestTurnsNoticed: what TestTurns checks is found broken where it is. Each of
// these is a way in which the line could be kept wrongly.
func TestTurnsNoticed(t *testing.T) {
	drop := func(is func(e events.Payload) bool) wrong {
		return wrong{events: func(es []events.Payload) []events.Payload { return slices.DeleteFunc(es, is) }}
	}
	for name, w := range map[string]wrong{
		"one that waits is not in line": drop(func(e events.Payload) bool { _, is := e.(events.WorkspaceTransactionQueued); return is }),
		"one that left is in line":      drop(func(e events.Payload) bool { _, is := e.(events.WorkspaceTransactionUnqueued); return is }),
		"a turn is not taken":           drop(func(e events.Payload) bool { _, is := e.(events.WorkspaceApplyBegun); return is }),
		"a turn is not given back":      drop(func(e events.Payload) bool { _, is := e.(events.WorkspaceApplyEnded); return is }),
		"a proposal stays busy":         drop(func(e events.Payload) bool { _, is := e.(events.ProposalTransactionFailed); return is }),
		"everybody is free to begin": {tree: func(t Tree) Tree {
			t.Applying, t.Waiting = nil, nil
			return t
		}},
		"who came last is next": {tree: func(t Tree) Tree {
			slices.Reverse(t.Waiting)
			return t
		}},
		"who waits is passed while nothing applies": {tree: func(t Tree) Tree {
			if len(t.Applying) == 0 {
				t.Waiting = nil
			}
			return t
		}},
	} {
		found := ""
		game := rapid.Custom(func(t *rapid.T) string { return play(t, w) })
		for seed := 0; found == "" && seed < 300; seed++ {
			found = game.Example(seed)
		}
		if found == "" {
			t.Errorf("%s: nothing was found", name)
		}
		t.Logf("%s: %s", name, found)
	}
}
