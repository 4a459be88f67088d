package patch

import (
	"bytes"
	"slices"
)

// A Patch is a parsed patch. It never changes, so several goroutines may use
// it. It keeps the bytes it was made from; nobody may change them.
type Patch struct {
	o        Options
	sections []*section
	level    int         // how many components were taken from the names; -1: the tree must tell
	names    [][2]string // old and new path of each section; nil before the level is known
	inflated int         // bytes of binary data so far
}

// A section is what a patch says about one file, names not yet stripped.
type section struct {
	line     int
	git      bool
	gitNames []byte // what follows "diff --git "
	old, new *headerName
	from, to *string // rename or copy
	copies   bool

	oldMode, newMode string // canonical; "" where not stated
	created, deleted bool   // by a "new file mode" or "deleted file mode" line
	modeLines        bool   // "old mode" and "new mode"
	oldOID, newOID   string
	similarity       int // percent; -1 where not stated

	hunks          []Hunk
	bin            *binary
	back           *binary  // the reverse part, where it is kept
	implied        NoteKind // a creation or deletion that no mode line states
	added, removed int
}

// A headerName is the name on a --- or +++ line.
type headerName struct {
	name  string
	stamp string
	null  bool // /dev/null
}

// Parse reads a patch. Every byte of it is accounted for, or the error is a
// *Refusal. Names are checked here when the patch itself tells how many
// components to strip; else by Resolve. Data must not be changed afterwards.
func Parse(data []byte, o Options) (*Patch, error) {
	o = o.withDefaults()
	p, r := parse(data, o)
	if r != nil {
		c := *r
		c.Suggestion = repair(data, o, r)
		return nil, &c
	}
	if p.level >= 0 {
		if err := p.resolveAt(p.level); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func parse(data []byte, o Options) (*Patch, *Refusal) {
	if r := judgeInput(data, o); r != nil {
		return nil, r
	}
	s := &scanner{data: data, crlf: allCRLF(data), line: 1}
	stat, message, r := preamble(s)
	if r != nil {
		return nil, r
	}
	first := s.line
	p := &Patch{o: o}
	r = p.readSections(s)
	if r == nil {
		r = readTail(s)
	}
	if r != nil {
		if message && laterSection(s) {
			return nil, refuse(DiffInMessage, first, "", "a diff starts in the commit message, before the line \"---\"")
		}
		return nil, r
	}
	if r := stat.check(p.sections); r != nil {
		return nil, r
	}
	p.level = p.levelFromNames()
	return p, nil
}

// judgeInput looks at the input as a whole.
func judgeInput(data []byte, o Options) *Refusal {
	switch {
	case len(data) > o.MaxPatchBytes:
		return refuse(LimitPatchBytes, 0, "", "the patch has %d bytes; at most %d are allowed", len(data), o.MaxPatchBytes)
	case len(data) == 0:
		return refuse(Empty, 0, "", "the patch has no bytes")
	case bytes.HasPrefix(data, []byte("\xef\xbb\xbf")):
		return refuse(NotADiff, 1, "", "the patch begins with a byte order mark.").with(HintBOM)
	case bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")):
		return refuse(NotADiff, 1, "", "the patch is UTF-16.").with(HintUTF16)
	}
	if r := otherFormat(data); r != nil {
		return r
	}
	if data[len(data)-1] != '\n' {
		return refuse(Truncated, bytes.Count(data, []byte("\n"))+1, "", "the last line has no newline: the end of the patch is missing")
	}
	return nil
}

// allCRLF reports whether every line ends in CR LF.
func allCRLF(data []byte) bool {
	for pos := 0; pos < len(data); {
		var l []byte
		if l, pos = lineAt(data, pos); !bytes.HasSuffix(l, []byte("\r")) {
			return false
		}
	}
	return true
}

func (p *Patch) readSections(s *scanner) *Refusal {
	for !s.eof() && s.sectionAt(s.pos) {
		if len(p.sections) == p.o.MaxFiles {
			return refuse(LimitFiles, s.line, "", "the patch has more than %d files", p.o.MaxFiles)
		}
		c, r := readSection(s, p)
		if r != nil {
			return r
		}
		p.sections = append(p.sections, c)
	}
	return nil
}

// readTail accepts a signature and blank lines up to the end.
func readTail(s *scanner) *Refusal {
	if !s.eof() && string(s.header()) == "-- " {
		s.next()
		for range 2 {
			if s.eof() || s.sectionAt(s.pos) || isMail(s.header()) {
				break
			}
			s.next()
		}
	}
	for !s.eof() {
		if l := s.header(); len(l) > 0 {
			return unaccounted(s, l)
		}
		s.next()
	}
	return nil
}

// unaccounted refuses the line at which the scanner stands, which belongs to
// nothing.
func unaccounted(s *scanner, l []byte) *Refusal {
	switch {
	case isMail(l) || isShow(l):
		return refuse(MultiplePatches, s.line, "", "a second patch begins here; send one patch for one change")
	case isCombined(l):
		return refuse(CombinedDiff, s.line, "", "a combined diff (of a merge) says nothing certain about one file")
	case isBinaryStub(l):
		return refuse(BinaryWithoutData, s.line, "", "the patch says that binary files differ and not how; make it with git diff --binary")
	}
	r := refuse(UnaccountedText, s.line, "", "%s belongs to no part of the patch", excerpt(l))
	if hasPrefix(l, " ") || hasPrefix(l, "+") || hasPrefix(l, "-") || hasPrefix(l, "\\") {
		r.Detail += "; the hunk before it counts fewer lines than there are"
	}
	if fenced(s.data) {
		r.Hint = HintFence
		r.Detail += "."
	}
	return r
}

// excerpt shows the beginning of a line.
func excerpt(l []byte) string {
	if len(l) > 60 {
		return Quote(string(l[:60])) + "…"
	}
	return Quote(string(l))
}

func fenced(data []byte) bool {
	return bytes.HasPrefix(data, []byte("```")) || bytes.Contains(data, []byte("\n```"))
}

func isBinaryStub(l []byte) bool {
	return (hasPrefix(l, "Binary files ") || hasPrefix(l, "Files ")) && bytes.HasSuffix(l, []byte(" differ"))
}

// laterSection reports whether a line "---" and then a section follow.
func laterSection(s *scanner) bool {
	dashes := false
	for pos := s.pos; pos < len(s.data); {
		l, n := lineAt(s.data, pos)
		if dashes && s.sectionAt(pos) {
			return true
		}
		dashes = dashes || string(s.trim(l)) == "---"
		pos = n
	}
	return false
}

// Touched returns every path that the patch changes, both sides of a rename,
// sorted, each once. It is empty before the level is known.
func (p *Patch) Touched() []string {
	var all []string
	for i, c := range p.sections {
		if p.names == nil {
			break
		}
		if c.from == nil || !c.copies {
			all = append(all, p.names[i][0])
		}
		all = append(all, p.names[i][1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Sources returns every path that the patch copies from and does not change,
// sorted, each once. It is empty before the level is known.
func (p *Patch) Sources() []string {
	touched := p.Touched()
	var all []string
	for i, c := range p.sections {
		if p.names != nil && c.from != nil && c.copies && !slices.Contains(touched, p.names[i][0]) {
			all = append(all, p.names[i][0])
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
