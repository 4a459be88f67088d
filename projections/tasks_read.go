package projections

import (
	"time"

	"roundtable/internal/op"
	"roundtable/internal/wire"
)

func taskView() view[wire.Task] {
	return view[wire.Task]{
		name: "task", missing: absent("task_not_found", "task"), plural: "tasks", from: tasks, source: "tasks",
		columns: "seq, id, workspace, title, body, priority, risk, assignee, status, created_by, created_at", created: "created_at",
		scan: func(s scanner) (seq int64, t wire.Task, err error) {
			err = s.Scan(&seq, &t.ID, &t.Workspace, &t.Title, &t.Body, &t.Priority, &t.Risk, &t.Assignee, &t.Status, &t.CreatedBy, stamp{&t.CreatedAt})
			return seq, t, err
		},
	}
}

type taskID struct {
	ID string `json:"task_id"`
}

type taskList struct {
	Page
	Status    string `json:"status,omitempty" jsonschema:"open"`
	Risk      string `json:"risk,omitempty" jsonschema:"low, normal, high or critical"`
	Assignee  string `json:"assignee,omitempty" jsonschema:"a principal's id"`
	CreatedBy string `json:"created_by,omitempty" jsonschema:"a principal's id"`
}

func (r *Reader) taskOps() []op.Op {
	v := always(taskView())
	return []op.Op{
		listOp(r, op.Op{
			Name: "task.list", Route: inWorkspace("tasks"), Tool: true, May: op.May{Any: true},
			Doc: "List the tasks of a workspace, to find work or the task that a change belongs to.",
		}, v, func(c op.Call, in taskList, _ time.Time) (where, error) {
			w := here(c)
			w.is("status", in.Status)
			w.is("risk", in.Risk)
			w.is("assignee", in.Assignee)
			w.is("created_by", in.CreatedBy)
			return w, errorsOf(oneOf("/status", in.Status, "open"), oneOf("/risk", in.Risk, risks()...))
		}),
		getOp(r, op.Op{
			Name: "task.get", Route: inWorkspace("tasks/{task_id}"), Tool: true, May: op.May{Any: true},
			Doc: "Show one task, before you begin on it.",
		}, v, func(_ op.Call, in taskID) string { return in.ID }),
	}
}
