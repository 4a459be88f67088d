package wire

import (
	"time"

	"roundtable/internal/fault"
)

// A Gate is one condition of applying a proposal.
type Gate struct {
	Gate    string       `json:"gate"`
	Status  string       `json:"status"`   // passed, failed, waiting, error, skipped or not_applicable
	Because []string     `json:"because"`  // what was found, one sentence each
	Needs   []string     `json:"needs"`    // who must do what, one sentence each
	Next    []fault.Step `json:"next"`     // with which call
	BoundTo string       `json:"bound_to"` // the patch digest it was judged for
}

// A Check is one step of validating a proposal.
type Check struct {
	Check  string       `json:"check"`
	Status string       `json:"status"` // passed, failed, waiting, error, skipped or not_applicable
	Detail string       `json:"detail"`
	Ran    bool         `json:"ran"`
	Next   []fault.Step `json:"next"` // which call would help
}

// Gates is the answer to what stands between a proposal and its application.
type Gates struct {
	Proposal  string `json:"proposal_id"`
	Revision  int    `json:"revision"`
	Gates     []Gate `json:"gates"`
	Appliable bool   `json:"appliable"`
}

// A Validation is the answer of patch_validate.
type Validation struct {
	Proposal  string         `json:"proposal_id"`
	Revision  int            `json:"revision"`
	Valid     bool           `json:"valid"`
	Appliable bool           `json:"appliable"`
	Checks    []Check        `json:"checks"`
	Legacy    map[string]any `json:"legacy"`
}

// A Phase is one step of one attempt at applying.
type Phase struct {
	Phase         string         `json:"phase"` // stage, validate, prepare, apply, verify or finish; recover is what a recovery made of the attempt
	Status        string         `json:"status"`
	Attempt       int            `json:"attempt"`
	Actor         string         `json:"actor"`
	Reason        string         `json:"reason,omitempty"`
	Request       string         `json:"request_id,omitempty"`
	Inputs        map[string]any `json:"inputs"`
	Outputs       map[string]any `json:"outputs"`
	FailureCode   string         `json:"failure_code,omitempty"`
	RecoveryState string         `json:"recovery_state,omitempty"`
	StartedAt     time.Time      `json:"started_at"`
	EndedAt       time.Time      `json:"ended_at"`
	LogRef        int64          `json:"log_ref"` // position of its event in the log
}

// A TxFile is one path that a transaction changes.
type TxFile struct {
	Path         string `json:"path"`
	BeforeKind   string `json:"before_kind,omitempty"`
	BeforeMode   string `json:"before_mode,omitempty"`
	BeforeSHA256 string `json:"before_sha256,omitempty"`
	AfterKind    string `json:"after_kind,omitempty"` // absent until it is applied
	AfterMode    string `json:"after_mode,omitempty"`
	AfterSHA256  string `json:"after_sha256,omitempty"`
}

// A Failure is why a transaction failed.
type Failure struct {
	Code   string   `json:"code"`
	Detail string   `json:"detail"`
	Paths  []string `json:"paths,omitempty"`
}

// TxDigests name a state of the repository.
type TxDigests struct {
	Paths string `json:"paths_digest,omitempty"` // of the touched paths
	Tree  string `json:"tree,omitempty"`         // of the whole tree: Git's tree id, or a manifest's digest in a plain folder
}

// Relied are the records that the gates rested on when the apply began.
type Relied struct {
	Votes     []string `json:"vote_ids,omitempty"`
	Approvals []string `json:"approval_ids,omitempty"`
	TestRuns  []string `json:"test_run_ids,omitempty"`
}

// A PathNow is what lies at a path.
type PathNow struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Mode   string `json:"mode,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
}

// A Resolution is how a person's word ended what waited for one: what lies at
// the paths stays.
type Resolution struct {
	Repository string    `json:"repository_state"` // before, after, mixed or diverged, as the paths were looked at; empty where the journal could not be read
	Paths      []PathNow `json:"paths"`
	Kept       []PathNow `json:"kept"` // further versions, in the blob store under their digests
}

// A Transaction is one attempt to change the repository.
type Transaction struct {
	ID            string    `json:"transaction_id"`
	Workspace     string    `json:"workspace_id"`
	Proposal      string    `json:"proposal_id"`
	Revision      int       `json:"revision"`
	PatchDigest   string    `json:"patch_digest"`
	PolicyDigest  string    `json:"policy_digest,omitempty"`
	State         string    `json:"state"`   // pending, staged, applying, applied, failed or cancelled
	Applied       string    `json:"applied"` // yes, no or unknown
	Attempt       int       `json:"attempt"`
	Behind        string    `json:"behind_transaction_id,omitempty"` // the one just before it when it began to wait
	AskedBy       string    `json:"asked_by,omitempty"`              // who wants it applied
	Reason        string    `json:"reason,omitempty"`
	Before        TxDigests `json:"before_hash"`              // of what it found
	After         TxDigests `json:"after_hash"`               // of what it made; empty until it is applied
	CandidateTree string    `json:"candidate_tree,omitempty"` // the whole tree's id after it
	BeforePaths   string    `json:"before_paths_digest,omitempty"`
	AfterPaths    string    `json:"after_paths_digest,omitempty"`
	BeforeTree    string    `json:"before_tree,omitempty"`
	AfterTree     string    `json:"after_tree,omitempty"`
	Ref           string    `json:"ref,omitempty"`    // the branch that it was committed to; none where only files change
	Commit        string    `json:"commit,omitempty"` // its id
	Parent        string    `json:"parent,omitempty"`
	Gates         []Gate    `json:"gates"` // as they stood when it began to apply
	Relied
	Files         []TxFile    `json:"files"`
	Failure       *Failure    `json:"failure,omitempty"`
	Resolution    *Resolution `json:"resolution,omitempty"`
	Compensates   string      `json:"compensates_transaction_id,omitempty"`
	CompensatedBy string      `json:"compensated_by,omitempty"`
	Phases        []Phase     `json:"phases"`
	OpenedBy      string      `json:"opened_by"`
	OpenedAt      time.Time   `json:"opened_at"`
	UpdatedAt     time.Time   `json:"updated_at"`
}

// A RecoveryPath is what lies at one path of a transaction.
type RecoveryPath struct {
	Path   string   `json:"path"`
	State  string   `json:"state"` // before, after or other
	Kind   string   `json:"kind,omitempty"`
	SHA256 string   `json:"sha256,omitempty"`
	Why    string   `json:"why,omitempty"`  // it waits for a person
	Held   *PathNow `json:"held,omitempty"` // a further version, which resolve moves to the blob store
}

// An Action is something that can be done about a transaction now.
type Action struct {
	Action   string      `json:"action"` // stage, apply, retry, apply_again, cancel, resolve or compensate
	Possible bool        `json:"possible"`
	Why      string      `json:"why"`
	Call     *fault.Step `json:"call,omitempty"` // if it is possible
}

// A Recovery is what the files, the journal and the log say of a transaction.
type Recovery struct {
	Transaction string          `json:"transaction_id"`
	State       string          `json:"state"`            // that of the transaction
	Repository  string          `json:"repository_state"` // before, after, mixed or diverged; unknown where the files could not be looked at
	Journal     string          `json:"journal"`          // none, open, committed, aborted or attention; unknown where it could not be looked at
	Why         string          `json:"why,omitempty"`    // why something is not known
	Paths       []RecoveryPath  `json:"paths"`
	Branch      *RecoveryBranch `json:"branch,omitempty"` // where changes are committed
	Actions     []Action        `json:"actions"`
}
