package patch_test

import (
	"bytes"
	"maps"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/bluekeyes/go-gitdiff/gitdiff"
	"pgregory.net/rapid"

	"roundtable/internal/patch"
)

// TestPeer: another parser and applier reads the same out of what we write.
func TestPeer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		_, old, new := randomTree(t)
		for _, m := range []map[string]file{old, new} {
			// It cannot unquote a name that ends in a backslash or is not UTF-8.
			maps.DeleteFunc(m, func(p string, _ file) bool { return strings.HasSuffix(p, `\`) || !utf8.ValidString(p) })
		}
		data, err := patch.Format(imagesOf(old, new), false)
		if err != nil {
			t.Fatal(err)
		}
		diffs, _, err := gitdiff.Parse(bytes.NewReader(data))
		if err != nil {
			t.Fatalf("the peer does not read what we write: %v\n%s", err, data)
		}
		got := maps.Clone(old)
		for _, d := range diffs {
			if d.IsDelete {
				delete(got, d.OldName)
			}
		}
		for _, d := range diffs {
			if d.IsDelete {
				continue
			}
			x := old[d.OldName]
			if d.IsNew {
				x = file{}
			}
			if d.NewMode != 0 {
				x.mode = map[bool]string{true: "100755", false: "100644"}[d.NewMode&0o111 != 0]
				if d.NewMode&0o170000 == 0o120000 {
					x.mode = "120000"
				}
			}
			var out bytes.Buffer
			if err := gitdiff.Apply(&out, bytes.NewReader([]byte(x.data)), d); err != nil {
				t.Fatalf("the peer does not apply what we write: %v\n%s", err, data)
			}
			x.data = out.String()
			got[d.NewName] = x
		}
		if a, b := listing(got), listing(new); a != b {
			t.Fatalf("the peer has\n%swant\n%s%s", a, b, data)
		}
	})
}
