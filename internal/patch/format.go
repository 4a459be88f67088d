package patch

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"slices"
	"strings"
)

// An Image is one path with its bytes before and after.
type Image struct {
	Path          string
	Before, After State
	Old, New      []byte // nil where Absent
}

// Images gives the changes of a result with the bytes on both sides. Before
// must be the tree the result was computed on.
func Images(changes []Change, before Tree) ([]Image, error) {
	all := make([]Image, 0, len(changes))
	for _, c := range changes {
		m := Image{Path: c.Path, Before: c.Before, After: c.After, New: c.Content}
		if c.Before.Kind != Absent {
			var err error
			if m.Old, err = before.Read(c.Path); err != nil {
				return nil, err
			}
			if st := stateOf(c.Before.Mode, m.Old); st != c.Before {
				return nil, fmt.Errorf("%s is not as it was when the change was computed", Show(c.Path))
			}
		}
		all = append(all, m)
	}
	return all, nil
}

// Reverse gives a patch that takes the tree after the result back to before,
// byte for byte.
func Reverse(r *Result, before Tree) ([]byte, error) {
	all, err := Images(r.Changes, before)
	if err != nil {
		return nil, err
	}
	for i, m := range all {
		all[i] = Image{m.Path, m.After, m.Before, m.New, m.Old}
	}
	return Format(all, false)
}

// Format gives the canonical patch that takes the images before to those
// after: git's format, sections by path, full object ids, binary literals, no
// renames. Images that are equal on both sides are left out; with no others
// the result is empty. It is an error if an image is neither file, link nor
// absent, or its bytes are not those of its state.
func Format(images []Image, sha256Objects bool) ([]byte, error) {
	return FormatMoved(images, nil, sha256Objects)
}

// FormatMoved is Format, but for moves, old path to new: where the images take
// a file from the one and put one of its kind at the other, they are one
// section, a rename. Other moves count for nothing.
func FormatMoved(images []Image, moves map[string]string, sha256Objects bool) ([]byte, error) {
	images = slices.Clone(images)
	slices.SortFunc(images, func(a, b Image) int { return strings.Compare(a.Path, b.Path) })
	f := &formatter{sha256: sha256Objects}
	from, gone := moved(images, moves)
	for _, m := range images {
		for _, s := range []struct {
			st   State
			data []byte
		}{{m.Before, m.Old}, {m.After, m.New}} {
			switch {
			case s.st.Kind == Absent:
			case s.st.Kind != File && s.st.Kind != Symlink:
				return nil, fmt.Errorf("%s is a %s and not in a patch", Show(m.Path), s.st.Kind)
			case stateOf(s.st.Mode, s.data) != s.st:
				return nil, fmt.Errorf("the bytes of %s are not those of its state", Show(m.Path))
			}
		}
		if m.Before == m.After || gone[m.Path] {
			continue
		}
		if old, is := from[m.Path]; is {
			f.rename(old, m)
			continue
		}
		if m.Before.Kind != Absent && m.After.Kind != Absent && m.Before.Kind != m.After.Kind {
			gone := State{Kind: Absent}
			f.section(Image{m.Path, m.Before, gone, m.Old, nil})
			f.section(Image{m.Path, gone, m.After, nil, m.New})
			continue
		}
		f.section(m)
	}
	return f.out.Bytes(), nil
}

// moved returns the images whose file goes to another, by the path it goes to,
// and by their own paths that they do.
func moved(images []Image, moves map[string]string) (from map[string]Image, gone map[string]bool) {
	from, gone = map[string]Image{}, map[string]bool{}
	if len(moves) == 0 {
		return from, gone
	}
	comes := map[string]Image{}
	for _, m := range images {
		if m.Before.Kind == Absent {
			comes[m.Path] = m
		}
	}
	for _, m := range images {
		to, is := comes[moves[m.Path]]
		if _, taken := from[to.Path]; is && !taken && m.After.Kind == Absent && m.Before.Kind == to.After.Kind {
			from[to.Path], gone[m.Path] = m, true
		}
	}
	return from, gone
}

// rename writes that the file of old goes to where m is.
func (f *formatter) rename(old, m Image) {
	a, b := spellName("a/"+old.Path), spellName("b/"+m.Path)
	fmt.Fprintf(&f.out, "diff --git %s %s\n", a, b)
	mode := " " + m.After.Mode
	if old.Before.Mode != m.After.Mode {
		fmt.Fprintf(&f.out, "old mode %s\nnew mode %s\n", old.Before.Mode, m.After.Mode)
		mode = ""
	}
	if bytes.Equal(old.Old, m.New) {
		f.out.WriteString("similarity index 100%\n")
	}
	fmt.Fprintf(&f.out, "rename from %s\nrename to %s\n", spellName(old.Path), spellName(m.Path))
	f.content(a, b, mode, Image{Old: old.Old, New: m.New}, BlobID(old.Old, f.sha256), BlobID(m.New, f.sha256))
}

type formatter struct {
	out    bytes.Buffer
	sha256 bool
}

func (f *formatter) section(m Image) {
	a, b := spellName("a/"+m.Path), spellName("b/"+m.Path)
	fmt.Fprintf(&f.out, "diff --git %s %s\n", a, b)
	zero := strings.Repeat("0", Options{SHA256: f.sha256}.oidLen())
	oldID, newID, mode := zero, zero, ""
	if m.Before.Kind != Absent {
		oldID = BlobID(m.Old, f.sha256)
	}
	if m.After.Kind != Absent {
		newID = BlobID(m.New, f.sha256)
	}
	switch {
	case m.Before.Kind == Absent:
		fmt.Fprintf(&f.out, "new file mode %s\n", m.After.Mode)
		a = "/dev/null"
	case m.After.Kind == Absent:
		fmt.Fprintf(&f.out, "deleted file mode %s\n", m.Before.Mode)
		b = "/dev/null"
	case m.Before.Mode != m.After.Mode:
		fmt.Fprintf(&f.out, "old mode %s\nnew mode %s\n", m.Before.Mode, m.After.Mode)
	default:
		mode = " " + m.Before.Mode
	}
	f.content(a, b, mode, m, oldID, newID)
}

// content writes what becomes of the bytes, if that is anything.
func (f *formatter) content(a, b, mode string, m Image, oldID, newID string) {
	if oldID == newID {
		return
	}
	fmt.Fprintf(&f.out, "index %s..%s%s\n", oldID, newID, mode)
	switch {
	case len(m.Old) == 0 && len(m.New) == 0:
	case bytes.IndexByte(m.Old, 0) >= 0 || bytes.IndexByte(m.New, 0) >= 0:
		f.out.WriteString("GIT binary patch\n")
		f.literal(m.New)
		f.literal(m.Old)
	default:
		fmt.Fprintf(&f.out, "--- %s\n+++ %s\n", endName(a), endName(b))
		f.hunks(newText(m.Old), newText(m.New))
	}
}

// spellName quotes a name where git would.
func spellName(name string) string {
	if needsQuoting(name) {
		return Quote(name)
	}
	return name
}

// endName ends a name with blanks by a TAB, as git does.
func endName(name string) string {
	if strings.Contains(name, " ") && name[0] != '"' {
		return name + "\t"
	}
	return name
}

func (f *formatter) literal(data []byte) {
	fmt.Fprintf(&f.out, "literal %d\n", len(data))
	var z bytes.Buffer
	w := zlib.NewWriter(&z)
	_, _ = w.Write(data) // a bytes.Buffer takes everything
	_ = w.Close()
	f.out.Write(encode85(nil, z.Bytes()))
	f.out.WriteByte('\n')
}

// contextLines stand around each change.
const contextLines = 3

func (f *formatter) hunks(a, b *text) {
	edits := diffLines(a, b)
	for i := 0; i < len(edits); {
		j := i + 1 // edits that are near enough to share context are one hunk
		for j < len(edits) && edits[j].a0-edits[j-1].a1 <= 2*contextLines {
			j++
		}
		f.hunk(a, b, edits[i:j])
		i = j
	}
}

func (f *formatter) hunk(a, b *text, edits []edit) {
	first, last := edits[0], edits[len(edits)-1]
	lead := min(contextLines, first.a0)
	a0, b0 := first.a0-lead, first.b0-lead
	trail := min(contextLines, a.len()-last.a1)
	a1, b1 := last.a1+trail, last.b1+trail
	fmt.Fprintf(&f.out, "@@ -%s +%s @@\n", spellRange(a0, a1), spellRange(b0, b1))
	at := a0
	for _, e := range edits {
		f.lines(' ', a, at, e.a0)
		f.lines('-', a, e.a0, e.a1)
		f.lines('+', b, e.b0, e.b1)
		at = e.a1
	}
	f.lines(' ', a, at, a1)
}

func (f *formatter) lines(op byte, t *text, from, to int) {
	for i := from; i < to; i++ {
		l := t.line(i)
		f.out.WriteByte(op)
		f.out.Write(l)
		if l[len(l)-1] != '\n' {
			f.out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}

func spellRange(from, to int) string {
	switch n := to - from; n {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprintf("%d", from+1)
	default:
		return fmt.Sprintf("%d,%d", from+1, n)
	}
}
