package patch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Show spells a path or a piece of text from a patch for people and logs: as it
// is when every character of it is visible, else quoted as git quotes names.
func Show(s string) string {
	plain := utf8.ValidString(s)
	for _, r := range s {
		if !plain || r == '"' || r == '\\' || hidden(r) {
			return Quote(s)
		}
	}
	return s
}

// ShowLine spells a line of a file for people: as it is when every character of
// it is a TAB or visible, else with escapes as in Go's strings for those that
// are not, and each backslash doubled.
func ShowLine(line []byte) (text string, escaped bool) {
	s := string(line)
	if !strings.ContainsFunc(s, func(r rune) bool { return r != '\t' && hidden(r) }) {
		return s, false
	}
	var b strings.Builder
	for rest := s; rest != ""; {
		r, n := utf8.DecodeRuneInString(rest)
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, rest[0])
		case r != '\t' && hidden(r):
			q := strconv.QuoteRune(r)
			if q = q[1 : len(q)-1]; q == string(r) {
				q = fmt.Sprintf(`\u%04x`, r)
			}
			b.WriteString(q)
		default:
			b.WriteString(rest[:n])
		}
		rest = rest[n:]
	}
	return b.String(), true
}

// hidden reports whether r would not be seen, or would change how what is
// around it is seen.
func hidden(r rune) bool {
	return r == utf8.RuneError || !unicode.IsPrint(r) || invisible(r)
}

// Quote quotes a name as git does with core.quotePath: in double quotes, with
// every byte outside printable ASCII escaped.
func Quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch k := strings.IndexByte("\a\b\t\n\v\f\r\"\\", c); {
		case k >= 0:
			b.WriteByte('\\')
			b.WriteByte(`abtnvfr"\`[k])
		case c < 0x20 || c > 0x7e:
			fmt.Fprintf(&b, `\%03o`, c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// needsQuoting reports whether git would quote the name.
func needsQuoting(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c < 0x20 || c > 0x7e || c == '"' || c == '\\' {
			return true
		}
	}
	return false
}

// unquote reads a quoted name at the start of s, which begins with a quote,
// and returns what follows it. Exactly git's escapes are known.
func unquote(s []byte) (name string, rest []byte, ok bool) {
	var b bytes.Buffer
	for i := 1; i < len(s); i++ {
		switch c := s[i]; c {
		case '"':
			return b.String(), s[i+1:], true
		case '\\':
			i++
			if i == len(s) {
				return "", nil, false
			}
			if k := strings.IndexByte(`abtnvfr"\`, s[i]); k >= 0 {
				b.WriteByte("\a\b\t\n\v\f\r\"\\"[k])
				continue
			}
			if i+2 >= len(s) || s[i] < '0' || s[i] > '3' || !octal(s[i+1]) || !octal(s[i+2]) {
				return "", nil, false
			}
			b.WriteByte((s[i]-'0')<<6 | (s[i+1]-'0')<<3 | (s[i+2] - '0'))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	return "", nil, false
}

func octal(c byte) bool { return '0' <= c && c <= '7' }
