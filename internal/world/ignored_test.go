package world_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMakesIgnored: no patch makes a file that git would then ignore, by the
// ignore files as the patch itself leaves them.
func TestMakesIgnored(t *testing.T) {
	without := func(name, line string) string {
		return "diff --git a/" + name + " b/" + name + "\n--- a/" + name + "\n+++ b/" + name + "\n@@ -1,2 +1 @@\n-" + line + "\n build/\n"
	}
	for name, c := range map[string]struct {
		patch []byte
		code  string
	}{
		"no pattern":                   {sections(created("new.txt", "x")), ""},
		"a pattern":                    {sections(created("new.log", "x")), "path.ignored"},
		"beside a good one":            {sections(created("new.txt", "x"), created("sub/new.log", "x")), "path.ignored"},
		"a folder's":                   {sections(created("build/y", "x")), "path.ignored"},
		"a name with a colon":          {sections(created(":new.log", "x")), "path.ignored"},
		"tracked all the same":         {sections(edited("kept.log", "one", "two")), ""},
		"tracked and made again":       {sections(created("away.log", "x")), ""},
		"ignored by the patch":         {sections(created("sub/.gitignore", "*.txt"), created("sub/new.txt", "x")), "path.ignored"},
		"no longer tracked in effect":  {sections(created("sub/.gitignore", "*.txt"), edited("loose.txt", "one", "two")), ""},
		"loose, and ignored by it":     {sections(created("sub/.gitignore", "loose"), edited("sub/loose", "one", "two")), "path.ignored"},
		"no longer ignored, by it":     {sections(without(".gitignore", "*.log"), created("new.log", "x")), ""},
		"through a link that it takes": {sections("diff --git a/link b/link\ndeleted file mode 120000\n--- a/link\n+++ /dev/null\n@@ -1 +0,0 @@\n-a.txt\n\\ No newline at end of file\n", created("link/new.log", "x")), "path.ignored"},
		"a rename":                     {[]byte("diff --git a/a.txt b/a.log\nsimilarity index 100%\nrename from a.txt\nrename to a.log\n"), "path.ignored"},
		"a copy":                       {[]byte("diff --git a/a.txt b/a.log\nsimilarity index 100%\ncopy from a.txt\ncopy to a.log\n"), "path.ignored"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			git(t, root, "init", "-q")
			put(t, root, ".gitignore", []byte("*.log\nbuild/\n"))
			for _, f := range []string{"a.txt", "kept.log", "away.log"} {
				put(t, root, f, []byte("one\n"))
			}
			must(t, os.Symlink("a.txt", filepath.Join(root, "link")))
			git(t, root, "add", "-Af")
			git(t, root, "commit", "-qm", "first")
			must(t, os.Remove(filepath.Join(root, "away.log")))
			put(t, root, "loose.txt", []byte("one\n"))
			put(t, root, "sub/loose", []byte("one\n"))
			s := serve(t)
			in, err := s.Inspect(t.Context(), root, c.patch)
			must(t, err)
			code := ""
			if in.Refused != nil {
				code = in.Refused.Code
			}
			if code != c.code {
				t.Fatalf("%q, want %q: %v", code, c.code, in.Refused)
			}
			if code != "" {
				return
			}
			planned, err := s.Tree(t.Context(), root, c.patch)
			must(t, err)
			_, err = s.apply(t, root, c.patch)
			must(t, err)
			ws, err := s.Workspace(t.Context(), root)
			must(t, err)
			if after, err := ws.Candidate(t.Context(), nil); err != nil || after.ID != planned {
				t.Errorf("the tree is %s, planned was %s: %v", after.ID, planned, err)
			}
		})
	}
}
