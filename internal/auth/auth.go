// Package auth says who is asking and what their kind and roles allow.
//
// What always holds: identity comes from the credential alone; a right belongs
// to an operation and never to a transport; a token is stored as a hash and
// can be shown only once, by whoever made it.
package auth

import (
	"slices"
	"time"
)

// A Kind is what a principal is. Kinds are not roles: some operations are for
// people, whatever an agent's roles.
type Kind string

// The kinds.
const (
	Human   Kind = "human"
	Agent   Kind = "agent"
	Service Kind = "service"
)

// Kinds lists them all.
var Kinds = []Kind{Human, Agent, Service}

// A Role is what a principal may do in a workspace.
type Role string

// The roles. Every role reads. Operator includes implementer, reviewer, tester
// and orchestrator; admin includes operator. Security, auditor and override
// are included in none.
const (
	Admin        Role = "admin"
	Operator     Role = "operator"
	Orchestrator Role = "orchestrator"
	Implementer  Role = "implementer"
	Reviewer     Role = "reviewer"
	Security     Role = "security"
	Tester       Role = "tester"
	Auditor      Role = "auditor"
	Viewer       Role = "viewer"
	Override     Role = "override" // people only
)

// Roles lists them all.
var Roles = []Role{Admin, Operator, Orchestrator, Implementer, Reviewer, Security, Tester, Auditor, Viewer, Override}

// includes says which roles a role brings with it besides itself.
var includes = map[Role][]Role{
	Operator: {Implementer, Reviewer, Tester, Orchestrator, Viewer},
	Admin:    {Operator, Implementer, Reviewer, Tester, Orchestrator, Viewer},
}

// AllWorkspaces stands for every workspace in a grant.
const AllWorkspaces = "*"

// A Grant is one role in one workspace, or in AllWorkspaces.
type Grant struct {
	Workspace string `json:"workspace_id"`
	Role      Role   `json:"role"`
}

// A Scope narrows a token. Fields that are left out do not narrow; an input
// may not give them empty, which would read as nothing and mean everything.
type Scope struct {
	Workspace  string   `json:"workspace_id,omitempty" minlen:"1"`
	Task       string   `json:"task_id,omitempty" minlen:"1"`
	Proposal   string   `json:"proposal_id,omitempty" minlen:"1"`
	Operations []string `json:"operations,omitempty" jsonschema:"names such as vote.cast" minlen:"1" minitems:"1" maxitems:"200"`
}

// Narrows reports whether the token may do less than its principal.
func (s Scope) Narrows() bool {
	return s.Workspace != "" || s.Task != "" || s.Proposal != "" || len(s.Operations) > 0
}

// A Principal is whoever a credential stands for.
type Principal struct {
	ID     string
	Name   string
	Kind   Kind
	Owner  string // the person or team it works for; its own id for most people
	Vendor string
	Model  string
	Grants []Grant
	Token  string // id of the token that was shown, or ""
	Scope  Scope
	Ends   time.Time // when the token ends; zero for what is no token
}

// Has reports whether p has one of the roles, itself or by inclusion, in
// workspace. An empty workspace asks for the role in any workspace.
func (p Principal) Has(workspace string, any ...Role) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool {
		return (workspace == "" || g.Workspace == AllWorkspaces || g.Workspace == workspace) && g.Role.Includes(any...)
	})
}

// Reads reports whether p has any role at all in workspace.
func (p Principal) Reads(workspace string) bool { return p.Has(workspace, Roles...) }

// Everywhere reports whether p has one of the roles in all workspaces.
func (p Principal) Everywhere(any ...Role) bool {
	return slices.ContainsFunc(p.Grants, func(g Grant) bool {
		return g.Workspace == AllWorkspaces && g.Role.Includes(any...)
	})
}

// Workspaces returns the workspaces named in p's grants, AllWorkspaces among
// them, each once.
func (p Principal) Workspaces() []string {
	var ws []string
	for _, g := range p.Grants {
		if !slices.Contains(ws, g.Workspace) {
			ws = append(ws, g.Workspace)
		}
	}
	return ws
}

// Having lists every role that is, or brings with it, one of those given.
func Having(any ...Role) (all []Role) {
	for _, r := range Roles {
		if r.Includes(any...) {
			all = append(all, r)
		}
	}
	return all
}

// Includes reports whether r is, or brings with it, one of the roles.
func (r Role) Includes(any ...Role) bool {
	return slices.ContainsFunc(any, func(x Role) bool { return r == x || slices.Contains(includes[r], x) })
}
