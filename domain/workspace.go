package domain

import (
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

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
		if err := apart(e, o); err != nil {
			return nil, err
		}
		if o.Root == e.Root {
			return nil, fault.Errorf(fault.Conflict, "workspace_exists", "%s is workspace %s already", e.Root, o.Workspace).With("workspace_id", o.Workspace)
		}
		if o.Name == e.Name {
			return nil, fault.Errorf(fault.Conflict, "name_taken", "workspace %s is named %s already", o.Workspace, e.Name).With("workspace_id", o.Workspace)
		}
	}
	return []events.Payload{e}, nil
}

// apart refuses a folder of which a part, or which as a part, is governed as
// another workspace: its claims and gates would be passed by. A Git repository
// of its own inside is none of the outer's business.
func apart(e, o events.WorkspaceAdded) error {
	in := func(inner, outer events.WorkspaceAdded) bool {
		rel, err := filepath.Rel(outer.Root, inner.Root)
		return err == nil && rel != "." && filepath.IsLocal(rel) && inner.Kind != "git"
	}
	if !in(e, o) && !in(o, e) {
		return nil
	}
	return fault.Errorf(fault.Conflict, "root_nested", "%s and %s of workspace %s lie one in the other, and the inner one is no Git repository of its own", e.Root, o.Root, o.Workspace).
		At("/root", "is part of a workspace or has one in it").With("workspace_id", o.Workspace)
}

// WorkspaceName makes a workspace's name of a folder's: accents go, and what
// may not stand in a name becomes a dash.
func WorkspaceName(folder string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(folder) {
		switch {
		case unicode.Is(unicode.Mn, r):
		case r < unicode.MaxASCII && workspaceName.MatchString("x"+string(r)):
			b.WriteRune(r)
		case !strings.HasSuffix(b.String(), "-"):
			b.WriteByte('-')
		}
	}
	name := strings.TrimLeft(b.String(), "._-")
	name = strings.TrimRight(name[:min(len(name), 64)], "-")
	if name == "" {
		return "workspace"
	}
	return name
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
