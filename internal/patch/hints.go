package patch

import (
	"bytes"
	"fmt"
	"html"
	"strings"
)

// explainMost bounds the file in which the reason of a mismatch is looked for.
const explainMost = 4 * mib

// A view maps a line, with its LF, to what counts when it is compared. Where
// neither side has one of its marks it shows nothing new.
type view struct {
	hint  Hint
	why   string
	marks string
	see   func(line []byte) []byte
}

func views() []view {
	plain := strings.NewReplacer("‘", "'", "’", "'", "‚", "'", "“", `"`, "”", `"`, "„", `"`, "«", `"`, "»", `"`,
		"–", "-", "—", "-", "−", "-", "‐", "-", "‑", "-", "\u00a0", " ", "\u202f", " ", "…", "...")
	return []view{
		{HintEOFNewline, "they are, but for the newline at the end of the file", "", trimLF},
		{HintEOL, "they are, but for their line ends", "\r", func(l []byte) []byte { return bytes.TrimSuffix(trimLF(l), []byte("\r")) }},
		{HintWhitespace, "they are, but for blanks and tabs", " \t", func(l []byte) []byte {
			return bytes.ReplaceAll(bytes.ReplaceAll(l, []byte(" "), nil), []byte("\t"), nil)
		}},
		{HintHTML, "they are, but for HTML entities", "&", func(l []byte) []byte { return []byte(html.UnescapeString(string(l))) }},
		{HintConfusable, "they are, but for typographic quotes, dashes or blanks", "‘’‚“”„«»–—−‐‑\u00a0\u202f…", func(l []byte) []byte { return []byte(plain.Replace(string(l))) }},
	}
}

func trimLF(l []byte) []byte { return bytes.TrimSuffix(l, []byte("\n")) }

// shows reports whether a view can show something else than the bytes do.
func (v view) shows(t *text, h *Hunk) bool {
	if v.marks == "" { // the newline at the end: of the file, or of the hunk
		return !bytes.HasSuffix(t.data, []byte("\n")) || bytes.Contains(h.body, []byte("\n\\"))
	}
	if bytes.ContainsAny(t.data, v.marks) {
		return true
	}
	for l := range h.Lines() {
		if bytes.ContainsAny(l.Text, v.marks) {
			return true
		}
	}
	return false
}

// explain refuses a hunk whose lines are not in the file, and says why when
// they are but for something that often goes wrong on the way.
func (t *text) explain(h *Hunk, d side) *Refusal {
	r := refuse(ContextMismatch, h.Line, "", "the old lines of the hunk are not in the file")
	if len(t.data) <= explainMost {
		for _, v := range views() {
			if !v.shows(t, h) || !t.holds(h, d, v.see) {
				continue
			}
			r.Hint = v.hint
			r.Detail = "the old lines of the hunk are not in the file as they stand; " + v.why + "."
			if v.hint == HintEOL {
				r.Class = EOLMismatch
				r.Detail = t.otherLineEnds(h, d)
			}
			return r
		}
	}
	if s := t.firstDifference(h, d); s != "" {
		r.Detail += "; " + s
	}
	return r
}

// otherLineEnds says which line ends were compared. Where Git converts them the
// file's are those of the bytes that it keeps, which the person who looks at
// the work tree may not see.
func (t *text) otherLineEnds(h *Hunk, d side) string {
	crlf, all := 0, 0
	for l := range h.side(d) {
		if line := h.bytes(l); bytes.HasSuffix(line, []byte("\n")) {
			all++
			if bytes.HasSuffix(line, []byte("\r\n")) {
				crlf++
			}
		}
	}
	file, hunk := lineEnds(bytes.Count(t.data, []byte("\r\n")), bytes.Count(t.data, []byte("\n"))), lineEnds(crlf, all)
	if file == hunk { // both mixed, and not in the same lines
		hunk += " in other lines"
	}
	s := fmt.Sprintf("the old lines of the hunk are in the file but for their line ends: those of the hunk are %s, those of the file %s. ", hunk, file)
	if file == "LF" {
		return s + "A file that Git converts (an attribute eol=crlf, core.autocrlf) is compared as Git keeps it, with LF, also where the work tree shows CR LF; send the lines with LF, as git diff writes them."
	}
	return s + "Send each line with the end that it has in the file, as git diff writes it."
}

func lineEnds(crlf, all int) string {
	switch crlf {
	case 0:
		return "LF"
	case all:
		return "CR LF"
	}
	return "mixed LF and CR LF"
}

// holds reports whether the hunk's lines of the side are somewhere in the file,
// as seen. Lines are compared by their hash: a wrong match would only give a
// wrong hint.
func (t *text) holds(h *Hunk, d side, see func([]byte) []byte) bool {
	digest := func(l []byte) uint64 { // FNV-1a
		sum := uint64(14695981039346656037)
		for _, c := range see(l) {
			sum = (sum ^ uint64(c)) * 1099511628211
		}
		return sum
	}
	var pattern []uint64
	for l := range h.side(d) {
		pattern = append(pattern, digest(h.bytes(l)))
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
	fail := prefixTable(len(pattern), func(a, b int) bool { return pattern[a] == pattern[b] })
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
	if i > t.len() {
		return fmt.Sprintf("the file has %d lines, the hunk wants line %d", t.len(), i)
	}
	for l := range h.side(d) {
		if i >= t.len() {
			return fmt.Sprintf("the file has %d lines, the hunk wants line %d", t.len(), i+1)
		}
		if !bytes.Equal(t.line(i), h.bytes(l)) {
			return fmt.Sprintf("line %d is %s, the hunk says %s", i+1, excerpt(trimLF(t.line(i))), excerpt(trimLF(h.bytes(l))))
		}
		i++
	}
	return ""
}
