package events

import "time"

// ProposalCreated means: someone wants to make a change. Its patch comes with
// the first ProposalRevisionAttached, in the same append.
type ProposalCreated struct {
	Proposal      string   `json:"proposal_id"`
	Workspace     string   `json:"workspace_id"`
	Task          string   `json:"task_id,omitempty"`
	Author        string   `json:"author"`
	Title         string   `json:"title"`
	Summary       string   `json:"summary_md"`
	Risk          string   `json:"risk"` // low, normal, high or critical
	ExpectedTests []string `json:"expected_tests,omitempty"`
	RollbackNotes string   `json:"rollback_notes,omitempty"`
	Compensates   string   `json:"compensates_transaction_id,omitempty"`
}

// ProposalRevisionAttached means: a proposal has a new, immutable version of
// its patch. What was given on earlier ones is stale.
type ProposalRevisionAttached struct {
	Proposal    string        `json:"proposal_id"`
	Number      int           `json:"number"`
	PatchDigest string        `json:"patch_digest"` // of the bytes in the blob store
	PatchBytes  int64         `json:"patch_bytes"`
	Base        Base          `json:"base_revision"`
	Files       []PatchedFile `json:"files"`
	Resources   []string      `json:"resources"`
	Risk        string        `json:"effective_risk"` // the higher of the author's word and policy's
	AttachedBy  string        `json:"attached_by"`
	RebasedFrom int           `json:"rebased_from,omitempty"` // the revision that was merged into a moved base
	Merged      []string      `json:"merged_paths,omitempty"` // whose content was merged: neither side's
	AttachedAt  time.Time     `json:"attached_at,omitzero"`   // zero of those from before claims of older revisions were released
}

// A Base is what a revision was made on: the state of every path that the
// patch touches, and the commit it stood on.
type Base struct {
	Commit      string      `json:"commit,omitempty"`
	PathsDigest string      `json:"paths_digest"`
	Paths       []PathState `json:"paths"`
	Sources     []PathState `json:"sources,omitempty"` // of copies: read, and not changed; PathsDigest covers them too
	Watched     bool        `json:"watched,omitempty"` // written since edits behind the service's back are looked for: the states may be compared with later ones
}

// A PathState is what one path holds.
type PathState struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"` // absent, file, symlink, dir or special
	Mode   string `json:"mode,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size_bytes,omitempty"`
}

// A PatchedFile is one section of a patch.
type PatchedFile struct {
	Op      string `json:"operation"` // create, delete, modify, rename, copy, mode or type
	Path    string `json:"path"`
	OldPath string `json:"old_path,omitempty"`
	OldMode string `json:"old_mode,omitempty"`
	Mode    string `json:"mode,omitempty"`
	Binary  bool   `json:"binary,omitempty"`
	Added   int    `json:"added_lines"`
	Removed int    `json:"removed_lines"`
}

// ProposalReviewRequested means: the proposal is up for review.
type ProposalReviewRequested struct {
	Proposal string `json:"proposal_id"`
	Revision int    `json:"revision"`
	By       string `json:"by"`
}

// ProposalRevisionRequested means: a reviewer or person wants another revision
// before the review goes on.
type ProposalRevisionRequested struct {
	Proposal string `json:"proposal_id"`
	Revision int    `json:"revision"`
	By       string `json:"by"`
	Cause    string `json:"cause"` // vote or approval
}

// ProposalRejected means: the proposal was turned down for good.
type ProposalRejected struct {
	Proposal string `json:"proposal_id"`
	By       string `json:"by"`
	Reason   string `json:"reason_md"`
}

// ProposalWithdrawn means: the author took the proposal back.
type ProposalWithdrawn struct {
	Proposal string `json:"proposal_id"`
	By       string `json:"by"`
	Reason   string `json:"reason_md,omitempty"`
}

// ProposalTransactionOpened means: a transaction is to apply the revision; the
// proposal takes no other until that one has ended.
type ProposalTransactionOpened struct {
	Proposal    string `json:"proposal_id"`
	Transaction string `json:"transaction_id"`
	Revision    int    `json:"revision"`
}

// ProposalTransactionFailed means: the transaction ended and nothing was
// changed; the proposal may be applied by another.
type ProposalTransactionFailed struct {
	Proposal    string `json:"proposal_id"`
	Transaction string `json:"transaction_id"`
	Code        string `json:"code"`
}

// ProposalTransactionCancelled means: a person ended the transaction before it
// changed anything; the proposal may be applied by another.
type ProposalTransactionCancelled struct {
	Proposal    string `json:"proposal_id"`
	Transaction string `json:"transaction_id"`
}

// ProposalAccepted means: the change is in the repository.
type ProposalAccepted struct {
	Proposal    string `json:"proposal_id"`
	Transaction string `json:"transaction_id"`
	Revision    int    `json:"revision"`
}

// ProposalTestRequested means: a run of one command on the candidate tree of a
// revision was asked for and has not ended.
type ProposalTestRequested struct {
	Proposal string `json:"proposal_id"`
	TestRun  string `json:"test_run_id"`
	Revision int    `json:"revision"`
	Command  string `json:"command"`
}

// ProposalTested means: a verified run of one command on the candidate tree of
// a revision has ended. It has no tree if it ended before one was made.
type ProposalTested struct {
	Proposal  string `json:"proposal_id"`
	TestRun   string `json:"test_run_id"`
	Revision  int    `json:"revision"`
	Command   string `json:"command"`
	Tree      string `json:"candidate_tree"`
	State     string `json:"state"`     // as of TestRunFinished
	Isolation string `json:"isolation"` // none, process, landlock or namespace
}

// ProposalStream is the stream of one proposal, with its votes and approvals.
func ProposalStream(id string) Stream { return Stream("proposal/" + id) }

func (e ProposalCreated) Stream() Stream           { return ProposalStream(e.Proposal) }
func (e ProposalRevisionAttached) Stream() Stream  { return ProposalStream(e.Proposal) }
func (e ProposalReviewRequested) Stream() Stream   { return ProposalStream(e.Proposal) }
func (e ProposalRevisionRequested) Stream() Stream { return ProposalStream(e.Proposal) }
func (e ProposalRejected) Stream() Stream          { return ProposalStream(e.Proposal) }
func (e ProposalWithdrawn) Stream() Stream         { return ProposalStream(e.Proposal) }
func (e ProposalTransactionOpened) Stream() Stream { return ProposalStream(e.Proposal) }
func (e ProposalTransactionFailed) Stream() Stream { return ProposalStream(e.Proposal) }
func (e ProposalTransactionCancelled) Stream() Stream {
	return ProposalStream(e.Proposal)
}
func (e ProposalAccepted) Stream() Stream      { return ProposalStream(e.Proposal) }
func (e ProposalTestRequested) Stream() Stream { return ProposalStream(e.Proposal) }
func (e ProposalTested) Stream() Stream        { return ProposalStream(e.Proposal) }
