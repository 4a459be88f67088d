package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// asCheckedOut gives the operations of a branch whose files lie here the states
// and bytes of the work tree: changes are in the bytes that git keeps, and
// where attributes convert line ends a checkout writes others. A file is taken
// as it lies if git would keep of it what the change expects.
func (w *Workspace) asCheckedOut(ctx context.Context, p *planned) error {
	paths := make([]string, len(p.Ops))
	for i, op := range p.Ops {
		paths[i] = string(op.Path)
	}
	rules, err := w.lineRules(ctx, w.treeOf(ctx, p.Ref.Old), paths)
	if err != nil {
		return err
	}
	if err := w.sameRules(ctx, rules, paths); err != nil {
		return err
	}
	p.kept = slices.Clone(p.content)
	for i, op := range p.Ops {
		r := rules[paths[i]]
		if r.filter != "" {
			return unfaithful(paths[i:i+1], r.reason)
		}
		kept := keptStates{op.Before, op.After}
		if op.After.Kind == patch.File {
			p.content[i] = r.toTree(p.content[i])
			op.After = ofBytes(op.After, p.content[i])
		}
		if op.Before.Kind == patch.File && r.reason != "" {
			if op.Before, err = w.beforeAsItLies(ctx, paths[i], r, op.Before); err != nil {
				return err
			}
		}
		if kept != (keptStates{op.Before, op.After}) {
			op.Kept = &kept
		}
		p.Ops[i] = op
	}
	return nil
}

// sameRules refuses paths of which the attributes on disk say otherwise than
// those of the branch: what a checkout would write is not to be told then.
func (w *Workspace) sameRules(ctx context.Context, rules map[string]lineRule, paths []string) error {
	paths = slices.Sorted(slices.Values(paths))
	byPath, err := w.attributesHere(ctx, paths)
	if err != nil {
		return err
	}
	here, err := w.rulesOf(ctx, byPath, paths)
	if err != nil {
		return err
	}
	var bad []string
	for _, p := range paths {
		if a, b := rules[p], here[p]; a.crlf != b.crlf || a.guess != b.guess || a.filter != b.filter || (a.reason == "") != (b.reason == "") {
			bad = append(bad, p)
		}
	}
	if len(bad) > 0 {
		return conflict("state.dirty", "under other git attributes here than in the branch (commit or take back what is changed in "+attributesFile+")", bad)
	}
	return nil
}

// beforeAsItLies is the state of the file on disk if git keeps of it what was
// expected, else what was expected.
func (w *Workspace) beforeAsItLies(ctx context.Context, rel string, r lineRule, want patch.State) (patch.State, error) {
	s, kept, err := w.lies(ctx, rel, r)
	if err != nil || kept != want {
		return want, err
	}
	return s, nil
}

// lies returns the state of what lies at a path, and of what git would keep of
// it.
func (w *Workspace) lies(ctx context.Context, rel string, r lineRule) (lies, kept patch.State, err error) {
	p, err := w.at.parent(rel)
	if gone(err) {
		nothing := patch.State{Kind: patch.Absent}
		return nothing, nothing, nil
	}
	if err != nil {
		return lies, kept, pathError(rel, err)
	}
	defer func() { err = errors.Join(err, p.close()) }()
	if s, _, err := p.stat(); err != nil || s.Kind != patch.File || r.reason == "" || r.filter != "" || s.Size > w.o.MaxFile {
		s, err := p.look(ctx)
		return s, s, pathError(rel, err)
	}
	b, s, err := p.read(ctx, w.o.MaxFile)
	if err != nil {
		return lies, kept, pathError(rel, err)
	}
	return ofBytes(s, b), ofBytes(s, r.toGit(b)), nil
}

// ofBytes is a state with the size and digest of other bytes.
func ofBytes(s patch.State, b []byte) patch.State {
	sum := sha256.Sum256(b)
	s.SHA256, s.Size = hex.EncodeToString(sum[:]), int64(len(b))
	return s
}

// keptHere returns what says the state of a path on disk in the bytes that git
// keeps, which is how the states of a transaction on a branch are known.
func (w *Workspace) keptHere(ctx context.Context, commit string, paths []string) (func(rel string) (patch.State, error), error) {
	rules, err := w.lineRules(ctx, w.treeOf(ctx, commit), paths)
	if err != nil {
		return nil, err
	}
	return func(rel string) (patch.State, error) {
		if !w.ours(rel) {
			return patch.State{Kind: patch.Special}, nil
		}
		_, kept, err := w.lies(ctx, rel, rules[rel])
		return kept, err
	}, nil
}

// asKeptState is a state of a slot in the bytes that git keeps, if it is one of
// the operation's.
func (op operation) asKeptState(s patch.State) patch.State {
	switch {
	case op.Kept == nil:
	case s == op.Before:
		return op.Kept.Before
	case s == op.After:
		return op.Kept.After
	}
	return s
}

// keptBefore is what git keeps of the file at a path before the apply, where
// other bytes lie on disk.
func (t *tx) keptBefore(ctx context.Context, rel string) ([]byte, error) {
	b, err := t.w.treeOf(ctx, t.j.Ref.Old).Read(rel)
	if err != nil {
		return nil, fault.Errorf(fault.Conflict, "state.stale", "%s: %v", quote(rel), err).With("paths", []string{rel})
	}
	return b, nil
}

// ChangedFromKept is Changed for states in the bytes that git keeps, as those of
// a change that was committed are.
func (w *Workspace) ChangedFromKept(ctx context.Context, states map[string]patch.State) ([]string, error) {
	tree, err := w.Tree(ctx)
	if err != nil {
		return nil, err
	}
	paths := slices.Sorted(maps.Keys(states))
	rules, err := w.lineRules(ctx, tree, paths)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(paths, func(p string) bool {
		if err != nil || !w.ours(p) {
			return err != nil
		}
		var now patch.State
		_, now, err = w.lies(ctx, p, rules[p])
		return now == states[p]
	}), err
}
