package repo_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// TestAttributesAreGits: what is said to be converted is what git writes with
// CR LF into a fresh work tree, and the id of a tree with such a file is git's.
func TestAttributesAreGits(t *testing.T) {
	files := map[string]spec{
		".gitattributes": "100644 *.txt text eol=crlf\n*.auto text=auto eol=crlf\n*.lf text eol=lf\n*.raw -text\n*.bin filter=x\n*.id ident\n",
		"a.txt":          "100644 one\n", "a.auto": "100644 one\n", "nul.auto": "100644 one\x00\n", "a.lf": "100644 one\n",
		"a.raw": "100644 one\n", "a.none": "100644 one\n", "a.bin": "100644 one\n", "a.id": "100644 one\n", "sub/b.txt": "100644 one\ntwo\n",
	}
	root := gitRepo(t, files)
	// A file that is kept with CR LF under text=auto stays as it is.
	write(t, root, "kept.auto", "100644 one\r\n")
	git(t, root, "-c", "core.attributesFile=/dev/null", "update-index", "--add", "--cacheinfo",
		"100644,"+git(t, root, "hash-object", "-w", "--no-filters", "kept.auto")+",kept.auto")
	git(t, root, "commit", "-qm", "kept")
	git(t, root, "rm", "-rq", "--cached", ".")
	git(t, root, "reset", "-q", "--hard")
	git(t, root, "checkout-index", "-af")
	w := open(t, root, repo.Options{})
	tree, err := w.Tree(ctx(t))
	must(t, err)
	var paths []string
	for p := range files {
		paths = append(paths, p)
	}
	paths = append(paths, "kept.auto", "new.auto")
	with, err := w.WithAttributes(ctx(t), tree, paths)
	must(t, err)
	want := map[string]patch.Conversion{"a.txt": patch.CRLFConversion, "a.auto": patch.CRLFOfText, "nul.auto": patch.CRLFOfText, "new.auto": patch.CRLFOfText,
		"sub/b.txt": patch.CRLFConversion, "a.bin": patch.FilterAttr, "a.id": patch.FilterAttr}
	for _, p := range paths {
		got, err := with.(patch.Converter).Conversion(p)
		must(t, err)
		if got != want[p] {
			t.Errorf("%s: %q, want %q", p, got, want[p])
		}
		data, err := os.ReadFile(filepath.Join(root, p))
		if p == "new.auto" || slices.Contains([]string{"a.bin", "a.id", "kept.auto"}, p) {
			continue
		}
		must(t, err)
		if crlf := len(data) > 1 && data[len(data)-2] == '\r'; crlf != (got == patch.CRLFConversion || got == patch.CRLFOfText && !patch.LooksBinary(data)) {
			t.Errorf("%s: git writes %q, and it is said to be %q", p, data, got)
		}
	}
	c, err := w.Candidate(ctx(t), []patch.Change{change("a.txt", "100644 one\r\n", "100644 one\r\ntwo\r\n")})
	must(t, err)
	write(t, root, "a.txt", "100644 one\r\ntwo\r\n")
	git(t, root, "add", "-A", "--", ".", ":!.roundtable")
	if want := git(t, root, "write-tree"); c.ID != want {
		t.Errorf("the tree is %s, git has %s", c.ID, want)
	}
}

// TestScratch: a workspace with a scratch folder is looked at and nothing in it
// changes, not even by its being opened; nor can it be changed by that.
func TestScratch(t *testing.T) {
	for _, root := range []string{gitRepo(t, map[string]spec{"a": "100644 a"}), t.TempDir()} {
		write(t, root, "a", "100644 b")
		before := listing(t, root, true)
		w := open(t, root, repo.Options{Scratch: t.TempDir()})
		changes := []patch.Change{change("a", "100644 b", "100644 c"), change("d/e", "", "100755 f")}
		c, err := w.Candidate(ctx(t), changes)
		must(t, err)
		m, err := w.Materialise(ctx(t), changes, filepath.Join(t.TempDir(), "new"))
		must(t, err)
		if m != c {
			t.Errorf("%v and %v", m, c)
		}
		if _, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: changes}); err == nil {
			t.Error("it was changed")
		}
		if _, err := w.Recover(ctx(t)); err == nil {
			t.Error("it was recovered")
		}
		if after := listing(t, root, true); after != before {
			t.Errorf("the folder is\n%s\nwas\n%s", after, before)
		}
		if _, err := os.Lstat(filepath.Join(root, ".roundtable")); err == nil {
			t.Error("there is a state folder")
		}
	}
}

// TestLinksAreCounted: the tree on disk knows how many names a file has.
func TestLinksAreCounted(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 a")
	must(t, os.Link(filepath.Join(root, "a"), filepath.Join(root, "b")))
	w := open(t, root, repo.Options{})
	tree, err := w.Tree(ctx(t))
	must(t, err)
	for p, want := range map[string]int{"a": 2, "none": 0, "none/x": 0} {
		if n, err := tree.(patch.LinkCounter).Links(p); n != want || err != nil {
			t.Errorf("%s: %d names (%v), want %d", p, n, err, want)
		}
	}
}
