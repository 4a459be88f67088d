package events

import "time"

// ValidationStarted means: a person has stages run on the tree that a revision
// would give. Results are of this patch, base, policy and tree, whatever is
// attached later.
type ValidationStarted struct {
	Validation   string    `json:"validation_id"`
	Workspace    string    `json:"workspace_id"`
	Proposal     string    `json:"proposal_id"`
	Revision     int       `json:"revision"`
	PatchDigest  string    `json:"patch_digest"`
	PathsDigest  string    `json:"paths_digest"`
	PolicyDigest string    `json:"policy_digest"`
	Tree         string    `json:"candidate_tree,omitempty"` // none where the patch gives none
	Stages       []string  `json:"stages"`                   // that were asked for, in the order in which they are shown
	By           string    `json:"requested_by"`
	StartedAt    time.Time `json:"started_at"`
}

// ValidationTestsRequested means: stage tests of a validation waits for these
// runs.
type ValidationTestsRequested struct {
	Validation string    `json:"validation_id"`
	TestRuns   []string  `json:"test_run_ids"`
	At         time.Time `json:"started_at"`
}

// ValidationStageFinished means: a stage has come to its end, as Status says:
// passed, failed, error, skipped or not_applicable.
type ValidationStageFinished struct {
	Validation string    `json:"validation_id"`
	Stage      string    `json:"stage"`
	Status     string    `json:"status"`
	Detail     string    `json:"detail"`
	Output     string    `json:"output,omitempty"`           // the first of it
	Cut        bool      `json:"output_truncated,omitempty"` // there was more
	ExitCode   *int      `json:"exit_code,omitempty"`        // of a stage that ran commands: the first that is not 0, or 0
	TestRuns   []string  `json:"test_run_ids,omitempty"`
	StartedAt  time.Time `json:"started_at"`
	FinishedAt time.Time `json:"finished_at"`
	DurationMS int64     `json:"duration_ms"`
}

// ValidationFinished means: every stage has come to its end. Status is passed,
// failed or error.
type ValidationFinished struct {
	Validation string    `json:"validation_id"`
	Status     string    `json:"status"`
	FinishedAt time.Time `json:"finished_at"`
}

// ValidationStream is the stream of one validation.
func ValidationStream(id string) Stream { return Stream("validation/" + id) }

func (e ValidationStarted) Stream() Stream        { return ValidationStream(e.Validation) }
func (e ValidationTestsRequested) Stream() Stream { return ValidationStream(e.Validation) }
func (e ValidationStageFinished) Stream() Stream  { return ValidationStream(e.Validation) }
func (e ValidationFinished) Stream() Stream       { return ValidationStream(e.Validation) }
