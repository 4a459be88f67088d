package world_test

import (
	"testing"

	"roundtable/internal/fault"
)

// TestReverseRefused: what keeps a change from being taken back is said, and
// not that files moved, which they did not.
func TestReverseRefused(t *testing.T) {
	for name, c := range map[string]struct{ file, line, code string }{
		"CR LF":    {".gitattributes", "a.txt text eol=crlf\n", "apply.eol_mismatch"},
		"a filter": {".gitattributes", "a.txt filter=x\n", "apply.attr_filter"},
		"ignored":  {".gitignore", "new.txt\n", "path.ignored"},
		"nothing":  {"other", "x\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			git(t, root, "init", "-q")
			put(t, root, "a.txt", []byte("one\n"))
			git(t, root, "add", "-A")
			git(t, root, "commit", "-qm", "first")
			s := serve(t)
			changed, err := s.apply(t, root, sections(edited("a.txt", "one", "two"), created("new.txt", "x")))
			must(t, err)
			put(t, root, c.file, []byte(c.line))
			if _, err := s.Reverse(t.Context(), root, changed, nil); (err == nil) != (c.code == "") || err != nil && fault.CodeOf(err) != c.code {
				t.Errorf("%v, want %q", err, c.code)
			}
		})
	}
}

// TestNamesNotUTF8: a name that the history cannot hold is refused for good.
func TestNamesNotUTF8(t *testing.T) {
	in, err := serve(t).Inspect(t.Context(), t.TempDir(), sections("diff --git \"a/l\\351\" \"b/l\\351\"\nnew file mode 100644\n--- /dev/null\n+++ \"b/l\\351\"\n@@ -0,0 +1 @@\n+x\n"))
	if err != nil || in.Refused == nil || in.Refused.Code != "path.not_utf8" || !in.Never {
		t.Errorf("%+v, %v", in, err)
	}
}
