// Package patchtest has the cases that the patch engine is held to, for every
// way in which it is reached: in memory, on disk and by command.
//
// What always holds: a case whose patch was damaged by a checkout fails the
// test, and a tree is written down in exactly one way, so that trees are equal
// when their lines are.
package patchtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// A Case is one folder of testdata/patches or testdata/hostile-patches.
type Case struct {
	Name   string              // such as "patches/001-simple-modify"
	Fields map[string]string   // title, outcome, class, … of expect.txt
	Trees  map[string][]string // "tree", "also_tree"
	Before []Entry
	Patch  []byte
}

// An Entry is one line of before.jsonl.
type Entry struct {
	Mode     string // 100644, 100755, 120000, 040000 of an empty folder, or fifo
	Path     string // bytes, not always UTF-8
	Data     []byte // content, or target of a symlink
	Hardlink string // a path relative to the root that the file is a hard link to
}

// Load reads every case below the engine's testdata folder.
func Load(t testing.TB, testdata string) (all []Case) {
	t.Helper()
	for _, set := range []string{"patches", "hostile-patches"} {
		files, err := filepath.Glob(filepath.Join(testdata, set, "*", "patch.diff"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no cases (%v)", set, err)
		}
		for _, f := range files {
			dir := filepath.Dir(f)
			all = append(all, load(t, dir, set+"/"+filepath.Base(dir)))
		}
	}
	return all
}

func load(t testing.TB, dir, name string) Case {
	t.Helper()
	c := Case{Name: name, Fields: map[string]string{}, Trees: map[string][]string{}}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	c.Patch = read("patch.diff")
	block := ""
	for l := range strings.Lines(string(read("expect.txt"))) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "  ") {
			c.Trees[block] = append(c.Trees[block], l[2:])
			continue
		}
		k, v, _ := strings.Cut(l, ":")
		if k == "tree" || k == "also_tree" {
			block, c.Trees[k] = k, nil
			continue
		}
		c.Fields[k] = strings.TrimPrefix(v, " ")
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(c.Patch)); got != c.Fields["patch_sha256"] {
		t.Fatalf("%s: patch.diff was damaged on its way here: sha256 %s", dir, got)
	}
	for d := json.NewDecoder(bytes.NewReader(read("before.jsonl"))); d.More(); {
		var e struct {
			Mode, Path, Text, Hardlink string
			PathBase64                 []byte `json:"path_base64"`
			Base64                     []byte
		}
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		c.Before = append(c.Before, Entry{e.Mode, e.Path + string(e.PathBase64), append([]byte(e.Text), e.Base64...), e.Hardlink})
	}
	return c
}

// Tree is the tree before the case, in memory.
func (c Case) Tree() *patch.MapTree {
	m := patch.NewMapTree()
	for _, e := range c.Before {
		switch e.Mode {
		case "040000":
			m.PutDir(e.Path)
		case "fifo":
			m.PutSpecial(e.Path)
		default:
			m.Put(e.Path, e.Mode, e.Data)
			if e.Hardlink != "" {
				m.SetLinks(e.Path, 2)
			}
		}
	}
	return m
}

// Lines gives a tree as expect.txt writes it.
func Lines(t testing.TB, tree patch.Tree) []string {
	t.Helper()
	var all [][2]string // path, line
	var walk func(dir string)
	walk = func(dir string) {
		names, err := tree.Names(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(names) == 0 && dir != "" {
			all = append(all, [2]string{dir, "040000 dir " + spell(dir)})
		}
		for _, n := range names {
			p := strings.TrimPrefix(dir+"/"+n, "/")
			st, err := tree.Stat(p)
			if err != nil {
				t.Fatal(err)
			}
			if st.Kind == patch.Dir {
				walk(p)
				continue
			}
			all = append(all, [2]string{p, line(t, tree, p, st)})
		}
	}
	walk("")
	slices.SortFunc(all, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	var out []string
	for _, l := range all {
		out = append(out, l[1])
	}
	return out
}

func line(t testing.TB, tree patch.Tree, p string, st patch.State) string {
	t.Helper()
	switch st.Kind {
	case patch.Special:
		return "010000 fifo " + spell(p)
	case patch.Absent:
		t.Fatalf("%q is listed and absent", p)
	}
	data, err := tree.Read(p)
	if err != nil {
		t.Fatal(err)
	}
	if st.Kind == patch.Symlink {
		return "120000 -> " + spell(string(data)) + " " + spell(p)
	}
	return fmt.Sprintf("%s %d %x %s", st.Mode, len(data), sha256.Sum256(data), spell(p))
}

func spell(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r > 0x7e || r == '"' || r == '\\' }) {
		return s
	}
	var b strings.Builder
	for _, c := range []byte(s) {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < 0x20 || c > 0x7e:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	return `"` + b.String() + `"`
}
