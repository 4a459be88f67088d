package patch

import (
	"bytes"
	"strings"
)

// maxNames bounds a "diff --git" line: two paths of the greatest length, every
// byte quoted.
const maxNames = 16 << 10

// strip takes components from the front of a name. An absolute name stays as
// it is, so that the path rules see it.
func strip(name string, level int) (string, bool) {
	if strings.HasPrefix(name, "/") {
		return name, true
	}
	for range level {
		_, rest, ok := strings.Cut(name, "/")
		if !ok {
			return "", false
		}
		name = rest
	}
	return name, name != ""
}

// namesAt gives the old and new path of the section at a strip level, all its
// header lines agreeing, or why they do not. The names of a rename or copy have
// no prefix: how much of the level is to be taken from them, too, depends on
// how many components that prefix had, so each count is tried.
func (c *section) namesAt(level int) (old, new string, r *Refusal) {
	bare := max(level-1, 0)
	old, new, r = c.namesWith(level, bare)
	for c.from != nil && r != nil && bare > 0 {
		bare--
		if a, b, other := c.namesWith(level, bare); other == nil {
			return a, b, nil
		}
	}
	return old, new, r
}

func (c *section) namesWith(level, bare int) (old, new string, r *Refusal) {
	old, new, r = c.statedAt(level, bare)
	if r != nil || !c.git {
		return old, new, r
	}
	if len(c.gitNames) > maxNames {
		return "", "", refuse(PathTooLong, c.line, "", "the names are longer than any path may be")
	}
	old, new, class := gitPair(c.gitNames, level, old, new)
	switch class {
	case "":
		return old, new, nil
	case BadQuoting:
		r = refuse(class, c.line, "", "a quoted name is not as git writes it")
	case AmbiguousName:
		r = refuse(class, c.line, "", "the diff --git line can be split into two names in several ways, and nothing says which")
	default:
		r = refuse(class, c.line, "", "the header lines of the section name different files")
	}
	return "", "", r
}

// statedAt gives the paths that the lines other than "diff --git" state; ""
// where they do not. Bare is the level of names without prefix.
func (c *section) statedAt(level, bare int) (old, new string, r *Refusal) {
	ok := true
	take := func(name string, level int) string {
		s, fits := strip(name, level)
		ok = ok && fits
		return s
	}
	if c.from != nil {
		old, new = take(*c.from, bare), take(*c.to, bare)
	}
	agree := true
	set := func(to *string, h *headerName) {
		if h != nil && !h.null {
			s := take(h.name, level)
			agree = agree && (*to == "" || *to == s)
			*to = s
		}
	}
	set(&old, c.old)
	set(&new, c.new)
	if c.from == nil && c.old != nil {
		switch {
		case c.old.null:
			old = new
		case c.new.null:
			new = old
		case !c.git && old != new:
			old = plainName(old, new)
			new = old
		}
		agree = agree && old == new && (old != "" || !ok)
	}
	switch {
	case !ok:
		return "", "", refuse(StripMismatch, c.line, "", "a name has no %d components to strip", level)
	case !agree:
		return "", "", refuse(InconsistentNames, c.line, "", "the header lines of the section name different files")
	}
	return old, new, nil
}

// plainName is the name two names of a plain diff mean: the shorter one, if the
// other is its backup. "" if they are two files.
func plainName(a, b string) string {
	if len(a) > len(b) {
		a, b = b, a
	}
	switch b {
	case a + ".orig", a + "~", a + ".bak", a + ".old":
		return a
	}
	return ""
}

// gitPair gives the pair of paths that the rest of a "diff --git" line means at
// a level. Old and new are what other lines state; where they state nothing,
// both paths must be the same. There is never more than one such pair: with
// the lengths given the blank between them is, too.
func gitPair(l []byte, level int, old, new string) (a, b string, r Class) {
	fits := func(x, y string) bool {
		var ok1, ok2 bool
		a, ok1 = strip(x, level)
		b, ok2 = strip(y, level)
		return ok1 && ok2 && (old == "" && a == b || old != "" && a == old && b == new)
	}
	judge := func(x, y string) (string, string, Class) {
		if fits(x, y) {
			return a, b, ""
		}
		return "", "", InconsistentNames
	}
	if hasPrefix(l, `"`) {
		x, rest, ok := unquote(l)
		if !ok || !hasPrefix(rest, " ") {
			return "", "", BadQuoting
		}
		y := string(rest[1:])
		if hasPrefix(rest, ` "`) {
			var tail []byte
			if y, tail, ok = unquote(rest[1:]); !ok || len(tail) > 0 {
				return "", "", BadQuoting
			}
		}
		return judge(x, y)
	}
	// git quotes a name with a quote in it, so the first one begins the second name.
	if i := bytes.Index(l, []byte(` "`)); i >= 0 {
		y, tail, ok := unquote(l[i+1:])
		if !ok || len(tail) > 0 {
			return "", "", BadQuoting
		}
		return judge(string(l[:i]), y)
	}
	for _, i := range splits(l, level, len(old), len(new)) {
		if fits(string(l[:i]), string(l[i+1:])) {
			return a, b, ""
		}
	}
	if old == "" && bytes.Count(l, []byte(" ")) > 1 {
		return "", "", AmbiguousName
	}
	return "", "", InconsistentNames
}

// splits gives the blanks of l at which both sides, stripped, have the lengths
// wanted: a and b, or, where a is 0, the same. Looking at lengths first keeps
// the work linear in l.
func splits(l []byte, level, a, b int) (at []int) {
	var slashes []int
	for i, c := range l {
		if c == '/' {
			slashes = append(slashes, i)
		}
	}
	begin := 0 // of the first path
	if level > 0 && !hasPrefix(l, "/") {
		if len(slashes) < level {
			return nil
		}
		begin = slashes[level-1] + 1
	}
	k := 0 // the first slash behind the blank
	for i, c := range l {
		if c != ' ' || i < begin {
			continue
		}
		for k < len(slashes) && slashes[k] < i {
			k++
		}
		second := i + 1
		if level > 0 && second < len(l) && l[second] != '/' {
			if k+level > len(slashes) {
				break
			}
			second = slashes[k+level-1] + 1
		}
		x, y := i-begin, len(l)-second
		if a == 0 && x == y || a > 0 && x == a && y == b {
			at = append(at, i)
		}
	}
	return at
}
