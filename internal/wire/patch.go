package wire

// A Patch is one revision's patch as a whole. The counts are the engine's own,
// true for binary files too.
type Patch struct {
	Proposal string      `json:"proposal_id"`
	Revision int         `json:"revision"`
	Newest   bool        `json:"newest"` // no later revision has replaced it
	Digest   string      `json:"patch_digest"`
	Bytes    int64       `json:"patch_bytes"`
	Base     Base        `json:"base_revision"`
	Head     string      `json:"head,omitempty"` // the commit that HEAD stands on now
	Stale    bool        `json:"stale"`          // a touched path is no longer as the base has it; never of a proposal that has ended
	Changed  []string    `json:"changed_paths"`  // those paths
	Files    int         `json:"file_count"`
	Added    int         `json:"added_lines"`
	Removed  int         `json:"removed_lines"`
	Binaries int         `json:"binary_files"`
	Notes    []PatchNote `json:"notes"`      // findings in added lines, the first of them
	NotesAll int         `json:"note_count"` // all of them
}

// A PatchNote is something that a reviewer should know about a patch.
type PatchNote struct {
	Kind   string `json:"kind"` // such as review.bidi
	Path   string `json:"path"`
	Line   int    `json:"line,omitempty"` // of the patch, 1-based
	Detail string `json:"detail,omitempty"`
}

// A PatchFile is what a patch does to one file. Paths that are not plain text
// are quoted as Git quotes them.
type PatchFile struct {
	Op      string `json:"operation"` // create, delete, modify, rename, copy, mode or type
	Path    string `json:"path"`      // the new path, or that of what is deleted
	OldPath string `json:"old_path,omitempty"`
	NewPath string `json:"new_path,omitempty"`
	OldMode string `json:"old_mode,omitempty"` // as stated; absent where the patch does not
	NewMode string `json:"new_mode,omitempty"`
	Binary  bool   `json:"binary"`
	Added   int    `json:"added_lines"`
	Removed int    `json:"removed_lines"`
	Line    int    `json:"line,omitempty"` // of the patch, 1-based, where its section begins
	Hunks   []Hunk `json:"hunks,omitempty"`
}

// A Hunk is one changed place of a text file, as the patch states it.
type Hunk struct {
	Line      int        `json:"line,omitempty"` // of the patch, 1-based: the hunk header
	OldStart  int        `json:"old_start"`      // 1-based; with no lines the change comes after it
	OldLines  int        `json:"old_lines"`
	NewStart  int        `json:"new_start"`
	NewLines  int        `json:"new_lines"`
	Section   string     `json:"section,omitempty"`   // what follows the second @@
	Offset    int        `json:"offset,omitempty"`    // lines away from where the patch states it
	Continued bool       `json:"continued,omitempty"` // its first lines are on the page before
	Lines     []DiffLine `json:"lines,omitempty"`
}

// A DiffLine is one line of a hunk. Known secrets in it are masked.
type DiffLine struct {
	Op      string `json:"op"` // "context", "remove" or "add"
	Text    string `json:"text"`
	Old     int    `json:"old_line,omitempty"` // number in the file before, as the patch states it
	New     int    `json:"new_line,omitempty"` // number in the file after
	End     string `json:"end,omitempty"`      // "crlf", or "none" of a last line without a line end; else LF
	Escaped bool   `json:"escaped,omitempty"`  // characters that are not seen stand in Text as escapes, and a backslash twice
	Cut     bool   `json:"cut,omitempty"`      // Text is only the beginning
}

// A SymbolFile is what a patch does to the symbols of one file. A symbol that
// only moved is not named.
type SymbolFile struct {
	Op        string   `json:"operation"`
	Path      string   `json:"path"`
	OldPath   string   `json:"old_path,omitempty"`
	NewPath   string   `json:"new_path,omitempty"`
	Language  string   `json:"language,omitempty"`
	Status    string   `json:"status"`              // ok, unsupported, unparsed, binary or too_large; of two that differ the one that is not ok
	Reason    string   `json:"reason,omitempty"`    // why it is not ok
	Outside   bool     `json:"outside"`             // lines that no symbol has are changed too, as far as the file could be read
	Before    []Symbol `json:"before"`              // touched ones of the file before: removed, changed or unknown
	After     []Symbol `json:"after"`               // of the file after: added, changed or unknown
	Continued bool     `json:"continued,omitempty"` // its first symbols are on the page before
}

// A Symbol is a function, a type or the like, with its lines.
type Symbol struct {
	Name   string `json:"name"` // qualified, such as Type.Method
	Kind   string `json:"kind"` // such as function, method, class or constant
	First  int    `json:"first_line"`
	Last   int    `json:"last_line"`
	Change string `json:"change"` // added, removed, changed, or unknown: the file on the other side could not be read in full
}
