package patch

import "bytes"

// A format is another form of diff, or a damaged one, that we know by sight.
type format struct {
	class Class
	hint  Hint
	what  string
	looks func(line, next []byte) bool
}

// formats gives them by how certain their looks are.
func formats() []format {
	return []format{
		{FormatUnsupported, HintCodex, "this is an apply_patch envelope.", func(l, _ []byte) bool { return hasPrefix(l, "*** Begin Patch") }},
		{FormatUnsupported, HintContext, "this is a context diff.", func(l, _ []byte) bool { return hasPrefix(l, "***************") }},
		{FormatUnsupported, HintNormal, "this is plain diff output without context or names.", func(l, next []byte) bool {
			return (hasPrefix(next, "< ") || hasPrefix(next, "> ")) && isCommand(l, true)
		}},
		{FormatUnsupported, HintEd, "this is an ed script; such a patch can run commands.", func(l, _ []byte) bool { return isCommand(l, false) }},
		{NotADiff, HintANSI, "the patch has terminal colours in it.", isColoured},
		{NotADiff, HintIndented, "the patch is indented.", isIndented},
	}
}

// otherFormat says what the input is, when it has no file header anywhere.
func otherFormat(data []byte) *Refusal {
	if n := bytes.IndexByte(data, '\n'); (n < 0 || n == len(data)-1) && hasEscapedLF(data) {
		return refuse(NotADiff, 1, "", "the patch is one line with escaped newlines.").with(HintEscaped)
	}
	s := &scanner{data: data}
	known := formats()
	best, bestLine, names := len(known), 0, 0
	for line, pos := 1, 0; pos < len(data); line++ {
		if s.sectionAt(pos) {
			return nil
		}
		l, n := lineAt(data, pos)
		l = bytes.TrimSuffix(l, []byte("\r"))
		next, _ := lineAt(data, n)
		switch {
		case isCombined(l):
			return refuse(CombinedDiff, line, "", "a combined diff (of a merge) says nothing certain about one file")
		case isBinaryStub(l):
			return refuse(BinaryWithoutData, line, "", "the patch says that binary files differ and not how; make it with git diff --binary")
		case names == 0 && hasPrefix(l, "--- ") && hasPrefix(next, "+++ "):
			names = line
		}
		for i, f := range known[:best] {
			if f.looks(l, next) {
				best, bestLine = i, line
				break
			}
		}
		pos = n
	}
	switch {
	case best < len(known):
		f := known[best]
		return refuse(f.class, bestLine, "", "%s", f.what).with(f.hint)
	case names > 0:
		return refuse(MalformedHunk, names, "", "the names are not followed by a hunk header (@@ -line,count +line,count @@)")
	}
	return refuse(NotADiff, 1, "", "no file header (diff --git, or --- and +++ followed by @@) was found")
}

// hasEscapedLF reports whether the two characters \n stand before a line of a diff.
func hasEscapedLF(l []byte) bool {
	for {
		i := bytes.Index(l, []byte(`\n`))
		if i < 0 {
			return false
		}
		l = l[i+2:]
		if hasPrefix(l, "--- ") || hasPrefix(l, "+++ ") || hasPrefix(l, "@@ ") {
			return true
		}
	}
}

// isCommand reads "1,2c" as ed does, or, with target, "1,2c3,4" as plain diff
// output does.
func isCommand(l []byte, target bool) bool {
	l, ok := addresses(l)
	if !ok || len(l) == 0 {
		return false
	}
	if !target {
		return len(l) == 1 && bytes.IndexByte([]byte("aci"), l[0]) >= 0
	}
	if bytes.IndexByte([]byte("acd"), l[0]) < 0 {
		return false
	}
	l, ok = addresses(l[1:])
	return ok && len(l) == 0
}

// addresses steps over "1" or "1,2".
func addresses(l []byte) (rest []byte, ok bool) {
	rest, ok = digits(l)
	if ok && hasPrefix(rest, ",") {
		rest, ok = digits(rest[1:])
	}
	return rest, ok
}

func digits(l []byte) (rest []byte, ok bool) {
	rest = bytes.TrimLeft(l, "0123456789")
	return rest, len(rest) < len(l)
}

// isColoured reports whether terminal colours stand before a file header.
func isColoured(l, _ []byte) bool {
	for hasPrefix(l, "\x1b[") {
		end := bytes.IndexByte(l, 'm')
		if end < 0 {
			return false
		}
		l = l[end+1:]
		if hasPrefix(l, "diff --git") || hasPrefix(l, "--- ") {
			return true
		}
	}
	return false
}

// isIndented reports whether blanks stand before a file header.
func isIndented(l, next []byte) bool {
	if !hasPrefix(l, "    ") && !hasPrefix(l, "\t") {
		return false
	}
	l = bytes.TrimLeft(l, " \t")
	return hasPrefix(l, "diff --git") || hasPrefix(l, "--- ") && hasPrefix(bytes.TrimLeft(next, " \t"), "+++ ")
}
