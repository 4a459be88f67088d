package patch

import (
	"bytes"
	"slices"
	"strings"
)

// A Held is what a tree holds at a path, with the bytes of a file or link.
type Held struct {
	State State
	Data  []byte
}

// Hold is what a tree holds at path. A folder is Absent: whether it leaves
// room for a file is judged when a patch is applied. A file of more than most
// bytes is not read and has no SHA256; it can be merged with nothing.
func Hold(t Tree, path string, most int) (Held, error) {
	st, err := t.Stat(path)
	switch {
	case err != nil:
		return Held{}, err
	case st.Kind == Dir:
		return Held{State: State{Kind: Absent}}, nil
	case st.Kind != File && st.Kind != Symlink:
		return Held{State: State{Kind: st.Kind}}, nil
	case st.Size > int64(most):
		return Held{State: State{Kind: st.Kind, Mode: st.Mode, Size: st.Size}}, nil
	}
	data, err := t.Read(path)
	return Held{stateOf(st.Mode, data), data}, err
}

func (h Held) unread() bool {
	return (h.State.Kind == File || h.State.Kind == Symlink) && h.State.SHA256 == ""
}

// A Fork is one path in three trees: ours and theirs were both made of base.
type Fork struct {
	Path               string
	Base, Ours, Theirs Held
}

// A Reason says why a path cannot be merged.
type Reason string

// The reasons. The strings are stable.
const (
	ReasonLines   Reason = "lines"      // both sides changed the same lines, or lines that touch
	ReasonBinary  Reason = "binary"     // both sides changed a binary file
	ReasonSymlink Reason = "symlink"    // both sides changed where a link points
	ReasonMode    Reason = "mode"       // both sides changed the mode, or added a file with different modes
	ReasonType    Reason = "type"       // the sides differ in what kind of thing it is
	ReasonAdded   Reason = "added"      // both sides put something else there
	ReasonDeleted Reason = "deleted"    // one side took it away, the other changed it
	ReasonExists  Reason = "exists"     // something stands where it must be moved to
	ReasonLarge   Reason = "too_large"  // it has more bytes than a file that is merged may have
	ReasonPlace   Reason = "in_the_way" // the merged tree could not stand like that
)

// A Conflict is a path that cannot be merged.
type Conflict struct {
	Path    string
	Reason  Reason
	Detail  string  // one sentence for people; escaped
	Clashes []Clash // of ReasonLines

	Base, Ours, Theirs []byte // of ReasonLines: the files that the clashes are places in
}

// A Merge is what three trees come to. With a conflict there is no result.
type Merge struct {
	Images    []Image    // what takes ours to the merged tree, paths that change only, sorted
	Merged    []string   // those of them that are neither as theirs nor as base has them
	Conflicts []Conflict // sorted by path
}

// MergeTrees merges paths. Renames are what theirs moved, old path to new; of
// one whose file ours has changed, the change goes along. Each path is in forks
// once, both sides of a rename too.
//
// A path that one side left alone is as the other has it, and one that both
// changed alike is that; else the lines of a text file are merged, and its mode
// if one side only changed it. All else is a conflict.
func MergeTrees(forks []Fork, renames map[string]string) (m Merge) {
	byPath := map[string]Fork{}
	for _, f := range forks {
		byPath[f.Path] = f
	}
	moved := map[string]bool{}
	for from, to := range renames {
		a, b := byPath[from], byPath[to]
		if a.Theirs.State.Kind == Absent && b.Base.State.Kind == Absent && a.Base.State.Kind != Absent && b.Theirs.State.Kind != Absent {
			moved[from], moved[to] = true, true
			m.move(a, b)
		}
	}
	for _, f := range forks {
		if !moved[f.Path] {
			result, reason, clashes := mergeHeld(f.Base, f.Ours, f.Theirs)
			if reason != "" {
				m.refuse(f, reason, "", clashes)
				continue
			}
			m.settle(f, result, result.State != f.Theirs.State)
		}
	}
	slices.SortFunc(m.Images, func(a, b Image) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(m.Conflicts, func(a, b Conflict) int { return strings.Compare(a.Path, b.Path) })
	slices.Sort(m.Merged)
	if len(m.Conflicts) > 0 {
		m.Images, m.Merged = nil, nil
	}
	return m
}

// move merges a file that theirs moved from a's path to b's.
func (m *Merge) move(a, b Fork) {
	switch {
	case a.Ours.State.Kind == Absent && b.Ours.State == b.Theirs.State:
		return // done already
	case b.Ours.State.Kind != Absent:
		m.Conflicts = append(m.Conflicts, Conflict{Path: b.Path, Reason: ReasonExists, Detail: "it is there, and " + Show(a.Path) + " must be moved to it"})
		return
	}
	result, reason, clashes := mergeHeld(a.Base, a.Ours, b.Theirs)
	if reason != "" {
		a.Theirs = b.Theirs
		m.refuse(a, reason, "; it must be moved to "+Show(b.Path), clashes)
		return
	}
	m.settle(a, Held{State: State{Kind: Absent}}, false)
	m.settle(b, result, result.State != b.Theirs.State)
}

// settle notes what becomes of a path.
func (m *Merge) settle(f Fork, result Held, merged bool) {
	if result.State == f.Ours.State {
		return
	}
	m.Images = append(m.Images, Image{Path: f.Path, Before: f.Ours.State, After: result.State, Old: f.Ours.Data, New: result.Data})
	if merged {
		m.Merged = append(m.Merged, f.Path)
	}
}

func (m *Merge) refuse(f Fork, r Reason, more string, clashes []Clash) {
	c := Conflict{Path: f.Path, Reason: r, Detail: r.sentence() + more, Clashes: clashes}
	if len(clashes) > 0 {
		c.Base, c.Ours, c.Theirs = f.Base.Data, f.Ours.Data, f.Theirs.Data
	}
	m.Conflicts = append(m.Conflicts, c)
}

func (r Reason) sentence() string {
	switch r {
	case ReasonLines:
		return "both sides changed the same lines, or lines that touch"
	case ReasonBinary:
		return "both sides changed it, and it is binary"
	case ReasonSymlink:
		return "both sides changed where the link points"
	case ReasonMode:
		return "both sides changed its mode"
	case ReasonType:
		return "the sides differ in whether it is a file, a link or something else"
	case ReasonAdded:
		return "both sides put something there, and not the same"
	case ReasonDeleted:
		return "one side took it away, and the other changed it"
	case ReasonLarge:
		return "it has more bytes than a file that is merged may have"
	}
	return string(r)
}

// mergeHeld merges what lies at one path.
func mergeHeld(base, ours, theirs Held) (Held, Reason, []Clash) {
	switch {
	case ours.State == base.State || ours.State == theirs.State:
		return theirs, "", nil
	case theirs.State == base.State:
		return ours, "", nil
	case slices.ContainsFunc([]Held{base, ours, theirs}, Held.unread):
		return Held{}, ReasonLarge, nil
	case ours.State.Kind == Special || theirs.State.Kind == Special:
		return Held{}, ReasonType, nil
	case ours.State.Kind == Absent || theirs.State.Kind == Absent:
		return Held{}, ReasonDeleted, nil
	case base.State.Kind == Absent && ours.State.Kind == theirs.State.Kind && ours.State.SHA256 == theirs.State.SHA256:
		return Held{}, ReasonMode, nil
	case base.State.Kind == Absent:
		return Held{}, ReasonAdded, nil
	case base.State.Kind != ours.State.Kind || base.State.Kind != theirs.State.Kind:
		return Held{}, ReasonType, nil
	}
	mode, agreed := either(base.State.Mode, ours.State.Mode, theirs.State.Mode)
	if !agreed {
		return Held{}, ReasonMode, nil
	}
	_, agreed = either(base.State.SHA256, ours.State.SHA256, theirs.State.SHA256)
	switch {
	case agreed && ours.State.SHA256 == base.State.SHA256:
		return Held{stateOf(mode, theirs.Data), theirs.Data}, "", nil
	case agreed:
		return Held{stateOf(mode, ours.Data), ours.Data}, "", nil
	case base.State.Kind == Symlink:
		return Held{}, ReasonSymlink, nil
	case slices.ContainsFunc([][]byte{base.Data, ours.Data, theirs.Data}, func(b []byte) bool { return bytes.IndexByte(b, 0) >= 0 }):
		return Held{}, ReasonBinary, nil
	}
	data, clashes := MergeLines(base.Data, ours.Data, theirs.Data)
	if clashes != nil {
		return Held{}, ReasonLines, clashes
	}
	return Held{stateOf(mode, data), data}, "", nil
}

// either gives what one side made of it, if the other left it or agrees.
func either(base, ours, theirs string) (string, bool) {
	switch {
	case ours == base || ours == theirs:
		return theirs, true
	case theirs == base:
		return ours, true
	}
	return "", false
}
