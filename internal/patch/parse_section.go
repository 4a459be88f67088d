package patch

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// readSection reads one section; the scanner stands on its first line.
func readSection(s *scanner, p *Patch) (*section, *Refusal) {
	c := &section{line: s.line, similarity: -1}
	if hasPrefix(s.header(), "diff --git ") {
		c.git = true
		c.gitNames = s.take()[len("diff --git "):]
		if r := readExtended(s, c); r != nil {
			return nil, r
		}
		if r := c.judgeHeader(p.o); r != nil {
			return nil, r
		}
	}
	if r := readBody(s, c, p); r != nil {
		return nil, r
	}
	return c, c.judgeBody()
}

func readBody(s *scanner, c *section, p *Patch) *Refusal {
	l := s.header()
	var diffLine []byte
	if !c.git && hasPrefix(l, "diff -") {
		diffLine = l
		s.next()
		l = s.header()
	}
	switch {
	case s.eof():
		return nil
	case string(l) == "GIT binary patch" && c.git:
		s.next()
		return readBinary(s, c, p)
	case isBinaryStub(l) && c.git:
		return refuse(BinaryWithoutData, s.line, "", "the patch says that binary files differ and not how; make it with git diff --binary")
	case hasPrefix(l, "+++ ") && c.git:
		return refuse(MalformedHeader, s.line, "", "a +++ line without a --- line before it")
	case !hasPrefix(l, "--- "):
		return nil
	}
	if r := readNames(s, c); r != nil {
		return r
	}
	if diffLine != nil && !namesSame(diffLine, c) {
		return refuse(InconsistentNames, c.line, "", "the diff line names other files than --- and +++")
	}
	return readHunks(s, c)
}

// readNames reads the --- and +++ lines.
func readNames(s *scanner, c *section) *Refusal {
	line := s.line
	var r *Refusal
	if c.old, r = headerNameOf(s.take()[4:], line); r != nil {
		return r
	}
	if s.eof() || !hasPrefix(s.header(), "+++ ") {
		return refuse(MalformedHunk, line, "", "the --- line is not followed by a +++ line")
	}
	if c.new, r = headerNameOf(s.take()[4:], line+1); r != nil {
		return r
	}
	if c.old.null && c.new.null {
		return refuse(InconsistentNames, line, "", "both sides are /dev/null")
	}
	return nil
}

func headerNameOf(l []byte, line int) (*headerName, *Refusal) {
	h := &headerName{}
	if hasPrefix(l, `"`) {
		name, rest, ok := unquote(l)
		if !ok || len(rest) > 0 && rest[0] != '\t' {
			return nil, refuse(BadQuoting, line, "", "the quoted name is not as git writes it")
		}
		h.name, h.stamp = name, strings.TrimPrefix(string(rest), "\t")
	} else {
		name, stamp, _ := strings.Cut(string(l), "\t")
		h.name, h.stamp, h.null = name, stamp, name == "/dev/null"
	}
	if h.name == "" {
		return nil, refuse(MalformedHeader, line, "", "the name is empty")
	}
	return h, nil
}

// namesSame reports whether a line as diff -r writes it names the two files.
func namesSame(l []byte, c *section) bool {
	spell := func(h *headerName) []string {
		return []string{h.name, Quote(h.name), "'" + h.name + "'"}
	}
	for _, a := range spell(c.old) {
		for _, b := range spell(c.new) {
			head, ok := strings.CutSuffix(string(l), " "+a+" "+b)
			if ok && hasPrefix([]byte(head), "diff -") {
				return true
			}
		}
	}
	return false
}

// epoch reports whether a stamp is exactly the epoch in its zone, with which
// diff -N says that a file is not there.
func epoch(stamp string) bool {
	t, err := time.Parse("2006-01-02 15:04:05 -0700", stamp)
	return err == nil && t.Unix() == 0 && t.Nanosecond() == 0
}

// readExtended reads the extended header lines of a git section.
func readExtended(s *scanner, c *section) *Refusal {
	seen := map[string]bool{}
	for !s.eof() {
		l := s.header()
		key := extendedKey(l)
		if key == "" {
			return nil
		}
		if seen[key] {
			return refuse(MalformedHeader, s.line, "", "a second %q line", strings.TrimSpace(key))
		}
		seen[key] = true
		if r := c.setExtended(key, l[len(key):], s.line); r != nil {
			return r
		}
		s.next()
	}
	return nil
}

func extendedKey(l []byte) string {
	for _, k := range []string{
		"old mode ", "new mode ", "new file mode ", "deleted file mode ", "rename from ", "rename to ",
		"copy from ", "copy to ", "similarity index ", "dissimilarity index ", "index ",
	} {
		if hasPrefix(l, k) {
			return k
		}
	}
	return ""
}

func (c *section) setExtended(key string, v []byte, line int) *Refusal {
	switch key {
	case "old mode ", "deleted file mode ":
		c.deleted = c.deleted || key[0] == 'd'
		c.modeLines = c.modeLines || key[0] == 'o'
		return setMode(&c.oldMode, v, true, line)
	case "new mode ", "new file mode ":
		c.created = c.created || key == "new file mode "
		c.modeLines = c.modeLines || key == "new mode "
		return setMode(&c.newMode, v, false, line)
	case "rename from ", "copy from ":
		if c.from != nil {
			return refuse(MalformedHeader, line, "", "both a rename and a copy")
		}
		c.copies = key[0] == 'c'
		return setName(&c.from, v, line)
	case "rename to ", "copy to ":
		if c.to != nil || c.from == nil || c.copies != (key[0] == 'c') {
			return refuse(MalformedHeader, line, "", "%q does not follow its \"from\" line", strings.TrimSpace(key))
		}
		return setName(&c.to, v, line)
	case "similarity index ", "dissimilarity index ":
		n, err := strconv.Atoi(strings.TrimSuffix(string(v), "%"))
		if err != nil || fmt.Sprintf("%d%%", n) != string(v) || n < 0 || n > 100 {
			return refuse(MalformedHeader, line, "", "the index is not a percentage")
		}
		if key[0] == 's' {
			c.similarity = n
		}
		return nil
	}
	return c.setIndex(v, line)
}

func setName(to **string, v []byte, line int) *Refusal {
	name := string(v)
	if hasPrefix(v, `"`) {
		n, rest, ok := unquote(v)
		if !ok || len(rest) > 0 {
			return refuse(BadQuoting, line, "", "the quoted name is not as git writes it")
		}
		name = n
	}
	if name == "" {
		return refuse(MalformedHeader, line, "", "the name is empty")
	}
	*to = &name
	return nil
}

const (
	modeFile = "100644"
	modeExec = "100755"
	modeLink = "120000"
	modeGit  = "160000"
)

func setMode(to *string, v []byte, old bool, line int) *Refusal {
	switch m := string(v); {
	case m == modeFile || m == modeExec || m == modeLink || m == modeGit:
		*to = m
	case old && (m == "100664" || m == "100640" || m == "100600"):
		*to = modeFile
	default:
		return refuse(BadMode, line, "", "mode %s is none of 100644, 100755, 120000", excerpt(v))
	}
	return nil
}

// setIndex reads "old..new[ mode]".
func (c *section) setIndex(v []byte, line int) *Refusal {
	ids, mode, withMode := bytes.Cut(v, []byte(" "))
	a, b, ok := bytes.Cut(ids, []byte(".."))
	if !ok || !isHex(a) || !isHex(b) || len(a) > 64 || len(b) > 64 {
		return refuse(MalformedHeader, line, "", "the index line does not name two object ids")
	}
	c.oldOID, c.newOID = string(a), string(b)
	if !withMode {
		return nil
	}
	var m string
	if r := setMode(&m, mode, true, line); r != nil {
		return r
	}
	if c.oldMode != "" && c.oldMode != m || c.newMode != "" && c.newMode != m {
		return refuse(MalformedHeader, line, "", "the index line states another mode than the line before it")
	}
	if !c.created {
		c.oldMode = m
	}
	if !c.deleted {
		c.newMode = m
	}
	return nil
}
