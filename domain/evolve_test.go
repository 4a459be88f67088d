package domain

import (
	"fmt"
	"strings"
	"testing"

	"roundtable/events"
)

// aggregates says for each kind of stream which aggregate folds it.
var aggregates = map[string]func(events.Payload){
	"directory":   func(e events.Payload) { Directory{}.Evolve(e) },
	"workspaces":  func(e events.Payload) { Workspaces{}.Evolve(e) },
	"task":        func(e events.Payload) { Task{}.Evolve(e) },
	"claims":      func(e events.Payload) { Claims{}.Evolve(e) },
	"proposal":    func(e events.Payload) { Proposal{}.Evolve(e) },
	"approval":    func(e events.Payload) { Approval{}.Evolve(e) },
	"transaction": func(e events.Payload) { Transaction{}.Evolve(e) },
	"tree":        func(e events.Payload) { Tree{}.Evolve(e) },
	"test_run":    func(e events.Payload) { TestRun{}.Evolve(e) },
	"validation":  func(e events.Payload) { Validation{}.Evolve(e) },
}

// TestEvolveAll: every event is folded by the aggregate of its stream, and by
// no other but approvals, which stand in two kinds of stream.
func TestEvolveAll(t *testing.T) {
	for _, e := range events.Zeros() {
		own, _, _ := strings.Cut(string(e.Stream()), "/")
		if aggregates[own] == nil {
			t.Errorf("%T: no aggregate for stream %q", e, own)
		}
		for kind, evolve := range aggregates {
			_, isApproval := map[string]bool{"events.ApprovalRequested": true, "events.ApprovalDecided": true}[fmt.Sprintf("%T", e)]
			if takes := !panics(func() { evolve(e) }); takes != (kind == own || isApproval && (kind == "proposal" || kind == "approval")) {
				t.Errorf("%s folds %T: %v", kind, e, takes)
			}
		}
	}
}

func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}
