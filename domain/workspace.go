package domain

import (
	"maps"
	"regexp"

	"roundtable/events"
	"roundtable/internal/fault"
)

// Workspaces are the governed folders of a server.
type Workspaces struct {
	ByID map[string]events.WorkspaceAdded
}

// Clone returns a state that can be folded further without touching w.
func (w Workspaces) Clone() Workspaces { return Workspaces{maps.Clone(w.ByID)} }

// Evolve returns w after e has happened. It changes w.ByID in place: see Clone.
func (w Workspaces) Evolve(e events.Payload) Workspaces {
	switch e := e.(type) {
	case events.WorkspaceAdded:
		if w.ByID == nil {
			w.ByID = map[string]events.WorkspaceAdded{}
		}
		w.ByID[e.Workspace] = e
	default:
		foreign("workspaces", e)
	}
	return w
}

var workspaceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Add puts a folder under governance.
func (w Workspaces) Add(e events.WorkspaceAdded) ([]events.Payload, error) {
	if !workspaceName.MatchString(e.Name) {
		return nil, fault.Errorf(fault.Invalid, "invalid_field", "name %q: letters, digits, dot, dash and underscore, at most 64", e.Name).At("/name", "not a name")
	}
	for _, o := range w.ByID {
		if o.Root == e.Root {
			return nil, fault.Errorf(fault.Conflict, "workspace_exists", "%s is workspace %s already", e.Root, o.Workspace).With("workspace_id", o.Workspace)
		}
		if o.Name == e.Name {
			return nil, fault.Errorf(fault.Conflict, "name_taken", "workspace %s is named %s already", o.Workspace, e.Name).With("workspace_id", o.Workspace)
		}
	}
	return []events.Payload{e}, nil
}

// Get returns one workspace.
func (w Workspaces) Get(id string) (events.WorkspaceAdded, error) {
	e, ok := w.ByID[id]
	if !ok {
		return e, fault.Errorf(fault.NotFound, "workspace_not_found", "there is no workspace %s", id)
	}
	return e, nil
}

// Code names the state's JSON, for snapshots.
func (Workspaces) Code() string { return "workspaces.1" }
