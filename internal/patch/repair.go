package patch

import (
	"bytes"
	"fmt"
)

// repair makes a patch that parses out of one that was refused, where the
// fault is one that often happens on the way and can be mended in one way
// only. Nil where it cannot. What comes out is offered and never applied.
func repair(data []byte, o Options, r *Refusal) []byte {
	var fixed []byte
	switch r.Class {
	case Truncated:
		if data[len(data)-1] != '\n' {
			fixed = append(bytes.Clone(data), '\n')
		}
	case HunkCountMismatch, MalformedHunk:
		fixed = recount(data)
	case UnaccountedText:
		if r.Hint == HintFence {
			fixed = unfence(data)
		} else {
			fixed = recount(data)
		}
	default:
		return nil
	}
	if fixed == nil || bytes.Equal(fixed, data) {
		return nil
	}
	if _, r := parse(fixed, o); r != nil {
		return nil
	}
	return fixed
}

// unfence gives what stands in the only code fence of a text.
func unfence(data []byte) []byte {
	var inner []byte
	fences, from := 0, 0
	for pos := 0; pos < len(data); {
		l, n := lineAt(data, pos)
		if hasPrefix(l, "```") {
			if fences++; fences == 1 {
				from = n
			} else {
				inner = data[from:pos]
			}
		}
		pos = n
	}
	if fences != 2 {
		return nil
	}
	return inner
}

// recount writes the numbers of lines that the hunks really have into their
// headers.
func recount(data []byte) []byte {
	s := &scanner{data: data, crlf: allCRLF(data), line: 1}
	var out bytes.Buffer
	for !s.eof() {
		var h Hunk
		begin := s.pos
		l := s.take()
		if !hasPrefix(l, "@@ ") || !h.header(l) {
			out.Write(data[begin:s.pos])
			continue
		}
		body := s.pos
		old, new := s.hunkBody()
		eol := "\n"
		if s.crlf {
			eol = "\r\n"
		}
		text := ""
		if h.Section != "" {
			text = " " + h.Section
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@%s%s", spellCount(h.OldStart, old), spellCount(h.NewStart, new), text, eol)
		out.Write(data[body:s.pos])
	}
	return out.Bytes()
}

func spellCount(start, n int) string {
	if n == 1 {
		return fmt.Sprint(start)
	}
	return fmt.Sprintf("%d,%d", start, n)
}

// hunkBody steps over the lines that look like those of a hunk, up to the next
// hunk, section, signature or the end, and counts them.
func (s *scanner) hunkBody() (old, new int) {
	for !s.eof() && !s.sectionAt(s.pos) {
		l := s.header()
		switch {
		case string(l) == "-- " && bytes.Count(s.data[s.pos:], []byte("\n")) <= 3:
			return old, new
		case len(l) == 0:
			if rest := bytes.TrimLeft(s.data[s.pos:], "\r\n"); len(rest) == 0 || hasPrefix(rest, "diff --git ") {
				return old, new
			}
			old, new = old+1, new+1
		case l[0] == ' ':
			old, new = old+1, new+1
		case l[0] == '-':
			old++
		case l[0] == '+':
			new++
		case l[0] == '\\':
		default:
			return old, new
		}
		s.next()
	}
	return old, new
}
