package patch

import (
	"bytes"
	"iter"
	"strconv"
)

// A Hunk is one changed place of a text file, as the patch states it.
type Hunk struct {
	Line               int    // of the patch, 1-based: the hunk header
	OldStart, OldLines int    // 1-based; with no lines the change comes after line OldStart
	NewStart, NewLines int    // the same in the file after, as the patch states it
	Section            string // what follows the second @@; not escaped
	Added, Removed     int    // lines

	body    []byte
	context int // number of context lines
	tail    int // context lines at the end
}

// A Line is one line of a hunk.
type Line struct {
	Op    byte   // ' ', '-' or '+'
	Text  []byte // without its LF; a CR is content
	NoEOL bool   // the line has no LF: it is the last of its file
}

// Lines gives the lines of the hunk in order.
func (h *Hunk) Lines() iter.Seq[Line] {
	return func(yield func(Line) bool) {
		for pos := 0; pos < len(h.body); {
			var l []byte
			l, pos = lineAt(h.body, pos)
			line := Line{Op: ' ', Text: l}
			if len(l) > 0 && l[0] != '\r' {
				line.Op, line.Text = l[0], l[1:]
			}
			if pos < len(h.body) && h.body[pos] == '\\' {
				line.NoEOL = true
				_, pos = lineAt(h.body, pos)
			}
			if !yield(line) {
				return
			}
		}
	}
}

// oldIndex is the 0-based line at which the old lines are stated to begin.
func (h *Hunk) oldIndex() int { return startIndex(h.OldStart, h.OldLines) }
func (h *Hunk) newIndex() int { return startIndex(h.NewStart, h.NewLines) }

func startIndex(start, lines int) int {
	if lines == 0 {
		return start
	}
	return start - 1
}

// readHunks reads one hunk or more.
func readHunks(s *scanner, c *section) *Refusal {
	for !s.eof() && hasPrefix(s.raw(), "@@") {
		h, r := readHunk(s)
		if r != nil {
			return r
		}
		if n := len(c.hunks); n > 0 {
			last := &c.hunks[n-1]
			end := last.oldIndex() + last.OldLines
			switch start := h.oldIndex(); {
			case start < last.oldIndex() || start == last.oldIndex() && h.OldLines == 0:
				return refuse(HunkOrder, h.Line, "", "the hunk begins at line %d, before the hunk above it", h.OldStart)
			case start < end:
				return refuse(HunkOrder, h.Line, "", "the hunk begins at line %d, within the hunk above it.", h.OldStart).with(HintOverlap)
			}
		}
		c.hunks = append(c.hunks, h)
		c.added, c.removed = c.added+h.Added, c.removed+h.Removed
	}
	if len(c.hunks) == 0 {
		return refuse(MalformedHunk, s.line-2, "", "the names are not followed by a hunk header")
	}
	return nil
}

func readHunk(s *scanner) (Hunk, *Refusal) {
	h := Hunk{Line: s.line}
	l := s.take()
	if hasPrefix(l, "@@@") {
		return h, refuse(CombinedDiff, h.Line, "", "a combined diff (of a merge) says nothing certain about one file")
	}
	if !h.header(l) {
		return h, refuse(MalformedHunk, h.Line, "", "%s is not a hunk header: @@ -line,count +line,count @@, numbers up to 2^40", excerpt(l))
	}
	old, new, begin := 0, 0, s.pos
	for old < h.OldLines || new < h.NewLines {
		op := h.op(s)
		switch {
		case op == '\\' && old+new > 0 && emptyLine(s):
			return h, errEmptyLine(s)
		case op == '\\' && old+new > 0:
		case op == ' ' && old < h.OldLines && new < h.NewLines:
			old, new, h.context, h.tail = old+1, new+1, h.context+1, h.tail+1
		case op == '-' && old < h.OldLines:
			old, h.Removed, h.tail = old+1, h.Removed+1, 0
		case op == '+' && new < h.NewLines:
			new, h.Added, h.tail = new+1, h.Added+1, 0
		default:
			return h, refuse(HunkCountMismatch, h.Line, "", "the hunk header counts %d old and %d new lines, the body has %s before line %d, which does not belong to it",
				h.OldLines, h.NewLines, counted(s, begin), s.line)
		}
		s.next()
	}
	if !s.eof() && hasPrefix(s.raw(), "\\ ") && s.pos > begin {
		if emptyLine(s) {
			return h, errEmptyLine(s)
		}
		s.next()
	}
	h.body = s.data[begin:s.pos]
	if h.Added+h.Removed == 0 {
		return h, refuse(MalformedHunk, h.Line, "", "the hunk changes no line")
	}
	return h, nil
}

// op says what the line at the scanner is to a hunk; 0 for what cannot belong
// to one. A marker must not follow a marker.
func (h *Hunk) op(s *scanner) byte {
	l := s.raw()
	switch {
	case s.eof():
		return 0
	case len(l) == 0 || s.crlf && string(l) == "\r":
		return ' ' // a context line whose only blank was trimmed
	case hasPrefix(l, "\\ "):
		if prev := bytes.LastIndexByte(s.data[:s.pos-1], '\n'); s.data[prev+1] == '\\' {
			return 0
		}
		return '\\'
	case l[0] == ' ' || l[0] == '-' || l[0] == '+':
		return l[0]
	}
	return 0
}

// emptyLine reports whether the line before the marker at the scanner would
// have neither content nor newline.
func emptyLine(s *scanner) bool {
	prev := bytes.LastIndexByte(s.data[:s.pos-1], '\n')
	return s.pos-1-(prev+1) <= 1
}

func errEmptyLine(s *scanner) *Refusal {
	return refuse(MalformedHunk, s.line, "", "a line with neither content nor newline is no line")
}

// counted says how many old and new lines the body really has, as far as the
// scanner came.
func counted(s *scanner, begin int) string {
	old, new := 0, 0
	end := min(s.pos, len(s.data))
	for pos := begin; pos < end; {
		var l []byte
		l, pos = lineAt(s.data, pos)
		switch {
		case hasPrefix(l, "-"):
			old++
		case hasPrefix(l, "+"):
			new++
		case !hasPrefix(l, "\\"):
			old, new = old+1, new+1
		}
	}
	return strconv.Itoa(old) + " and " + strconv.Itoa(new)
}

// header reads "@@ -o[,n] +o[,n] @@[ text]".
func (h *Hunk) header(l []byte) bool {
	rest, ok := bytes.CutPrefix(l, []byte("@@ -"))
	if !ok {
		return false
	}
	if h.OldStart, h.OldLines, rest, ok = hunkRange(rest, " +"); !ok {
		return false
	}
	if h.NewStart, h.NewLines, rest, ok = hunkRange(rest, " @@"); !ok {
		return false
	}
	if len(rest) > 0 {
		if rest[0] != ' ' {
			return false
		}
		h.Section = string(rest[1:])
	}
	return true
}

// hunkRange reads "o[,n]" and the text after it.
func hunkRange(l []byte, after string) (start, lines int, rest []byte, ok bool) {
	start, rest, ok = hunkNumber(l)
	lines = 1
	if ok && hasPrefix(rest, ",") {
		lines, rest, ok = hunkNumber(rest[1:])
	}
	rest, found := bytes.CutPrefix(rest, []byte(after))
	return start, lines, rest, ok && found && (start > 0 || lines == 0)
}

func hunkNumber(l []byte) (n int, rest []byte, ok bool) {
	i := 0
	for i < len(l) && '0' <= l[i] && l[i] <= '9' {
		i++
	}
	if i == 0 || i > 20 {
		return 0, nil, false
	}
	v, err := strconv.ParseUint(string(l[:i]), 10, 64)
	return int(v), l[i:], err == nil && v <= maxHunkNum
}
