package patch_test

import (
	"testing"

	"roundtable/internal/patch"
)

// TestFormatMoved: of random trees, with whatever went away told as moved to
// whatever came, the patch gives the tree in memory that git apply --index
// gives, and says of each pair of a kind that it is a rename.
func TestFormatMoved(t *testing.T) {
	r := newRepo(t)
	rounds, seed := roundsFrom(40, 1000, 77)
	renames := 0
	for range rounds {
		seed++
		f := newForest(seed)
		old := f.tree()
		if len(old) == 0 {
			continue
		}
		new := f.change(f.change(old))
		images := imagesOf(old, new)
		moves, want := map[string]string{}, 0
		taken := map[string]bool{}
		for _, from := range images {
			for _, to := range images {
				if from.After.Kind == patch.Absent && to.Before.Kind == patch.Absent && !taken[to.Path] && moves[from.Path] == "" {
					moves[from.Path], taken[to.Path] = to.Path, true
					if from.Before.Kind == to.After.Kind {
						want++
					}
				}
			}
		}
		data, err := patch.FormatMoved(images, moves, false)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) == 0 {
			continue
		}
		p, err := patch.Parse(data, patch.Options{})
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, data)
		}
		got := 0
		for _, d := range p.Files() {
			if d.Op == patch.Rename && moves[d.OldPath] == d.NewPath {
				got++
			}
		}
		if renames += got; got != want {
			t.Errorf("seed %d: %d renames of %d\n%s", seed, got, want, data)
		}
		before := mapTree(old)
		res, err := patch.Apply(p, before)
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, data)
		}
		before.Apply(res)
		if now := listing(files(before)); now != listing(new) {
			t.Errorf("seed %d: it is\n%s\nnot\n%s\n%s", seed, now, listing(new), data)
		}
		if err := r.applyTo(r.store(old), data); err != nil {
			t.Errorf("seed %d: git refuses: %v\n%s", seed, err, data)
		} else if r.index() != listing(new) {
			t.Errorf("seed %d: git makes\n%s\nnot\n%s", seed, r.index(), listing(new))
		}
	}
	if renames < rounds/4 {
		t.Errorf("only %d renames in %d rounds", renames, rounds)
	}
}
