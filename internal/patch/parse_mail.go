package patch

import (
	"regexp"
	"strconv"
)

// A diffstat is what a mail says about the patch in it. Nil: it says nothing.
type diffstat struct {
	line                  int
	files, added, removed int
	binary                bool // git counted no lines of some file
}

var statLine = regexp.MustCompile(`^ ([0-9]{1,9}) files? changed(?:, ([0-9]{1,9}) insertions?\(\+\))?(?:, ([0-9]{1,9}) deletions?\(-\))?$`)

var statBinary = regexp.MustCompile(` \| +Bin( [0-9]+ -> [0-9]+ bytes)?$`)

// preamble reads up to the first section: nothing, or the head of one mail or
// of one commit as git show prints it. Message tells that the head was a mail
// without the line "---": what looks like the first section may then lie in
// its message.
func preamble(s *scanner) (stat *diffstat, message bool, r *Refusal) {
	if s.sectionAt(0) {
		return nil, false, nil
	}
	l := s.header()
	mail := isMail(l) || hasPrefix(l, "From: ") || hasPrefix(l, "Subject: ")
	if !mail && !isShow(l) {
		return nil, false, unaccounted(s, l)
	}
	dashes, binary := false, false
	for s.next(); !s.sectionAt(s.pos); s.next() {
		if s.eof() {
			return nil, false, refuse(NotADiff, s.line-1, "", "the mail has no diff")
		}
		l := s.header()
		switch {
		case isMail(l):
			return nil, false, refuse(MultiplePatches, s.line, "", "a second mail begins here; send one patch for one change")
		case isCombined(l):
			return nil, false, refuse(CombinedDiff, s.line, "", "a combined diff (of a merge) says nothing certain about one file")
		case string(l) == "---":
			dashes = true
		case dashes:
			binary = binary || statBinary.Match(l)
			if m := statLine.FindSubmatch(l); m != nil {
				n := func(b []byte) int { v, _ := strconv.Atoi(string(b)); return v } // "" is 0; the pattern admits digits only
				stat = &diffstat{s.line, n(m[1]), n(m[2]), n(m[3]), binary}
			}
		}
	}
	return stat, mail && !dashes, nil
}

// check compares the diffstat with the sections.
func (d *diffstat) check(sections []*section) *Refusal {
	if d == nil {
		return nil
	}
	files, added, removed, binary := 0, 0, 0, d.binary
	for i, c := range sections {
		// The two sections of a type change are one file to git.
		if i == 0 || !(sections[i-1].deleted && c.created && string(sections[i-1].gitNames) == string(c.gitNames) && c.git) {
			files++
		}
		added, removed = added+c.added, removed+c.removed
		binary = binary || c.bin != nil
	}
	if files != d.files || !binary && (added != d.added || removed != d.removed) {
		return refuse(DiffstatMismatch, d.line, "",
			"the message announces %d files, %d insertions, %d deletions; the patch has %d, %d, %d: a part may be missing",
			d.files, d.added, d.removed, files, added, removed)
	}
	return nil
}
