package events

// VoteCast means: a reviewer gave their word on one revision. Their newest one
// counts; the others stay.
type VoteCast struct {
	Vote         string   `json:"vote_id"`
	Proposal     string   `json:"proposal_id"`
	Revision     int      `json:"revision"`
	PatchDigest  string   `json:"patch_digest"`
	PathsDigest  string   `json:"paths_digest"`
	PolicyDigest string   `json:"policy_digest"`
	Voter        string   `json:"voter"`
	Choice       string   `json:"vote"` // approve, approve_with_notes, revise, reject, veto or abstain
	Reason       string   `json:"reason_md"`
	Confidence   *float64 `json:"confidence,omitempty"` // 0 to 1; shown, never counted
}

// DecisionRecorded means: someone wrote down what was decided, and why.
type DecisionRecorded struct {
	Decision  string `json:"decision_id"`
	Workspace string `json:"workspace_id"`
	Proposal  string `json:"proposal_id"`
	Task      string `json:"task_id,omitempty"`
	Word      string `json:"decision"`
	Rationale string `json:"rationale_md"`
	By        string `json:"decided_by"`
}

// ApprovalRequested means: people are asked to decide something. About a
// proposal it stands in that proposal's stream, else in one of its own.
type ApprovalRequested struct {
	Approval  string `json:"approval_id"`
	Workspace string `json:"workspace_id"`
	Proposal  string `json:"proposal_id,omitempty"`
	Task      string `json:"task_id,omitempty"`
	Subject   string `json:"subject"`
	Reason    string `json:"reason_md"`
	Revision  int    `json:"revision,omitempty"` // that it was opened for
	By        string `json:"requested_by"`
}

// ApprovalFiled means: the approval with this id is found in that proposal's
// stream.
type ApprovalFiled struct {
	Approval  string `json:"approval_id"`
	Workspace string `json:"workspace_id"`
	Proposal  string `json:"proposal_id"`
}

// ApprovalDecided means: a person gave their word on a request. Each person's
// newest one counts.
type ApprovalDecided struct {
	Approval     string `json:"approval_id"`
	Proposal     string `json:"proposal_id,omitempty"`
	Verdict      string `json:"verdict"` // approved, rejected, changes_requested or deferred
	Reason       string `json:"reason_md,omitempty"`
	By           string `json:"decided_by"`
	Revision     int    `json:"revision,omitempty"`
	PatchDigest  string `json:"patch_digest,omitempty"`
	PolicyDigest string `json:"policy_digest,omitempty"`
}

// ApprovalStream is the stream of one approval.
func ApprovalStream(id string) Stream { return Stream("approval/" + id) }

func approvalStream(approval, proposal string) Stream {
	if proposal != "" {
		return ProposalStream(proposal)
	}
	return ApprovalStream(approval)
}

func (e VoteCast) Stream() Stream          { return ProposalStream(e.Proposal) }
func (e DecisionRecorded) Stream() Stream  { return ProposalStream(e.Proposal) }
func (e ApprovalRequested) Stream() Stream { return approvalStream(e.Approval, e.Proposal) }
func (e ApprovalFiled) Stream() Stream     { return ApprovalStream(e.Approval) }
func (e ApprovalDecided) Stream() Stream   { return approvalStream(e.Approval, e.Proposal) }
