package events

// TreeStream is the stream of a workspace's tree: which transaction changes it,
// which ones wait for that, and what they left at its paths.
func TreeStream(workspace string) Stream { return Stream("tree/" + workspace) }

// WorkspaceTransactionQueued means: a transaction waits behind another for its
// turn to change the tree.
type WorkspaceTransactionQueued struct {
	Workspace   string `json:"workspace_id"`
	Transaction string `json:"transaction_id"`
	Behind      string `json:"behind"` // the one just before it
}

// WorkspaceTransactionUnqueued means: a transaction no longer waits, and has
// not had the turn.
type WorkspaceTransactionUnqueued struct {
	Workspace   string `json:"workspace_id"`
	Transaction string `json:"transaction_id"`
	Cause       string `json:"cause"` // staged, cancelled, or the code with which it failed
}

// WorkspaceApplyBegun means: a transaction has the turn; no other changes the
// tree until it has ended.
type WorkspaceApplyBegun struct {
	Workspace   string `json:"workspace_id"`
	Transaction string `json:"transaction_id"`
	Attempt     int    `json:"attempt"`
}

// WorkspaceApplyEnded means: the turn is free again.
type WorkspaceApplyEnded struct {
	Workspace   string      `json:"workspace_id"`
	Transaction string      `json:"transaction_id"`
	Attempt     int         `json:"attempt"`
	Outcome     string      `json:"outcome"`        // applied or failed
	Code        string      `json:"code,omitempty"` // of a failure
	Left        []PathState `json:"left,omitempty"` // what the transaction made of its paths; none if it failed
}

func (e WorkspaceTransactionQueued) Stream() Stream   { return TreeStream(e.Workspace) }
func (e WorkspaceTransactionUnqueued) Stream() Stream { return TreeStream(e.Workspace) }
func (e WorkspaceApplyBegun) Stream() Stream          { return TreeStream(e.Workspace) }
func (e WorkspaceApplyEnded) Stream() Stream          { return TreeStream(e.Workspace) }
