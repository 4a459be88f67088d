package patch

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
)

// A MapTree is a tree in memory. It is for tests and for callers that have the
// files they need at hand. It is not safe for concurrent change.
type MapTree struct {
	entries map[string]mapEntry
	names   map[string]map[string]bool // folder → names in it
}

type mapEntry struct {
	state State
	data  []byte
	links int
}

// NewMapTree returns an empty tree.
func NewMapTree() *MapTree {
	return &MapTree{map[string]mapEntry{}, map[string]map[string]bool{"": {}}}
}

// Put sets the file or link at path; mode is "100644", "100755" or "120000".
// Folders are made as needed.
func (t *MapTree) Put(path, mode string, data []byte) {
	t.add(path)
	t.entries[path] = mapEntry{state: stateOf(mode, data), data: data, links: 1}
}

// PutDir makes a folder and those above it.
func (t *MapTree) PutDir(path string) {
	t.add(path)
	if t.names[path] == nil {
		t.names[path] = map[string]bool{}
	}
}

// PutSpecial puts something at path that is neither file, link nor folder.
func (t *MapTree) PutSpecial(path string) {
	t.add(path)
	t.entries[path] = mapEntry{state: State{Kind: Special}}
}

// SetLinks says how many names the file at path has.
func (t *MapTree) SetLinks(path string, n int) {
	e := t.entries[path]
	e.links = n
	t.entries[path] = e
}

func (t *MapTree) add(path string) {
	for p := path; p != ""; p = dirOf(p) {
		d := dirOf(p)
		if t.names[d] == nil {
			t.names[d] = map[string]bool{}
		}
		t.names[d][base(p)] = true
	}
}

func (t *MapTree) remove(path string) {
	delete(t.entries, path)
	delete(t.names, path)
	delete(t.names[dirOf(path)], base(path))
}

// Apply changes the tree as a result says.
func (t *MapTree) Apply(r *Result) {
	for _, c := range r.Changes {
		if c.Before.Kind != Absent {
			t.remove(c.Path)
		}
	}
	for _, d := range r.RemoveDirs {
		t.remove(d)
	}
	for _, c := range r.Changes {
		if c.After.Kind != Absent {
			t.Put(c.Path, c.After.Mode, c.Content)
		}
	}
}

// Paths returns the paths of all files, links and special things, sorted.
func (t *MapTree) Paths() []string { return slices.Sorted(maps.Keys(t.entries)) }

// Stat is Tree's.
func (t *MapTree) Stat(path string) (State, error) {
	if e, ok := t.entries[path]; ok {
		return e.state, nil
	}
	if t.names[path] != nil {
		return State{Kind: Dir}, nil
	}
	return State{Kind: Absent}, nil
}

// Read is Tree's.
func (t *MapTree) Read(path string) ([]byte, error) {
	e, ok := t.entries[path]
	if !ok || e.state.Kind == Special {
		return nil, fmt.Errorf("no file at %s: %w", Show(path), fs.ErrNotExist)
	}
	return e.data, nil
}

// Names is Tree's.
func (t *MapTree) Names(dir string) ([]string, error) {
	return slices.Sorted(maps.Keys(t.names[dir])), nil
}

// Links is LinkCounter's.
func (t *MapTree) Links(path string) (int, error) { return t.entries[path].links, nil }
