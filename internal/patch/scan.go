package patch

import "bytes"

// A scanner walks over the lines of a patch. Only LF ends a line. Under crlf
// every line of the input ends in CR LF: header lines are given without the
// CR, hunk lines with it.
type scanner struct {
	data []byte
	crlf bool
	pos  int
	line int // 1-based number of the line at pos
}

func (s *scanner) eof() bool { return s.pos >= len(s.data) }

// raw returns the line at the position without its LF.
func (s *scanner) raw() []byte {
	l, _ := lineAt(s.data, s.pos)
	return l
}

// header returns the line at the position as a header line.
func (s *scanner) header() []byte { return s.trim(s.raw()) }

func (s *scanner) trim(l []byte) []byte {
	if s.crlf {
		return bytes.TrimSuffix(l, []byte("\r"))
	}
	return l
}

func (s *scanner) next() {
	_, s.pos = lineAt(s.data, s.pos)
	s.line++
}

// take returns the header line at the position and steps over it.
func (s *scanner) take() []byte {
	l := s.header()
	s.next()
	return l
}

// lineAt returns the line that begins at pos, and where the next one begins.
func lineAt(data []byte, pos int) (line []byte, next int) {
	if pos >= len(data) {
		return nil, len(data)
	}
	if i := bytes.IndexByte(data[pos:], '\n'); i >= 0 {
		return data[pos : pos+i], pos + i + 1
	}
	return data[pos:], len(data)
}

func hasPrefix(l []byte, p string) bool { return len(l) >= len(p) && string(l[:len(p)]) == p }

// sectionAt reports whether a section of a patch begins at pos.
func (s *scanner) sectionAt(pos int) bool {
	l, n := lineAt(s.data, pos)
	switch {
	case hasPrefix(l, "diff --git "):
		return true
	case hasPrefix(l, "diff -") && !isCombined(l):
		return s.plainAt(n)
	}
	return s.plainAt(pos)
}

// plainAt reports whether --- and +++ lines followed by a hunk stand at pos.
func (s *scanner) plainAt(pos int) bool {
	a, n := lineAt(s.data, pos)
	if !hasPrefix(a, "--- ") {
		return false
	}
	b, n := lineAt(s.data, n)
	if !hasPrefix(b, "+++ ") {
		return false
	}
	c, _ := lineAt(s.data, n)
	return hasPrefix(c, "@@")
}

func isCombined(l []byte) bool { return hasPrefix(l, "diff --cc ") || hasPrefix(l, "diff --combined ") }

// isMail reports whether the line begins a mail of a series.
func isMail(l []byte) bool {
	rest, ok := bytes.CutPrefix(l, []byte("From "))
	if !ok {
		return false
	}
	id, _, ok := bytes.Cut(rest, []byte(" "))
	return ok && isOID(id)
}

// isShow reports whether the line is the first of a commit as git show prints it.
func isShow(l []byte) bool {
	rest, ok := bytes.CutPrefix(l, []byte("commit "))
	id, _, _ := bytes.Cut(rest, []byte(" "))
	return ok && isOID(id)
}

func isOID(id []byte) bool { return (len(id) == 40 || len(id) == 64) && isHex(id) }

func isHex(id []byte) bool {
	for _, c := range id {
		if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f') {
			return false
		}
	}
	return len(id) > 0
}
