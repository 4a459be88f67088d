package events

import "time"

// DirectoryStream is the one stream of principals, tokens and roles: names are
// unique per server, and a right is judged against all of it.
const DirectoryStream Stream = "directory/server"

// PrincipalCreated means: someone may be given credentials.
type PrincipalCreated struct {
	Principal string `json:"principal_id"`
	Name      string `json:"name"`
	Kind      string `json:"kind"` // human, agent or service
	Owner     string `json:"owner"`
	Vendor    string `json:"vendor,omitempty"`
	Model     string `json:"model,omitempty"`
}

// RoleGranted means: a principal has a role in a workspace, "*" for all.
type RoleGranted struct {
	Principal string `json:"principal_id"`
	Workspace string `json:"workspace_id"`
	Role      string `json:"role"`
}

// TokenIssued means: a credential was made and shown once. Only its hash is kept.
type TokenIssued struct {
	Token     string     `json:"token_id"`
	Principal string     `json:"principal_id"`
	Hash      string     `json:"hash"`
	ExpiresAt time.Time  `json:"expires_at"`
	Scope     TokenScope `json:"scope"`
}

// A TokenScope is what a token is narrowed to; empty fields do not narrow.
type TokenScope struct {
	Workspace  string   `json:"workspace_id,omitempty"`
	Task       string   `json:"task_id,omitempty"`
	Proposal   string   `json:"proposal_id,omitempty"`
	Operations []string `json:"operations,omitempty"`
}

// TokenRevoked means: a credential ended before its time.
type TokenRevoked struct {
	Token string `json:"token_id"`
}

func (PrincipalCreated) Stream() Stream { return DirectoryStream }
func (RoleGranted) Stream() Stream      { return DirectoryStream }
func (TokenIssued) Stream() Stream      { return DirectoryStream }
func (TokenRevoked) Stream() Stream     { return DirectoryStream }
