package events

import "time"

// TransactionOpened means: one revision of a proposal is to be applied.
type TransactionOpened struct {
	Transaction string `json:"transaction_id"`
	Workspace   string `json:"workspace_id"`
	Proposal    string `json:"proposal_id"`
	Revision    int    `json:"revision"`
	PatchDigest string `json:"patch_digest"`
	PathsDigest string `json:"paths_digest"` // of the base
	Compensates string `json:"compensates_transaction_id,omitempty"`
	By          string `json:"opened_by"`
	// Before is what the base holds at the touched paths.
	Before []PathState `json:"before,omitempty"`
}

// TransactionStaged means: the transaction is ready to be applied.
type TransactionStaged struct {
	Transaction string `json:"transaction_id"`
	By          string `json:"by"`
}

// TransactionApplyRequested means: attempt n at changing the repository may
// begin, on the gates as they stood. It is written before any file is touched.
type TransactionApplyRequested struct {
	Transaction  string       `json:"transaction_id"`
	Workspace    string       `json:"workspace_id"`
	Proposal     string       `json:"proposal_id"`
	Revision     int          `json:"revision"`
	Attempt      int          `json:"attempt"`
	PatchDigest  string       `json:"patch_digest"`
	PathsDigest  string       `json:"paths_digest"`
	PolicyDigest string       `json:"policy_digest"`
	Tested       []string     `json:"tested_trees,omitempty"` // candidate trees that gate tests rests on
	Gates        []GateResult `json:"gates"`
	Fences       []Fence      `json:"fences"`
	By           string       `json:"by"`
	Reason       string       `json:"reason,omitempty"`
	Request      string       `json:"request_id,omitempty"`
	Votes        []string     `json:"vote_ids,omitempty"`     // that counted as approvals
	Approvals    []string     `json:"approval_ids,omitempty"` // in which people approved
	TestRuns     []string     `json:"test_run_ids,omitempty"` // that gate tests rests on
}

// A GateResult is how one gate stood.
type GateResult struct {
	Gate    string   `json:"gate"`
	Status  string   `json:"status"`
	Because []string `json:"because,omitempty"`
}

// A Fence is a claim that the apply rests on.
type Fence struct {
	Claim    string `json:"claim_id"`
	Resource string `json:"resource_id"`
	Fence    int64  `json:"fence"`
}

// TransactionPhaseCompleted means: one step of an attempt has ended.
type TransactionPhaseCompleted struct {
	Transaction   string         `json:"transaction_id"`
	Attempt       int            `json:"attempt"`
	Phase         string         `json:"phase"`  // stage, validate, prepare, apply, verify or finish
	Status        string         `json:"status"` // completed or failed
	Actor         string         `json:"actor"`
	Reason        string         `json:"reason,omitempty"`
	Request       string         `json:"request_id,omitempty"`
	Inputs        map[string]any `json:"inputs,omitempty"`
	Outputs       map[string]any `json:"outputs,omitempty"`
	FailureCode   string         `json:"failure_code,omitempty"`
	RecoveryState string         `json:"recovery_state,omitempty"`
	StartedAt     time.Time      `json:"started_at"`
	EndedAt       time.Time      `json:"ended_at"`
}

// TransactionApplied means: the repository holds the change, durably.
type TransactionApplied struct {
	Transaction string        `json:"transaction_id"`
	Proposal    string        `json:"proposal_id"`
	Attempt     int           `json:"attempt"`
	BeforePaths string        `json:"before_paths_digest"`
	AfterPaths  string        `json:"after_paths_digest"`
	BeforeTree  string        `json:"before_tree,omitempty"`
	AfterTree   string        `json:"after_tree"`
	Files       []ChangedPath `json:"files"`
	Ref         string        `json:"ref,omitempty"`    // the branch that it was committed to; none where only files change
	Commit      string        `json:"commit,omitempty"` // its id
	Parent      string        `json:"parent,omitempty"` // none of a branch's first commit
}

// A ChangedPath is one path with its states before and after. The bytes of
// both lie in the blob store under their digests.
type ChangedPath struct {
	Path   string    `json:"path"`
	Before PathState `json:"before"`
	After  PathState `json:"after"`
}

// TransactionFailed means: the attempt ended and the repository is as it was
// before, but for what Code says: state.needs_attention leaves paths to a
// person.
type TransactionFailed struct {
	Transaction string   `json:"transaction_id"`
	Proposal    string   `json:"proposal_id"`
	Attempt     int      `json:"attempt"`
	Code        string   `json:"code"`
	Detail      string   `json:"detail"`
	Paths       []string `json:"paths,omitempty"`
}

// TransactionRecovered means: an attempt was found that a dead process, or a
// try that could not end it, had left in the workspace, and its paths were
// brought to where Found says. It changes no state of the transaction: what
// becomes of the attempt is told by the events that follow.
type TransactionRecovered struct {
	Transaction string `json:"transaction_id"`
	Attempt     int    `json:"attempt"`
	// Found is nothing_begun: no path had been touched; rolled_back: every path
	// is as before; committed: every path is as after; or attention: the paths
	// in Stuck wait for a person, and every other is as before.
	Found   string      `json:"found"`
	FoundAt string      `json:"found_at"`        // start or before_apply
	Folder  string      `json:"folder"`          // names what was found in the workspace, for as long as it is there
	Stuck   []StuckPath `json:"stuck,omitempty"` // at most 100
	Kept    []PathState `json:"kept,omitempty"`  // versions that lie nowhere but in the blob store, at most 100
	More    int         `json:"more,omitempty"`  // stuck paths and kept versions that are not listed
}

// A StuckPath is one that waits for a person: both versions are kept.
type StuckPath struct {
	Path   string `json:"path"` // "" is every path: the journal cannot be read
	Reason string `json:"reason"`
}

// TransactionCompensated means: another transaction has taken this one back.
type TransactionCompensated struct {
	Transaction string `json:"transaction_id"`
	By          string `json:"compensated_by"` // that transaction's id
}

// TransactionRestored means: what had taken this transaction back was itself
// taken back, so that the change is there again.
type TransactionRestored struct {
	Transaction string `json:"transaction_id"`
	By          string `json:"restored_by"` // the transaction that did it
}

// TransactionCompensationProposed means: a proposal that takes this
// transaction back was made.
type TransactionCompensationProposed struct {
	Transaction string `json:"transaction_id"`
	Proposal    string `json:"proposal_id"`
}

// TransactionApplyQueued means: an apply was asked for while another
// transaction had the turn. It is judged when its own turn comes.
type TransactionApplyQueued struct {
	Transaction string `json:"transaction_id"`
	By          string `json:"by"`
	Reason      string `json:"reason,omitempty"`
	Request     string `json:"request_id,omitempty"`
}

// TransactionRetried means: a transaction that had failed is open again.
type TransactionRetried struct {
	Transaction string `json:"transaction_id"`
	Proposal    string `json:"proposal_id"`
	Revision    int    `json:"revision"`
	By          string `json:"by"`
	Reason      string `json:"reason,omitempty"`
	Request     string `json:"request_id,omitempty"`
}

// TransactionCancelled means: a person ended the transaction for good, and it
// has changed nothing.
type TransactionCancelled struct {
	Transaction string `json:"transaction_id"`
	Proposal    string `json:"proposal_id"`
	By          string `json:"by"`
	Reason      string `json:"reason,omitempty"`
	Request     string `json:"request_id,omitempty"`
}

// TransactionResolveRequested means: a person wants to keep what now lies at
// the paths that an attempt left to people.
type TransactionResolveRequested struct {
	Transaction string `json:"transaction_id"`
	Workspace   string `json:"workspace_id"`
	Attempt     int    `json:"attempt"`
	By          string `json:"by"`
	Reason      string `json:"reason"`
	Request     string `json:"request_id,omitempty"`
	// Keeps are versions that lie in the transaction's folder alone, as they
	// were looked at.
	Keeps []PathState `json:"keeps,omitempty"`
}

// TransactionResolved means: what lies at the paths stays, and what lay
// nowhere else is in the blob store under its digest.
type TransactionResolved struct {
	Transaction string      `json:"transaction_id"`
	Attempt     int         `json:"attempt"`
	Repository  string      `json:"repository_state"` // before, after, mixed or diverged, of the paths as they were looked at; "" where the journal cannot be read
	Paths       []PathState `json:"paths,omitempty"`  // as they lie
	Kept        []PathState `json:"kept,omitempty"`   // versions that lay in the transaction's folder alone
}

// TransactionResolveFailed means: nothing was resolved, and the paths still
// wait for a person.
type TransactionResolveFailed struct {
	Transaction string   `json:"transaction_id"`
	Attempt     int      `json:"attempt"`
	Code        string   `json:"code"`
	Detail      string   `json:"detail"`
	Paths       []string `json:"paths,omitempty"`
}

// TransactionStream is the stream of one transaction.
func TransactionStream(id string) Stream { return Stream("transaction/" + id) }

func (e TransactionOpened) Stream() Stream         { return TransactionStream(e.Transaction) }
func (e TransactionStaged) Stream() Stream         { return TransactionStream(e.Transaction) }
func (e TransactionApplyRequested) Stream() Stream { return TransactionStream(e.Transaction) }
func (e TransactionPhaseCompleted) Stream() Stream { return TransactionStream(e.Transaction) }
func (e TransactionApplied) Stream() Stream        { return TransactionStream(e.Transaction) }
func (e TransactionFailed) Stream() Stream         { return TransactionStream(e.Transaction) }
func (e TransactionRecovered) Stream() Stream      { return TransactionStream(e.Transaction) }
func (e TransactionCompensated) Stream() Stream    { return TransactionStream(e.Transaction) }
func (e TransactionRestored) Stream() Stream       { return TransactionStream(e.Transaction) }
func (e TransactionCompensationProposed) Stream() Stream {
	return TransactionStream(e.Transaction)
}
func (e TransactionApplyQueued) Stream() Stream      { return TransactionStream(e.Transaction) }
func (e TransactionRetried) Stream() Stream          { return TransactionStream(e.Transaction) }
func (e TransactionCancelled) Stream() Stream        { return TransactionStream(e.Transaction) }
func (e TransactionResolveRequested) Stream() Stream { return TransactionStream(e.Transaction) }
func (e TransactionResolved) Stream() Stream         { return TransactionStream(e.Transaction) }
func (e TransactionResolveFailed) Stream() Stream    { return TransactionStream(e.Transaction) }
