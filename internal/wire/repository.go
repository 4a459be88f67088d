package wire

import "time"

// A Repository is the governed folder of a workspace as it lies there now.
type Repository struct {
	Workspace  string          `json:"workspace_id"`
	Root       string          `json:"root"`
	Kind       string          `json:"kind"`           // "git" or "folder"
	Head       string          `json:"head,omitempty"` // commit; none in a plain folder or before the first one
	Branch     string          `json:"branch,omitempty"`
	Abilities  Abilities       `json:"abilities"`
	Applying   string          `json:"applying_transaction_id,omitempty"` // that has the turn
	KnownPaths int             `json:"known_paths"`                       // whose state is known from transactions, claims and earlier looks
	Changes    []ForeignChange `json:"foreign_changes"`                   // the newest ten
}

// Abilities say what the file system under a root can do.
type Abilities struct {
	AtomicDetect bool   `json:"atomic_detect"` // files are exchanged in one step, and what was displaced is seen
	Openat2      bool   `json:"openat2"`
	SyncFS       bool   `json:"syncfs"`
	Detail       string `json:"detail,omitempty"`
}

// A PathState is what lies at a path.
type PathState struct {
	Kind   string `json:"kind"` // absent, file, symlink, dir or special
	Mode   string `json:"mode,omitempty"`
	SHA256 string `json:"sha256,omitempty"`
	Size   int64  `json:"size_bytes,omitempty"`
}

// A ForeignChange is that paths were changed behind the service's back.
type ForeignChange struct {
	ID          string        `json:"foreign_change_id"` // of the event that says so
	Workspace   string        `json:"workspace_id"`
	FoundAt     string        `json:"found_at"` // claim, validate, apply, apply_conflict or doctor
	Transaction string        `json:"transaction_id,omitempty"`
	Head        string        `json:"head,omitempty"`
	Paths       []ForeignPath `json:"paths"`                // the first hundred
	More        int           `json:"more_paths,omitempty"` // the event has them too
	At          time.Time     `json:"found"`
	Position    int64         `json:"event_position"`
}

// A ForeignPath is one of its paths.
type ForeignPath struct {
	Path string     `json:"path"`
	Was  PathState  `json:"was"`
	Is   PathState  `json:"is"`
	Held *PathState `json:"held,omitempty"` // a version that lies aside, for a person to decide
}

// A RepositoryCheck is what a look at all known paths came to.
type RepositoryCheck struct {
	Checked int             `json:"paths_checked"`
	Changed int             `json:"paths_changed"`
	Waits   string          `json:"waits_for_transaction_id,omitempty"` // that had the turn: nothing was certain, and nothing is said
	Changes []ForeignChange `json:"foreign_changes"`                    // found by this look
}
