package patch_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"roundtable/internal/patch"
	"roundtable/internal/patch/patchtest"
)

// undone takes the tree after back by Undo's patch.
func undone(t testing.TB, data []byte, o patch.Options, after *patch.MapTree) (*patch.MapTree, error) {
	images, err := patch.Undo(data, o, after)
	if err != nil {
		return nil, err
	}
	back, err := patch.Format(images, o.SHA256)
	if err != nil {
		t.Fatal(err)
	}
	p, err := patch.Parse(back, patch.Options{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, back)
	}
	r, err := patch.Apply(p, after)
	if err != nil {
		t.Fatalf("%v in\n%s", err, back)
	}
	after.Apply(r)
	return after, nil
}

// TestUndoCases: whatever applies is taken back from the tree after, or it is
// said why that cannot be; never another tree.
func TestUndoCases(t *testing.T) {
	done := 0
	for _, c := range loadCases(t) {
		o := patch.Options{}
		if zero := 0; strings.HasSuffix(c.Fields["strip"], "0") {
			o.Strip = &zero
		}
		after := c.Tree()
		p, err := patch.Parse(c.Patch, o)
		if err != nil {
			continue
		}
		r, err := patch.Apply(p, after)
		if err != nil {
			continue
		}
		before := patchtest.Lines(t, after)
		after.Apply(r)
		now := patchtest.Lines(t, after)
		back, err := undone(t, c.Patch, o, after)
		var refusal *patch.Refusal
		switch {
		case errors.As(err, &refusal):
			if got := patchtest.Lines(t, after); !slices.Equal(got, now) {
				t.Errorf("%s: refused, and changed", c.Name)
			}
			t.Logf("%s: %v", c.Name, err)
		case err != nil:
			t.Errorf("%s: %v", c.Name, err)
		case !slices.Equal(patchtest.Lines(t, back), before):
			t.Errorf("%s: taken back to\n%s\nwas\n%s", c.Name, strings.Join(patchtest.Lines(t, back), "\n"), strings.Join(before, "\n"))
		default:
			done++
		}
	}
	if done < 40 {
		t.Errorf("only %d cases were taken back", done)
	}
}

// TestUndoRandom: what Format writes can always be taken back.
func TestUndoRandom(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		_, old, new := randomTree(rt)
		data, err := patch.Format(imagesOf(old, new), false)
		if err != nil || len(data) == 0 {
			return
		}
		after := patch.NewMapTree()
		for p, f := range new {
			after.Put(p, f.mode, []byte(f.data))
		}
		back, err := undone(t, data, patch.Options{}, after)
		if err != nil {
			rt.Fatalf("%v\n%s", err, data)
		}
		want := patch.NewMapTree()
		for p, f := range old {
			want.Put(p, f.mode, []byte(f.data))
		}
		if got, want := patchtest.Lines(t, back), patchtest.Lines(t, want); !slices.Equal(got, want) {
			rt.Fatalf("taken back to\n%s\nwant\n%s\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"), data)
		}
	})
}

// TestUndoLevel: where the tree after does not tell how many components were
// stripped, nothing is taken back by a guess.
func TestUndoLevel(t *testing.T) {
	gone := "diff --git deep/a/x deep/a/x\ndeleted file mode 100644\nindex 587be6b..0000000\n--- deep/a/x\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
	_, err := undone(t, []byte(gone), patch.Options{}, probeTree("k=k;"))
	var refusal *patch.Refusal
	if !errors.As(err, &refusal) || refusal.Class != patch.StripAmbiguous {
		t.Errorf("%v", err)
	}
	zero := 0
	back, err := undone(t, []byte(gone), patch.Options{Strip: &zero}, probeTree("k=k;"))
	if err != nil || !slices.Contains(back.Paths(), "deep/a/x") {
		t.Errorf("%v", err)
	}
	change := "--- deep/k\n+++ deep/k\n@@ -1 +1 @@\n-k\n+K\n"
	if back, err = undone(t, []byte(change), patch.Options{}, probeTree("deep/k=K;")); err != nil {
		t.Errorf("only one level fits: %v", err)
	} else if data, err := back.Read("deep/k"); err != nil || string(data) != "k\n" {
		t.Errorf("%q %v", data, err)
	}
}
