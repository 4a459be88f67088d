package patch

import "fmt"

// A NoteKind is a stable word for something a reviewer should know about a
// patch that is taken.
type NoteKind string

// The notes. Findings in added lines are notes of the kinds review.bidi and
// review.hidden_control.
const (
	NoteOffset         NoteKind = "offset"
	NoteImpliedNew     NoteKind = "implied_new_file"
	NoteImpliedDelete  NoteKind = "implied_delete"
	NoteOIDDiffers     NoteKind = "preimage_oid_differs"
	NoteHardlinkBroken NoteKind = "hardlink_broken"
	NoteBidi                    = NoteKind(ReviewBidi)
	NoteHiddenControl           = NoteKind(ReviewHiddenControl)
)

// A Note is one such thing.
type Note struct {
	Kind   NoteKind `json:"kind"`
	Path   string   `json:"path"`             // as Show gives it
	Line   int      `json:"line,omitempty"`   // of the patch, 1-based
	Offset int      `json:"offset,omitempty"` // lines; of an offset
	Detail string   `json:"detail,omitempty"` // escaped
}

// String gives the kind, and of an offset its distance: "offset +20".
func (n Note) String() string {
	if n.Kind == NoteOffset {
		return fmt.Sprintf("%s %+d", n.Kind, n.Offset)
	}
	return string(n.Kind)
}
