package wire

// A MergeConflict is a path that two sides changed in ways that cannot be
// joined: ours is the tree as it lies, theirs what was to be made of it.
type MergeConflict struct {
	Path      string      `json:"path"`
	Reason    string      `json:"reason"` // lines, binary, symlink, mode, type, added, deleted, exists, too_large or in_the_way
	Detail    string      `json:"detail"`
	Hunks     []MergeHunk `json:"hunks"`      // of reason lines, the first of them
	HunkCount int         `json:"hunk_count"` // all of them
}

// A MergeHunk is one place that both sides changed.
type MergeHunk struct {
	Base   MergeExcerpt `json:"base"`
	Ours   MergeExcerpt `json:"ours"`
	Theirs MergeExcerpt `json:"theirs"`
}

// A MergeExcerpt is the lines of one side.
type MergeExcerpt struct {
	Start int         `json:"start"`      // 1-based; with no lines the line after which they would stand
	Count int         `json:"line_count"` // all of them
	Lines []MergeLine `json:"lines"`      // the first of them
}

// A MergeLine is one line. Known secrets in it are masked.
type MergeLine struct {
	Text    string `json:"text"`
	End     string `json:"end,omitempty"`     // "crlf", or "none" of a last line without a line end; else LF
	Escaped bool   `json:"escaped,omitempty"` // characters that are not seen stand in Text as escapes, and a backslash twice
	Cut     bool   `json:"cut,omitempty"`     // Text is only the beginning
}

// A LaterChange is what a transaction left at a path that another had changed
// before it.
type LaterChange struct {
	Transaction string `json:"transaction_id"`
	Path        string `json:"path"`
	Kind        string `json:"after_kind"`
	Mode        string `json:"after_mode,omitempty"`
	SHA256      string `json:"after_sha256,omitempty"`
}

// A LaterTransaction is one that changed paths after another had.
type LaterTransaction struct {
	Transaction string   `json:"transaction_id"`
	Paths       []string `json:"paths"`
}

// A Rebase is what a revision comes to on the tree as it lies. Nothing is
// applied or attached by asking.
type Rebase struct {
	Outcome       string          `json:"outcome"`       // up_to_date, clean_rebase, conflict, already_applied or impossible
	Why           string          `json:"why,omitempty"` // of impossible
	Base          Base            `json:"base_revision"` // that the revision was made on
	Changed       []string        `json:"changed_paths"` // that are no longer as the base has them
	Bytes         int64           `json:"patch_bytes"`   // of the patch that would be attached
	Files         int             `json:"file_count"`
	Added         int             `json:"added_lines"`
	Removed       int             `json:"removed_lines"`
	Merged        []string        `json:"merged_paths"`   // whose result is neither side's
	Conflicts     []MergeConflict `json:"conflicts"`      // the first of them
	ConflictCount int             `json:"conflict_count"` // all of them
}
