package patch

import (
	"path"
	"strings"
)

// An Op is what a section does to its file.
type Op string

// The operations. A change between file and symlink is a TypeChange of one
// path, which the patch writes as two sections.
const (
	Create     Op = "create"
	Delete     Op = "delete"
	Modify     Op = "modify"
	ModeChange Op = "mode" // and nothing else
	Rename     Op = "rename"
	Copy       Op = "copy"
	TypeChange Op = "type"
)

// A FileDiff is the canonical description of what the patch does to one file.
// Paths are raw: Show spells them for people.
type FileDiff struct {
	Op      Op     `json:"op"`
	OldPath string `json:"old_path,omitempty"` // "" for a creation
	NewPath string `json:"new_path,omitempty"` // "" for a deletion
	OldMode string `json:"old_mode,omitempty"` // as stated; "" where the patch does not
	NewMode string `json:"new_mode,omitempty"`
	Binary  bool   `json:"binary"`
	Added   int    `json:"added"`   // lines
	Removed int    `json:"removed"` // lines
	Line    int    `json:"line"`    // of the patch, 1-based, where its first section begins
	Hunks   []Hunk `json:"-"`       // of a type change: those of the deletion, then those of the creation
}

// Path is the path by which the file is best known: the new one, if it has one.
func (f FileDiff) Path() string {
	if f.NewPath != "" {
		return f.NewPath
	}
	return f.OldPath
}

// Files describes the patch, a FileDiff for each file in the order of the
// patch. It is nil before the level is known: see Resolve.
func (p *Patch) Files() []FileDiff {
	if p.names == nil {
		return nil
	}
	all := make([]FileDiff, 0, len(p.sections))
	halves := map[string]int{} // path of a deletion or creation → its index
	for i, c := range p.sections {
		f := c.describe(p.names[i][0], p.names[i][1])
		if f.Op == Create || f.Op == Delete {
			if k, ok := halves[f.Path()]; ok && all[k].Op != f.Op {
				all[k] = joinHalves(all[k], f)
				continue
			}
			halves[f.Path()] = len(all)
		}
		all = append(all, f)
	}
	return all
}

func (c *section) describe(old, new string) FileDiff {
	f := FileDiff{
		Op: Modify, OldPath: old, NewPath: new, OldMode: c.oldMode, NewMode: c.newMode, Binary: c.bin != nil,
		Added: c.added, Removed: c.removed, Line: c.line, Hunks: c.hunks,
	}
	switch {
	case c.creates():
		f.Op, f.OldPath, f.OldMode = Create, "", ""
		if f.NewMode == "" {
			f.NewMode = modeFile
		}
	case c.deletes():
		f.Op, f.NewPath, f.NewMode = Delete, "", ""
	case c.from != nil && c.copies:
		f.Op = Copy
	case c.from != nil:
		f.Op = Rename
	case c.modeLines && len(c.hunks) == 0 && c.bin == nil:
		f.Op = ModeChange
	}
	return f
}

// joinHalves makes a type change of a deletion and a creation.
func joinHalves(a, b FileDiff) FileDiff {
	line := a.Line
	if a.Op == Create {
		a, b = b, a
	}
	return FileDiff{
		Op: TypeChange, OldPath: a.OldPath, NewPath: b.NewPath, OldMode: a.OldMode, NewMode: b.NewMode,
		Binary: a.Binary || b.Binary, Added: b.Added, Removed: a.Removed, Line: line,
		Hunks: append(append([]Hunk(nil), a.Hunks...), b.Hunks...),
	}
}

// Level is how many components are stripped from the names; known is false
// when only the tree can tell: see Resolve.
func (p *Patch) Level() (n int, known bool) { return p.level, p.level >= 0 }

// Counts gives the number of files, and of added and removed lines.
func (p *Patch) Counts() (files, added, removed int) {
	for _, f := range p.Files() {
		files, added, removed = files+1, added+f.Added, removed+f.Removed
	}
	return files, added, removed
}

func base(p string) string { return path.Base(p) }

// dirOf is the folder of a path, "" for the root.
func dirOf(p string) string {
	if i := strings.LastIndexByte(p, '/'); i >= 0 {
		return p[:i]
	}
	return ""
}

func join(dir, name string) string {
	if dir == "" {
		return name
	}
	return dir + "/" + name
}

// OldIDs gives, for each file that the patch does not create, the object id
// that it states of it before, by path; at least seven digits of it.
func (p *Patch) OldIDs() map[string]string {
	ids := map[string]string{}
	for i, c := range p.sections {
		if p.names != nil && !c.creates() && len(c.oldOID) >= 7 && strings.Trim(c.oldOID, "0") != "" {
			ids[p.names[i][0]] = c.oldOID
		}
	}
	return ids
}
