package patch_test

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"roundtable/internal/patch"
)

// TestEdits: edits are in order and apart, and what they leave out is the same
// before and after, line for line: so each stands exactly where it belongs.
func TestEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, old, new := randomTree(t)
		data, err := patch.Format(imagesOf(old, new), false)
		if err != nil || len(data) == 0 {
			t.Skip()
		}
		before := mapTree(old)
		res, err := apply(data, patch.Options{}, before)
		if err != nil {
			t.Fatal(err)
		}
		after := mapTree(old)
		after.Apply(res)
		for _, f := range res.Files {
			if f.Binary || f.Op != patch.Modify && f.Op != patch.Rename {
				continue
			}
			a, err := before.Read(f.OldPath)
			if err != nil {
				t.Fatal(err)
			}
			b, err := after.Read(f.NewPath)
			if err != nil {
				t.Fatal(err)
			}
			holdEdits(t, f.Edits(), slices.Collect(strings.Lines(string(a))), slices.Collect(strings.Lines(string(b))))
		}
	})
}

func holdEdits(t *rapid.T, edits []patch.Edit, a, b []string) {
	t.Helper()
	i, k := 1, 1 // the next line of both
	for _, e := range edits {
		n := e.OldStart - i
		if e.OldLines+e.NewLines == 0 || n < 0 || n != e.NewStart-k || e.OldStart+e.OldLines-1 > len(a) || e.NewStart+e.NewLines-1 > len(b) ||
			!slices.Equal(a[i-1:i-1+n], b[k-1:k-1+n]) {
			t.Fatalf("%+v of %+v\n%q\n%q", e, edits, a, b)
		}
		i, k = e.OldStart+e.OldLines, e.NewStart+e.NewLines
	}
	if !slices.Equal(a[i-1:], b[k-1:]) {
		t.Fatalf("after %+v\n%q\n%q", edits, a, b)
	}
}

// TestEditsOfInsertions: where only lines are added or only removed, the place
// is that before the next line.
func TestEditsOfInsertions(t *testing.T) {
	tree := probeTree("k=1;2;3;4;")
	for text, want := range map[string][]patch.Edit{
		"@@ -0,0 +1 @@\n+0\n":                      {{1, 0, 1, 1}},
		"@@ -2,0 +3 @@\n+x\n":                      {{3, 0, 3, 1}},
		"@@ -4,0 +5,2 @@\n+x\n+y\n":                {{5, 0, 5, 2}},
		"@@ -1 +0,0 @@\n-1\n":                      {{1, 1, 1, 0}},
		"@@ -4 +3,0 @@\n-4\n":                      {{4, 1, 4, 0}},
		"@@ -1,4 +1,4 @@\n 1\n-2\n 3\n+x\n 4\n":    {{2, 1, 2, 0}, {4, 0, 3, 1}},
		"@@ -1,2 +1,2 @@\n-1\n+a\n-2\n+b\n":        {{1, 2, 1, 2}},
		"@@ -1 +1 @@\n-1\n+a\n@@ -3 +2,0 @@\n-3\n": {{1, 1, 1, 1}, {3, 1, 3, 0}},
	} {
		res, err := apply([]byte("--- a/k\n+++ b/k\n"+text), patch.Options{}, tree)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if got := res.Files[0].Edits(); !slices.Equal(got, want) {
			t.Errorf("%q has %+v, want %+v", text, got, want)
		}
	}
}
