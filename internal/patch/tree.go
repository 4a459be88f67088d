// Package patch is the engine: it parses a patch, says exactly what it would
// change in a tree, and can say the reverse.
//
// What always holds: every byte of the input is accounted for or the patch is
// refused; nothing here opens a file, calls git or reads a clock; the same
// tree and patch give the same answer.
package patch

// A Kind is what lies at a path.
type Kind string

// The kinds. Absent is a state like the others: a patch that makes a file
// relies on it.
const (
	Absent  Kind = "absent"
	File    Kind = "file"
	Symlink Kind = "symlink"
	Dir     Kind = "dir"
	Special Kind = "special" // a FIFO, socket or device, a gitlink or a nested repository: never touched
)

// A State is what one path of a tree holds, without its bytes. Two states are
// equal exactly when the paths are the same in every way a patch can change.
// Absent has no other field set.
type State struct {
	Kind   Kind   `json:"kind"`
	Mode   string `json:"mode,omitempty"`   // "100644", "100755" or "120000"
	SHA256 string `json:"sha256,omitempty"` // lowercase hex, of the file's bytes or the link's text
	Size   int64  `json:"size_bytes,omitempty"`
}

// A Tree is what a patch is judged against. Paths are relative, slash
// separated and clean; "" is the root. No method follows a symlink.
type Tree interface {
	// Stat returns what lies at path. A path below a file or link is Absent.
	// It does not read the bytes: SHA256 may be empty.
	Stat(path string) (State, error)
	// Read returns the bytes of a file or the text of a link.
	Read(path string) ([]byte, error)
	// Names returns the names in a folder, sorted; none if it is Absent.
	Names(dir string) ([]string, error)
}

// A Change is what becomes of one path. A rename is two of them.
type Change struct {
	Path    string
	Before  State
	After   State
	Content []byte // after: the file's bytes or the link's text; nil if Absent
}
