package patch_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

// A testCase is one folder of testdata/patches or testdata/hostile-patches.
type testCase struct {
	name   string
	fields map[string]string   // title, outcome, class, …
	trees  map[string][]string // "tree", "also_tree"
	before []entry
	patch  []byte
}

type entry struct {
	mode, path string
	data       []byte
	hardlink   string
}

func loadCases(t testing.TB) []testCase {
	t.Helper()
	var all []testCase
	for _, glob := range []string{"testdata/patches/*/patch.diff", "testdata/hostile-patches/*/patch.diff"} {
		files, err := filepath.Glob(glob)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no cases (%v)", glob, err)
		}
		for _, f := range files {
			all = append(all, loadCase(t, filepath.Dir(f)))
		}
	}
	return all
}

func loadCase(t testing.TB, dir string) testCase {
	t.Helper()
	c := testCase{name: strings.TrimPrefix(dir, "testdata/"), fields: map[string]string{}, trees: map[string][]string{}}
	read := func(name string) []byte {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	c.patch = read("patch.diff")
	block := ""
	for l := range strings.Lines(string(read("expect.txt"))) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "  ") {
			c.trees[block] = append(c.trees[block], l[2:])
			continue
		}
		k, v, _ := strings.Cut(l, ":")
		if k == "tree" || k == "also_tree" {
			block, c.trees[k] = k, nil
			continue
		}
		c.fields[k] = strings.TrimPrefix(v, " ")
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(c.patch)); got != c.fields["patch_sha256"] {
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
		c.before = append(c.before, entry{e.Mode, e.Path + string(e.PathBase64), append([]byte(e.Text), e.Base64...), e.Hardlink})
	}
	return c
}

func (c testCase) tree() *patch.MapTree {
	m := patch.NewMapTree()
	for _, e := range c.before {
		switch e.mode {
		case "040000":
			m.PutDir(e.path)
		case "fifo":
			m.PutSpecial(e.path)
		default:
			m.Put(e.path, e.mode, e.data)
			if e.hardlink != "" {
				m.SetLinks(e.path, 2)
			}
		}
	}
	return m
}

// lines gives a tree as expect.txt writes it.
func lines(t testing.TB, tree patch.Tree) []string {
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
			switch st.Kind {
			case patch.Dir:
				walk(p)
				continue
			case patch.Special:
				all = append(all, [2]string{p, "010000 fifo " + spell(p)})
				continue
			case patch.Absent:
				t.Fatalf("%q is listed and absent", p)
			}
			data, err := tree.Read(p)
			if err != nil {
				t.Fatal(err)
			}
			line := fmt.Sprintf("%s %d %x %s", st.Mode, len(data), sha256.Sum256(data), spell(p))
			if st.Kind == patch.Symlink {
				line = "120000 -> " + spell(string(data)) + " " + spell(p)
			}
			all = append(all, [2]string{p, line})
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

// attributes is a tree in which Git converts every file to CRLF.
type attributes struct{ *patch.MapTree }

func (attributes) Conversion(string) (patch.Conversion, error) { return patch.CRLFConversion, nil }

// run takes the case through parse and apply and checks what must hold
// whatever comes out.
func run(t testing.TB, c testCase, o patch.Options, wrap func(*patch.MapTree) patch.Tree) (*patch.Result, *patch.Refusal, []string) {
	t.Helper()
	m := c.tree()
	var tree patch.Tree = m
	if wrap != nil {
		tree = wrap(m)
	}
	p, err := patch.Parse(c.patch, o)
	var res *patch.Result
	if err == nil {
		res, err = patch.Apply(p, tree)
	}
	if err == nil {
		seen := lines(t, patch.After(m, res.Changes))
		m.Apply(res)
		if got := lines(t, m); !slices.Equal(got, seen) {
			t.Errorf("After shows\n%s\nbut the changes give\n%s", strings.Join(seen, "\n"), strings.Join(got, "\n"))
		}
		return res, nil, lines(t, m)
	}
	var r *patch.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("not a refusal: %v", err)
	}
	return nil, r, lines(t, m)
}

func TestCases(t *testing.T) {
	for _, c := range loadCases(t) {
		t.Run(c.name, func(t *testing.T) {
			o := patch.Options{StrictText: true}
			levels := []*int{nil}
			switch zero, one := 0, 1; {
			case c.fields["strip"] == "0":
				levels = []*int{&zero}
			case c.fields["strip"] == "auto->0":
				levels = append(levels, &zero)
			case c.fields["class"] != string(patch.StripAmbiguous):
				levels = append(levels, &one)
			}
			for _, o.Strip = range levels {
				res, r, tree := run(t, c, o, nil)
				compare(t, c, "", res, r, tree)
			}
			o.Strip = levels[0]
			switch c.fields["also_with"] {
			case "":
			case "strict_oid=off":
				o.IgnoreOID = true
				res, r, tree := run(t, c, o, nil)
				compare(t, c, "also_", res, r, tree)
			case "strict_text=off":
				o.StrictText = false
				res, r, tree := run(t, c, o, nil)
				compare(t, c, "also_", res, r, tree)
			case "git_attributes=on":
				res, r, tree := run(t, c, o, func(m *patch.MapTree) patch.Tree { return attributes{m} })
				compare(t, c, "also_", res, r, tree)
			default:
				t.Errorf("unknown option %s", c.fields["also_with"])
			}
		})
	}
}

// compare holds what came out against the expectation.
func compare(t *testing.T, c testCase, prefix string, res *patch.Result, r *patch.Refusal, tree []string) {
	t.Helper()
	want := func(key string) string { return c.fields[prefix+key] }
	if !slices.Equal(tree, c.trees[prefix+"tree"]) {
		t.Errorf("tree is\n%s\nwant\n%s", strings.Join(tree, "\n"), strings.Join(c.trees[prefix+"tree"], "\n"))
	}
	if r != nil {
		if want("outcome") != "refused" || want("class") != string(r.Class) || want("hint") != string(r.Hint) {
			t.Errorf("refused: %v [%s], want %s %s [%s]", r, r.Hint, want("outcome"), want("class"), want("hint"))
		}
		noLine := slices.Contains([]patch.Class{patch.Empty, patch.NotADiff, patch.FormatUnsupported, patch.LimitPatchBytes, patch.Noop}, r.Class)
		if n := bytes.Count(c.patch, []byte("\n")) + 1; r.Line > n || r.Line < 1 && !noLine {
			t.Errorf("line %d of %d", r.Line, n)
		}
		if s := r.Error() + r.Path + r.Detail; s != patch.Show(s) && strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f || r == 0x202e }) {
			t.Errorf("not escaped: %q", s)
		}
		return
	}
	if want("outcome") != "applied" {
		t.Errorf("applied, want %s", want("class"))
	}
	if n := want("notes"); n != "" && !slices.ContainsFunc(res.Notes, func(x patch.Note) bool { return string(x.Kind) == n }) {
		t.Errorf("notes %v, want %s", res.Notes, n)
	}
}
