package op

import (
	"context"
	"slices"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
)

// Workspace says which workspace a call is about where no path names it: the
// one that was asked for, else the one the token is narrowed to, else the only
// one of those listed that the principal can see. Whether the principal may
// see the one it asked for is for Op.Run to say.
func Workspace(ctx context.Context, who auth.Principal, asked string, list func(context.Context) ([]string, error)) (string, error) {
	if asked != "" {
		return asked, nil
	}
	if who.Scope.Workspace != "" {
		return who.Scope.Workspace, nil
	}
	ids, err := list(ctx)
	if err != nil {
		return "", err
	}
	ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return !who.Reads(id) })
	switch len(ids) {
	case 1:
		return ids[0], nil
	case 0:
		return "", fault.Errorf(fault.NotFound, "workspace_not_found", "there is no workspace that this token can see").
			Then("workspace.list", nil, "", "it lists those there are for you")
	}
	return "", fault.Errorf(fault.Invalid, "workspace_required", "say which workspace: this token can see %d", len(ids)).
		At("/workspace_id", "is required").With("workspace_ids", ids[:min(len(ids), 50)])
}
