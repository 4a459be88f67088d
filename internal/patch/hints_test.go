package patch_test

import (
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// TestLineEndsExplained: a hunk that fits but for its line ends is told which
// ends were compared, and how to send it.
func TestLineEndsExplained(t *testing.T) {
	const hunk = "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n one\n-two\n+zwei\n"
	crlf := strings.NewReplacer(" one\n", " one\r\n", "two\n", "two\r\n", "zwei\n", "zwei\r\n").Replace(hunk)
	first := strings.NewReplacer(" one\n", " one\r\n").Replace(hunk)
	for name, c := range map[string]struct {
		file       string
		conversion patch.Conversion
		diff       string
		says       []string
	}{
		"the file is converted":         {"one\r\ntwo\r\n", patch.CRLFConversion, crlf, []string{"the hunk are CR LF", "the file LF", "as Git keeps it, with LF", "also where the work tree shows CR LF", "send the lines with LF"}},
		"a file with LF":                {"one\ntwo\n", "", crlf, []string{"the hunk are CR LF", "the file LF", "send the lines with LF"}},
		"a file with CR LF":             {"one\r\ntwo\r\n", "", hunk, []string{"the hunk are LF", "the file CR LF", "that it has in the file"}},
		"the file is mixed":             {"one\r\ntwo\n", "", hunk, []string{"the hunk are LF", "the file mixed LF and CR LF"}},
		"the hunk is mixed":             {"one\ntwo\n", "", first, []string{"the hunk are mixed LF and CR LF", "the file LF"}},
		"both are mixed, and otherwise": {"one\ntwo\r\n", "", first, []string{"the hunk are mixed LF and CR LF in other lines"}},
		"no newline at the end":         {"one\ntwo", "", strings.Replace(crlf, "-two\r\n", "-two\r\n\\ No newline at end of file\n", 1), []string{"the hunk are CR LF", "the file LF"}},
	} {
		tree := mixed{patch.NewMapTree(), map[string]patch.Conversion{"f": c.conversion}}
		tree.Put("f", "100644", []byte(c.file))
		_, err := apply([]byte(c.diff), patch.Options{}, tree)
		r := refusal(t, err)
		if r.Class != patch.EOLMismatch || r.Hint != patch.HintEOL {
			t.Errorf("%s: %v [%s]", name, r, r.Hint)
		}
		for _, want := range c.says {
			if !strings.Contains(r.Detail, want) {
				t.Errorf("%s: it says %q and not %q", name, r.Detail, want)
			}
		}
	}
}
