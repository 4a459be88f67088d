package patch

import (
	"bytes"
	"iter"
)

// A text is a file as lines. A line has its LF, the last may lack it.
type text struct {
	data   []byte
	starts []uint32 // where each line begins, and at the end len(data)
}

func newText(data []byte) *text {
	t := &text{data, make([]uint32, 0, bytes.Count(data, []byte("\n"))+2)}
	for pos := 0; pos < len(data); {
		t.starts = append(t.starts, uint32(pos))
		_, pos = lineAt(data, pos)
	}
	t.starts = append(t.starts, uint32(len(data)))
	return t
}

func (t *text) len() int          { return len(t.starts) - 1 }
func (t *text) line(i int) []byte { return t.data[t.starts[i]:t.starts[i+1]] }

// A side says in which direction hunks are read.
type side byte

const (
	forward side = '-' // from old lines to new ones
	reverse side = '+'
)

func (d side) counts(h *Hunk) (index, lines int) {
	if d == forward {
		return h.oldIndex(), h.OldLines
	}
	return h.newIndex(), h.NewLines
}

// A stretch is a line of a hunk, as it stands in a file: the bytes of the
// hunk's body, with the LF unless the line has none.
type stretch struct{ from, to uint32 }

// side gives the lines of one side of the hunk as they stand in the file.
func (h *Hunk) side(d side) iter.Seq[stretch] {
	return func(yield func(stretch) bool) {
		for pos := 0; pos < len(h.body); {
			begin := pos
			l, next := lineAt(h.body, pos)
			op := byte(' ')
			if len(l) > 0 && l[0] != '\r' {
				op, begin = l[0], begin+1
			}
			end := next
			if next < len(h.body) && h.body[next] == '\\' {
				end--
				_, next = lineAt(h.body, next)
			}
			pos = next
			if (op == ' ' || op == byte(d)) && !yield(stretch{uint32(begin), uint32(end)}) {
				return
			}
		}
	}
}

func (h *Hunk) bytes(s stretch) []byte { return h.body[s.from:s.to] }

// standsAt reports whether the hunk's lines of the side stand at line i.
func (t *text) standsAt(i int, h *Hunk, d side) bool {
	_, n := d.counts(h)
	if i < 0 || n > t.len() || i > t.len()-n {
		return false
	}
	for s := range h.side(d) {
		if !bytes.Equal(t.line(i), h.bytes(s)) {
			return false
		}
		i++
	}
	return true
}

// find looks for the hunk's lines of the side from line i on: the first place,
// and whether there is one, or more. It is KMP over lines, so the work is
// linear; budget counts the steps of one apply down.
func (t *text) find(i int, h *Hunk, d side, budget *int) (at, matches int) {
	_, n := d.counts(h)
	if n > t.len()-i {
		return 0, 0
	}
	*budget -= t.len() - i + n
	pattern := make([]stretch, 0, n)
	for s := range h.side(d) {
		pattern = append(pattern, s)
	}
	fail := prefixTable(n, func(a, b int) bool { return bytes.Equal(h.bytes(pattern[a]), h.bytes(pattern[b])) })
	for j := 0; i < t.len(); i++ {
		l := t.line(i)
		for j > 0 && !bytes.Equal(l, h.bytes(pattern[j])) {
			j = int(fail[j-1])
		}
		if bytes.Equal(l, h.bytes(pattern[j])) {
			j++
		}
		if j == n {
			if matches++; matches == 2 {
				return at, matches
			}
			at = i - n + 1
			j = int(fail[j-1])
		}
	}
	return at, matches
}

// prefixTable is KMP's table: how much of a pattern of n elements still fits
// when the next one does not.
func prefixTable(n int, same func(a, b int) bool) []int32 {
	fail := make([]int32, n)
	for k, j := 1, 0; k < n; k++ {
		for j > 0 && !same(k, j) {
			j = int(fail[j-1])
		}
		if same(k, j) {
			j++
		}
		fail[k] = int32(j)
	}
	return fail
}

// A Placed hunk is where the lines of a hunk stand in the files.
type Placed struct {
	Hunk     int `json:"hunk"`             // index in FileDiff.Hunks
	OldStart int `json:"old_start"`        // 1-based in the file before; with no old lines the line after which it stands
	NewStart int `json:"new_start"`        // 1-based in the file after
	Offset   int `json:"offset,omitempty"` // lines away from where the patch states it
}

// A splice is the result of putting hunks into a file.
type splice struct {
	out    []byte
	placed []Placed
	loose  bool // a hunk stood elsewhere, or not at the end as one without context there should
}

// searchBudget bounds the lines looked at while hunks of one patch are searched.
const searchBudget = 50_000_000

// splice puts the hunks into the file. The refusal has no path yet.
func (t *text) splice(hunks []Hunk, d side, o Options, budget *int) (*splice, *Refusal) {
	s := &splice{out: make([]byte, 0, len(t.data))}
	cur, broken := 0, false
	emit := func(b []byte) {
		broken = broken || len(b) > 0 && len(s.out) > 0 && s.out[len(s.out)-1] != '\n'
		s.out = append(s.out, b...)
	}
	delta := 0
	for i := range hunks {
		h := &hunks[i]
		at, r := t.place(cur, h, d, h.newIndex()-h.oldIndex() == delta, o, budget)
		if r != nil {
			return nil, r
		}
		stated, _ := d.counts(h)
		s.loose = s.loose || at != stated || t.cut(at, h, d)
		emit(t.data[t.starts[cur]:t.starts[at]])
		s.placed = append(s.placed, placedAt(i, h, d, at, delta))
		for l := range h.Lines() {
			switch {
			case l.Op == ' ':
				emit(t.line(at))
				at++
			case l.Op == byte(d):
				at++
			case l.NoEOL:
				emit(l.Text)
			default:
				emit(l.Text)
				s.out = append(s.out, '\n')
			}
		}
		cur, delta = at, delta+h.Added-h.Removed
		if len(s.out) > o.MaxFileBytes {
			return nil, refuse(LimitFileBytes, h.Line, "", "the file would have more than %d bytes", o.MaxFileBytes)
		}
	}
	emit(t.data[t.starts[cur]:])
	if broken {
		return nil, refuse(ContextMismatch, hunks[len(hunks)-1].Line, "", "a line without newline would stand in the middle of the file")
	}
	return s, nil
}

func placedAt(i int, h *Hunk, d side, at, delta int) Placed {
	stated, n := d.counts(h)
	p := Placed{Hunk: i, OldStart: at, NewStart: at + delta, Offset: at - stated}
	if n > 0 {
		p.OldStart++
	}
	if h.NewLines > 0 {
		p.NewStart++
	}
	return p
}

// place finds the line at which the hunk's lines stand: where they are stated,
// else at the only other place from line cur on. Agreed tells that the old and
// the new line of the header say the same. Where they do not, or where a hunk
// ends without context and yet not at the end of the file, the stated line is
// not certain, and only the only place in the file is good enough.
func (t *text) place(cur int, h *Hunk, d side, agreed bool, o Options, budget *int) (int, *Refusal) {
	stated, n := d.counts(h)
	there := stated >= cur && t.standsAt(stated, h, d)
	if there && agreed && !t.cut(stated, h, d) {
		return stated, nil
	}
	if h.context == 0 || n == 0 {
		if there {
			return 0, refuse(Ambiguous, h.Line, "", "the hunk header contradicts itself: with the hunks before it, old line %d is not new line %d", h.OldStart, h.NewStart)
		}
		return 0, t.explain(h, d)
	}
	if *budget < 0 {
		return 0, refuse(ContextMismatch, h.Line, "", "too many hunks stand far from their stated lines to look for them all")
	}
	at, matches := t.find(cur, h, d, budget)
	switch {
	case matches > 1 && there && !agreed:
		return 0, refuse(Ambiguous, h.Line, "", "the old lines stand at more than one place, and the hunk header contradicts itself: with the hunks before it, old line %d is not new line %d", h.OldStart, h.NewStart)
	case matches > 1 && there:
		return 0, refuse(Ambiguous, h.Line, "", "the old lines stand at more than one place, and the hunk ends without context though the file goes on; add the lines after the change")
	case matches > 1:
		return 0, refuse(Ambiguous, h.Line, "", "the old lines are not at line %d and stand at more than one other place (line %d is the first)", stated+1, at+1)
	case matches == 1 && at != stated && o.NoOffsets:
		return 0, refuse(OffsetRefused, h.Line, "", "the old lines are not at line %d but at line %d, and this workspace takes no offsets", stated+1, at+1)
	case matches == 1:
		return at, nil
	}
	return 0, t.explain(h, d)
}

// cut reports whether the hunk, standing at line at, has context but none after
// its last change, and the file goes on: a tool writes that only at the end.
func (t *text) cut(at int, h *Hunk, d side) bool {
	_, n := d.counts(h)
	return h.context > 0 && h.tail == 0 && at+n != t.len()
}
