package domain

import (
	"maps"
	"slices"
	"time"

	"roundtable/events"
	"roundtable/internal/fault"
)

// A Tree is who changes the files of one workspace, who waits to, and what was
// left at its paths. One transaction has the turn at a time; the others wait
// in the order in which they came, and nobody passes anybody.
//
//	          ┌───────────── unqueued (staged, failed, cancelled)
//	queued ───┴─▶ begun (has the turn) ──▶ ended
//	   the line is empty and the turn free ─▲
type Tree struct {
	// Applying are the transactions that are applying. The first has the turn;
	// there are others only in a history that began before turns were kept.
	Applying []string
	Waiting  []string        // in their order
	Left     map[string]Left // by path: what the last transaction there made of it, or what was found there since
	Mode     Mode            // in which Left was seen
	ModeAt   time.Time       // since when; zero of the first

	// What whoever asks works by, and no state.
	Room int  `json:"-"` // how many may wait; 0 is any number
	Asks Mode `json:"-"` // in which it looks at paths
}

// A Mode says where changes are made, and so what lies at a path. The zero
// value is the files of the work tree.
type Mode struct {
	Commit bool   // what is committed, and not the files
	Branch string // to which branch; "" is the one that is checked out
}

// TakeMode makes the mode in which whoever asks looks at paths that of t. What
// was known was seen in another, so it gives way to what lies at the paths in
// this one, which is no news of anybody's doing.
func (t Tree) TakeMode(workspace string, lies []events.PathState, now time.Time) (out []events.Payload) {
	if t.Mode == t.Asks {
		return nil
	}
	e := events.WorkspaceApplyModeSet{Workspace: workspace, Mode: "worktree", Branch: t.Asks.Branch, SetAt: now}
	if t.Asks.Commit {
		e.Mode = "commit"
	}
	if len(lies) == 0 {
		return []events.Payload{e}
	}
	for part := range slices.Chunk(lies, maxForeignPaths) {
		e.Known = part
		out = append(out, e)
	}
	return out
}

// A Left is what a transaction made of a path.
type Left struct {
	State       events.PathState
	Transaction string // "" of what somebody left behind the service's back
}

// Clone returns a state that can be folded further without touching t.
func (t Tree) Clone() Tree {
	t.Left = maps.Clone(t.Left)
	return t
}

// Code names the state's JSON, for snapshots.
func (Tree) Code() string { return "tree.1" }

// Evolve returns t after e has happened. It changes t.Left in place: see Clone.
func (t Tree) Evolve(e events.Payload) Tree {
	switch e := e.(type) {
	case events.WorkspaceTransactionQueued:
		t.Waiting = append(slices.Clip(t.Waiting), e.Transaction)
	case events.WorkspaceTransactionUnqueued:
		t.Waiting = without(t.Waiting, e.Transaction)
	case events.WorkspaceApplyBegun:
		t.Waiting = without(t.Waiting, e.Transaction)
		t.Applying = append(slices.Clip(t.Applying), e.Transaction)
	case events.WorkspaceApplyEnded:
		t.Applying = without(t.Applying, e.Transaction)
		if t.Left == nil {
			t.Left = map[string]Left{}
		}
		for _, s := range e.Left {
			t.Left[s.Path] = Left{s, e.Transaction}
		}
	case events.WorkspaceForeignChange:
		return t.found(e)
	case events.WorkspaceApplyModeSet:
		t.Mode, t.ModeAt = Mode{e.Mode == "commit", e.Branch}, e.SetAt
		for _, s := range e.Known {
			if t.Left == nil {
				t.Left = map[string]Left{}
			}
			t.Left[s.Path] = Left{State: s}
		}
	default:
		foreign("tree", e)
	}
	return t
}

// with returns t after what happened to it among other things.
func (t Tree) with(happened []events.Payload) Tree {
	for _, e := range happened {
		switch e.(type) {
		case events.WorkspaceTransactionQueued, events.WorkspaceTransactionUnqueued, events.WorkspaceApplyBegun:
			t = t.Evolve(e)
		}
	}
	return t
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(o string) bool { return o == id })
}

// Free reports whether the turn is the transaction's to take: nobody has it,
// and nobody waits before it.
func (t Tree) Free(transaction string) bool {
	return len(t.Applying) == 0 && (len(t.Waiting) == 0 || t.Waiting[0] == transaction)
}

// Next returns the transaction whose turn it is; "" if there is none, or the
// turn is taken.
func (t Tree) Next() string {
	if len(t.Applying) > 0 || len(t.Waiting) == 0 {
		return ""
	}
	return t.Waiting[0]
}

// Waits reports whether the transaction stands in the line.
func (t Tree) Waits(transaction string) bool { return slices.Contains(t.Waiting, transaction) }

// Behind returns the transaction just before one that waits, or before which
// the next to come would wait; "" if there is none.
func (t Tree) Behind(transaction string) string {
	at := slices.Index(t.Waiting, transaction)
	if at < 0 {
		at = len(t.Waiting)
	}
	switch {
	case at > 0:
		return t.Waiting[at-1]
	case len(t.Applying) > 0:
		return t.Applying[len(t.Applying)-1]
	}
	return ""
}

// queue puts a transaction at the end of the line, if it does not stand in it
// and there is room.
func (t Tree) queue(x Transaction) ([]events.Payload, error) {
	switch {
	case t.Waits(x.ID):
		return nil, nil
	case t.Room > 0 && len(t.Waiting) >= t.Room:
		return nil, fault.Errorf(fault.Limit, "queue_full", "%d transactions wait for their turn in this workspace, and no more may; ask again when some have had it", len(t.Waiting)).
			With("waiting", len(t.Waiting)).With("max_waiting", t.Room).
			Then("transaction.list", map[string]any{"state": TxPending}, "you", "see which wait, and whether some are to be cancelled")
	}
	return []events.Payload{events.WorkspaceTransactionQueued{Workspace: x.Workspace, Transaction: x.ID, Behind: t.Behind(x.ID)}}, nil
}

// Adopt notes that a transaction is applying which began before turns were
// kept.
func (t Tree) Adopt(x Transaction) []events.Payload {
	if x.State != TxApplying || slices.Contains(t.Applying, x.ID) {
		return nil
	}
	return []events.Payload{events.WorkspaceApplyBegun{Workspace: x.Workspace, Transaction: x.ID, Attempt: x.Attempt}}
}

// Touched reports whether something in what happened is the tree's affair too.
func Touched(happened []events.Payload) bool {
	return slices.ContainsFunc(happened, func(e events.Payload) bool {
		switch e.(type) {
		case events.TransactionStaged, events.TransactionApplyRequested, events.TransactionApplied, events.TransactionFailed, events.TransactionCancelled:
			return true
		}
		return false
	})
}

// Follow returns what becomes of the turn and the line by what happens to
// transactions: it is written with it.
func (t Tree) Follow(workspace string, happened []events.Payload) []events.Payload {
	var out []events.Payload
	t = t.with(happened)
	add := func(e events.Payload) { out, t = append(out, e), t.with([]events.Payload{e}) }
	leaves := func(transaction, cause string) {
		if t.Waits(transaction) {
			add(events.WorkspaceTransactionUnqueued{Workspace: workspace, Transaction: transaction, Cause: cause})
		}
	}
	begins := map[string]bool{}
	for _, e := range happened {
		if r, ok := e.(events.TransactionApplyRequested); ok {
			begins[r.Transaction] = true
		}
	}
	for _, e := range happened {
		switch e := e.(type) {
		case events.TransactionStaged:
			if !begins[e.Transaction] {
				leaves(e.Transaction, "staged")
			}
		case events.TransactionApplyRequested:
			add(events.WorkspaceApplyBegun{Workspace: workspace, Transaction: e.Transaction, Attempt: e.Attempt})
		case events.TransactionApplied:
			ended := events.WorkspaceApplyEnded{Workspace: workspace, Transaction: e.Transaction, Attempt: e.Attempt, Outcome: TxApplied}
			for _, f := range e.Files {
				ended.Left = append(ended.Left, f.After)
			}
			add(ended)
		case events.TransactionFailed:
			if slices.Contains(t.Applying, e.Transaction) {
				add(events.WorkspaceApplyEnded{Workspace: workspace, Transaction: e.Transaction, Attempt: e.Attempt, Outcome: TxFailed, Code: e.Code})
			}
			leaves(e.Transaction, e.Code)
		case events.TransactionCancelled:
			leaves(e.Transaction, "cancelled")
		}
	}
	return out
}
