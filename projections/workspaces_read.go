package projections

import (
	"time"

	"roundtable/internal/auth"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

func workspaceView() view[wire.Workspace] {
	return view[wire.Workspace]{
		name: "workspace", missing: absent("workspace_not_found", "workspace"), plural: "workspaces", from: workspaces, source: "workspaces", global: true,
		columns: "seq, id, name, root, kind, created_at", created: "created_at",
		scan: func(s scanner) (seq int64, w wire.Workspace, err error) {
			err = s.Scan(&seq, &w.ID, &w.Name, &w.Root, &w.Kind, stamp{&w.CreatedAt})
			return seq, w, err
		},
	}
}

type workspaceList struct {
	Page
	Kind string `json:"kind,omitempty" jsonschema:"git or folder"`
}

func (r *Reader) workspaceOps() []op.Op {
	return []op.Op{
		listOp(r, op.Op{
			Name: "workspace.list", Route: "GET /api/v1/workspaces",
			Doc: "List the workspaces that you can see.",
		}, always(workspaceView()),
			func(c op.Call, in workspaceList, _ time.Time) (where, error) {
				w := seen(c.Who)
				w.is("kind", in.Kind)
				return w, oneOf("/kind", in.Kind, "git", "folder")
			}),
		getOp(r, op.Op{
			Name: "workspace.get", Route: "GET /api/v1/workspaces/{workspace_id}",
			Doc: "Show one workspace.", May: op.May{Any: true},
		}, always(workspaceView()),
			func(c op.Call, _ struct{}) string { return c.Workspace }),
	}
}

// seen is the condition on workspaces that who may know of.
func seen(who auth.Principal) where {
	w := where{}
	if !who.Everywhere(auth.Roles...) {
		w.add("id IN (SELECT value FROM json_each(?))", jsonList(who.Workspaces()))
	}
	w.is("id", who.Scope.Workspace)
	return w
}
