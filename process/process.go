// Package process turns what happened into what to do next, and does it: it
// is the only code that changes the world.
//
// A Manager is pure: given an event it names the jobs that follow. The jobs
// are written together with the manager's checkpoint, so none is lost and none
// is doubled. A Worker takes a job under a lease, does it outside any
// transaction, and reports the outcome by a command whose key is the job's.
//
// What always holds: every effect has an intent in the log before it and an
// outcome after it; a job may start more than once, and every Worker looks
// first whether the work is already done; a job whose outcome is in the log
// does not touch the world again; a fault of the service is never reported as
// the proposal's.
package process

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"roundtable/commands"
	"roundtable/events"
	"roundtable/events/eventlog"
)

// A Job is work asked for by one event.
type Job struct {
	Kind string
	Data any // JSON-able
}

// A Manager decides which jobs follow from an event.
type Manager struct {
	Name  string
	React func(events.Event) []Job
}

// Managers lists the process managers.
var Managers = []Manager{applyManager, turnManager, testManager}

func (m Manager) consumer() string { return "process." + m.Name }

// A Store is the log with the parking place of what no manager could react to.
type Store interface {
	eventlog.Store
	eventlog.Parking
}

// AddTo makes router run the managers. fail is told of one that cannot go on,
// since the log cannot be read.
func AddTo(router *message.Router, managers []Manager, store Store, lg *slog.Logger, now func() time.Time, fail func(consumer string, err error)) {
	log := eventlog.NewSubscriber(store, store.Checkpoint, fail) // the router closes it
	for _, m := range managers {
		h := router.AddConsumerHandler(m.consumer(), m.consumer(), log, func(msg *message.Message) error {
			return m.handle(msg, store)
		})
		h.AddMiddleware(guards(m.consumer(), store, lg, now)...)
	}
}

// handle writes the jobs of a page of events with the checkpoint behind it.
func (m Manager) handle(msg *message.Message, store Store) error {
	page := eventlog.From(msg)
	if len(page) == 0 {
		return nil
	}
	var jobs []eventlog.Job
	for _, e := range page {
		for i, j := range m.React(e) {
			data, err := json.Marshal(j.Data)
			if err != nil {
				return permanent{fmt.Errorf("job of event %d: %w", e.Position, err)}
			}
			jobs = append(jobs, eventlog.Job{ID: fmt.Sprintf("%s.%s.%d", e.ID, m.Name, i), Kind: j.Kind, Event: e.ID.String(),
				Stream: e.Stream(), Data: data, Meta: e.Meta})
		}
	}
	return store.Enqueue(msg.Context(), m.consumer(), page[len(page)-1].Position, jobs)
}

// permanent marks an error that no later try would change.
type permanent struct{ error }

// report is the caller of a job's report: repeated, it gets the first answer.
func report(j eventlog.Job, step string) commands.Caller {
	by := commands.System(j.Meta.Workspace, "job."+j.ID+"."+step)
	by.Cause, by.Correlation = j.Event, j.Meta.Correlation
	return by
}
