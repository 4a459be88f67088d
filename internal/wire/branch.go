package wire

// A RecoveryBranch is where the branch of a transaction stands.
type RecoveryBranch struct {
	Ref    string `json:"ref"`
	Commit string `json:"commit"`           // the transaction's
	Parent string `json:"parent,omitempty"` // where the branch was before it
	Now    string `json:"now,omitempty"`    // where it is; empty if it has no commit
	State  string `json:"state"`            // after: it is the transaction's commit or has it as an ancestor; before: it is the parent; else other
}
