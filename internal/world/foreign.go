package world

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"roundtable/events"
	"roundtable/internal/wire"
)

// lookAtOnce bounds how many paths are looked at while no apply can move any.
const lookAtOnce = 500

// Look returns what lies at paths now, in their order. What may not be read,
// is the service's or Git's own, or has a name that events cannot hold is left
// out.
func (w *World) Look(ctx context.Context, root string, paths []string) (out []events.PathState, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return nil, err
	}
	for part := range slices.Chunk(paths, lookAtOnce) {
		states, err := s.States(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, p := range part {
			if st, ok := states[p]; ok && recorded(p) {
				out = append(out, pathState(p, st))
			}
		}
	}
	return out, nil
}

// recorded reports whether an event can hold a name as it is. Of one that is no
// UTF-8 the history has another spelling, and what lies at that is no news.
func recorded(path string) bool {
	return utf8.ValidString(path) && !strings.ContainsRune(path, utf8.RuneError)
}

// Describe says what the folder at root is, and what can be done in it.
func (w *World) Describe(ctx context.Context, root string) (out wire.Repository, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return out, err
	}
	out = wire.Repository{Root: root, Kind: "folder", Changes: []wire.ForeignChange{}}
	if s.Git() {
		out.Kind = "git"
	}
	if out.Head, err = s.Head(ctx); err != nil {
		return out, err
	}
	if out.Branch, err = s.HeadBranch(ctx); err != nil {
		return out, err
	}
	p, err := s.Probe(ctx)
	out.Abilities = wire.Abilities{AtomicDetect: p.AtomicDetect, Openat2: p.Openat2, SyncFS: p.SyncFS, Detail: p.Detail}
	return out, err
}

// Outside returns HEAD's commit, and those of paths that git ignores.
func (w *World) Outside(ctx context.Context, root string, paths []string) (head string, ignored []string, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return "", nil, err
	}
	if head, err = s.Head(ctx); err != nil {
		return "", nil, err
	}
	ignored, err = s.Ignored(ctx, paths, func(string) (bool, error) { return true, nil })
	return head, ignored, err
}
