package events

// TaskCreated means: someone asked for a piece of work.
type TaskCreated struct {
	Task      string `json:"task_id"`
	Workspace string `json:"workspace_id"`
	Title     string `json:"title"`
	Body      string `json:"body_md"`
	Priority  int    `json:"priority"` // lower goes first
	Risk      string `json:"risk"`
	Assignee  string `json:"assignee,omitempty"` // a principal's id
}

// TaskStream is the stream of one task.
func TaskStream(id string) Stream { return Stream("task/" + id) }

func (e TaskCreated) Stream() Stream { return TaskStream(e.Task) }
