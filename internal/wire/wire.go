// Package wire has the shapes of what clients are shown, the same over HTTP,
// MCP and the command line.
//
// What always holds: an entity carries its own id as <entity>_id and every
// other entity's under the same name; times are RFC 3339 UTC, digests
// lowercase hex SHA-256; lists are never null. A field may be added and none
// is ever renamed or removed.
package wire

import "time"

// A Workspace is a governed folder.
type Workspace struct {
	ID        string    `json:"workspace_id"`
	Name      string    `json:"name"`
	Root      string    `json:"root"`
	Kind      string    `json:"kind"` // "git" or "folder"
	CreatedAt time.Time `json:"created_at"`
}

// A Role is one role granted in one workspace, "*" for all.
type Role struct {
	Workspace string `json:"workspace_id"`
	Role      string `json:"role"`
}

// A Principal is a person, agent or service.
type Principal struct {
	ID        string    `json:"principal_id"`
	Name      string    `json:"name"`
	Kind      string    `json:"kind"`
	Owner     string    `json:"owner"`
	Vendor    string    `json:"vendor,omitempty"`
	Model     string    `json:"model,omitempty"`
	Roles     []Role    `json:"roles"`
	CreatedAt time.Time `json:"created_at"`
}

// A Task is a piece of work someone asked for.
type Task struct {
	ID        string    `json:"task_id"`
	Workspace string    `json:"workspace_id"`
	Title     string    `json:"title"`
	Body      string    `json:"body_md"`
	Priority  int       `json:"priority"`
	Risk      string    `json:"risk"`
	Assignee  string    `json:"assignee,omitempty"`
	Status    string    `json:"status"`
	CreatedBy string    `json:"created_by"`
	CreatedAt time.Time `json:"created_at"`
}

// A BaseHash is what a claimed resource held when the claim was granted.
type BaseHash struct {
	State string `json:"state"` // "present", "absent" or "unreadable"
	Hash  string `json:"hash,omitempty"`
}

// A Claim is a lease on a resource.
type Claim struct {
	ID        string    `json:"claim_id"`
	Workspace string    `json:"workspace_id"`
	Resource  string    `json:"resource_id"`
	Type      string    `json:"claim_type"` // read, review, write or exclusive
	Holder    string    `json:"holder"`
	Task      string    `json:"task_id,omitempty"`
	Rationale string    `json:"rationale,omitempty"`
	Fence     int64     `json:"fence"`
	BaseHash  BaseHash  `json:"base_hash"`
	GrantedAt time.Time `json:"granted_at"`
	ExpiresAt time.Time `json:"expires_at"`
	State     string    `json:"state"`               // active, expired or released, as of the moment of reading
	Cause     string    `json:"end_cause,omitempty"` // why it ended
	Stale     bool      `json:"stale"`               // something in the resource is no longer as its holder knows it; claim it again
	Because   *Stale    `json:"stale_because,omitempty"`
}

// A Stale says why a claim is stale.
type Stale struct {
	Cause       string    `json:"cause"` // of the newest change: foreign_change or transaction
	Transaction string    `json:"transaction_id,omitempty"`
	Paths       []string  `json:"paths"`
	More        int       `json:"more_paths,omitempty"` // that are not named
	Since       time.Time `json:"since"`                // when the newest change was found
}

// A File is one file of a patch.
type File struct {
	Op      string `json:"operation"` // create, delete, modify, rename, copy, mode or type
	Path    string `json:"path"`      // the new path, or that of what is deleted
	OldPath string `json:"old_path,omitempty"`
	OldMode string `json:"old_mode,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Binary  bool   `json:"binary,omitempty"`
	Added   int    `json:"added_lines"`
	Removed int    `json:"removed_lines"`
}

// A Base is what a revision was made on.
type Base struct {
	Commit      string `json:"commit,omitempty"`
	PathsDigest string `json:"paths_digest"`
}

// A Revision is one version of a proposal's patch.
type Revision struct {
	Number        int       `json:"number"`
	PatchDigest   string    `json:"patch_digest"`
	PatchBytes    int64     `json:"patch_bytes"`
	Base          Base      `json:"base_revision"`
	CandidateTree string    `json:"candidate_tree,omitempty"` // once a test or an apply needed it
	Files         []File    `json:"files"`
	Resources     []string  `json:"resources"`
	AttachedBy    string    `json:"attached_by"`
	AttachedAt    time.Time `json:"attached_at"`
	RebasedFrom   int       `json:"rebased_from,omitempty"` // the revision that the service merged into a moved base
	Merged        []string  `json:"merged_paths"`           // whose content the service merged: neither side's
}

// A Vote is one reviewer's word on one revision.
type Vote struct {
	ID         string    `json:"vote_id"`
	Proposal   string    `json:"proposal_id"`
	Voter      string    `json:"voter"`
	Revision   int       `json:"revision"`
	Vote       string    `json:"vote"`
	Reason     string    `json:"reason_md"`
	Confidence *float64  `json:"confidence,omitempty"`
	Current    bool      `json:"current"` // not superseded by the same voter's later one
	Stale      bool      `json:"stale"`   // of a revision that is no longer the newest
	CastAt     time.Time `json:"cast_at"`
}

// A Proposal is a change that someone wants to make.
type Proposal struct {
	ID            string     `json:"proposal_id"`
	Workspace     string     `json:"workspace_id"`
	Task          string     `json:"task_id,omitempty"`
	Author        string     `json:"author"`
	Title         string     `json:"title"`
	Summary       string     `json:"summary_md"`
	Risk          string     `json:"risk"`
	EffectiveRisk string     `json:"effective_risk"`
	Status        string     `json:"status"`
	ExpectedTests []string   `json:"expected_tests"`
	RollbackNotes string     `json:"rollback_notes,omitempty"`
	Compensates   string     `json:"compensates_transaction_id,omitempty"`
	Revision      int        `json:"revision"` // number of the newest
	Revisions     []Revision `json:"revisions"`
	Votes         []Vote     `json:"votes"`
	Approvals     []Approval `json:"approvals"`
	VoteState     string     `json:"vote_state"`        // pending, approved or blocked
	ApprovalState string     `json:"approval_state"`    // not_required, pending, approved, rejected, changes_requested, deferred
	TxState       string     `json:"transaction_state"` // not_started, or that of the newest transaction
	Transaction   string     `json:"transaction_id,omitempty"`
	CreatedAt     time.Time  `json:"created_at"`
	UpdatedAt     time.Time  `json:"updated_at"`
}

// An ApprovalDecision is one person's word on an approval request.
type ApprovalDecision struct {
	By       string    `json:"decided_by"`
	Verdict  string    `json:"verdict"` // approved, rejected, changes_requested or deferred
	Reason   string    `json:"reason_md,omitempty"`
	Revision int       `json:"revision,omitempty"`
	At       time.Time `json:"decided_at"`
}

// An Approval is a request for people to decide something.
type Approval struct {
	ID          string             `json:"approval_id"`
	Workspace   string             `json:"workspace_id"`
	Proposal    string             `json:"proposal_id,omitempty"`
	Task        string             `json:"task_id,omitempty"`
	Subject     string             `json:"subject"`
	Reason      string             `json:"reason_md"`
	Revision    int                `json:"revision,omitempty"` // that it was opened for
	Status      string             `json:"status"`             // requested, or the newest decision's verdict
	RequestedBy string             `json:"requested_by"`
	RequestedAt time.Time          `json:"requested_at"`
	Decisions   []ApprovalDecision `json:"decisions"`
}

// A TestRun is one command on one tree.
type TestRun struct {
	ID          string     `json:"test_run_id"`
	Workspace   string     `json:"workspace_id"`
	Proposal    string     `json:"proposal_id,omitempty"`
	Revision    int        `json:"revision,omitempty"`
	Task        string     `json:"task_id,omitempty"`
	Command     string     `json:"command"`
	Argv        []string   `json:"argv"`
	State       string     `json:"state"`
	Reason      string     `json:"reason,omitempty"` // why it is error, interrupted or cancelled
	Tree        string     `json:"candidate_tree,omitempty"`
	PatchDigest string     `json:"patch_digest,omitempty"`
	ExitCode    *int       `json:"exit_code,omitempty"`
	Signal      string     `json:"signal,omitempty"`
	Isolation   string     `json:"isolation,omitempty"`
	Environment string     `json:"environment_digest,omitempty"`
	LogDigest   string     `json:"log_digest,omitempty"`
	OutputBytes int64      `json:"output_bytes"`
	Summary     string     `json:"summary,omitempty"`
	Timeout     int        `json:"timeout_seconds"`
	RequestedBy string     `json:"requested_by"`
	RequestedAt time.Time  `json:"requested_at"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	DurationMS  int64      `json:"duration_ms"`
}

// A TokenScope is what a token is narrowed to; empty fields do not narrow.
type TokenScope struct {
	Workspace  string   `json:"workspace_id,omitempty"`
	Task       string   `json:"task_id,omitempty"`
	Proposal   string   `json:"proposal_id,omitempty"`
	Operations []string `json:"operations,omitempty"`
}

// A Token is a credential as its administrators see it: the secret itself was
// shown once and is kept nowhere.
type Token struct {
	ID        string     `json:"token_id"`
	Principal string     `json:"principal_id"`
	Scope     TokenScope `json:"scope"`
	State     string     `json:"state"` // active, expired or revoked, as of the moment of reading
	IssuedBy  string     `json:"issued_by"`
	IssuedAt  time.Time  `json:"issued_at"`
	ExpiresAt time.Time  `json:"expires_at"`
	RevokedAt *time.Time `json:"revoked_at,omitempty"`
}
