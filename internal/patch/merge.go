package patch

import "bytes"

// A Clash is a place where both sides changed the same lines, or lines that
// touch, and not in the same way.
type Clash struct {
	Base, Ours, Theirs Excerpt
}

// An Excerpt is some lines of a file.
type Excerpt struct {
	Start int // 1-based, of the first; with no lines the line after which they would stand
	Count int
	Text  []byte // each line with its LF, but for a last one without
}

// MergeLines merges what ours and theirs made of base, line by line. It gives
// the merged bytes, or every clash. A change that both sides made alike is
// taken once; changes that touch each other are a clash, even of different
// lines, since neither side has seen the result.
//
// What always holds of a merge without a clash: each side's changes are in it,
// all and no others; exchanging ours and theirs gives the same bytes.
func MergeLines(base, ours, theirs []byte) ([]byte, []Clash) {
	m := &merger{base: newText(base), ours: &version{text: newText(ours)}, theirs: &version{text: newText(theirs)}}
	ids := numbering{}
	was := ids.number(m.base)
	for _, v := range []*version{m.ours, m.theirs} {
		d := &differ{a: was, b: ids.number(v.text), budget: diffBudget}
		v.edits = d.diff()
	}
	m.run()
	if len(m.clashes) > 0 {
		return nil, m.clashes
	}
	return m.out, nil
}

// A version is one side: its lines, and the edits that made them of the base's
// and are not merged yet.
type version struct {
	text  *text
	edits []edit
	ahead int // how many lines it has more than the base, up to here
}

// take takes the next edits up to line to of the base, also those that touch
// it, and says how far they reach.
func (v *version) take(to int) (edits []edit, reach int) {
	n := 0
	for n < len(v.edits) && v.edits[n].a0 <= to {
		to = max(to, v.edits[n].a1)
		n++
	}
	edits, v.edits = v.edits[:n], v.edits[n:]
	return edits, to
}

// excerpt gives the lines that stand for lines from to to of the base, once
// edits have been made in them.
func (v *version) excerpt(from, to int, edits []edit) Excerpt {
	from += v.ahead
	for _, e := range edits {
		v.ahead += (e.b1 - e.b0) - (e.a1 - e.a0)
	}
	return v.text.excerpt(from, to+v.ahead)
}

func (t *text) excerpt(from, to int) Excerpt {
	e := Excerpt{Start: from, Count: to - from, Text: t.data[t.starts[from]:t.starts[to]]}
	if e.Count > 0 {
		e.Start++
	}
	return e
}

// A merger goes through the edits of both sides in the order of the base.
type merger struct {
	base         *text
	ours, theirs *version
	done         int // lines of the base that are merged
	out          []byte
	clashes      []Clash
}

func (m *merger) run() {
	for len(m.ours.edits) > 0 || len(m.theirs.edits) > 0 {
		m.group()
	}
	m.copyTo(m.base.len())
}

// group merges the next edits that touch each other.
func (m *merger) group() {
	from := m.base.len()
	for _, v := range []*version{m.ours, m.theirs} {
		if len(v.edits) > 0 {
			from = min(from, v.edits[0].a0)
		}
	}
	m.copyTo(from)
	var left, right []edit
	to := from
	for {
		l, reach := m.ours.take(to)
		r, further := m.theirs.take(reach)
		left, right, to = append(left, l...), append(right, r...), further
		if len(r) == 0 {
			break
		}
	}
	ours, theirs := m.ours.excerpt(from, to, left), m.theirs.excerpt(from, to, right)
	switch {
	case len(right) == 0 || bytes.Equal(ours.Text, theirs.Text):
		m.out = append(m.out, ours.Text...)
	case len(left) == 0:
		m.out = append(m.out, theirs.Text...)
	default:
		m.clashes = append(m.clashes, Clash{m.base.excerpt(from, to), ours, theirs})
	}
	m.done = to
}

// copyTo takes the lines of the base that nobody changed.
func (m *merger) copyTo(line int) {
	m.out = append(m.out, m.base.data[m.base.starts[m.done]:m.base.starts[line]]...)
	m.done = line
}
