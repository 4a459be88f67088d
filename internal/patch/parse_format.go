package patch

import (
	"bytes"
	"regexp"
)

var (
	normalDiff = regexp.MustCompile(`(?m)^[0-9]+(,[0-9]+)?[acd][0-9]+(,[0-9]+)?\r?\n[<>] `)
	edScript   = regexp.MustCompile(`(?m)^[0-9]+(,[0-9]+)?[aci]\r?$`)
	ansiHeader = regexp.MustCompile(`(?m)^(\x1b\[[0-9;]*m)+(diff --git|--- )`)
	indented   = regexp.MustCompile(`(?m)^(    |\t)[ \t]*(diff --git|--- [^\n]*\n[ \t]+\+\+\+ )`)
	escapedLF  = regexp.MustCompile(`\\n(---|\+\+\+|@@) `)
)

// otherFormat says what the input is, when it has no file header anywhere.
func otherFormat(data []byte) *Refusal {
	if n := bytes.IndexByte(data, '\n'); (n < 0 || n == len(data)-1) && escapedLF.Match(data) {
		return refuse(NotADiff, 1, "", "the patch is one line with escaped newlines.").with(HintEscaped)
	}
	s := &scanner{data: data}
	names := 0
	for line, pos := 1, 0; pos < len(data); line++ {
		if s.sectionAt(pos) {
			return nil
		}
		l, n := lineAt(data, pos)
		l = bytes.TrimSuffix(l, []byte("\r"))
		after, _ := lineAt(data, n)
		switch {
		case isCombined(l):
			return refuse(CombinedDiff, line, "", "a combined diff (of a merge) says nothing certain about one file")
		case isBinaryStub(l):
			return refuse(BinaryWithoutData, line, "", "the patch says that binary files differ and not how; make it with git diff --binary")
		case names == 0 && hasPrefix(l, "--- ") && hasPrefix(after, "+++ "):
			names = line
		}
		pos = n
	}
	for _, f := range []struct {
		found bool
		class Class
		hint  Hint
		what  string
	}{
		{hasLine(data, "*** Begin Patch"), FormatUnsupported, HintCodex, "this is an apply_patch envelope."},
		{hasLine(data, "***************"), FormatUnsupported, HintContext, "this is a context diff."},
		{normalDiff.Match(data), FormatUnsupported, HintNormal, "this is plain diff output without context or names."},
		{edScript.Match(data), FormatUnsupported, HintEd, "this is an ed script; such a patch can run commands."},
		{ansiHeader.Match(data), NotADiff, HintANSI, "the patch has terminal colours in it."},
		{indented.Match(data), NotADiff, HintIndented, "the patch is indented."},
	} {
		if f.found {
			return refuse(f.class, 1, "", "%s", f.what).with(f.hint)
		}
	}
	if names > 0 {
		return refuse(MalformedHunk, names, "", "the names are not followed by a hunk header (@@ -line,count +line,count @@)")
	}
	return refuse(NotADiff, 1, "", "no file header (diff --git, or --- and +++ followed by @@) was found")
}

func hasLine(data []byte, prefix string) bool {
	return bytes.HasPrefix(data, []byte(prefix)) || bytes.Contains(data, []byte("\n"+prefix))
}
