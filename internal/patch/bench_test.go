package patch_test

import (
	"fmt"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// large gives a tree of n files of 5 KB and a patch with two hunks in each.
func large(b *testing.B, n int) (*patch.MapTree, []byte) {
	tree := patch.NewMapTree()
	var images []patch.Image
	for i := range n {
		var text strings.Builder
		for l := range 200 {
			fmt.Fprintf(&text, "line %06d of file %06d\n", l, i)
		}
		p := fmt.Sprintf("d%02d/f%04d.txt", i%20, i)
		tree.Put(p, "100644", []byte(text.String()))
		m := patch.Image{Path: p, Old: []byte(text.String())}
		m.New = []byte(strings.Replace(strings.Replace(text.String(), "000020 of", "twenty of", 1), "000150 of", "many of", 1))
		m.Before, _ = tree.Stat(p)
		after := patch.NewMapTree()
		after.Put(p, "100644", m.New)
		m.After, _ = after.Stat(p)
		images = append(images, m)
	}
	data, err := patch.Format(images, false)
	if err != nil {
		b.Fatal(err)
	}
	return tree, data
}

func BenchmarkApply(b *testing.B) {
	for _, n := range []int{1, 50, 1000} {
		b.Run(fmt.Sprintf("files=%d", n), func(b *testing.B) {
			tree, data := large(b, n)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := apply(data, patch.Options{}, tree); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkParse(b *testing.B) {
	_, data := large(b, 1000)
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := patch.Parse(data, patch.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkSearch looks for 40,000 equal lines among 100,000, as reference
// implementations take seconds for.
func BenchmarkSearch(b *testing.B) {
	tree := patch.NewMapTree()
	tree.Put("k", "100644", []byte(strings.Repeat("x\n", 100_000)))
	data := []byte("--- a/k\n+++ b/k\n@@ -7,40001 +7,40000 @@\n" + strings.Repeat(" x\n", 40_000) + "-y\n")
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := apply(data, patch.Options{}, tree); err == nil {
			b.Fatal("applies")
		}
	}
}

func BenchmarkFormat(b *testing.B) {
	tree, data := large(b, 50)
	res, err := apply(data, patch.Options{}, tree)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := patch.Reverse(res, tree); err != nil {
			b.Fatal(err)
		}
	}
}
