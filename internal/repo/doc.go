// Package repo is the governed tree: what lies in a workspace's folder, and
// the only code that changes it.
//
// What always holds: no symlink is followed and no FIFO opened; .git and
// .roundtable are never shown and never written; an apply leaves every touched
// path before or every touched path after, whenever the process dies; bytes
// that somebody else wrote are never lost; nothing outside the root changes.
// Unless changes are committed, the user's index, refs and objects stay as
// they are; where they are, one branch moves, and of the index only the entries
// of what was changed. DESIGN.md says how.
package repo

import (
	"context"
	"io"
	"time"

	"roundtable/internal/patch"
)

// Blobs is where images are kept by their SHA-256. *blob.Store is one.
type Blobs interface {
	// PutAll stores every source durably and returns their digests in order.
	PutAll(ctx context.Context, sources []func() (io.ReadCloser, error)) ([]string, error)
	// Has says whether the digest is stored.
	Has(digest string) (bool, error)
}

// Options are what a Workspace needs from its surroundings. Zero values mean
// the defaults named.
type Options struct {
	Blobs     Blobs         // required for Apply, Finish, Recover and Resolve
	Git       string        // the git program; "git"
	Path      string        // PATH of git's own helpers; "/usr/local/bin:/usr/bin:/bin"
	UserEnv   []string      // the person's environment, from which only git's own configuration is found (HOME, XDG_CONFIG_HOME, GIT_CONFIG_*)
	Timeout   time.Duration // of one git call; 2 minutes
	MaxFile   int64         // bytes of one file that is read whole; 32 MiB
	MaxFiles  int           // files of a whole tree; 500,000
	MaxOutput int64         // bytes of one git call's output; 256 MiB
	Scratch   string        // a folder elsewhere for private indexes: nothing is then made in the workspace, which is only looked at
	Commit    bool          // changes are judged on the tree of a branch's newest commit, and committed to it; of no account in a plain folder
	Branch    string        // which branch; the one that is checked out
	LockWait  time.Duration // for the lock of the user's index; 3 s
	Owner     string        // the data folder of a service, which has the workspace to itself while it is open; a second is a fault state.locked
	Reserved  []string      // more paths, relative to the root, that are not the workspace's, such as a data folder
	Step      func(Step)    // called before each step of the writer and of recovery; it must not wait for anything that reads the Workspace
}

// A Phase is the part of a transaction a step belongs to.
type Phase string

// The phases, in order. Recover marks the steps of a rollback.
const (
	Prepare Phase = "prepare"
	Moving  Phase = "apply"
	Verify  Phase = "verify"
	Finish  Phase = "finish"
	Back    Phase = "recover"
)

// A Step is one step of the writer that is about to be done.
type Step struct {
	Tx      string
	Attempt int
	Phase   Phase
	Name    string // such as "plan", "stage", "journal", "replace", "sync", "mark"
	Path    string // where the step is about one path
}

// A Base is a snapshot a revision is made on: the commit of HEAD, or of the
// branch that is committed to, and the state of every path the patch touches,
// as it lies on disk or in that commit.
type Base struct {
	Commit       string                 `json:"commit,omitempty"` // none in a plain folder or before the first commit
	ObjectFormat string                 `json:"object_format,omitempty"`
	PathsDigest  string                 `json:"paths_digest"`
	States       map[string]patch.State `json:"states"`
}

// A CandidateTree names the whole tree that changes make of the workspace.
type CandidateTree struct {
	ID   string `json:"id"`
	Kind string `json:"kind"` // "git": a tree object's id; "manifest": SHA-256 of the listing
}

// A Presence says what a digest of a resource found.
type Presence string

// The presences; different values, also where both have no hash.
const (
	Present    Presence = "present"
	Missing    Presence = "absent"
	Unreadable Presence = "unreadable"
)

// A Plan is what an apply does. Each change's Before is what it relies on.
type Plan struct {
	Changes []patch.Change
	Commit  *Commit // where changes are committed
}

// An Identity is somebody whom a commit names.
type Identity struct{ Name, Email string }

// A Commit says how the changes are committed.
type Commit struct {
	Author, Committer Identity
	Message           string
	Time              time.Time
	Parent            string // the branch must be there; if empty, it may be anywhere
	Tree              string // the id that the tree must have; if empty, any
}

// A Receipt says what an apply did.
type Receipt struct {
	Tx           string                 `json:"transaction_id"`
	Attempt      int                    `json:"attempt"`
	Before       map[string]patch.State `json:"before"`
	After        map[string]patch.State `json:"after"`
	BeforeDigest string                 `json:"before_paths_digest"`
	AfterDigest  string                 `json:"after_paths_digest"`
	PlanDigest   string                 `json:"plan_digest"`
	Ref          string                 `json:"ref,omitempty"` // the branch, where the changes were committed
	Commit       string                 `json:"commit,omitempty"`
	Parent       string                 `json:"parent,omitempty"` // none of a branch's first commit
	Notes        []Note                 `json:"notes,omitempty"`
}

// A Note is something a person should know that did not hinder the apply.
type Note struct {
	Path string `json:"path"`
	Note string `json:"note"` // such as "hardlink_broken"
}

// NoAtomicDetect is the note of an apply on a file system that cannot exchange
// two files: one that somebody else puts in the place of another, in the
// moment of its replacement, may be lost. It has no path.
const NoAtomicDetect = "no_atomic_detect"

// A Marker is what a transaction's folder says about its outcome.
type Marker string

// The markers. None also stands for a transaction without a folder: either
// nothing has happened, or it was finished.
const (
	None      Marker = "none"
	Committed Marker = "committed"
	Aborted   Marker = "aborted"
	Attention Marker = "attention"
)

// A Recovered is what recovery found and did about one transaction.
type Recovered struct {
	Tx      string  `json:"transaction_id"`
	Attempt int     `json:"attempt"`
	Marker  Marker  `json:"marker"`          // None: nothing had happened; Committed: report it, then call Finish; Aborted: rolled back
	Stuck   []Stuck `json:"stuck,omitempty"` // of Attention
	Kept    []Kept  `json:"kept,omitempty"`
	Folder  string  `json:"-"` // names the folder that was found: no two tries of an attempt have the same
}

// A Stuck path waits for a person: both versions are kept.
type Stuck struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

// A Kept version is one that nobody has in the tree any more and that was put
// into the blob store, so that no byte is lost.
type Kept struct {
	Path  string      `json:"path"`
	State patch.State `json:"state"`
}

// A Position says which of its versions a path is.
type Position string

// The positions.
const (
	AtBefore Position = "before"
	AtAfter  Position = "after"
	AtOther  Position = "other"
)

// A PathReport is what lies at one path of a transaction.
type PathReport struct {
	Path   string       `json:"path"`
	Is     Position     `json:"is"`
	Before patch.State  `json:"before"`
	After  patch.State  `json:"after"`
	Now    patch.State  `json:"now"`
	Slot   *patch.State `json:"slot,omitempty"` // what lies in the transaction's folder for it
	Stuck  string       `json:"stuck,omitempty"`
}

// A Report is computed from the real files and the journal.
type Report struct {
	Repository string       `json:"repository_state"` // before, after, mixed, diverged
	Marker     Marker       `json:"marker"`
	Paths      []PathReport `json:"paths"`
	CanRecover bool         `json:"can_recover"` // Recover would change something
	CanFinish  bool         `json:"can_finish"`
	CanResolve bool         `json:"can_resolve"`
	Branch     *RefReport   `json:"branch,omitempty"` // where the changes are committed
}

// A RefReport is where the branch of a transaction stands. It is after when it
// is the transaction's commit or has it among its ancestors.
type RefReport struct {
	Ref    string   `json:"ref"`
	Commit string   `json:"commit"`           // the transaction's
	Parent string   `json:"parent,omitempty"` // where the branch was
	Now    string   `json:"now,omitempty"`
	Is     Position `json:"is"`
}

// A ProbeResult says what the file system under the root can do.
type ProbeResult struct {
	AtomicDetect bool   `json:"atomic_detect"` // renameat2 really exchanges, and really refuses to replace
	Openat2      bool   `json:"openat2"`
	SyncFS       bool   `json:"syncfs"` // syncfs reports write errors
	Detail       string `json:"detail,omitempty"`
}

// A FileRead is a part of a file.
type FileRead struct {
	State     patch.State
	Data      []byte
	Truncated bool
}
