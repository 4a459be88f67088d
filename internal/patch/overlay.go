package patch

import (
	"slices"
	"strings"
)

// An overlay is a tree with some paths changed. Folders that the changes empty
// are gone, folders that they need are there.
type overlay struct {
	before   Tree
	now      map[string]Change
	children map[string][]string // folder → names that the changes put or need there
	emptied  map[string]bool     // answers of gone
	removals map[string]bool     // folders with a removed path somewhere beneath
}

// After returns the tree that the changes make of before. It reads before when
// it is asked, so before must not change meanwhile. The changes must be those
// of a Result on the same tree.
func After(before Tree, changes []Change) Tree {
	o := newOverlay(before)
	for _, c := range changes {
		o.set(c)
	}
	return o
}

func newOverlay(before Tree) *overlay {
	return &overlay{before, map[string]Change{}, map[string][]string{}, map[string]bool{}, map[string]bool{}}
}

// set records a change. All must be recorded before the first question.
func (o *overlay) set(c Change) {
	o.now[c.Path] = c
	for p := c.Path; p != ""; p = dirOf(p) {
		if c.After.Kind == Absent {
			o.removals[dirOf(p)] = true
			continue
		}
		d := dirOf(p)
		if p != c.Path && slices.Contains(o.children[d], base(p)) {
			break // the folders above are known
		}
		o.children[d] = append(o.children[d], base(p))
	}
}

func (o *overlay) Stat(p string) (State, error) {
	if c, ok := o.now[p]; ok && c.After.Kind != Absent {
		return c.After, nil
	}
	if len(o.children[p]) > 0 {
		return State{Kind: Dir}, nil
	}
	if _, ok := o.now[p]; ok {
		return State{Kind: Absent}, nil
	}
	st, err := o.before.Stat(p)
	if err != nil || st.Kind != Dir || p == "" {
		return st, err
	}
	gone, err := o.gone(p)
	if gone {
		st = State{Kind: Absent}
	}
	return st, err
}

func (o *overlay) Read(p string) ([]byte, error) {
	if c, ok := o.now[p]; ok && c.After.Kind != Absent {
		return c.Content, nil
	}
	return o.before.Read(p)
}

func (o *overlay) Names(dir string) ([]string, error) {
	old, err := o.before.Names(dir)
	if err != nil {
		return nil, err
	}
	names := slices.Clone(o.children[dir])
	for _, n := range old {
		p := join(dir, n)
		if c, ok := o.now[p]; ok && c.After.Kind == Absent {
			continue
		}
		if o.removals[p] {
			if gone, err := o.gone(p); err != nil {
				return nil, err
			} else if gone {
				continue
			}
		}
		names = append(names, n)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// gone reports whether the changes leave nothing of a folder: they take
// something out of it, put nothing into it, and nothing else is there.
func (o *overlay) gone(dir string) (bool, error) {
	if !o.removals[dir] || len(o.children[dir]) > 0 || dir == "" {
		return false, nil
	}
	if known, ok := o.emptied[dir]; ok {
		return known, nil
	}
	names, err := o.before.Names(dir)
	if err != nil {
		return false, err
	}
	gone := len(names) > 0
	for _, n := range names {
		p := join(dir, n)
		if c, ok := o.now[p]; ok {
			gone = gone && c.After.Kind == Absent
		} else if below, err := o.gone(p); err != nil {
			return false, err
		} else {
			gone = gone && below
		}
		if !gone {
			break
		}
	}
	o.emptied[dir] = gone
	return gone, nil
}

// folders gives the folders that must be made, parents first, and those that
// become empty, deepest first.
func (o *overlay) folders() (made, emptied []string, err error) {
	for d := range o.children {
		if d == "" {
			continue
		}
		st, err := o.before.Stat(d)
		if err != nil {
			return nil, nil, err
		}
		if st.Kind != Dir {
			made = append(made, d)
		}
	}
	for d := range o.removals {
		gone, err := o.gone(d)
		if err != nil {
			return nil, nil, err
		}
		st, err := o.before.Stat(d)
		if err != nil {
			return nil, nil, err
		}
		if gone && st.Kind == Dir {
			emptied = append(emptied, d)
		}
	}
	slices.Sort(made)
	slices.SortFunc(emptied, func(a, b string) int { return strings.Compare(b, a) })
	return made, emptied, nil
}

// A statCache remembers what a tree said, so that each path is looked at once
// and the answers of one apply agree with each other.
type statCache struct {
	Tree
	states map[string]State
	names  map[string][]string
}

func newCache(t Tree) *statCache {
	return &statCache{t, map[string]State{}, map[string][]string{}}
}

func (c *statCache) Stat(p string) (State, error) {
	if st, ok := c.states[p]; ok {
		return st, nil
	}
	st, err := c.Tree.Stat(p)
	if err == nil {
		c.states[p] = st
	}
	return st, err
}

func (c *statCache) Names(dir string) ([]string, error) {
	if n, ok := c.names[dir]; ok {
		return n, nil
	}
	n, err := c.Tree.Names(dir)
	if err == nil {
		c.names[dir] = n
	}
	return n, err
}
