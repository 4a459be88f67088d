package world_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// sections joins patches of one file each, made by hand.
func sections(all ...string) []byte { return []byte(strings.Join(all, "")) }

func created(name, line string) string {
	return "diff --git a/" + name + " b/" + name + "\nnew file mode 100644\n--- /dev/null\n+++ b/" + name + "\n@@ -0,0 +1 @@\n+" + line + "\n"
}

func edited(name, from, to string) string {
	return "diff --git a/" + name + " b/" + name + "\n--- a/" + name + "\n+++ b/" + name + "\n@@ -1 +1 @@\n-" + from + "\n+" + to + "\n"
}

// TestPatchOfAttributes: a patch that changes attributes is applied where what
// it touches is converted the same before and after, with git's tree and git's
// bytes; else it is refused.
func TestPatchOfAttributes(t *testing.T) {
	for name, c := range map[string]struct {
		patch []byte
		code  string
	}{
		"of nothing touched":       {sections(created(".gitattributes", "*.bat eol=crlf"), edited("a.txt", "one", "two")), ""},
		"text of LF":               {sections(created(".gitattributes", "* text=auto"), edited("a.txt", "one", "two")), ""},
		"to CR LF":                 {sections(created(".gitattributes", "*.txt eol=crlf"), edited("a.txt", "one", "two")), "apply.attr_filter"},
		"to CR LF, a new file":     {sections(created(".gitattributes", "*.bat eol=crlf"), created("new.bat", "x")), "apply.attr_filter"},
		"to CR LF, of a folder":    {sections(created("sub/.gitattributes", "* eol=crlf")), "apply.attr_filter"},
		"to CR LF, beside":         {sections(created("sub/.gitattributes", "*.txt eol=crlf"), edited("a.txt", "one", "two")), ""},
		"from CR LF":               {sections(edited("win/.gitattributes", "*.txt eol=crlf", "*.md eol=crlf"), edited("win/w.txt", "one", "two")), "apply.attr_filter"},
		"still CR LF":              {sections(edited("win/.gitattributes", "*.txt eol=crlf", "*.txt text eol=crlf"), edited("win/w.txt", "one", "two")), ""},
		"a filter":                 {sections(created(".gitattributes", "*.txt filter=lfs"), edited("a.txt", "one", "two")), "apply.attr_filter"},
		"a filter there before":    {sections(edited("lfs/big.bin", "one", "two")), "apply.attr_filter"},
		"ident there before":       {sections(edited("lfs/id.c", "one", "two")), "apply.attr_filter"},
		"an encoding there before": {sections(edited("lfs/e.enc", "one", "two")), "apply.attr_filter"},
		"a copy from under a filter": {[]byte("diff --git a/lfs/big.bin b/copy.txt\nsimilarity index 100%\n" +
			"copy from lfs/big.bin\ncopy to copy.txt\n"), "apply.attr_filter"},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			git(t, root, "init", "-q")
			for _, f := range []string{"a.txt", "sub/s.txt", "win/w.txt", "lfs/big.bin", "lfs/id.c"} {
				put(t, root, f, []byte("one\n"))
			}
			put(t, root, "lfs/e.enc", []byte("\xff\xfeo\x00n\x00e\x00\n\x00"))
			put(t, root, "win/.gitattributes", []byte("*.txt eol=crlf\n"))
			put(t, root, "lfs/.gitattributes", []byte("*.bin filter=lfs\n*.c ident\n*.enc working-tree-encoding=UTF-16LE-BOM\n"))
			git(t, root, "add", "-A")
			git(t, root, "commit", "-qm", "first")
			must(t, os.Remove(filepath.Join(root, "win", "w.txt")))
			git(t, root, "checkout", "win/w.txt")
			if b, err := os.ReadFile(filepath.Join(root, "win", "w.txt")); err != nil || !bytes.Equal(b, []byte("one\r\n")) {
				t.Fatalf("%q, %v", b, err)
			}
			if code := (crossed{root: root, patch: c.patch}).compare(t, serve(t)); code != c.code {
				t.Errorf("%q, want %q", code, c.code)
			}
		})
	}
}

// TestChangesOutsideAreSeen: what somebody changes of the configuration, the
// attributes, the ignore files, the index and HEAD counts with the next
// question.
func TestChangesOutsideAreSeen(t *testing.T) {
	root := t.TempDir()
	git(t, root, "init", "-q")
	put(t, root, "a.txt", []byte("one\n"))
	put(t, root, "sub/b.txt", []byte("one\n"))
	git(t, root, "add", "-A")
	git(t, root, "commit", "-qm", "first")
	put(t, root, "new.txt", []byte("one\n"))
	put(t, root, "sub/new.txt", []byte("one\n"))
	s := serve(t)
	code := func(name string) string {
		t.Helper()
		in, err := s.Inspect(t.Context(), root, sections(edited(name, "one", "two")))
		must(t, err)
		if in.Refused != nil {
			return in.Refused.Code
		}
		return ""
	}
	expect := func(what, name, want string) {
		t.Helper()
		for range 2 { // at once, and of what was kept
			if got := code(name); got != want {
				t.Errorf("%s: %s is %q, want %q", what, name, got, want)
			}
		}
	}
	remove := func(name string) { must(t, os.Remove(filepath.Join(root, name))) }
	for _, name := range []string{"a.txt", "sub/b.txt", "new.txt", "sub/new.txt"} {
		expect("nothing said", name, "")
	}

	put(t, root, ".gitignore", []byte("new.txt\n"))
	expect("ignored", "new.txt", "path.ignored")
	expect("ignored", "sub/new.txt", "path.ignored")
	put(t, root, "sub/.gitignore", []byte("!new.txt\n"))
	expect("a nested file", "sub/new.txt", "")
	git(t, root, "add", "-f", "new.txt")
	expect("tracked", "new.txt", "")
	git(t, root, "rm", "-q", "--cached", "new.txt")
	expect("no longer tracked", "new.txt", "path.ignored")
	remove(".gitignore")
	expect("no longer ignored", "new.txt", "")
	put(t, root, ".git/info/exclude", []byte("/new.txt\n/.roundtable/\n"))
	expect("excluded", "new.txt", "path.ignored")
	put(t, root, ".git/info/exclude", []byte("/.roundtable/\n"))
	put(t, root, "ignore", []byte("new.txt\n"))
	git(t, root, "config", "core.excludesFile", filepath.Join(root, "ignore"))
	expect("the configuration's file", "new.txt", "path.ignored")
	git(t, root, "config", "--unset", "core.excludesFile")
	expect("no such file", "new.txt", "")

	put(t, root, ".gitattributes", []byte("a.txt filter=x\n"))
	expect("a filter", "a.txt", "apply.attr_filter")
	expect("a filter of another", "sub/b.txt", "")
	put(t, root, "sub/.gitattributes", []byte("b.txt ident\n"))
	expect("in a folder", "sub/b.txt", "apply.attr_filter")
	remove("sub/.gitattributes")
	expect("no longer", "sub/b.txt", "")
	put(t, root, ".git/info/attributes", []byte("a.txt -filter\nb.txt filter=y\n"))
	expect("the repository's own", "a.txt", "")
	expect("the repository's own", "sub/b.txt", "apply.attr_filter")
	remove(".git/info/attributes")
	git(t, root, "add", ".gitattributes")
	remove(".gitattributes")
	expect("a file that is only in the index", "a.txt", "apply.attr_filter")
	git(t, root, "rm", "-q", "--cached", ".gitattributes")
	expect("nor there", "a.txt", "")
	put(t, root, "attributes", []byte("a.txt filter=x\n"))
	git(t, root, "config", "core.attributesFile", filepath.Join(root, "attributes"))
	expect("the configuration's file", "a.txt", "apply.attr_filter")
	git(t, root, "config", "--unset", "core.attributesFile")
	expect("no such file", "a.txt", "")
	git(t, root, "config", "core.autocrlf", "true")
	expect("line ends", "a.txt", "apply.eol_mismatch")
	put(t, root, "a.txt", []byte("one\r\n"))
	expect("line ends as they are to be", "a.txt", "")
	git(t, root, "config", "--unset", "core.autocrlf")
	expect("no longer", "a.txt", "apply.eol_mismatch")
}

// TestHeadIsSeen: HEAD is what git says it is, wherever it is kept.
func TestHeadIsSeen(t *testing.T) {
	root := t.TempDir()
	git(t, root, "init", "-q")
	put(t, root, "a.txt", []byte("one\n"))
	s := serve(t)
	expect := func(what string) {
		t.Helper()
		want, _ := gitIn(t, root, nil, "rev-parse", "--quiet", "--verify", "HEAD^{commit}")
		for range 3 {
			in, err := s.Inspect(t.Context(), root, sections(edited("a.txt", "one", "two")))
			must(t, err)
			if in.Base.Commit != strings.TrimSpace(want) {
				t.Errorf("%s: %q, git says %q", what, in.Base.Commit, want)
			}
		}
	}
	expect("no commit")
	git(t, root, "add", "-A")
	git(t, root, "commit", "-qm", "first")
	expect("the first")
	git(t, root, "commit", "-q", "--allow-empty", "-m", "second")
	expect("the second")
	git(t, root, "pack-refs", "--all")
	expect("packed")
	git(t, root, "commit", "-q", "--allow-empty", "-m", "third")
	expect("a branch that is packed and is not")
	git(t, root, "checkout", "-q", "-b", "side/way", "HEAD~1")
	expect("another branch")
	git(t, root, "pack-refs", "--all")
	expect("packed again")
	git(t, root, "checkout", "-q", "--detach", "HEAD~1")
	expect("detached")
	git(t, root, "checkout", "-q", "--orphan", "none")
	expect("no commit on it")
	git(t, root, "symbolic-ref", "HEAD", "refs/heads/main")
	git(t, root, "symbolic-ref", "refs/heads/again", "refs/heads/side/way")
	git(t, root, "symbolic-ref", "HEAD", "refs/heads/again")
	expect("a branch that stands for another")
	linked := filepath.Join(t.TempDir(), "linked")
	git(t, root, "worktree", "add", "-q", linked, "main")
	root = linked
	expect("a linked work tree")
	git(t, root, "commit", "-q", "--allow-empty", "-m", "there")
	expect("a commit there")
}
