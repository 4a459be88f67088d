package patch

// A Span is a range of lines of a file, 1-based, both ends included.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// An Edit is a run of changed lines without an unchanged one in it: removed
// lines of the file before, added lines of the file after. Starts are 1-based.
// With no lines removed OldStart is the line before which the others go, which
// may be one more than the file has; with none added NewStart likewise.
type Edit struct {
	OldStart int
	OldLines int
	NewStart int
	NewLines int
}

// Edits gives what changed, line by line, in order. Of a binary file it gives
// nothing.
func (f FileResult) Edits() (all []Edit) {
	for _, p := range f.Placed {
		h := &f.Hunks[p.Hunk]
		old, new := p.OldStart, p.NewStart
		if h.OldLines == 0 {
			old++
		}
		if h.NewLines == 0 {
			new++
		}
		open := false
		for l := range h.Lines() {
			if l.Op != '-' && l.Op != '+' {
				old, new, open = old+1, new+1, false
				continue
			}
			if !open {
				all, open = append(all, Edit{OldStart: old, NewStart: new}), true
			}
			e := &all[len(all)-1]
			if l.Op == '-' {
				e.OldLines, old = e.OldLines+1, old+1
			} else {
				e.NewLines, new = e.NewLines+1, new+1
			}
		}
	}
	return all
}

// ChangedLines gives the removed lines of the file before and the added lines
// of the file after, in order, adjoining lines joined. Of a binary file it
// gives none.
func (f FileResult) ChangedLines() (removed, added []Span) {
	for _, e := range f.Edits() {
		removed, added = addLines(removed, e.OldStart, e.OldLines), addLines(added, e.NewStart, e.NewLines)
	}
	return removed, added
}

func addLines(s []Span, start, lines int) []Span {
	if lines == 0 {
		return s
	}
	if k := len(s) - 1; k >= 0 && s[k].End+1 == start {
		s[k].End += lines
		return s
	}
	return append(s, Span{start, start + lines - 1})
}
