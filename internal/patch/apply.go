package patch

import (
	"crypto/sha1" //nolint:gosec // git's object ids
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"slices"
	"strings"
)

// A Result is what a patch makes of a tree.
type Result struct {
	Changes    []Change // one for each touched path, sorted by path; of some Before and After may be equal
	Files      []FileResult
	Notes      []Note
	Level      int      // how many components were stripped
	MakeDirs   []string // folders that must be made, parents first
	RemoveDirs []string // folders that become empty and go too, deepest first
}

// A FileResult is what the patch does to one file of the tree.
type FileResult struct {
	FileDiff
	Before State    `json:"before"` // at the old path; of a creation Absent
	After  State    `json:"after"`  // at the new path; of a deletion Absent
	Placed []Placed `json:"placed,omitempty"`
	Notes  []Note   `json:"notes,omitempty"`
}

// A LinkCounter is a Tree that knows how many names a file has.
type LinkCounter interface {
	// Links returns the number of hard links of the file at path.
	Links(path string) (int, error)
}

// An applier is one apply: a patch, a tree, and what was found so far.
type applier struct {
	*Patch
	tree   *statCache
	raw    Tree
	images map[string][]byte // bytes read, by path
	after  *overlay
	folded map[string]map[string][]string // names of folders of the tree after, by folded form
	taken  map[string]bool                // paths that a deletion or rename takes away
	total  int                            // bytes held
	budget int                            // line steps left for searching hunks
	parts  []part                         // by section
	all    []*Refusal
}

// A part is what became of one section.
type part struct {
	before, after State // of the old and the new path
	content       []byte
	placed        []Placed
	notes         []Note
	loose         bool
	failed        bool
}

// Apply computes what the patch makes of the tree: exactly one result, or a
// *Refusal with every reason found. Nothing is written anywhere.
func Apply(p *Patch, before Tree) (*Result, error) {
	p, err := p.Resolve(before)
	if err != nil {
		return nil, err
	}
	a := &applier{Patch: p, tree: newCache(before), raw: before, images: map[string][]byte{}, budget: searchBudget, parts: make([]part, len(p.sections))}
	a.after = newOverlay(a.tree)
	for i := range p.sections {
		if err := a.section(i); err != nil {
			return nil, err
		}
	}
	changes := a.changes()
	for _, c := range changes {
		a.after.set(c)
	}
	for i := range p.sections {
		if err := a.judgePlace(i); err != nil {
			return nil, err
		}
	}
	a.review()
	if err := a.verdict(changes); err != nil {
		return nil, err
	}
	return a.result(changes)
}

// refuse records a reason against section i.
func (a *applier) refuse(i int, class Class, line int, path, format string, args ...any) *Refusal {
	r := refuse(class, line, path, format, args...)
	a.parts[i].failed = true
	a.all = append(a.all, r)
	return r
}

// changes gives the change of each touched path, as far as it is known.
func (a *applier) changes() []Change {
	all := make([]Change, 0, len(a.sections))
	places := make(map[string]int, len(a.sections))
	at := func(path string) *Change {
		i, ok := places[path]
		if !ok {
			i = len(all)
			places[path] = i
			all = append(all, Change{Path: path, Before: State{Kind: Absent}, After: State{Kind: Absent}})
		}
		return &all[i]
	}
	for i, s := range a.sections {
		old, new := a.names[i][0], a.names[i][1]
		if !s.creates() && !(s.from != nil && s.copies) {
			at(old).Before = a.parts[i].before
		}
		if !s.deletes() {
			c := at(new)
			c.After, c.Content = a.parts[i].after, a.parts[i].content
		}
	}
	slices.SortFunc(all, func(x, y Change) int { return strings.Compare(x.Path, y.Path) })
	return all
}

// verdict refuses when anything speaks against the patch.
func (a *applier) verdict(changes []Change) error {
	unsafe := slices.ContainsFunc(a.all, func(r *Refusal) bool { return r.Class.Stage() == StageParse || r.Class.Stage() == StagePaths })
	loose := slices.ContainsFunc(a.parts, func(p part) bool { return p.loose })
	if !unsafe && (len(a.all) > 0 || loose) {
		r, err := a.inTree()
		if err != nil {
			return err
		}
		if r != nil {
			if len(a.all) > 0 {
				r.All = append([]*Refusal{r}, a.all...)
			}
			return r
		}
	}
	if err := verdict(a.all); err != nil {
		return err
	}
	if !slices.ContainsFunc(changes, func(c Change) bool { return c.Before != c.After }) {
		return refuse(Noop, 0, "", "the patch leaves every file as it is")
	}
	return nil
}

func (a *applier) result(changes []Change) (*Result, error) {
	r := &Result{Changes: changes, Level: a.level}
	var err error
	if r.MakeDirs, r.RemoveDirs, err = a.after.folders(); err != nil {
		return nil, err
	}
	if err := a.noteLinks(changes); err != nil {
		return nil, err
	}
	byLine := make(map[int]int, len(a.sections))
	for i, c := range a.sections {
		byLine[c.line] = i
	}
	files := a.Files()
	r.Files = make([]FileResult, 0, len(files))
	for _, f := range files {
		p := a.parts[byLine[f.Line]]
		fr := FileResult{FileDiff: f, Before: p.before, After: p.after, Placed: p.placed, Notes: p.notes}
		if f.Op == TypeChange {
			a.joinParts(&fr)
		}
		r.Files = append(r.Files, fr)
		r.Notes = append(r.Notes, fr.Notes...)
	}
	return r, nil
}

// joinParts fills in a type change from its two sections.
func (a *applier) joinParts(fr *FileResult) {
	fr.Placed, fr.Notes = nil, nil
	for _, deletion := range []bool{true, false} {
		for i, c := range a.sections {
			p := a.parts[i]
			if a.names[i][1] != fr.NewPath || c.deletes() != deletion || c.creates() == deletion {
				continue
			}
			first := len(fr.Placed) // the hunks of both sections are counted through
			for _, at := range p.placed {
				at.Hunk += first
				fr.Placed = append(fr.Placed, at)
			}
			fr.Notes = append(fr.Notes, p.notes...)
			if deletion {
				fr.Before = p.before
			} else {
				fr.After = p.after
			}
		}
	}
}

// noteLinks notes files whose other names will keep the old bytes.
func (a *applier) noteLinks(changes []Change) error {
	t, ok := a.raw.(LinkCounter)
	if !ok {
		return nil
	}
	for _, c := range changes {
		if c.Before.Kind != File || c.After.Kind == Absent || c.Before == c.After {
			continue
		}
		n, err := t.Links(c.Path)
		if err != nil {
			return err
		}
		if n < 2 {
			continue
		}
		for i := range a.sections {
			if a.names[i][1] == c.Path && !a.sections[i].deletes() {
				a.note(i, Note{Kind: NoteHardlinkBroken, Detail: fmt.Sprintf("%d other names keep the old bytes", n-1)})
			}
		}
	}
	return nil
}

func (a *applier) note(i int, n Note) {
	if n.Path == "" {
		n.Path = Show(a.names[i][1])
	}
	if n.Line == 0 {
		n.Line = a.sections[i].line
	}
	a.parts[i].notes = append(a.parts[i].notes, n)
}

// stateOf is the state of a file or link with these bytes.
func stateOf(mode string, data []byte) State {
	kind := File
	if mode == modeLink {
		kind = Symlink
	}
	sum := sha256.Sum256(data)
	return State{Kind: kind, Mode: mode, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

// BlobID is the id that Git gives to these bytes, in lowercase hex.
func BlobID(data []byte, sha256Objects bool) string {
	var h hash.Hash = sha1.New() //nolint:gosec // git's object ids
	if sha256Objects {
		h = sha256.New()
	}
	fmt.Fprintf(h, "blob %d\x00", len(data))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}
