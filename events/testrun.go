package events

import "time"

// TestRunRequested means: one command is to run on one tree.
type TestRunRequested struct {
	TestRun     string   `json:"test_run_id"`
	Workspace   string   `json:"workspace_id"`
	Proposal    string   `json:"proposal_id,omitempty"`
	Revision    int      `json:"revision,omitempty"`
	PatchDigest string   `json:"patch_digest,omitempty"`
	Task        string   `json:"task_id,omitempty"`
	Command     string   `json:"command"`
	Argv        []string `json:"argv"`
	Timeout     int      `json:"timeout_seconds"`
	By          string   `json:"requested_by"`
	Validation  string   `json:"validation_id,omitempty"` // that waits for the result
}

// TestRunStarted means: a worker has the tree ready and begins. A second one
// of the same run never follows: after a crash the run is interrupted.
type TestRunStarted struct {
	TestRun string `json:"test_run_id"`
	Tree    string `json:"candidate_tree"`
}

// TestRunCancelRequested means: someone wants the run to end now.
type TestRunCancelRequested struct {
	TestRun string `json:"test_run_id"`
	By      string `json:"by"`
}

// TestRunFinished means: the run has ended, as State says: passed, failed,
// error, timed_out, cancelled or interrupted.
type TestRunFinished struct {
	TestRun     string     `json:"test_run_id"`
	State       string     `json:"state"`
	Reason      string     `json:"reason,omitempty"`
	Tree        string     `json:"candidate_tree,omitempty"`
	ExitCode    *int       `json:"exit_code,omitempty"`
	Signal      string     `json:"signal,omitempty"`
	StartedAt   *time.Time `json:"started_at,omitempty"`
	EndedAt     *time.Time `json:"ended_at,omitempty"`
	DurationMS  int64      `json:"duration_ms"`
	Isolation   string     `json:"isolation,omitempty"`
	Environment string     `json:"environment_digest,omitempty"`
	LogDigest   string     `json:"log_digest,omitempty"` // of the kept output in the blob store
	OutputBytes int64      `json:"output_bytes"`         // of all output, kept or not
	Summary     string     `json:"summary"`
}

// TestRunStream is the stream of one test run.
func TestRunStream(id string) Stream { return Stream("test_run/" + id) }

func (e TestRunRequested) Stream() Stream       { return TestRunStream(e.TestRun) }
func (e TestRunStarted) Stream() Stream         { return TestRunStream(e.TestRun) }
func (e TestRunCancelRequested) Stream() Stream { return TestRunStream(e.TestRun) }
func (e TestRunFinished) Stream() Stream        { return TestRunStream(e.TestRun) }
