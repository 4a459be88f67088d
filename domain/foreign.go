package domain

import (
	"maps"
	"slices"
	"time"

	"roundtable/events"
)

// maxForeignPaths bounds the paths of one event.
const maxForeignPaths = 500

// found takes the states that somebody left behind the service's back as those
// that are known from now on.
func (t Tree) found(e events.WorkspaceForeignChange) Tree {
	if t.Left == nil {
		t.Left = map[string]Left{}
	}
	for _, p := range e.Paths {
		if l, ok := t.Left[p.Path]; !ok || l.State != p.Is {
			t.Left[p.Path] = Left{State: p.Is}
		}
	}
	return t
}

// A Sight is what lay at some paths when somebody looked, all of a moment or
// with no transaction having the turn meanwhile but the one that looks.
type Sight struct {
	FoundAt     string // why somebody looked: see events.WorkspaceForeignChange
	Transaction string // that looks
	Head        string
	Now         []events.PathState
	Held        map[string]events.PathState // by path: see events.ForeignPath
	// Bases are what revisions were made on, by path. They count where nothing
	// newer is known.
	Bases map[string]events.PathState
}

// Foreign returns that paths are not as they are known, and which claims that
// makes stale. A path is known by what the last transaction or the last such
// finding left there; else by what the newest live claim of the file saw; else
// by what a revision was made on. While another transaction has the turn
// nothing that lies there is certain, and nothing is found; nor is it by who
// looks in another mode than the one in which the paths are known.
func (t Tree) Foreign(workspace string, s Sight, c Claims, now time.Time) (out []events.Payload) {
	certain := t.Mode == t.Asks && !slices.ContainsFunc(t.Applying, func(id string) bool { return id != s.Transaction })
	if !certain && len(s.Held) == 0 {
		return nil
	}
	var all []events.ForeignPath
	var stale []events.PathState
	seen := c.seen(now)
	for _, is := range s.Now {
		was, known := t.known(is.Path, seen, s.Bases)
		held, isHeld := s.Held[is.Path]
		changed := certain && known && lies(was) != lies(is)
		switch {
		case changed:
			stale = append(stale, is)
		case !isHeld:
			continue
		case known:
			is = was // as far as is certain
		}
		p := events.ForeignPath{Path: is.Path, Was: was, Is: is}
		if !known {
			p.Was = is
		}
		if isHeld {
			p.Held = &held
		}
		all = append(all, p)
	}
	for part := range slices.Chunk(all, maxForeignPaths) {
		out = append(out, events.WorkspaceForeignChange{Workspace: workspace, FoundAt: s.FoundAt, Transaction: s.Transaction, Head: s.Head, Paths: part})
	}
	return append(out, c.Overtaken(events.ClaimBecameStale{Workspace: workspace, Cause: "foreign_change"}, stale, nil, now)...)
}

// Without returns s without what lay at these paths.
func (s Sight) Without(paths []string) Sight {
	s.Now = slices.DeleteFunc(slices.Clone(s.Now), func(p events.PathState) bool { return slices.Contains(paths, p.Path) })
	return s
}

// lies is a state as far as files go: where a folder lies no file does.
func lies(s events.PathState) events.PathState {
	if s.Kind == "dir" {
		return events.PathState{Path: s.Path, Kind: "absent"}
	}
	return s
}

func (t Tree) known(path string, seen, bases map[string]events.PathState) (events.PathState, bool) {
	if l, ok := t.Left[path]; ok {
		return l.State, true
	}
	if s, ok := seen[path]; ok {
		return s, true
	}
	s, ok := bases[path]
	return s, ok
}

// seen returns what the newest live claim of each file saw there.
func (c Claims) seen(now time.Time) map[string]events.PathState {
	out, fence := map[string]events.PathState{}, map[string]int64{}
	for _, o := range c.Live {
		if o.Seen != nil && o.Expires.After(now) && o.Fence > fence[o.Seen.Path] {
			out[o.Seen.Path], fence[o.Seen.Path] = *o.Seen, o.Fence
		}
	}
	return out
}

// KnownPaths lists the paths in r whose state is known without any revision,
// sorted.
func (t Tree) KnownPaths(r Resource, c Claims, now time.Time) []string {
	paths := map[string]bool{}
	for p := range t.Left {
		paths[p] = true
	}
	for p := range c.seen(now) {
		paths[p] = true
	}
	maps.DeleteFunc(paths, func(p string, _ bool) bool { return !r.Contains(p) })
	return slices.Sorted(maps.Keys(paths))
}

// Bases returns what a revision was made on, by path, if that may be compared
// with what lies there later.
func (t Tree) Bases(r Revision) map[string]events.PathState {
	if !r.Base.Watched || !t.ModeAt.IsZero() && !r.At.After(t.ModeAt) {
		return nil
	}
	out := map[string]events.PathState{}
	for _, s := range slices.Concat(r.Base.Paths, r.Base.Sources) {
		out[s.Path] = s
	}
	return out
}
