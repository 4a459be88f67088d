package wire

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
	Line    int    `json:"line"` // of the patch, 1-based, where its section begins
	Hunks   []Hunk `json:"hunks,omitempty"`
}

// A Hunk is one changed place of a text file, as the patch states it.
type Hunk struct {
	Line     int    `json:"line,omitempty"` // of the patch, 1-based: the hunk header
	OldStart int    `json:"old_start"`      // 1-based; with no lines the change comes after it
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start"`
	NewLines int    `json:"new_lines"`
	Section  string `json:"section,omitempty"` // what follows the second @@
	Offset   int    `json:"offset,omitempty"`  // lines away from where the patch states it
}
