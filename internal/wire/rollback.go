package wire

// A PublicKey is what signed receipts of this installation are checked with.
// Get it once, in a way that you trust, and keep it.
type PublicKey struct {
	ID        string `json:"key_id"`         // SHA-256 of its SubjectPublicKeyInfo in DER
	Algorithm string `json:"algorithm"`      // ed25519
	PEM       string `json:"public_key_pem"` // SubjectPublicKeyInfo
	Current   bool   `json:"current"`        // new receipts are signed with it
}

// A Rollback is what is kept to take a transaction back: for each path what
// lay there before and after, without the bytes, and whether those are there.
type Rollback struct {
	Transaction string         `json:"transaction_id"`
	Proposal    string         `json:"proposal_id"`
	State       string         `json:"state"` // of the transaction
	Attempt     int            `json:"attempt"`
	BeforePaths string         `json:"before_paths_digest,omitempty"`
	AfterPaths  string         `json:"after_paths_digest,omitempty"`
	BeforeTree  string         `json:"before_tree,omitempty"`
	AfterTree   string         `json:"after_tree,omitempty"`
	Files       []RollbackFile `json:"files"`
	Complete    bool           `json:"complete"`         // every image before and after is stored and sound
	Missing     []string       `json:"missing"`          // paths of which an image is not
	Journal     string         `json:"journal"`          // none, open, committed, aborted or attention
	Repository  string         `json:"repository_state"` // before, after, mixed or diverged, as the files lie now
	Receipt     string         `json:"receipt_sha256,omitempty"`
	Reverse     ReversePatch   `json:"reverse"`
}

// A RollbackFile is one path of a rollback artifact.
type RollbackFile struct {
	Path   string     `json:"path"`
	Op     string     `json:"operation"` // create, delete, modify, mode or type: what the transaction did
	Stored string     `json:"stored"`    // the worse of both images
	Before KeptImage  `json:"before"`
	After  KeptImage  `json:"after"`
	Call   *ImageCall `json:"before_image,omitempty"` // how to fetch the bytes before
}

// An ImageCall names the bytes of a path before a transaction.
type ImageCall struct {
	Op   string            `json:"op"`
	Args map[string]string `json:"args"`
}

// A KeptImage is one version of a path, and whether its bytes are there.
type KeptImage struct {
	Kind   string `json:"kind"` // absent, file, symlink, dir or special
	Mode   string `json:"mode,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size_bytes,omitempty"`
	Target string `json:"link_target,omitempty"` // of a symlink, spelled so that all of it is seen
	Stored string `json:"stored"`                // yes, no, damaged, or not_applicable where there are no bytes
	Code   string `json:"code,omitempty"`        // state.artifact_missing unless it is stored
}

// A ReversePatch is the exact patch that takes a transaction back, spelled for
// people: known secrets are masked and hidden characters escaped, so that its
// text is not to be applied.
type ReversePatch struct {
	Digest  string `json:"patch_digest,omitempty"` // of the exact bytes
	Bytes   int64  `json:"patch_bytes,omitempty"`
	Text    string `json:"text,omitempty"`
	Cut     bool   `json:"cut,omitempty"`     // Text is only the beginning, or lines of it are
	Omitted string `json:"omitted,omitempty"` // why there is none
}
