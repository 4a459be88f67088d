package patch

// An edit replaces lines a0 to a1 (exclusive, 0-based) of the old file by
// lines b0 to b1 of the new one.
type edit struct{ a0, a1, b0, b1 int }

// diffBudget bounds the steps of one line diff. Where it is used up, what is
// left is replaced as a whole: correct, though not the shortest.
const diffBudget = 20_000_000

// A differ is Myers' algorithm in linear space over numbered lines.
type differ struct {
	a, b     []int32
	del, ins []bool // lines that are not common
	vf, vb   []int32
	budget   int
}

// diffLines gives the edits from a to b in order, with equal lines between them.
func diffLines(a, b *text) []edit {
	ids := numbering{}
	d := &differ{a: ids.number(a), b: ids.number(b), budget: diffBudget}
	return d.diff()
}

// A numbering gives equal lines equal numbers.
type numbering map[string]int32

func (n numbering) number(t *text) []int32 {
	out := make([]int32, t.len())
	for i := range out {
		l := t.line(i)
		id, ok := n[string(l)]
		if !ok {
			id = int32(len(n))
			n[string(l)] = id
		}
		out[i] = id
	}
	return out
}

func (d *differ) diff() []edit {
	d.del, d.ins = make([]bool, len(d.a)), make([]bool, len(d.b))
	d.compareShared()
	d.slide()
	return d.edits()
}

// compareShared compares the lines that both sides have somewhere: what only
// one side has is changed whatever stands around it.
func (d *differ) compareShared() {
	lead, tail := 0, 0
	for lead < min(len(d.a), len(d.b)) && d.a[lead] == d.b[lead] {
		lead++
	}
	for tail < min(len(d.a), len(d.b))-lead && d.a[len(d.a)-1-tail] == d.b[len(d.b)-1-tail] {
		tail++
	}
	inA, inB := presence(d.a), presence(d.b)
	a, whereA := shared(d.a[:len(d.a)-tail], lead, inB, d.del)
	b, whereB := shared(d.b[:len(d.b)-tail], lead, inA, d.ins)
	s := &differ{a: a, b: b, del: make([]bool, len(a)), ins: make([]bool, len(b)), budget: d.budget}
	s.compare(0, len(a), 0, len(b))
	d.budget = s.budget
	for i, at := range whereA {
		d.del[at] = s.del[i]
	}
	for j, at := range whereB {
		d.ins[at] = s.ins[j]
	}
}

func presence(lines []int32) map[int32]bool {
	in := make(map[int32]bool, len(lines))
	for _, l := range lines {
		in[l] = true
	}
	return in
}

// shared gives the lines from one on that the other side has, and where they
// stand; the others are marked.
func shared(lines []int32, from int, other map[int32]bool, changed []bool) (out, where []int32) {
	for i := from; i < len(lines); i++ {
		if !other[lines[i]] {
			changed[i] = true
			continue
		}
		out, where = append(out, lines[i]), append(where, int32(i))
	}
	return out, where
}

func (d *differ) edits() (all []edit) {
	for i, j := 0, 0; i < len(d.a) || j < len(d.b); {
		e := edit{a0: i, b0: j}
		for i < len(d.a) && d.del[i] {
			i++
		}
		for j < len(d.b) && d.ins[j] {
			j++
		}
		if e.a1, e.b1 = i, j; i > e.a0 || j > e.b0 {
			all = append(all, e)
		}
		for i < len(d.a) && j < len(d.b) && !d.del[i] && !d.ins[j] {
			i, j = i+1, j+1
		}
	}
	return all
}

// compare marks what is not common in a box of the edit graph.
func (d *differ) compare(a0, a1, b0, b1 int) {
	for a0 < a1 && b0 < b1 && d.a[a0] == d.b[b0] {
		a0, b0 = a0+1, b0+1
	}
	for a0 < a1 && b0 < b1 && d.a[a1-1] == d.b[b1-1] {
		a1, b1 = a1-1, b1-1
	}
	if a0 < a1 && b0 < b1 {
		if x, y, ok := d.middle(d.a[a0:a1], d.b[b0:b1]); ok {
			d.compare(a0, a0+x, b0, b0+y)
			d.compare(a0+x, a1, b0+y, b1)
			return
		}
	}
	for i := a0; i < a1; i++ {
		d.del[i] = true
	}
	for j := b0; j < b1; j++ {
		d.ins[j] = true
	}
}

// middle finds a point on a shortest path through the box, about half way,
// from both ends at once. False when the budget is used up.
func (d *differ) middle(a, b []int32) (x, y int, ok bool) {
	n, m := len(a), len(b)
	most := (n+m+1)/2 + 1
	if len(d.vf) < 2*most+1 {
		d.vf, d.vb = make([]int32, 2*most+1), make([]int32, 2*most+1)
	}
	for i := range 2*most + 1 {
		d.vf[i], d.vb[i] = -1, -1
	}
	delta := n - m
	for steps := 0; steps < most; steps++ {
		if d.budget -= 2*steps + 2; d.budget < 0 {
			return 0, 0, false
		}
		for k := steps; k >= -steps; k -= 2 { // from this end, so that of equal ways it is Git's
			x := d.furthest(d.vf, steps, k, most, a, b, false)
			if r := delta - k; x >= 0 && delta&1 != 0 && -steps < r && r < steps && d.vb[most+r] >= 0 && x+int(d.vb[most+r]) >= n {
				return x, x - k, true
			}
		}
		for k := -steps; k <= steps; k += 2 {
			x := d.furthest(d.vb, steps, k, most, a, b, true)
			if r := delta - k; x >= 0 && delta&1 == 0 && -steps <= r && r <= steps && d.vf[most+r] >= 0 && x+int(d.vf[most+r]) >= n {
				return n - x, m - (x - k), true
			}
		}
	}
	return 0, 0, false // not reached: the paths meet within half of n+m steps
}

// furthest advances on diagonal k, counted from the near end, as far as equal
// lines go; -1 when the diagonal cannot be reached yet.
func (d *differ) furthest(v []int32, steps, k, most int, a, b []int32, backward bool) int {
	n, m := len(a), len(b)
	x := -1
	if steps == 0 {
		x = 0
	} else {
		if down := int(v[most+k+1]); down >= 0 && down-k <= m {
			x = down
		}
		if right := int(v[most+k-1]); right >= 0 && right < n {
			x = max(x, right+1)
		}
	}
	if x >= 0 {
		begin := x
		if backward {
			for y := x - k; x < n && y < m && a[n-1-x] == b[m-1-y]; y++ {
				x++
			}
		} else {
			for y := x - k; x < n && y < m && a[x] == b[y]; y++ {
				x++
			}
		}
		d.budget -= x - begin
	}
	v[most+k] = int32(x)
	return x
}
