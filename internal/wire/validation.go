package wire

import "time"

// A StagedValidation is stages that a person had run on what one revision
// gives. It stays with that revision, whatever is attached later.
type StagedValidation struct {
	ID           string            `json:"validation_id"`
	Workspace    string            `json:"workspace_id"`
	Proposal     string            `json:"proposal_id"`
	Revision     int               `json:"revision"`
	PatchDigest  string            `json:"patch_digest"`
	PathsDigest  string            `json:"paths_digest"` // of its base
	PolicyDigest string            `json:"policy_digest"`
	Tree         string            `json:"candidate_tree,omitempty"` // absent where the patch gives none
	Status       string            `json:"status"`                   // running, passed, failed or error
	RequestedBy  string            `json:"requested_by"`
	StartedAt    time.Time         `json:"started_at"`
	FinishedAt   *time.Time        `json:"finished_at,omitempty"`
	Stages       []ValidationStage `json:"stages"`
}

// A ValidationStage is one stage of a validation. Those that are judged from
// one look at the tree share its times.
type ValidationStage struct {
	Stage      string     `json:"stage"`
	Status     string     `json:"status"` // running, passed, failed, error, skipped or not_applicable
	Detail     string     `json:"detail"`
	TestRuns   []string   `json:"test_run_ids"`
	Output     string     `json:"output"`              // the first of it
	Cut        bool       `json:"output_truncated"`    // there was more
	ExitCode   *int       `json:"exit_code,omitempty"` // of a stage that ran commands: the first that is not 0, or 0
	StartedAt  *time.Time `json:"started_at,omitempty"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	DurationMS int64      `json:"duration_ms"`
}
