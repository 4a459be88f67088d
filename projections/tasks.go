package projections

import (
	"context"

	"roundtable/events"
)

var tasks = Projector{
	Name:   "tasks",
	Tables: []string{"tasks"},
	on: when(
		on(func(ctx context.Context, r *rows, e events.Event, p events.TaskCreated) error {
			return r.exec(ctx, `INSERT INTO tasks (seq, id, workspace, title, body, priority, risk, assignee, status, created_by, created_at)
				VALUES (?,?,?,?,?,?,?,?,'open',?,?)`,
				e.Position, p.Task, p.Workspace, p.Title, p.Body, p.Priority, p.Risk, p.Assignee, e.Actor, nanos(e.Time))
		}),
	),
}
