package repo

import (
	"bytes"

	"roundtable/internal/patch"
)

// A lineRule is what git does with the line ends of one path.
type lineRule struct {
	reason string // for people; empty: nothing
	crlf   bool   // the work tree is to have CR LF
	guess  bool   // only where the bytes look like text
	kept   bool   // of a guess: the repository has CR LF already, and keeps it
	filter string // the attribute by which more than line ends is converted; then nothing else counts
}

// lineRuleOf works out what attributes and settings come to.
func lineRuleOf(a attrs, autocrlf, eol string) lineRule {
	if f := a.converts(); f != "" {
		return lineRule{filter: f, reason: f}
	}
	name, said := "text", textOf(a.of("text"))
	if said == "" {
		name, said = "crlf", textOf(a.of("crlf"))
	}
	if said == "unset" {
		return lineRule{}
	}
	r := lineRule{reason: name, guess: said == "auto"}
	if r.guess {
		r.reason = name + "=auto"
	}
	native := autocrlf == "true" || autocrlf != "input" && eol == "crlf"
	switch e := a.of("eol"); {
	case e == "lf" || e == "crlf":
		r.crlf, r.reason = e == "crlf", r.reason+" eol="+e
	case said == "input":
	case said != "":
		r.crlf = native
	case autocrlf == "true" || autocrlf == "input":
		r.reason, r.crlf, r.guess = "core.autocrlf="+autocrlf, autocrlf == "true", true
	default:
		return lineRule{}
	}
	return r
}

// textOf reads an attribute text, or crlf: set, unset, input, auto or nothing.
func textOf(v string) string {
	switch v {
	case "set", "unset", "input", "auto":
		return v
	}
	return ""
}

// toGit is what git keeps of a file of the work tree.
func (r lineRule) toGit(b []byte) []byte {
	if r.reason == "" || r.guess && (r.kept || patch.LooksBinary(b)) {
		return b
	}
	return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
}

// toTree is what git writes into the work tree of what it keeps.
func (r lineRule) toTree(b []byte) []byte {
	if !r.crlf || r.guess && (bytes.IndexByte(b, '\r') >= 0 || patch.LooksBinary(b)) {
		return b
	}
	lf := bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
	return bytes.ReplaceAll(lf, []byte("\n"), []byte("\r\n"))
}

// givesBack says whether git keeps of what it writes into the work tree, for
// bytes that it keeps, those bytes again.
func (r lineRule) givesBack(kept []byte) bool {
	r.kept = r.guess && bytes.Contains(kept, []byte("\r\n")) && !patch.LooksBinary(kept)
	return r.filter == "" && bytes.Equal(r.toGit(r.toTree(kept)), kept)
}
