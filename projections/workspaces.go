package projections

import (
	"context"

	"roundtable/events"
)

var workspaces = Projector{
	Name:   "workspaces",
	Tables: []string{"workspaces"},
	on: when(
		on(func(ctx context.Context, r *rows, e events.Event, p events.WorkspaceAdded) error {
			return r.exec(ctx, `INSERT INTO workspaces (seq, id, name, root, kind, created_at) VALUES (?,?,?,?,?,?)`,
				e.Position, p.Workspace, p.Name, p.Root, p.Kind, nanos(e.Time))
		}),
	),
}
