package patch

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// invisible reports whether r is one of the code points that are not seen or
// that reorder the text around them.
func invisible(r rune) bool {
	return ignorable(r) || r == 0x00ad || r == 0x180e || 0xe0000 <= r && r <= 0xe007f
}

// review looks for characters in added lines that hide what they do. They are
// notes, and refusals under strict text.
func (a *applier) review() {
	for i, c := range a.sections {
		c.findings(func(n Note) {
			a.note(i, n)
			if a.o.StrictText {
				a.refuse(i, Class(n.Kind), n.Line, a.names[i][1], "%s", n.Detail)
			}
		})
	}
}

// Findings gives the added lines that have characters which hide what they do,
// in the order of the patch, without looking at a tree. It is empty before the
// level is known: see Resolve.
func (p *Patch) Findings() (all []Note) {
	if p.names == nil {
		return nil
	}
	for i, c := range p.sections {
		c.findings(func(n Note) {
			n.Path = Show(p.names[i][1])
			all = append(all, n)
		})
	}
	return all
}

// findings yields a note, without its path, for each such line of a section.
func (c *section) findings(yield func(Note)) {
	for k := range c.hunks {
		h := &c.hunks[k]
		line, first := h.Line, h.NewStart <= 1 // first: the line begins its file
		for l := range h.Lines() {
			line++
			if l.Op == '+' {
				if kind, r := judgeText(l.Text, first); kind != "" {
					yield(Note{Kind: kind, Line: line, Detail: fmt.Sprintf("the added line has U+%04X", r)})
				}
			}
			if l.NoEOL {
				line++
			}
			first = first && l.Op == '-'
		}
	}
}

// judgeText finds the first such character of a line.
func judgeText(text []byte, first bool) (NoteKind, rune) {
	text = bytes.TrimSuffix(text, []byte("\r"))
	if first {
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	}
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case 0x202a <= r && r <= 0x202e || 0x2066 <= r && r <= 0x2069:
			return NoteBidi, r
		case r == '\r' || r == 0x1b || r == '\b' || 0x80 <= r && r <= 0x9f && r != 0x85 || invisible(r):
			return NoteHiddenControl, r
		}
		text = text[n:]
	}
	return "", 0
}
