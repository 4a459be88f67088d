package patch_test

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/patch"
	"roundtable/internal/patch/patchtest"
)

func loadCases(t testing.TB) []patchtest.Case { return patchtest.Load(t, "testdata") }

// attributes is a tree in which Git converts every file to CRLF.
type attributes struct{ *patch.MapTree }

func (attributes) Conversion(string) (patch.Conversion, error) { return patch.CRLFConversion, nil }

// run takes the case through parse and apply and checks what must hold
// whatever comes out.
func run(t testing.TB, c patchtest.Case, o patch.Options, wrap func(*patch.MapTree) patch.Tree) (*patch.Result, *patch.Refusal, []string) {
	t.Helper()
	m := c.Tree()
	var tree patch.Tree = m
	if wrap != nil {
		tree = wrap(m)
	}
	p, err := patch.Parse(c.Patch, o)
	var res *patch.Result
	if err == nil {
		res, err = patch.Apply(p, tree)
	}
	if err == nil {
		seen := patchtest.Lines(t, patch.After(m, res.Changes))
		m.Apply(res)
		if got := patchtest.Lines(t, m); !slices.Equal(got, seen) {
			t.Errorf("After shows\n%s\nbut the changes give\n%s", strings.Join(seen, "\n"), strings.Join(got, "\n"))
		}
		return res, nil, patchtest.Lines(t, m)
	}
	var r *patch.Refusal
	if !errors.As(err, &r) {
		t.Fatalf("not a refusal: %v", err)
	}
	return nil, r, patchtest.Lines(t, m)
}

func TestCases(t *testing.T) {
	for _, c := range loadCases(t) {
		t.Run(c.Name, func(t *testing.T) {
			o := patch.Options{StrictText: true}
			levels := []*int{nil}
			switch zero, one := 0, 1; {
			case c.Fields["strip"] == "0":
				levels = []*int{&zero}
			case c.Fields["strip"] == "auto->0":
				levels = append(levels, &zero)
			case c.Fields["class"] != string(patch.StripAmbiguous):
				levels = append(levels, &one)
			}
			for _, o.Strip = range levels {
				res, r, tree := run(t, c, o, nil)
				compare(t, c, "", res, r, tree)
			}
			o.Strip = levels[0]
			switch c.Fields["also_with"] {
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
				t.Errorf("unknown option %s", c.Fields["also_with"])
			}
		})
	}
}

// compare holds what came out against the expectation.
func compare(t *testing.T, c patchtest.Case, prefix string, res *patch.Result, r *patch.Refusal, tree []string) {
	t.Helper()
	want := func(key string) string { return c.Fields[prefix+key] }
	if !slices.Equal(tree, c.Trees[prefix+"tree"]) {
		t.Errorf("tree is\n%s\nwant\n%s", strings.Join(tree, "\n"), strings.Join(c.Trees[prefix+"tree"], "\n"))
	}
	if r != nil {
		if want("outcome") != "refused" || want("class") != string(r.Class) || want("hint") != string(r.Hint) {
			t.Errorf("refused: %v [%s], want %s %s [%s]", r, r.Hint, want("outcome"), want("class"), want("hint"))
		}
		noLine := slices.Contains([]patch.Class{patch.Empty, patch.NotADiff, patch.FormatUnsupported, patch.LimitPatchBytes, patch.Noop}, r.Class)
		if n := bytes.Count(c.Patch, []byte("\n")) + 1; r.Line > n || r.Line < 1 && !noLine {
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
