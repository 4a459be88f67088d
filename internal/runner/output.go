package runner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Output is what a command printed, standard output and error as they came:
// all of it, or its head and its tail.
type Output struct {
	Head, Tail []byte // Tail follows Head after Omitted bytes
	Total      int64  // bytes printed
	Omitted    int64  // bytes between Head and Tail that were not kept
	SHA256     string // of all that was printed
	Incomplete bool   // the end could not be read: something still held it open
}

// Bytes returns what was kept as one text, with a line that says what was left
// out, if anything was.
func (o Output) Bytes() []byte {
	all := append([]byte(nil), o.Head...)
	if o.Omitted > 0 {
		all = fmt.Appendf(all, "\n[... %d bytes of output left out ...]\n", o.Omitted)
	}
	return append(all, o.Tail...)
}

// NoOutput is the summary of a command that printed nothing.
const NoOutput = "No test output captured."

const (
	summaryLines = 6
	summaryLine  = 400      // bytes of one line
	summaryTail  = 64 << 10 // bytes of the output's end that are looked at
)

// Summary returns the last six lines of the trimmed output, fit to be shown:
// without control characters, and long lines cut.
func (o Output) Summary() string {
	end := o.Tail
	if len(end) < summaryTail && o.Omitted == 0 {
		end = append(append([]byte(nil), o.Head[max(0, len(o.Head)-summaryTail):]...), o.Tail...)
	}
	end = end[max(0, len(end)-summaryTail):]
	var lines []string
	for line := range strings.SplitSeq(string(end), "\n") {
		lines = append(lines, clean(line))
	}
	blank := func(line string) bool { return strings.TrimSpace(line) == "" }
	for len(lines) > 0 && blank(lines[len(lines)-1]) {
		lines = lines[:len(lines)-1]
	}
	lines = lines[max(0, len(lines)-summaryLines):]
	for len(lines) > 0 && blank(lines[0]) {
		lines = lines[1:]
	}
	if len(lines) == 0 {
		return NoOutput
	}
	return strings.Join(lines, "\n")
}

// clean makes a line of output safe to show: as a terminal would show it, on
// which a carriage return begins the line again.
func clean(line string) string {
	line = strings.ToValidUTF8(stripEscapes(line), "\uFFFD")
	line = strings.TrimRight(line, " \t\r")
	line = line[strings.LastIndexByte(line, '\r')+1:]
	line = strings.Map(func(r rune) rune {
		if r != '\t' && !unicode.IsPrint(r) {
			return -1
		}
		return r
	}, line)
	if len(line) > summaryLine {
		cut := summaryLine
		for !utf8.RuneStart(line[cut]) {
			cut--
		}
		line = line[:cut] + "…"
	}
	return line
}

// stripEscapes removes terminal control sequences (ECMA-48 CSI), such as
// colours.
func stripEscapes(s string) string {
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, "\x1b[")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		end := strings.IndexFunc(after, func(r rune) bool { return r >= 0x40 && r <= 0x7e })
		if end < 0 {
			return b.String()
		}
		s = after[end+1:]
	}
}

// A collector keeps the head and the tail of what is written to it, in bounded
// memory, and counts and digests all. It is not safe for concurrent use.
type collector struct {
	half   int // of head and of tail each
	head   []byte
	ring   []byte // the tail, once full beginning at start
	start  int
	total  int64
	digest hash.Hash
}

func newCollector(most int) *collector {
	return &collector{half: max(1, most/2), digest: sha256.New()}
}

func (c *collector) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	c.digest.Write(p)
	room := min(len(p), c.half-len(c.head))
	c.head, p = append(c.head, p[:room]...), p[room:]
	p = p[max(0, len(p)-c.half):] // the rest cannot stay
	room = min(len(p), c.half-len(c.ring))
	c.ring, p = append(c.ring, p[:room]...), p[room:]
	for len(p) > 0 {
		k := copy(c.ring[c.start:], p)
		c.start = (c.start + k) % c.half
		p = p[k:]
	}
	return n, nil
}

func (c *collector) output() Output {
	tail := append(append([]byte(nil), c.ring[c.start:]...), c.ring[:c.start]...)
	return Output{
		Head: c.head, Tail: tail, Total: c.total, Omitted: c.total - int64(len(c.head)+len(tail)),
		SHA256: hex.EncodeToString(c.digest.Sum(nil)),
	}
}
