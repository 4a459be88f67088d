package domain

import (
	"roundtable/events"
	"roundtable/internal/fault"
)

// A Task is a piece of work someone asked for. The zero value is none.
type Task struct {
	ID        string
	Workspace string
}

// Evolve returns t after e has happened.
func (t Task) Evolve(e events.Payload) Task {
	switch e := e.(type) {
	case events.TaskCreated:
		return Task{ID: e.Task, Workspace: e.Workspace}
	default:
		foreign("task", e)
	}
	return t
}

// Create asks for a piece of work.
func (t Task) Create(e events.TaskCreated) ([]events.Payload, error) {
	if e.Risk == "" {
		e.Risk = "normal"
	}
	if err := firstOf(line("title", e.Title, MaxTitle, true), text("body_md", e.Body, MaxText, false), oneOf("risk", e.Risk, risks...)); err != nil {
		return nil, err
	}
	return []events.Payload{e}, nil
}

// In checks that t is a task of workspace.
func (t Task) In(workspace, id string) error {
	if t.ID == "" || t.Workspace != workspace {
		return fault.Errorf(fault.NotFound, "task_not_found", "there is no task %s in this workspace", id).
			Then("task.list", nil, "you", "see which tasks there are")
	}
	return nil
}
