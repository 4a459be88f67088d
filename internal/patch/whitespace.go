package patch

import (
	"bytes"
	"slices"
)

// A Flaw is something in an added line, or at the end of a file, that git
// diff --check complains of.
type Flaw struct {
	Path string
	Line int // of the file after, 1-based
	What string
}

// What flaws are, in git's words.
const (
	conflictMarker = "leftover conflict marker"
	trailingSpace  = "trailing whitespace"
	spaceBeforeTab = "space before tab in indent"
	blankAtEnd     = "new blank line at EOF"
)

// Flaws gives the whitespace errors and conflict markers in the lines that the
// images after have and those before have not, file by file, at most most of
// them, and how many there are in all. It judges as git diff --check does by
// default: blanks at the end of a line or file, a blank before a tab in an
// indent, conflict markers of seven characters; files that git takes for
// binary have none.
func Flaws(images []Image, most int) (found []Flaw, all int) {
	for _, m := range images {
		if m.After.Kind != File && m.After.Kind != Symlink || hasNUL(m.New) {
			continue
		}
		for line, what := range m.flaws {
			if all++; len(found) < most {
				found = append(found, Flaw{m.Path, line, what})
			}
		}
	}
	return found, all
}

// hasNUL is git's guess at whether a diff of the bytes is of use.
func hasNUL(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }

func (m Image) flaws(yield func(line int, what string) bool) {
	if bytes.Equal(m.Old, m.New) {
		return
	}
	before, after := newText(m.Old), newText(m.New)
	for _, e := range diffLines(before, after) {
		for i := e.b0; i < e.b1; i++ {
			line := bytes.TrimSuffix(after.line(i), []byte("\n"))
			if isConflictMarker(line) && !yield(i+1, conflictMarker) {
				return
			}
			if what := whitespaceError(line); what != "" && !yield(i+1, what) {
				return
			}
		}
	}
	if blank := trailingBlanks(m.New); blank > trailingBlanks(m.Old) {
		yield(after.len()-blank+1, blankAtEnd)
	}
}

// isBlank is what git counts as white space.
func isBlank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// isConflictMarker reports whether a line begins with seven of a character that
// marks a conflict and then ends, or goes on after a blank.
func isConflictMarker(line []byte) bool {
	const size = 7
	if len(line) < size || !bytes.ContainsAny(line[:1], "=<>|") {
		return false
	}
	same := !slices.ContainsFunc(line[:size], func(c byte) bool { return c != line[0] })
	return same && (len(line) == size || isBlank(line[size]))
}

// whitespaceError says what is wrong with the blanks of a line, or "".
func whitespaceError(line []byte) string {
	text := bytes.TrimRight(line, " \t\r\n")
	blank := false
	for _, c := range text {
		if c == '\t' && blank {
			if len(text) < len(line) {
				return trailingSpace + ", " + spaceBeforeTab
			}
			return spaceBeforeTab
		}
		if c != ' ' && c != '\t' {
			break
		}
		blank = c == ' '
	}
	if len(text) < len(line) {
		return trailingSpace
	}
	return ""
}

// trailingBlanks counts the blank lines at the end of a file as git does: the
// first line of a file, if it is empty, is none of them.
func trailingBlanks(b []byte) (n int) {
	end := len(bytes.TrimSuffix(b, []byte("\n"))) // of the last line
	for end > 1 {
		start := bytes.LastIndexByte(b[:end], '\n') + 1
		if slices.ContainsFunc(b[start:end], func(c byte) bool { return !isBlank(c) }) {
			break
		}
		n++
		end = start - 1
	}
	return n
}
