package projections

import (
	"encoding/json"
	"slices"

	"roundtable/internal/op"
)

// Ops lists what can be read. Those of a workspace take its id from the call.
func (r *Reader) Ops() []op.Op {
	return slices.Concat(
		r.workspaceOps(), r.principalOps(), r.taskOps(), r.claimOps(), r.proposalOps(),
		r.reviewOps(), r.transactionOps(), r.testRunOps(), r.validationOps(), r.stateOps(), r.foreignOps(),
	)
}

// inWorkspace is the route of a read inside a workspace.
func inWorkspace(path string) string { return "GET /api/v1/workspaces/{workspace_id}/" + path }

// here is the condition that something belongs to the call's workspace.
func here(c op.Call) where {
	w := where{}
	w.add("workspace = ?", c.Workspace)
	return w
}

// risks are the levels of risk, lowest first.
func risks() []string { return []string{"low", "normal", "high", "critical"} }

// jsonList is a list as one argument, for json_each.
func jsonList(l []string) string {
	b, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings can always be written
	}
	return string(b)
}
