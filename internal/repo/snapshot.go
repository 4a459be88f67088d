package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// ResolveCommit returns the full id of a commit that the repository has. rev
// is an id of 7 digits or more; anything else, and an id that is unknown, is a
// fault unknown_base.
func (w *Workspace) ResolveCommit(ctx context.Context, rev string) (string, error) {
	unknown := fault.Errorf(fault.Refused, "unknown_base", "the repository has no commit %q", rev)
	if !w.Git() || len(rev) < 7 || len(rev) > 64 || strings.Trim(rev, "0123456789abcdef") != "" {
		return "", unknown
	}
	out, err := w.git(ctx, call{args: []string{"rev-parse", "--quiet", "--verify", "--end-of-options", rev + "^{commit}"}, ok: []int{1, 128}})
	if err != nil {
		return "", err
	}
	id := strings.TrimSpace(string(out))
	if !strings.HasPrefix(id, rev) {
		if err := w.whole(ctx); err != nil {
			return "", err
		}
		return "", unknown
	}
	return id, nil
}

// HasTree says whether the repository has a tree object of its own; false in a
// plain folder.
func (w *Workspace) HasTree(ctx context.Context, id string) (bool, error) {
	if !w.Git() || len(id) < 40 || len(id) > 64 || strings.Trim(id, "0123456789abcdef") != "" {
		return false, nil
	}
	out, err := w.git(ctx, call{args: []string{"rev-parse", "--quiet", "--verify", "--end-of-options", id + "^{tree}"}, ok: []int{1, 128}})
	return strings.TrimSpace(string(out)) == id, err
}

// Snapshot returns the base made of the newest commit and the states of paths.
func (w *Workspace) Snapshot(ctx context.Context, paths []string) (Base, error) {
	look, commit, err := w.looker(ctx)
	if err != nil {
		return Base{}, err
	}
	if !w.Commits() {
		if commit, err = w.Head(ctx); err != nil {
			return Base{}, err
		}
	}
	w.moves.RLock()
	defer w.moves.RUnlock()
	b := Base{Commit: commit, ObjectFormat: w.format, States: map[string]patch.State{}}
	for _, p := range paths {
		if b.States[p], err = look(p); err != nil {
			return Base{}, err
		}
	}
	b.PathsDigest = PathsDigest(b.States)
	return b, nil
}

// looker returns what says the state of a path of the governed tree, and the
// commit where that is a branch's.
func (w *Workspace) looker(ctx context.Context) (look func(rel string) (patch.State, error), commit string, err error) {
	if !w.Commits() {
		return func(rel string) (patch.State, error) { return w.stateOf(ctx, rel) }, "", nil
	}
	tree, commit, err := w.branch(ctx)
	return tree.look, commit, err
}

// stateOf is what lies at a path on disk, with its digest.
func (w *Workspace) stateOf(ctx context.Context, rel string) (patch.State, error) {
	if !w.ours(rel) {
		return patch.State{Kind: patch.Special}, nil
	}
	return w.at.lookAt(ctx, rel)
}

// PathsDigest is the SHA-256 of states by path. Equal states have equal
// digests, and the order in which they were added does not count.
func PathsDigest(states map[string]patch.State) string {
	h := sha256.New()
	for _, p := range slices.Sorted(maps.Keys(states)) {
		s := states[p]
		fmt.Fprintf(h, "%s %s %d %s %s\x00", s.Kind, s.Mode, s.Size, s.SHA256, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Changed returns the paths, sorted, that are not in the state given.
func (w *Workspace) Changed(ctx context.Context, states map[string]patch.State) ([]string, error) {
	look, _, err := w.looker(ctx)
	if err != nil {
		return nil, err
	}
	w.moves.RLock()
	defer w.moves.RUnlock()
	var changed []string
	for _, p := range slices.Sorted(maps.Keys(states)) {
		now, err := look(p)
		if err != nil {
			return nil, err
		}
		if now != states[p] {
			changed = append(changed, p)
		}
	}
	return changed, nil
}

// Digest returns the base hash of a claim's resource. Kind "file": the SHA-256
// of the bytes, or of a link's text. Kind "directory", of which path "" is the
// whole tree: the SHA-256 of its sorted listing, with modes and contents, of
// tracked files and untracked ones that are not ignored. The hash is empty
// unless the resource is Present.
func (w *Workspace) Digest(ctx context.Context, kind, path string) (Presence, string, error) {
	if kind != "file" && kind != "directory" {
		return "", "", fault.Errorf(fault.Invalid, "bad_resource", "no digest is defined for a %q", kind)
	}
	s := patch.State{Kind: patch.Dir}
	look, _, err := w.looker(ctx)
	if err == nil && path != "" {
		s, err = look(path)
	}
	switch {
	case errors.Is(err, unix.EACCES), fault.CodeOf(err) == "state.permission":
		return Unreadable, "", nil
	case err != nil:
		return "", "", err
	case s.Kind == patch.Absent:
		return Missing, "", nil
	case kind == "file" && (s.Kind == patch.File || s.Kind == patch.Symlink):
		return Present, s.SHA256, nil
	case kind == "file" || s.Kind != patch.Dir:
		return Unreadable, "", nil // something else lies there
	}
	hash, err := w.listingDigest(ctx, path)
	if fault.CodeOf(err) == "state.permission" {
		return Unreadable, "", nil
	}
	if err != nil {
		return "", "", err
	}
	return Present, hash, nil
}

// listingDigest is the digest of a folder's listing.
func (w *Workspace) listingDigest(ctx context.Context, dir string) (string, error) {
	if !w.Git() {
		m, err := w.manifest(ctx, dir, nil)
		return m.digest(), err
	}
	x, err := w.private(ctx)
	if err != nil {
		return "", err
	}
	entries, err := x.listing(ctx, dir)
	if err = errors.Join(err, x.close()); err != nil {
		return "", err
	}
	h := sha256.New()
	for _, e := range entries {
		fmt.Fprintf(h, "%s %s %s\x00", e.mode, e.oid, strings.TrimPrefix(strings.TrimPrefix(e.path, dir), "/"))
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// gitlinks returns the paths of the index that are other repositories.
func (w *Workspace) gitlinks(ctx context.Context) (map[string]bool, error) {
	x, err := w.tracked(ctx)
	if err != nil {
		return nil, err
	}
	return x.links, nil
}
