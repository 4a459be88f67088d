package patch_test

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"roundtable/internal/patch"
)

// randomTree is a forest driven by rapid, so that failures shrink by seed.
func randomTree(t *rapid.T) (forest, map[string]file, map[string]file) {
	f := newForest(rapid.Uint64().Draw(t, "seed"))
	old := f.tree()
	return f, old, f.change(old)
}

func imagesOf(old, new map[string]file) []patch.Image {
	var all []patch.Image
	a, b := mapTree(old), mapTree(new)
	seen := map[string]bool{}
	for _, m := range []*patch.MapTree{a, b} {
		for _, p := range m.Paths() {
			if seen[p] {
				continue
			}
			seen[p] = true
			i := patch.Image{Path: p}
			i.Before, _ = a.Stat(p)
			i.After, _ = b.Stat(p)
			if i.Before.Kind == patch.Dir {
				i.Before = patch.State{Kind: patch.Absent}
			}
			if i.After.Kind == patch.Dir {
				i.After = patch.State{Kind: patch.Absent}
			}
			i.Old, _ = a.Read(p)
			i.New, _ = b.Read(p)
			all = append(all, i)
		}
	}
	return all
}

// TestFormat: what Format writes down for two trees, Apply makes of the first
// the second; the reverse goes back; and the description agrees with itself.
func TestFormat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, old, new := randomTree(t)
		sha256 := rapid.Bool().Draw(t, "sha256")
		data, err := patch.Format(imagesOf(old, new), sha256)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 {
			if listing(old) != listing(new) {
				t.Fatal("nothing was written for two different trees")
			}
			return
		}
		before := mapTree(old)
		p, err := patch.Parse(data, patch.Options{SHA256: sha256})
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		res, err := patch.Apply(p, before)
		if err != nil {
			t.Fatalf("%v\n%s", err, data)
		}
		checkResult(t, p, res)
		after := mapTree(old)
		after.Apply(res)
		if got, want := listing(files(after)), listing(new); got != want {
			t.Fatalf("have\n%swant\n%s%s", got, want, data)
		}
		back, err := patch.Reverse(res, before)
		if err != nil {
			t.Fatal(err)
		}
		undo, err := apply(back, patch.Options{}, after)
		if err != nil {
			t.Fatalf("%v\n%s", err, back)
		}
		after.Apply(undo)
		if got, want := listing(files(after)), listing(old); got != want {
			t.Fatalf("back: have\n%swant\n%s%s", got, want, back)
		}
		d1, _ := patch.TreeDigest(after)
		if d2, _ := patch.TreeDigest(before); d1 != d2 {
			t.Fatal("the tree digest differs after a round trip")
		}
	})
}

// checkResult holds the parts of a result against each other.
func checkResult(t rapid.TB, p *patch.Patch, res *patch.Result) {
	t.Helper()
	var paths []string
	for _, c := range res.Changes {
		paths = append(paths, c.Path)
		if (c.After.Kind == patch.Absent) != (c.Content == nil) || c.After.Size != int64(len(c.Content)) {
			t.Fatalf("%q: content and state disagree", c.Path)
		}
	}
	if got := strings.Join(p.Touched(), "\n"); got != strings.Join(paths, "\n") {
		t.Fatalf("touched %q, changed %q", got, paths)
	}
	for _, f := range res.Files {
		removed, added := f.ChangedLines()
		if n := count(removed); n != f.Removed {
			t.Fatalf("%q: %d removed lines in spans, %d counted", f.Path(), n, f.Removed)
		}
		if n := count(added); n != f.Added {
			t.Fatalf("%q: %d added lines in spans, %d counted", f.Path(), n, f.Added)
		}
	}
}

func count(spans []patch.Span) (n int) {
	last := 0
	for _, s := range spans {
		if s.Start <= last || s.End < s.Start {
			return -1
		}
		n, last = n+s.End-s.Start+1, s.End
	}
	return n
}

// TestMutations: a byte of a good patch changed, lost or doubled gives the
// same tree, another whole tree, or a refusal with a line; never a panic or an
// error of another type, and never a result outside the paths it names.
func TestMutations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, old, new := randomTree(t)
		data, err := patch.Format(imagesOf(old, new), false)
		if err != nil || len(data) == 0 {
			t.Skip()
		}
		i := rapid.IntRange(0, len(data)-1).Draw(t, "at")
		switch rapid.IntRange(0, 3).Draw(t, "how") {
		case 0:
			data = append(bytes.Clone(data[:i]), data[i+1:]...)
		case 1:
			data = append(bytes.Clone(data[:i+1]), data[i:]...)
		case 2:
			data = bytes.Clone(data)
			data[i] = rapid.Byte().Draw(t, "byte")
		case 3:
			data = data[:i]
		}
		check(t, data, patch.Options{IgnoreOID: true}, mapTree(old))
	})
}

// check applies any bytes to a tree and holds what comes out against what
// always holds.
func check(t rapid.TB, data []byte, o patch.Options, tree *patch.MapTree) {
	t.Helper()
	if _, err := patch.Undo(data, o, tree); err != nil {
		if refused := new(patch.Refusal); !errors.As(err, &refused) {
			t.Fatalf("undo is not refused but fails: %v", err)
		}
	}
	p, err := patch.Parse(data, o)
	var res *patch.Result
	if err == nil {
		p, err = p.Resolve(tree)
	}
	if err == nil {
		res, err = patch.Apply(p, tree)
	}
	if err == nil {
		checkResult(t, p, res)
		for _, c := range res.Changes {
			if r := patch.CheckPath(c.Path, o); r != nil {
				t.Fatalf("a bad path came through: %v", r)
			}
		}
		return
	}
	var r *patch.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("not a refusal: %v", err)
	}
	known := slices.ContainsFunc(patch.Classes(), func(i patch.ClassInfo) bool { return i.Class == r.Class })
	if !known || r.Line < 0 || r.Line > bytes.Count(data, []byte("\n"))+1 {
		t.Fatalf("%v: class or line is wrong", r)
	}
	if s := r.Error(); strings.ContainsFunc(s, func(c rune) bool { return c < 0x20 || c == 0x7f || c >= 0x202a && c <= 0x202e }) {
		t.Fatalf("not escaped: %q", s)
	}
	if r.Suggestion != nil {
		if _, err := patch.Parse(r.Suggestion, o); err != nil && strings.HasPrefix(string(r.Class), "parse.") {
			var again *patch.Refusal
			if errors.As(err, &again) && again.Class == r.Class {
				t.Fatalf("the suggestion has the fault it mends: %v", again)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, c := range loadCases(f) {
		if len(c.Patch) < 20_000 {
			f.Add(c.Patch)
		}
	}
	for _, p := range probes() {
		f.Add([]byte(p.patch))
	}
	tree := probeTree("k=k; a.txt=1; soup.md=a;b;c; x y=1; src/m.c=1; ln->a.txt d/x=1; pipe|")
	f.Fuzz(func(t *testing.T, data []byte) {
		check(t, data, patch.Options{MaxFileBytes: 1 << 16, MaxTotalBytes: 1 << 18}, tree)
	})
}

// TestLinear: input made to be slow or large is not. The bound on time is some
// twenty times what it takes, quadratic work would take minutes; what a patch
// and its result keep is at most ten times the input.
func TestLinear(t *testing.T) {
	const n = 40_000
	same := strings.Repeat("x\n", n)
	hunk := func(start, lines int) string {
		return fmt.Sprintf("@@ -%d,%d +%d,%d @@\n", start, lines+1, start, lines) + strings.Repeat(" x\n", lines) + "-y\n"
	}
	many := strings.Builder{}
	many.WriteString("--- a/k\n+++ b/k\n")
	for i := range 10_000 {
		fmt.Fprintf(&many, "@@ -%d,2 +%d,2 @@\n x\n-z\n+y\n", 4*i+1, 4*i+1)
	}
	small := strings.Builder{}
	for i := range 200_000 {
		fmt.Fprintf(&small, "@@ -%d +%d @@\n-\n+x\n", 2*i+1, 2*i+1)
	}
	for _, c := range []struct {
		name, data, k string
	}{
		{"equal lines", "--- a/k\n+++ b/k\n" + hunk(2*n, n), strings.Repeat(same, 3)},
		{"equal lines, last differs", "--- a/k\n+++ b/k\n" + hunk(7, n), strings.Repeat(same, 3) + "z\n"},
		{"many hunks", many.String(), strings.Repeat(same, 3)},
		{"blanks in a name", "diff --git " + strings.Repeat("a ", 1<<20) + "\nold mode 100644\nnew mode 100755\n", "k\n"},
		{"many names", strings.Repeat("diff --git "+strings.Repeat("a/ ", 5000)+"\nold mode 100644\nnew mode 100755\n", 1900), "k\n"},
		{"count mismatch", "--- a/k\n+++ b/k\n@@ -1,3 +1,3 @@\n" + strings.Repeat("+x\n", 1<<20), "k\n"},
		{"new file of empty lines", "--- /dev/null\n+++ b/n\n@@ -0,0 +1,2000000 @@\n" + strings.Repeat("+\n", 2_000_000), "k\n"},
		{"change in empty lines", "--- a/k\n+++ b/k\n@@ -1,2 +1,3 @@\n \n+x\n \n", strings.Repeat("\n", 4_000_000)},
		{"offset in empty lines", "--- a/k\n+++ b/k\n@@ -9,3 +9,3 @@\n \n-x\n+y\n \n", strings.Repeat("\n", 2_000_000) + "x\n" + strings.Repeat("\n", 2_000_000)},
		{"small hunks", "--- a/k\n+++ b/k\n" + small.String(), strings.Repeat("\n", 400_000)},
		{"prose", strings.Repeat("12345 prose without a diff\n", 1<<18), "k\n"},
		{"almost commands", strings.Repeat("1,2\n\x1b[1m\x1b[1mdif\n    a\n", 1<<17), "k\n"},
		{"slashes", "--- a/k\n+++ b/k" + strings.Repeat("/", 1<<20) + "\n@@ -1 +1 @@\n-k\n+K\n", "k\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			tree := patch.NewMapTree()
			tree.Put("k", "100644", []byte(c.k))
			data := []byte(c.data)
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			begin := time.Now()
			var res *patch.Result
			p, err := patch.Parse(data, patch.Options{})
			if err == nil {
				res, err = patch.Apply(p, tree)
			}
			took := time.Since(begin)
			runtime.GC()
			runtime.ReadMemStats(&after)
			input, all, kept := len(c.data)+len(c.k), int(after.TotalAlloc-before.TotalAlloc), int(after.HeapAlloc)-int(before.HeapAlloc)
			t.Logf("%v, %d bytes allocated, %d kept for %d: %v", took, all, kept, input, err)
			if took > 30*time.Second || all > 40*input+1<<20 || kept > 10*input+1<<20 {
				t.Error("too slow or too large")
			}
			runtime.KeepAlive(p)
			runtime.KeepAlive(res)
		})
	}
}

// TestDiffBound: files that have little in common, or very much of the same,
// are written down in bounded time and still exactly.
func TestDiffBound(t *testing.T) {
	f := newForest(3)
	random := func(n, kinds int) string {
		var b strings.Builder
		for range n {
			fmt.Fprintln(&b, f.IntN(kinds))
		}
		return b.String()
	}
	for name, pair := range map[string][2]string{
		"two kinds of lines": {random(100_000, 2), random(100_000, 2)},
		"nothing in common":  {strings.Repeat("a\n", 100_000), strings.Repeat("b\n", 120_000)},
		"all lines differ":   {random(100_000, 1<<30), random(100_000, 1<<30)},
		"one in the middle":  {strings.Repeat("a\n", 100_001), strings.Repeat("a\n", 50_000) + "b\n" + strings.Repeat("a\n", 50_000)},
	} {
		t.Run(name, func(t *testing.T) {
			old, new := map[string]file{"k": {"100644", pair[0]}}, map[string]file{"k": {"100644", pair[1]}}
			begin := time.Now()
			data, err := patch.Format(imagesOf(old, new), false)
			if took := time.Since(begin); err != nil || took > 30*time.Second {
				t.Fatalf("%v after %v", err, took)
			}
			tree := mapTree(old)
			res, err := apply(data, patch.Options{}, tree)
			if err != nil {
				t.Fatal(err)
			}
			if string(res.Changes[0].Content) != pair[1] {
				t.Error("another file comes out")
			}
			t.Logf("%v, %d bytes", time.Since(begin), len(data))
		})
	}
}
