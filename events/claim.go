package events

import "time"

// ClaimGranted means: a principal holds a lease on a resource.
type ClaimGranted struct {
	Claim     string    `json:"claim_id"`
	Workspace string    `json:"workspace_id"`
	Resource  string    `json:"resource_id"`
	Type      string    `json:"claim_type"` // read, review, write or exclusive
	Holder    string    `json:"holder"`     // a principal's id
	Task      string    `json:"task_id,omitempty"`
	Rationale string    `json:"rationale,omitempty"`
	Fence     int64     `json:"fence"` // grows per resource
	Base      BaseHash  `json:"base_hash"`
	GrantedAt time.Time `json:"granted_at"`
	ExpiresAt time.Time `json:"expires_at"`
	// Seen is what lay at the path of a claimed file; nil of a directory, of what
	// could not be read, and of claims that are older than the field.
	Seen *PathState `json:"seen,omitempty"`
}

// A BaseHash is what a resource held when it was claimed.
type BaseHash struct {
	State string `json:"state"` // present, absent or unreadable
	Hash  string `json:"hash,omitempty"`
}

// ClaimReleased means: the holder gave a lease back, or what it was for ended.
type ClaimReleased struct {
	Claim     string `json:"claim_id"`
	Workspace string `json:"workspace_id"`
	Cause     string `json:"cause"` // holder, proposal_accepted, proposal_rejected or proposal_withdrawn
}

// ClaimExpired means: a lease was found to have ended by time. It had ended at
// its expiry already, for every decision.
type ClaimExpired struct {
	Claim     string `json:"claim_id"`
	Workspace string `json:"workspace_id"`
	Cause     string `json:"cause"` // ttl
}

// ClaimBecameStale means: something in a claim's resource is no longer as its
// holder knows it, and no proposal of the holder's made it so. Until it is
// claimed again it backs no revision that touches what changed and was made
// before.
type ClaimBecameStale struct {
	Claim       string      `json:"claim_id"`
	Workspace   string      `json:"workspace_id"`
	Cause       string      `json:"cause"`                    // foreign_change or transaction
	Transaction string      `json:"transaction_id,omitempty"` // of cause transaction
	Paths       []PathState `json:"paths"`                    // in the resource, as they are now
	More        int         `json:"more,omitempty"`           // how many more paths changed than are named
}

// ClaimsStream is the stream of all claims of a workspace, so that grants are
// serial.
func ClaimsStream(workspace string) Stream { return Stream("claims/" + workspace) }

func (e ClaimGranted) Stream() Stream  { return ClaimsStream(e.Workspace) }
func (e ClaimReleased) Stream() Stream { return ClaimsStream(e.Workspace) }
func (e ClaimExpired) Stream() Stream  { return ClaimsStream(e.Workspace) }
func (e ClaimBecameStale) Stream() Stream {
	return ClaimsStream(e.Workspace)
}
