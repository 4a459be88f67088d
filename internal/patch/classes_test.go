package patch_test

import (
	"errors"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// A probe is a small patch against a small tree.
type probe struct {
	name  string
	tree  string // "path=content", separated by blanks; "path->target", "path/" and "path|" for links, folders, FIFOs
	patch string
	o     patch.Options
	class patch.Class // "" where it applies
	hint  patch.Hint
	line  int
}

const (
	kMod  = "--- a/k\n+++ b/k\n@@ -1 +1 @@\n-k\n+K\n"
	kGit  = "diff --git a/k b/k\n" + kMod
	oid   = "30a0b2865f0ea59b0f8fe0bf9a4ac1ad4ea4a2a6"
	zeros = "0000000000000000000000000000000000000000"
)

func newFile(path, mode, body string) string {
	head := "diff --git a/" + path + " b/" + path + "\nnew file mode " + mode + "\n"
	if body != "" {
		head += "--- /dev/null\n+++ b/" + path + "\n"
	}
	return head + body
}

func link(path, target string) string {
	return newFile(path, "120000", "@@ -0,0 +1 @@\n+"+target+"\n\\ No newline at end of file\n")
}

func probeTree(spec string) *patch.MapTree {
	m := patch.NewMapTree()
	for _, e := range strings.Fields(spec) {
		if p, target, ok := strings.Cut(e, "->"); ok {
			m.Put(p, "120000", []byte(target))
		} else if p, data, ok := strings.Cut(e, "="); ok {
			m.Put(p, "100644", []byte(strings.ReplaceAll(data, ";", "\n")))
		} else if strings.HasSuffix(e, "/") {
			m.PutDir(strings.TrimSuffix(e, "/"))
		} else {
			m.PutSpecial(strings.TrimSuffix(e, "|"))
		}
	}
	return m
}

func probes() []probe {
	strip := func(n int) patch.Options { return patch.Options{Strip: &n} }
	return append([]probe{
		{"empty", "", "", patch.Options{}, patch.Empty, "", 0},
		{"patch too large", "k=k;", kMod, patch.Options{MaxPatchBytes: 10}, patch.LimitPatchBytes, "", 0},
		{"files too many", "k=k;", kGit + newFile("x", "100644", ""), patch.Options{MaxFiles: 1}, patch.LimitFiles, "", 7},
		{"file too large before", "k=kkkkkkkkkkkk;k;", kMod, patch.Options{MaxFileBytes: 10}, patch.LimitFileBytes, "", 1},
		{"file too large after", "k=k;", "--- a/k\n+++ b/k\n@@ -1 +1 @@\n-k\n+KKKKKKKKKKKKK\n", patch.Options{MaxFileBytes: 10}, patch.LimitFileBytes, "", 3},
		{"all files too large", "k=k;", kMod, patch.Options{MaxTotalBytes: 3}, patch.LimitFileBytes, "", 1},
		{"blank line first", "k=k;", "\n" + kGit, patch.Options{}, patch.UnaccountedText, "", 1},
		{"blank line between", "k=k;", kGit + "\n" + newFile("x", "100644", "@@ -0,0 +1 @@\n+x\n"), patch.Options{}, patch.UnaccountedText, "", 8},
		{"blank lines last", "k=k;", kGit + "\n\n", patch.Options{}, "", "", 0},
		{"signature", "k=k;", kGit + "-- \n2.39.5\n\n", patch.Options{}, "", "", 0},
		{"long signature", "k=k;", kGit + "-- \n2.39.5\nmore\nand more\n", patch.Options{}, patch.UnaccountedText, "", 10},
		{"Index: line", "k=k;", "Index: k\n" + kMod, patch.Options{}, patch.UnaccountedText, "", 1},
		{"Only in", "k=k;", kMod + "Only in b: x\n", patch.Options{}, patch.UnaccountedText, "", 6},
		{"count too small", "k=k;", kMod + "+L\n", patch.Options{}, patch.UnaccountedText, "", 6},
		{"diff -ruN", "k=k;", "diff -ruN a/k b/k\n" + kMod, patch.Options{}, "", "", 0},
		{"diff -ruN of others", "k=k;", "diff -ruN a/k b/m\n" + kMod, patch.Options{}, patch.InconsistentNames, "", 1},
		{"two git show", "k=k;", "commit " + oid + "\n\n" + kGit + "commit " + oid + "\n", patch.Options{}, patch.MultiplePatches, "", 9},
		{"combined after good", "k=k;", kGit + "diff --cc x\nindex 1,2..3\n", patch.Options{}, patch.CombinedDiff, "", 7},
		{"combined hunk", "k=k;", "--- a/k\n+++ b/k\n@@@ -1 -1 +1 @@@\n--k\n++K\n", patch.Options{}, patch.CombinedDiff, "", 3},
		{"diff in message", "k=k; m=m;", "From: A\nSubject: x\n\n" + kMod + "---\n" + strings.ReplaceAll(kGit, "k", "m"), patch.Options{}, patch.DiffInMessage, "", 4},
		{"mail without dashes", "k=k;", "From: A\nSubject: x\n\n" + kGit, patch.Options{}, "", "", 0},
		{"mail without diff", "k=k;", "From: A\nSubject: x\n\n---\n", patch.Options{}, patch.NotADiff, "", 1},
		{"diffstat", "k=k;", "From: A\n---\n k | 2 +-\n 1 file changed, 2 insertions(+), 1 deletion(-)\n\n" + kGit, patch.Options{}, patch.DiffstatMismatch, "", 4},
		{"codex", "k=k;", "*** Begin Patch\n*** Update File: k\n", patch.Options{}, patch.FormatUnsupported, patch.HintCodex, 1},
		{"BOM", "k=k;", "\ufeff" + kGit, patch.Options{}, patch.NotADiff, patch.HintBOM, 1},
		{"names and no hunk", "k=k;", "--- a/k\n+++ b/k\n", patch.Options{}, patch.MalformedHunk, "", 1},
		{"git names and no hunk", "k=k;", "diff --git a/k b/k\n--- a/k\n+++ b/k\n", patch.Options{}, patch.MalformedHunk, "", 2},
		{"no changed line", "k=k;", "--- a/k\n+++ b/k\n@@ -1 +1 @@\n k\n", patch.Options{}, patch.MalformedHunk, "", 3},
		{"nothing without newline", "k=k;", "--- a/k\n+++ b/k\n@@ -1 +1,2 @@\n k\n+\n\\ No newline at end of file\n", patch.Options{}, patch.MalformedHunk, "", 6},
		{"line zero", "k=k;", "--- a/k\n+++ b/k\n@@ -0 +1 @@\n-k\n+K\n", patch.Options{}, patch.MalformedHunk, "", 3},
		{"hunks backwards", "k=a;b;c;", "--- a/k\n+++ b/k\n@@ -3 +3 @@\n-c\n+C\n@@ -1 +1 @@\n-a\n+A\n", patch.Options{}, patch.HunkOrder, "", 6},
		{"line of another kind", "k=k;", "--- a/k\n+++ b/k\n@@ -1 +1,2 @@\n-k\n*K\n", patch.Options{}, patch.HunkCountMismatch, "", 3},
		{"gitlink created", "", newFile("s", "160000", "@@ -0,0 +1 @@\n+Subproject commit "+oid+"\n"), patch.Options{}, patch.Gitlink, "", 1},
	}, append(headerProbes(strip), append(pathProbes(), treeProbes()...)...)...)
}

func headerProbes(strip func(int) patch.Options) []probe {
	git := func(lines ...string) string { return "diff --git a/k b/k\n" + strings.Join(lines, "\n") + "\n" }
	bin := "GIT binary patch\nliteral 0\nHcmV?d00001\n\n"
	return []probe{
		{"mode twice", "k=k;", git("old mode 100644", "old mode 100644"), patch.Options{}, patch.MalformedHeader, "", 3},
		{"new and deleted", "k=k;", git("new file mode 100644", "deleted file mode 100644"), patch.Options{}, patch.MalformedHeader, "", 1},
		{"half a mode change", "k=k;", git("new mode 100755"), patch.Options{}, patch.MalformedHeader, "", 1},
		{"equal modes", "k=k;", git("old mode 100644", "new mode 100644"), patch.Options{}, patch.MalformedHeader, "", 1},
		{"rename from alone", "k=k;", git("rename from k"), patch.Options{}, patch.MalformedHeader, "", 1},
		{"rename to a copy", "k=k;", git("rename from k", "copy to l"), patch.Options{}, patch.MalformedHeader, "", 3},
		{"rename onto itself", "k=k;", git("rename from k", "rename to k"), patch.Options{}, patch.MalformedHeader, "", 1},
		{"similarity of nothing", "k=k;", git("similarity index 90%") + kMod, patch.Options{}, patch.MalformedHeader, "", 1},
		{"similarity no number", "k=k;", git("similarity index all") + kMod, patch.Options{}, patch.MalformedHeader, "", 2},
		{"100% and a hunk", "k=k;", "diff --git a/k b/l\nsimilarity index 100%\nrename from k\nrename to l\n--- a/k\n+++ b/l\n@@ -1 +1 @@\n-k\n+K\n", patch.Options{}, patch.MalformedHeader, "", 1},
		{"index without ids", "k=k;", git("index xyz..123") + kMod, patch.Options{}, patch.MalformedHeader, "", 2},
		{"mode too short", "k=k;", git("old mode 644", "new mode 755"), patch.Options{}, patch.BadMode, "", 2},
		{"old modes of old", "k=k;", git("old mode 100664", "new mode 100755"), patch.Options{}, "", "", 0},
		{"old mode as new", "k=k;", git("old mode 100644", "new mode 100664"), patch.Options{}, patch.BadMode, "", 3},
		{"escape of Go", "k=k;", strings.ReplaceAll(kGit, "a/k b/k", `"a/\x6b" b/k`), patch.Options{}, patch.BadQuoting, "", 1},
		{"quote open", "k=k;", "--- \"a/k\n+++ b/k\n@@ -1 +1 @@\n-k\n+K\n", patch.Options{}, patch.BadQuoting, "", 1},
		{"octal too large", "k=k;", "--- \"a/\\400\"\n+++ b/k\n@@ -1 +1 @@\n-k\n+K\n", patch.Options{}, patch.BadQuoting, "", 1},
		{"two readings", "", "diff --git a/x b/x/y b/x b/x/y\nnew file mode 100644\n", patch.Options{}, "", "", 0},
		{"several readings", "k=k;", "diff --git a/x b/y c/z\nold mode 100644\nnew mode 100755\n", patch.Options{}, patch.AmbiguousName, "", 1},
		{"no names", "k=k;", "diff --git \nold mode 100644\nnew mode 100755\n", patch.Options{}, patch.InconsistentNames, "", 1},
		{"no reading", "k=k;", "diff --git a/x b/y\nold mode 100644\nnew mode 100755\n", patch.Options{}, patch.InconsistentNames, "", 1},
		{"two files", "k=k;", "--- a/k\n+++ b/l\n@@ -1 +1 @@\n-k\n+K\n", patch.Options{}, patch.InconsistentNames, "", 1},
		{"null on both sides", "k=k;", "--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-k\n+K\n", patch.Options{}, patch.InconsistentNames, "", 1},
		{"null on the wrong side", "k=k;", git("deleted file mode 100644", "--- /dev/null", "+++ b/k", "@@ -0,0 +1 @@", "+K"), patch.Options{}, patch.InconsistentNames, "", 1},
		{"deletion with new lines", "k=k;", git("deleted file mode 100644", "--- a/k", "+++ /dev/null", "@@ -1 +1 @@", "-k", "+K"), patch.Options{}, patch.InconsistentNames, "", 1},
		{"strip too much", "k=k;", kMod, strip(3), patch.StripMismatch, "", 1},
		{"strip 2", "k=k;", "--- x/a/k\n+++ x/b/k\n@@ -1 +1 @@\n-k\n+K\n", strip(2), "", "", 0},
		{"strip 2, rename without prefix", "k=k;", "diff --git x/a/k x/b/l\nsimilarity index 100%\nrename from k\nrename to l\n", strip(2), "", "", 0},
		{"strip 2, rename in a folder", "k=k;", "diff --git a/x/k b/x/l\nsimilarity index 100%\nrename from x/k\nrename to x/l\n", strip(2), "", "", 0},
		{"no prefix, no folder", "k=k;", "--- k\n+++ k\n@@ -1 +1 @@\n-k\n+K\n", patch.Options{}, "", "", 0},
		{"binary stub of diff -r", "k=k;", kMod + "Binary files a/x and b/x differ\n", patch.Options{}, patch.BinaryWithoutData, "", 6},
		{"binary without ids", "k=k;", git(bin[:len(bin)-1]), patch.Options{}, patch.BinaryWithoutOID, "", 1},
		{"binary cut", "k=k;", git("index "+oid+".."+zeros, "GIT binary patch", "literal 0", "HcmV?d00001"), patch.Options{}, patch.Truncated, "", 5},
		{"binary of another kind", "k=k;", git("index "+oid+".."+zeros, "GIT binary patch", "figurative 0"), patch.Options{}, patch.BinaryCorrupt, "", 4},
	}
}

func pathProbes() []probe {
	add := func(name, path string, class patch.Class) probe {
		return probe{name, "", "--- /dev/null\n+++ " + patch.Quote("b/"+path) + "\n@@ -0,0 +1 @@\n+x\n", patch.Options{}, class, "", 0}
	}
	all := []probe{
		add("drive letter", "c:/x", patch.PathAbsolute),
		add("parent", "x/..", patch.PathTraversal),
		add("parent by backslash", `x\..\y`, patch.PathTraversal),
		add("upper case .GIT", "x/.GiT/config", patch.PathDotgit),
		add(".git with ignorable", ".g\u200cit/config", patch.PathDotgit),
		add(".git with blank", ".git /config", patch.PathDotgit),
		add("state directory", ".RoundTable/x", patch.PathReserved),
		add("state directory, ignorable", ".round\u200ctable/x", patch.PathReserved),
		add("DEL", "a\x7fb", patch.PathControlChar),
		add("TAB", "a\tb", patch.PathControlChar),
		add("slash last", "a/", patch.PathNotCanonical),
		add("long component", strings.Repeat("x", 256), patch.PathTooLong),
		add("zero width", "a\u200bb", patch.PathConfusable),
		add("bidi", "a\u202eb", patch.PathConfusable),
		add("device", "x/CON.txt", patch.PathNonportable),
		add("device with superscript", "com¹", patch.PathNonportable),
		add("blank last", "x ", patch.PathNonportable),
		add(".gitignore", ".gitignore", ""),
		add("..x", "..x/...y", ""),
		{"NUL", "", newFile("x", "100644", "") + "--- /dev/null\n+++ \"b/a\\000\"\n@@ -0,0 +1 @@\n+x\n", patch.Options{}, patch.InconsistentNames, "", 1},
		{"not UTF-8", "", "--- /dev/null\n+++ b/caf\xe9\n@@ -0,0 +1 @@\n+x\n", patch.Options{UTF8Names: true}, patch.PathNotUTF8, "", 1},
		{"device allowed", "", "--- /dev/null\n+++ b/aux\n@@ -0,0 +1 @@\n+x\n", patch.Options{AnyNames: true}, "", "", 0},
		{"Git folder elsewhere", "", "--- /dev/null\n+++ b/meta/config\n@@ -0,0 +1 @@\n+x\n", patch.Options{GitDir: "meta"}, patch.PathDotgit, "", 1},
	}
	return all
}

func treeProbes() []probe {
	rename := func(a, b string) string {
		return "diff --git a/" + a + " b/" + b + "\nsimilarity index 100%\nrename from " + a + "\nrename to " + b + "\n"
	}
	return []probe{
		{"FIFO", "k|", kMod, patch.Options{}, patch.SpecialFile, "", 1},
		{"type change without prefix", "b/k=", "diff --git b/k b/k\ndeleted file mode 100644\ndiff --git b/k b/k\nnew file mode 120000\n--- /dev/null\n+++ b/k\n@@ -0,0 +1 @@\n+x\n\\ No newline at end of file\n", patch.Options{}, "", "", 0},
		{"create on FIFO", "k|", newFile("k", "100644", ""), patch.Options{}, patch.SpecialFile, "", 1},
		{"create on folder", "k/x=1;", newFile("k", "100644", ""), patch.Options{}, patch.DirConflict, "", 1},
		{"modify folder", "k/x=1;", kMod, patch.Options{}, patch.TypeMismatch, "", 1},
		{"create on empty folder", "k/", newFile("k", "100644", ""), patch.Options{}, patch.DirConflict, "", 1},
		{"in a nested repository", "sub|", newFile("sub/x", "100644", ""), patch.Options{}, patch.DirConflict, "", 1},
		{"case collision", "Read=1;", newFile("read", "100644", ""), patch.Options{}, patch.CaseCollision, "", 1},
		{"case collision of folders", "Dir/x=1;", newFile("dir/y", "100644", ""), patch.Options{}, patch.CaseCollision, "", 1},
		{"case collision within", "", newFile("a/X", "100644", "") + newFile("A/y", "100644", ""), patch.Options{}, patch.CaseCollision, "", 1},
		{"rename of a folder's case", "Dir/x=1;", rename("Dir/x", "dir/x"), patch.Options{}, "", "", 0},
		{"collision beyond ASCII", "É=1;", newFile("é", "100644", ""), patch.Options{}, patch.CaseCollision, "", 1},
		{"link to .git", "", link("l", ".git/hooks"), patch.Options{}, patch.SymlinkDotgit, "", 5},
		{"link to absolute", "", link("l", "/etc/passwd"), patch.Options{}, patch.SymlinkEscape, "", 5},
		{"link by absolute link", "d->/etc", link("l", "d/passwd"), patch.Options{}, patch.SymlinkEscape, "", 5},
		{"link to itself", "", link("l", "l"), patch.Options{}, patch.SymlinkBadTarget, "", 5},
		{"link to state", "", link("l", ".roundtable/x"), patch.Options{}, patch.PathReserved, "", 5},
		{"empty link", "", newFile("l", "120000", ""), patch.Options{}, patch.SymlinkBadTarget, "", 1},
		{"links forbidden", "k=k;", link("l", "k"), patch.Options{NoSymlinks: true}, patch.SymlinkBadTarget, "", 5},
		{"rename of a link out", "d/l->../x", rename("d/l", "l"), patch.Options{}, patch.SymlinkEscape, "", 1},
		{"rename of a link within", "d/l->../x", rename("d/l", "e/l"), patch.Options{}, "", "", 0},
		{"rename link, write beneath", "l->real real/x=1;", rename("l", "d") + newFile("d/y", "100644", ""), patch.Options{}, patch.SymlinkParent, "", 5},
		{"delete link, write beneath", "d->real", "diff --git a/d b/d\ndeleted file mode 120000\n--- a/d\n+++ /dev/null\n@@ -1 +0,0 @@\n-real\n\\ No newline at end of file\n" + newFile("d/y", "100644", ""), patch.Options{}, "", "", 0},
		{".gitmodules renamed from a link", "l->k k=k;", rename("l", ".gitmodules"), patch.Options{}, patch.PathDotgit, "", 1},
		{"case variant", "K.txt=k;", strings.ReplaceAll(kMod, "/k", "/k.txt"), patch.Options{}, patch.MissingFile, patch.HintCase, 1},
		{"wrong old mode", "k=", "diff --git a/k b/k\ndeleted file mode 100755\n", patch.Options{}, patch.ModeMismatch, "", 1},
		{"mode changed already", "k=k;", "diff --git a/k b/k\nold mode 100755\nnew mode 100644\n", patch.Options{}, patch.AlreadyApplied, "", 1},
		{"kinds in one section", "k=k;", "diff --git a/k b/k\nold mode 100644\nnew mode 120000\n", patch.Options{}, patch.TypeMismatch, "", 1},
		{"offset refused", "k=x;k;y;", "--- a/k\n+++ b/k\n@@ -1,2 +1,2 @@\n-k\n+K\n y\n", patch.Options{NoOffsets: true}, patch.OffsetRefused, "", 3},
		{"no offset without context", "k=x;k;", kMod, patch.Options{}, patch.ContextMismatch, "", 3},
		{"cut hunk, only place", "k=x;k;y;", "--- a/k\n+++ b/k\n@@ -1,2 +1,2 @@\n x\n-k\n+K\n", patch.Options{}, "", "", 0},
		{"cut hunk, two places", "k=x;k;y;x;k;", "--- a/k\n+++ b/k\n@@ -1,2 +1,2 @@\n x\n-k\n+K\n", patch.Options{}, patch.Ambiguous, "", 3},
		{"lines that contradict, only place", "k=x;k;y;", "--- a/k\n+++ b/k\n@@ -1,3 +2,3 @@\n x\n-k\n+K\n y\n", patch.Options{}, "", "", 0},
		{"lines that contradict, two places", "k=x;k;y;x;k;y;", "--- a/k\n+++ b/k\n@@ -1,3 +4,3 @@\n x\n-k\n+K\n y\n", patch.Options{}, patch.Ambiguous, "", 3},
		{"lines that contradict, no context", "k=k;k;", "--- a/k\n+++ b/k\n@@ -1 +2 @@\n-k\n+K\n", patch.Options{}, patch.Ambiguous, "", 3},
		{"line without LF in the middle", "k=a", "--- a/k\n+++ b/k\n@@ -1,0 +2 @@\n+b\n", patch.Options{}, patch.ContextMismatch, "", 3},
		{"appended again", "k=a;b;end;", "--- a/k\n+++ b/k\n@@ -1,2 +1,3 @@\n a\n b\n+end\n", patch.Options{}, patch.AlreadyApplied, "", 1},
		{"put in front again", "k=top;a;b;", "--- a/k\n+++ b/k\n@@ -1,2 +1,3 @@\n+top\n a\n b\n", patch.Options{}, patch.AlreadyApplied, "", 1},
		{"deleted already", "m=m;", "--- a/k\n+++ /dev/null\n@@ -1 +0,0 @@\n-k\n", patch.Options{}, patch.AlreadyApplied, "", 1},
		{"renamed already", "l=k;", rename("k", "l"), patch.Options{}, patch.AlreadyApplied, "", 1},
		{"created already", "x=x;", newFile("x", "100644", "@@ -0,0 +1 @@\n+x\n"), patch.Options{}, patch.AlreadyApplied, "", 1},
		{"hidden control", "k=k;", "--- a/k\n+++ b/k\n@@ -1 +1 @@\n-k\n+a\x1b[2Kb\n", patch.Options{StrictText: true}, patch.ReviewHiddenControl, "", 5},
		{"invisible", "k=k;", "--- a/k\n+++ b/k\n@@ -1 +1 @@\n-k\n+a\u200bb\n", patch.Options{StrictText: true}, patch.ReviewHiddenControl, "", 5},
		{"CR within", "k=k;", "--- a/k\n+++ b/k\n@@ -1 +1 @@\n-k\n+a\rb\n", patch.Options{StrictText: true}, patch.ReviewHiddenControl, "", 5},
		{"bidi in context", "k=\u202ex;k;", "--- a/k\n+++ b/k\n@@ -1,2 +1,2 @@\n \u202ex\n-k\n+K\n", patch.Options{StrictText: true}, "", "", 0},
	}
}

func TestProbes(t *testing.T) {
	for _, p := range probes() {
		t.Run(p.name, func(t *testing.T) {
			_, err := apply([]byte(p.patch), p.o, probeTree(p.tree))
			var r *patch.Refusal
			if err != nil && !errors.As(err, &r) {
				t.Fatal(err)
			}
			switch {
			case r == nil && p.class != "":
				t.Fatalf("applies, want %s", p.class)
			case r != nil && (r.Class != p.class || r.Hint != p.hint || p.line > 0 && r.Line != p.line):
				t.Fatalf("%v [%s], want %q [%s] at line %d", r, r.Hint, p.class, p.hint, p.line)
			}
		})
	}
}

// TestLevel: what the header lines leave open, the tree decides.
func TestLevel(t *testing.T) {
	data := []byte("--- src/k\n+++ src/k\n@@ -1 +1 @@\n-k\n+K\n")
	p, err := patch.Parse(data, patch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, known := p.Level(); known || p.Files() != nil || p.Touched() != nil {
		t.Error("the names are known before the tree was asked")
	}
	for tree, want := range map[string]int{"src/k=k;": 0, "k=k;": 1, "other=1;": 1} {
		q, err := p.Resolve(probeTree(tree))
		if err != nil {
			t.Fatal(err)
		}
		if n, known := q.Level(); !known || n != want || len(q.Files()) != 1 {
			t.Errorf("level %d for %s, want %d", n, tree, want)
		}
	}
	if _, known := p.Level(); known {
		t.Error("Resolve changed the patch it was asked for")
	}
}

// TestEveryClass: each class of the table is answered by some case or probe,
// and none is answered that is not in the table.
func TestEveryClass(t *testing.T) {
	seen := map[patch.Class]bool{patch.AttrFilter: true, patch.NotCheckedOut: true} // TestAttributes; the command's TestPatchSparse
	for _, p := range probes() {
		seen[p.class] = true
	}
	for _, c := range loadCases(t) {
		seen[patch.Class(c.Fields["class"])] = true
	}
	delete(seen, "")
	for _, i := range patch.Classes() {
		if !seen[i.Class] {
			t.Errorf("nothing tests %s", i.Class)
		}
		delete(seen, i.Class)
	}
	for c := range seen {
		t.Errorf("%s is not in the table", c)
	}
}
