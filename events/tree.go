package events

import "time"

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

// WorkspaceApplyModeSet means: from now on changes are made, and paths looked
// at, in this mode, and what is known of them is what lies there in it. Before
// the first it is worktree. One append may hold several, of many paths.
type WorkspaceApplyModeSet struct {
	Workspace string      `json:"workspace_id"`
	Mode      string      `json:"mode"`             // worktree: the files as they lie; commit: as they are committed
	Branch    string      `json:"branch,omitempty"` // whose commits; "" is the one that is checked out
	Known     []PathState `json:"known,omitempty"`  // what lies at the paths of which something was known
	SetAt     time.Time   `json:"set_at"`
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

func (e WorkspaceApplyModeSet) Stream() Stream { return TreeStream(e.Workspace) }
