package patch

// A walker goes through the runs of changed lines of one side of a diff. Every
// line that is not changed ends a run, so most runs are empty, and the n-th run
// of one side belongs to the n-th of the other.
type walker struct {
	lines      []int32
	changed    []bool
	start, end int // of the run, end exclusive
}

func newWalker(lines []int32, changed []bool) *walker {
	w := &walker{lines: lines, changed: changed}
	w.reach()
	return w
}

func (w *walker) reach() {
	for w.end < len(w.changed) && w.changed[w.end] {
		w.end++
	}
}

func (w *walker) reachBack() {
	for w.start > 0 && w.changed[w.start-1] {
		w.start--
	}
}

func (w *walker) next() bool {
	if w.end == len(w.changed) {
		return false
	}
	w.start, w.end = w.end+1, w.end+1
	w.reach()
	return true
}

func (w *walker) previous() {
	if w.start > 0 {
		w.start, w.end = w.start-1, w.start-1
		w.reachBack()
	}
}

// up moves the run one line up, where that is the same change; it takes in the
// run that it then touches.
func (w *walker) up() bool {
	if w.start == 0 || w.lines[w.start-1] != w.lines[w.end-1] {
		return false
	}
	w.start, w.end = w.start-1, w.end-1
	w.changed[w.start], w.changed[w.end] = true, false
	w.reachBack()
	return true
}

// down is up's opposite.
func (w *walker) down() bool {
	if w.end == len(w.lines) || w.lines[w.start] != w.lines[w.end] {
		return false
	}
	w.changed[w.start], w.changed[w.end] = false, true
	w.start, w.end = w.start+1, w.end+1
	w.reach()
	return true
}

// slide settles where runs of changed lines stand that could stand in several
// places, as among repeated lines: beside a change of the other side if that is
// possible, else as far down as they go. So equal changes are described
// equally, and as Git describes them.
func (d *differ) slide() {
	d.slideSide(newWalker(d.a, d.del), newWalker(d.b, d.ins))
	d.slideSide(newWalker(d.b, d.ins), newWalker(d.a, d.del))
}

func (d *differ) slideSide(run, other *walker) {
	for d.budget > 0 {
		if run.end > run.start {
			d.settle(run, other)
		}
		if !run.next() || !other.next() {
			return
		}
	}
}

// settle finds the place of one run.
func (d *differ) settle(run, other *walker) {
	highest, beside := 0, -1
	for size := 0; size != run.end-run.start && d.budget > 0; {
		size = run.end - run.start
		for run.up() {
			d.budget--
			other.previous()
		}
		highest, beside = run.end, -1
		for {
			if other.end > other.start {
				beside = run.end
			}
			if !run.down() {
				break
			}
			d.budget--
			other.next()
		}
	}
	if run.end == highest || beside < 0 {
		return
	}
	for other.end == other.start && run.up() {
		d.budget--
		other.previous()
	}
}
