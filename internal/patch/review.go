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
		for k := range c.hunks {
			h := &c.hunks[k]
			line, first := h.Line, h.NewStart <= 1
			for l := range h.Lines() {
				line++
				if l.Op == '+' {
					a.reviewLine(i, line, l.Text, first)
				}
				if l.NoEOL {
					line++
				}
				first = first && l.Op == '-'
			}
		}
	}
}

// reviewLine looks at one added line; first tells that it begins its file.
func (a *applier) reviewLine(i, line int, text []byte, first bool) {
	kind, r := judgeText(text, first)
	if kind == "" {
		return
	}
	detail := fmt.Sprintf("the added line has U+%04X", r)
	a.note(i, Note{Kind: kind, Line: line, Detail: detail})
	if a.o.StrictText {
		a.refuse(i, Class(kind), line, a.names[i][1], "%s", detail)
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
