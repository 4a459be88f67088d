package patch_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"roundtable/internal/patch"
)

// A file of a random tree.
type file struct {
	mode string
	data string
}

// A forest makes random trees and edits of them, the same for the same seed.
type forest struct{ *rand.Rand }

func newForest(seed uint64) forest { return forest{rand.New(rand.NewPCG(seed, 7))} }

func (f forest) pick(of ...string) string { return of[f.IntN(len(of))] }

// path gives a name that is awkward somehow. No two fold to the same.
func (f forest) path() string {
	name := f.pick("plain", "x y", "q\"uote", `back\slash`, "ends\\", "naïve", "日本", "-dash", "--long=x", "x b", "tail~1", "dev", "null",
		"caf\xe9", "with'quote", "a", "b", "x.orig", "x", "#hash", "$dollar", "semi;colon", "comma,", "@@", "COPYING", "z b/z")
	for range f.IntN(3) {
		name = f.pick("a", "b", "src", "my dir", "ünï", "deep", "old", "new") + "/" + name
	}
	return name
}

func (f forest) line() string {
	return f.pick("alpha", "beta", "gamma", "", " ", "\t", "-- a", "++ b", "-- ", "--", "@@ -1 +1 @@", "diff --git a/x b/x", "--- a/x", "+++ b/x",
		`\ No newline at end of file`, "carriage\r", "\r", "x\ry", "caf\xe9", "naïve", "GIT binary patch", "index 1..2", "From 1", "{", "}", "end",
		"\ufeffbom", "trailing  ", fmt.Sprint(f.IntN(9)), fmt.Sprint(f.IntN(1000)), fmt.Sprint(f.IntN(1000)))
}

func (f forest) content() string {
	switch f.IntN(12) {
	case 0:
		return ""
	case 1:
		b := make([]byte, f.IntN(3000))
		for i := range b {
			b[i] = byte(f.IntN(256))
		}
		return string(b) + "\x00"
	case 2:
		return strings.Repeat(f.line()+"\n", 1+f.IntN(30))
	}
	var b strings.Builder
	for range f.IntN(60) {
		b.WriteString(f.line() + "\n")
	}
	s := b.String()
	if f.IntN(5) == 0 {
		s = strings.TrimSuffix(s, "\n")
	}
	if f.IntN(8) == 0 {
		s = strings.ReplaceAll(s, "\n", "\r\n")
	}
	return s
}

func (f forest) file() file {
	if f.IntN(10) == 0 {
		return file{"120000", f.pick("src", "nowhere", "no where", "nön")}
	}
	return file{f.pick("100644", "100644", "100644", "100755"), f.content()}
}

// free reports whether a file can be put at path: no file above it, none beneath.
func free(t map[string]file, path string) bool {
	for p := range t {
		if p == path || strings.HasPrefix(p, path+"/") || strings.HasPrefix(path, p+"/") {
			return false
		}
	}
	return true
}

func (f forest) tree() map[string]file {
	t := map[string]file{}
	for range 1 + f.IntN(8) {
		if p := f.path(); free(t, p) {
			t[p] = f.file()
		}
	}
	return t
}

func (f forest) edit(data string) string {
	if strings.Contains(data, "\x00") {
		b := []byte(data)
		for range 1 + f.IntN(4) {
			b[f.IntN(len(b))] ^= byte(1 + f.IntN(255))
		}
		return string(b) + "\x00"
	}
	lines := strings.SplitAfter(data, "\n")
	for range 1 + f.IntN(4) {
		i := f.IntN(len(lines))
		switch f.IntN(3) {
		case 0:
			lines[i] = f.line() + "\n"
		case 1:
			lines = slices.Insert(lines, i, f.line()+"\n")
		case 2:
			lines = slices.Delete(lines, i, min(len(lines), i+1+f.IntN(3)))
		}
		if len(lines) == 0 {
			lines = []string{""}
		}
	}
	s := strings.Join(lines, "")
	if f.IntN(10) == 0 {
		s = strings.TrimSuffix(s, "\n")
	}
	return s
}

// change gives an edited copy of the tree.
func (f forest) change(old map[string]file) map[string]file {
	t := maps.Clone(old)
	for range 1 + f.IntN(5) {
		paths := slices.Sorted(maps.Keys(t))
		if len(paths) == 0 || f.IntN(6) == 0 {
			if p := f.path(); free(t, p) {
				t[p] = f.file()
			}
			continue
		}
		p := paths[f.IntN(len(paths))]
		x := t[p]
		switch q := f.path(); f.IntN(9) {
		case 0:
			delete(t, p)
		case 1:
			t[p] = f.file()
		case 2:
			if x.mode != "120000" {
				t[p] = file{f.pick("100644", "100755"), x.data}
			}
		case 3, 4:
			delete(t, p)
			if f.IntN(2) == 0 && x.mode != "120000" {
				x.data = f.edit(x.data)
			}
			if !free(t, q) {
				q = p
			}
			t[q] = x
		case 5:
			if free(t, q) {
				t[q] = x
			}
		default:
			if x.mode != "120000" {
				t[p] = file{x.mode, f.edit(x.data)}
			}
		}
	}
	return t
}

func mapTree(t map[string]file) *patch.MapTree {
	m := patch.NewMapTree()
	for p, x := range t {
		m.Put(p, x.mode, []byte(x.data))
	}
	return m
}

// listing spells a tree, a line for each file.
func listing(t map[string]file) string {
	var b bytes.Buffer
	for _, p := range slices.Sorted(maps.Keys(t)) {
		fmt.Fprintf(&b, "%s %s %q\n", t[p].mode, patch.BlobID([]byte(t[p].data), false), p)
	}
	return b.String()
}

// files reads a MapTree back.
func files(m *patch.MapTree) map[string]file {
	t := map[string]file{}
	for _, p := range m.Paths() {
		st, _ := m.Stat(p)
		data, _ := m.Read(p)
		t[p] = file{st.Mode, string(data)}
	}
	return t
}
