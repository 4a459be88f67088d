package patch

// A Span is a range of lines of a file, 1-based, both ends included.
type Span struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// ChangedLines gives the removed lines of the file before and the added lines
// of the file after, in order, adjoining lines joined. Of a binary file it
// gives none.
func (f FileResult) ChangedLines() (removed, added []Span) {
	for _, p := range f.Placed {
		h := &f.Hunks[p.Hunk]
		old, new := p.OldStart, p.NewStart
		if h.OldLines == 0 {
			old++
		}
		if h.NewLines == 0 {
			new++
		}
		for l := range h.Lines() {
			switch l.Op {
			case '-':
				removed = addLine(removed, old)
				old++
			case '+':
				added = addLine(added, new)
				new++
			default:
				old, new = old+1, new+1
			}
		}
	}
	return removed, added
}

func addLine(s []Span, n int) []Span {
	if k := len(s) - 1; k >= 0 && s[k].End+1 == n {
		s[k].End = n
		return s
	}
	return append(s, Span{n, n})
}
