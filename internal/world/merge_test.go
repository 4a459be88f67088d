package world_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"roundtable/commands"
	"roundtable/domain"
)

// revision is what attaching a patch makes of it.
func (s *service) revision(t *testing.T, root string, number int, data []byte) domain.Revision {
	t.Helper()
	in, err := s.Inspect(t.Context(), root, data)
	must(t, err)
	if in.Refused != nil {
		t.Fatal(in.Refused)
	}
	digest, err := s.Keep(t.Context(), data)
	must(t, err)
	must(t, s.KeepBase(t.Context(), root, in.Base.Paths))
	r := domain.Revision{Number: number, Files: in.Files}
	r.PatchDigest, r.Base = digest, in.Base
	return r
}

// TestMergeOfCRLF: what is merged into files with CR LF, and what is shown of
// the difference, is in the bytes that git keeps; what lies there after it has
// CR LF throughout.
func TestMergeOfCRLF(t *testing.T) {
	lines := func(change map[int]string, end string) []byte {
		var b bytes.Buffer
		for i := range 30 {
			text := fmt.Sprint("line ", i)
			if c, ok := change[i]; ok {
				text = c
			}
			b.WriteString(text + end)
		}
		return b.Bytes()
	}
	root := t.TempDir()
	git(t, root, "init", "-q")
	put(t, root, ".gitattributes", []byte("*.txt eol=crlf\n"))
	put(t, root, "a.txt", lines(nil, "\r\n"))
	git(t, root, "add", "-A")
	git(t, root, "commit", "-qm", "first")
	put(t, root, "a.txt", lines(map[int]string{3: "ours"}, "\r\n"))
	out, err := gitIn(t, root, nil, "diff", "--full-index")
	must(t, err)
	git(t, root, "checkout", "a.txt")

	s := serve(t)
	first := s.revision(t, root, 1, []byte(out))
	put(t, root, "a.txt", lines(map[int]string{25: "theirs"}, "\r\n"))
	m, err := s.Rebase(t.Context(), root, first)
	must(t, err)
	if len(m.Conflicts) > 0 || m.Impossible != "" || bytes.Contains(m.Patch, []byte("\r")) {
		t.Fatalf("%+v\n%q", m, m.Patch)
	}
	second := s.revision(t, root, 2, m.Patch)
	page, err := s.Preview(t.Context(), root, commands.PatchView{From: &first, Revision: second, Lines: 1000})
	must(t, err)
	if len(page.Files) != 1 || len(page.Files[0].Hunks) != 1 {
		t.Errorf("the difference is %+v", page.Files)
	}
	for _, f := range page.Files {
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				if l.End != "" {
					t.Errorf("%+v", l)
				}
			}
		}
	}
	_, err = s.apply(t, root, m.Patch)
	must(t, err)
	got, err := os.ReadFile(filepath.Join(root, "a.txt"))
	must(t, err)
	if want := lines(map[int]string{3: "ours", 25: "theirs"}, "\r\n"); !bytes.Equal(got, want) {
		t.Errorf("%q", got)
	}

	// A patch against the commit, sent when the file had changed already.
	put(t, root, "a.txt", lines(map[int]string{25: "theirs"}, "\r\n"))
	in, err := s.Inspect(t.Context(), root, []byte(out))
	must(t, err)
	late := first
	late.Base = in.Base
	must(t, s.KeepBase(t.Context(), root, in.Base.Paths))
	m, err = s.Rebase(t.Context(), root, late)
	must(t, err)
	if len(m.Conflicts) > 0 || m.Impossible != "" || len(m.Patch) == 0 {
		t.Fatalf("%+v", m)
	}
	_, err = s.apply(t, root, m.Patch)
	must(t, err)
	if got, err = os.ReadFile(filepath.Join(root, "a.txt")); err != nil || !bytes.Equal(got, lines(map[int]string{3: "ours", 25: "theirs"}, "\r\n")) {
		t.Errorf("%q, %v", got, err)
	}
}
