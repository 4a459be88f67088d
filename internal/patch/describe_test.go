package patch_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"roundtable/internal/patch"
)

func refusal(t *testing.T, err error) *patch.Refusal {
	t.Helper()
	var r *patch.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("not a refusal: %v", err)
	}
	return r
}

// everything is a patch of every operation.
const everything = `diff --git a/bin b/bin
index 36c8c4d0a8e1fdb5f5ffa5f09ed65ac2ec4b1b8a..a1ebbe8a0c1fd8d0e8fe4c7d9b3f4f5f0e1c2a3b 100644
GIT binary patch
literal 0
HcmV?d00001

diff --git a/c b/d
similarity index 90%
copy from c
copy to d
--- a/c
+++ b/d
@@ -1 +1,2 @@ func x()
 c
+d
diff --git a/gone b/gone
deleted file mode 100644
--- a/gone
+++ /dev/null
@@ -1,2 +0,0 @@
-1
-2
diff --git a/kind b/kind
deleted file mode 100644
--- a/kind
+++ /dev/null
@@ -1 +0,0 @@
-1
diff --git a/kind b/kind
new file mode 120000
--- /dev/null
+++ b/kind
@@ -0,0 +1 @@
+c
\ No newline at end of file
diff --git a/run b/run
old mode 100644
new mode 100755
diff --git "a/\303\244" b/x y
similarity index 100%
rename from "\303\244"
rename to x y
`

func TestFiles(t *testing.T) {
	p, err := patch.Parse([]byte(everything), patch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, f := range p.Files() {
		got = append(got, fmt.Sprintf("%d: %s %q %q %s %s binary=%t +%d -%d hunks=%d", f.Line, f.Op, f.OldPath, f.NewPath, f.OldMode, f.NewMode, f.Binary, f.Added, f.Removed, len(f.Hunks)))
	}
	want := []string{
		`1: modify "bin" "bin" 100644 100644 binary=true +0 -0 hunks=0`,
		`7: copy "c" "d"   binary=false +1 -0 hunks=1`,
		`16: delete "gone" "" 100644  binary=false +0 -2 hunks=1`,
		`23: type "kind" "kind" 100644 120000 binary=false +1 -1 hunks=2`,
		`36: mode "run" "run" 100644 100755 binary=false +0 -0 hunks=0`,
		`39: rename "ä" "x y"   binary=false +0 -0 hunks=0`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"bin", "d", "gone", "kind", "run", "x y", "ä"}, p.Touched()); d != "" {
		t.Error(d)
	}
	if n, a, r := p.Counts(); n != 6 || a != 2 || r != 3 {
		t.Errorf("counts are %d %d %d", n, a, r)
	}
	h := p.Files()[1].Hunks[0]
	var body []string
	for l := range h.Lines() {
		body = append(body, string(l.Op)+string(l.Text))
	}
	if h.Section != "func x()" || h.OldLines != 1 || h.NewLines != 2 || !slices.Equal(body, []string{" c", "+d"}) {
		t.Errorf("hunk is %+v %q", h, body)
	}
}

// TestOffsetsShow: lines of files, offsets and changed lines are those of the
// files as they are, not as the patch states them.
func TestOffsetsShow(t *testing.T) {
	tree := probeTree("k=0;0;a;b;c;d;e;f;")
	res, err := apply([]byte("--- a/k\n+++ b/k\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B2\n c\n@@ -7,2 +9,1 @@\n e\n-f\n"), patch.Options{}, tree)
	if err != nil {
		t.Fatal(err)
	}
	f := res.Files[0]
	want := []patch.Placed{{Hunk: 0, OldStart: 3, NewStart: 3, Offset: 2}, {Hunk: 1, OldStart: 7, NewStart: 8}}
	if d := cmp.Diff(want, f.Placed); d != "" {
		t.Error(d)
	}
	removed, added := f.ChangedLines()
	if d := cmp.Diff([][]patch.Span{{{Start: 4, End: 4}, {Start: 8, End: 8}}, {{Start: 4, End: 5}}}, [][]patch.Span{removed, added}); d != "" {
		t.Error(d)
	}
	if len(res.Notes) != 1 || res.Notes[0].String() != "offset +2" || res.Notes[0].Line != 3 {
		t.Errorf("notes are %v", res.Notes)
	}
}

func TestFolders(t *testing.T) {
	tree := probeTree("a/b/c=1; a/keep/ x/y/z=1;")
	res, err := apply([]byte("diff --git a/a/b/c b/n/m/c\nsimilarity index 100%\nrename from a/b/c\nrename to n/m/c\ndiff --git a/x/y/z b/x\nsimilarity index 100%\nrename from x/y/z\nrename to x\n"), patch.Options{}, tree)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"n", "n/m"}, res.MakeDirs); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"x/y", "x", "a/b"}, res.RemoveDirs); d != "" {
		t.Error(d)
	}
}

// TestSuggestions: what is offered is what was meant, and parses.
func TestSuggestions(t *testing.T) {
	good := "diff --git a/k b/k\n--- a/k\n+++ b/k\n@@ -1,2 +1,2 @@ x\n a\n-b\n+c\ndiff --git a/l b/l\n--- a/l\n+++ b/l\n@@ -1 +1 @@\n-1\n+2\n"
	for name, bad := range map[string]string{
		"cut newline":    good[:len(good)-1],
		"counts":         strings.ReplaceAll(good, "-1,2 +1,2", "-1,9 +1,7"),
		"counts, both":   strings.ReplaceAll(strings.ReplaceAll(good, "-1,2 +1,2", "-1 +1"), "-1 +1 @@\n-1", "-1,3 +1,3 @@\n-1"),
		"fence":          "Here:\n```diff\n" + good + "```\nbye\n",
		"count too low":  strings.ReplaceAll(good, "-1,2 +1,2", "-1,1 +1,1"),
		"mail, CRLF all": "",
	} {
		if bad == "" {
			bad = strings.ReplaceAll(strings.ReplaceAll(good, "-1,2 +1,2", "-1,9 +1,7"), "\n", "\r\n")
			good := strings.ReplaceAll(good, "\n", "\r\n")
			if _, err := patch.Parse([]byte(bad), patch.Options{}); string(refusal(t, err).Suggestion) != good {
				t.Errorf("%s: %v: offers %q", name, err, refusal(t, err).Suggestion)
			}
			continue
		}
		_, err := patch.Parse([]byte(bad), patch.Options{})
		if r := refusal(t, err); string(r.Suggestion) != good {
			t.Errorf("%s: %v: offers %q", name, err, r.Suggestion)
		}
	}
	for _, bad := range []string{good[:strings.Index(good, "-b")+1], "```\n" + good + "```\n```\n" + good + "```\n"} {
		if _, err := patch.Parse([]byte(bad), patch.Options{}); refusal(t, err).Suggestion != nil {
			t.Errorf("a guess is offered: %q", refusal(t, err).Suggestion)
		}
	}
}

func TestPartlyApplied(t *testing.T) {
	one := func(name string) string {
		return fmt.Sprintf("--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-%[1]s\n+%[2]s\n", name, strings.ToUpper(name))
	}
	_, err := apply([]byte(one("a")+one("b")+one("c")), patch.Options{}, probeTree("a=A; b=b; c=x;"))
	r := refusal(t, err)
	want := []patch.PathState{{Path: "a", State: patch.InTree}, {Path: "b", State: patch.Applies}, {Path: "c", State: patch.Conflicts}}
	if d := cmp.Diff(want, r.States); d != "" || r.Class != patch.PartlyApplied || len(r.All) != 3 {
		t.Errorf("%v, %d reasons\n%s", r, len(r.All), d)
	}
}

// mixed is a tree whose attributes differ by path.
type mixed struct {
	*patch.MapTree
	of map[string]patch.Conversion
}

func (m mixed) Conversion(p string) (patch.Conversion, error) { return m.of[p], nil }

func TestAttributes(t *testing.T) {
	files := probeTree("n=x; one=x l->w")
	files.Put("w", "100644", []byte("a\r\nb\r\n"))
	tree := mixed{files, map[string]patch.Conversion{"w": patch.CRLFConversion, "new": patch.CRLFConversion, "f": patch.FilterAttr, "n": patch.CRLFConversion}}
	res, err := apply([]byte("--- a/w\n+++ b/w\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"+newFile("new", "100644", "@@ -0,0 +1 @@\n+x\n")), patch.Options{}, tree)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range res.Changes {
		if got, want := string(c.Content), map[string]string{"w": "a\r\nB\r\n", "new": "x\r\n"}[c.Path]; got != want {
			t.Errorf("%s is %q, want %q", c.Path, got, want)
		}
	}
	for _, p := range []string{"one", "l"} {
		tree.of[p], tree.of[p+"2"] = patch.CRLFConversion, patch.CRLFConversion
		if _, err := apply(fmt.Appendf(nil, "diff --git a/%[1]s b/%[1]s2\nsimilarity index 100%%\nrename from %[1]s\nrename to %[1]s2\n", p), patch.Options{}, tree); err != nil {
			t.Error(err)
		}
	}
	_, err = apply([]byte(newFile("f", "100644", "")), patch.Options{}, tree)
	if r := refusal(t, err); r.Class != patch.AttrFilter || r.Path != "f" {
		t.Error(r)
	}
	_, err = apply([]byte("--- a/n\n+++ b/n\n@@ -1 +1 @@\n-x\n+y\n"), patch.Options{}, tree)
	if r := refusal(t, err); r.Class != patch.EOLMismatch {
		t.Error(r)
	}
}

func TestShow(t *testing.T) {
	for in, want := range map[string]string{
		"plain name": "plain name", "ünï": "ünï", "a\x1b[2Kb": `"a\033[2Kb"`, "caf\xe9": `"caf\351"`, "a\u202eb": `"a\342\200\256b"`,
		`q"`: `"q\""`, "\u200b": `"\342\200\213"`, "\u00a0": `"\302\240"`,
	} {
		if got := patch.Show(in); got != want {
			t.Errorf("%q shows as %s, want %s", in, got, want)
		}
	}
}

// broken is a tree that cannot be read.
type broken struct{ patch.Tree }

var errBroken = errors.New("disk on fire")

func (broken) Read(string) ([]byte, error) { return nil, errBroken }

func TestUnreadable(t *testing.T) {
	var r *patch.Refusal
	_, err := apply([]byte(kMod), patch.Options{}, broken{probeTree("k=k;")})
	if !errors.Is(err, errBroken) || errors.As(err, &r) {
		t.Errorf("got %v", err)
	}
}
