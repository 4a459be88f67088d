// Package projections makes the tables that are read, by following the log,
// and reads them. It decides nothing: what may happen is the rules' affair.
//
// What always holds:
//   - What a projector writes depends on the event and its own tables alone.
//     Tables built again from the log equal those built as it went, row by row.
//   - Rows and the checkpoint that says how far they reach move in one tx, so
//     each event takes effect once, whatever is delivered twice.
//   - Tables that one answer reads together belong to one projector, and are
//     read in one tx with its checkpoint, which is the answer's position.
//   - A projector that fails stops alone and says so; no event is skipped.
//   - The file can be deleted; the log has it all. So a change of what a
//     projector writes needs no more than a migration that empties its tables
//     and its checkpoint: the next start fills them again.
package projections

import (
	"context"
	"fmt"
	"reflect"

	"roundtable/events"
)

// A Projector keeps some tables.
type Projector struct {
	Name   string   // also of its checkpoint
	Tables []string // all that it writes; no two projectors share one
	on     handlers
}

// All lists the projectors.
func All() []Projector {
	return []Projector{workspaces, principals, tasks, claims, proposals, transactions, changed, testRuns, validations, foreignChanges}
}

// handlers hold what to do for each type of event.
type handlers map[reflect.Type]func(context.Context, *rows, events.Event) error

// A handler is what to do for one type of event.
type handler struct {
	of reflect.Type
	do func(context.Context, *rows, events.Event) error
}

// on makes a handler of events of type P.
func on[P events.Payload](do func(ctx context.Context, r *rows, e events.Event, p P) error) handler {
	return handler{reflect.TypeFor[P](), func(ctx context.Context, r *rows, e events.Event) error {
		return do(ctx, r, e, e.Payload.(P))
	}}
}

// when collects handlers. It panics on two for one type, which any test meets.
func when(hs ...handler) handlers {
	all := handlers{}
	for _, h := range hs {
		if all[h.of] != nil {
			panic(fmt.Sprintf("projections: two handlers of %s", h.of))
		}
		all[h.of] = h.do
	}
	return all
}

// apply writes what the projectors show of e.
func apply(ctx context.Context, r *rows, ps []Projector, e events.Event) error {
	for _, p := range ps {
		do := p.on[reflect.TypeOf(e.Payload)]
		if do == nil {
			continue
		}
		if err := do(ctx, r, e); err != nil {
			return fmt.Errorf("projector %s at position %d: %w", p.Name, e.Position, err)
		}
	}
	return nil
}
