package events

// WorkspacesStream is the one stream of the workspaces of a server: roots and
// names are unique.
const WorkspacesStream Stream = "workspaces/server"

// WorkspaceAdded means: a folder is governed from now on.
type WorkspaceAdded struct {
	Workspace string `json:"workspace_id"`
	Name      string `json:"name"`
	Root      string `json:"root"` // absolute, links resolved
	Kind      string `json:"kind"` // git or folder
}

func (WorkspaceAdded) Stream() Stream { return WorkspacesStream }
