package patch

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"html"
	"strings"
)

// explainMost bounds the file in which the reason of a mismatch is looked for.
const explainMost = 4 * mib

// A view maps a line, with its LF, to what counts when it is compared.
type view struct {
	hint Hint
	why  string
	see  func(line []byte) []byte
}

func views() []view {
	plain := strings.NewReplacer("‘", "'", "’", "'", "‚", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`,
		"–", "-", "—", "-", "−", "-", "‐", "-", "‑", "-", "\u00a0", " ", "\u202f", " ", "…", "...")
	return []view{
		{HintEOL, "they are, but for their line ends", func(l []byte) []byte {
			return bytes.TrimSuffix(bytes.TrimSuffix(l, []byte("\n")), []byte("\r"))
		}},
		{HintEOFNewline, "they are, but for the newline at the end of the file", func(l []byte) []byte { return bytes.TrimSuffix(l, []byte("\n")) }},
		{HintWhitespace, "they are, but for blanks and tabs", func(l []byte) []byte {
			return bytes.Map(func(r rune) rune {
				if r == ' ' || r == '\t' {
					return -1
				}
				return r
			}, l)
		}},
		{HintHTML, "they are, but for HTML entities", func(l []byte) []byte { return []byte(html.UnescapeString(string(l))) }},
		{HintConfusable, "they are, but for typographic quotes, dashes or blanks", func(l []byte) []byte { return []byte(plain.Replace(string(l))) }},
	}
}

// explain refuses a hunk whose lines are not in the file, and says why when
// they are but for something that often goes wrong on the way.
func (t *text) explain(h *Hunk, d side) *Refusal {
	r := refuse(ContextMismatch, h.Line, "", "the old lines of the hunk are not in the file")
	if len(t.data) <= explainMost {
		for _, v := range views() {
			if !t.holds(h, d, v.see) {
				continue
			}
			r.Hint = v.hint
			r.Detail = "the old lines of the hunk are not in the file as they stand; " + v.why + "."
			if v.hint == HintEOL && !t.lastLineOnly(h, d) {
				r.Class = EOLMismatch
				r.Detail = fmt.Sprintf("the file has %s line ends, the hunk has others.", t.lineEnds())
			} else if v.hint == HintEOL {
				continue
			}
			return r
		}
	}
	if s := t.firstDifference(h, d); s != "" {
		r.Detail += "; " + s
	}
	return r
}

// lastLineOnly reports whether only the newline at the end of the file differs:
// then it is not the kind of line ends.
func (t *text) lastLineOnly(h *Hunk, d side) bool {
	return t.holds(h, d, func(l []byte) []byte { return bytes.TrimSuffix(l, []byte("\n")) })
}

func (t *text) lineEnds() string {
	crlf, all := bytes.Count(t.data, []byte("\r\n")), bytes.Count(t.data, []byte("\n"))
	switch {
	case crlf == 0:
		return "LF"
	case crlf == all:
		return "CRLF"
	}
	return "mixed LF and CRLF"
}

// holds reports whether the hunk's lines of the side are somewhere in the file,
// as seen. Lines are compared by their hash: a wrong match would only give a
// wrong hint.
func (t *text) holds(h *Hunk, d side, see func([]byte) []byte) bool {
	digest := func(l []byte) uint64 {
		f := fnv.New64a()
		f.Write(see(l))
		return f.Sum64()
	}
	var pattern []uint64
	for l := range h.Lines() {
		if l.Op == ' ' || l.Op == byte(d) {
			line := bytes.Clone(l.Text)
			if !l.NoEOL {
				line = append(line, '\n')
			}
			pattern = append(pattern, digest(line))
		}
	}
	if len(pattern) == 0 || len(pattern) > t.len() {
		return false
	}
	if at, _ := d.counts(h); h.context == 0 { // such a hunk has only its position
		for i, x := range pattern {
			if at < 0 || at+i >= t.len() || digest(t.line(at+i)) != x {
				return false
			}
		}
		return true
	}
	fail := make([]int32, len(pattern))
	for k, j := 1, 0; k < len(pattern); k++ {
		for j > 0 && pattern[k] != pattern[j] {
			j = int(fail[j-1])
		}
		if pattern[k] == pattern[j] {
			j++
		}
		fail[k] = int32(j)
	}
	for i, j := 0, 0; i < t.len(); i++ {
		x := digest(t.line(i))
		for j > 0 && x != pattern[j] {
			j = int(fail[j-1])
		}
		if x == pattern[j] {
			j++
		}
		if j == len(pattern) {
			return true
		}
	}
	return false
}

// firstDifference names the first line that is not as the hunk states it.
func (t *text) firstDifference(h *Hunk, d side) string {
	i, _ := d.counts(h)
	for l := range h.Lines() {
		if l.Op != ' ' && l.Op != byte(d) {
			continue
		}
		if i >= t.len() {
			return fmt.Sprintf("the file has %d lines, the hunk wants line %d", t.len(), i+1)
		}
		if !t.same(i, l) {
			return fmt.Sprintf("line %d is %s, the hunk says %s", i+1, excerpt(bytes.TrimSuffix(t.line(i), []byte("\n"))), excerpt(l.Text))
		}
		i++
	}
	return ""
}
