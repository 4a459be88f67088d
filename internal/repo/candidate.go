package repo

import (
	"bytes"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"path/filepath"
	"strings"

	"roundtable/internal/patch"
)

// Candidate returns the id of the whole tree that the changes make of the
// snapshot: tracked files as they lie on disk, untracked ones that are not
// ignored, and the changes on top; or, where changes are committed, of the
// branch's tree. Nothing of the repository changes.
func (w *Workspace) Candidate(ctx context.Context, changes []patch.Change) (CandidateTree, error) {
	if !w.Git() {
		m, err := w.manifest(ctx, "", changes)
		return CandidateTree{ID: m.digest(), Kind: "manifest"}, err
	}
	x, err := w.private(ctx)
	if err != nil {
		return CandidateTree{}, err
	}
	id, err := x.candidate(ctx, changes, false)
	return CandidateTree{ID: id, Kind: "git"}, errors.Join(err, x.close())
}

// candidate makes the tree in the private index. With objects, everything in
// it can be checked out; else only its id is of use.
func (x *private) candidate(ctx context.Context, changes []patch.Change, objects bool) (string, error) {
	if err := x.fill(ctx, objects); err != nil {
		return "", err
	}
	return x.write(ctx, changes, objects)
}

// write puts the changes on top of what the private index holds, and returns
// the id of the tree.
func (x *private) write(ctx context.Context, changes []patch.Change, objects bool) (string, error) {
	oids, err := x.objectsOf(ctx, changes, objects)
	if err != nil {
		return "", err
	}
	var away, there bytes.Buffer // what goes first may be a file where a folder comes, or the reverse
	for i, c := range changes {
		switch c.After.Kind {
		case patch.File, patch.Symlink:
			fmt.Fprintf(&there, "%s %s\t%s\x00", c.After.Mode, oids[i], c.Path)
		default:
			fmt.Fprintf(&away, "0 %s\t%s\x00", strings.Repeat("0", newHash(x.w.format).Size()*2), c.Path)
		}
	}
	away.Write(there.Bytes())
	if away.Len() > 0 {
		args := []string{"update-index", "--add", "--replace", "-z", "--index-info"}
		if _, err := x.git(ctx, call{args: args, stdin: away.Bytes()}); err != nil {
			return "", err
		}
	}
	out, err := x.git(ctx, call{args: []string{"write-tree", "--missing-ok"}})
	return strings.TrimSpace(string(out)), err
}

// newHash is the hash of a repository's object ids.
func newHash(format string) hash.Hash {
	if format == "sha256" {
		return sha256.New()
	}
	return sha1.New()
}

func hexOf(h hash.Hash) string { return hex.EncodeToString(h.Sum(nil)) }

// objectsOf returns the object id of each change's after-image, in order, and
// writes the objects if asked to.
func (x *private) objectsOf(ctx context.Context, changes []patch.Change, write bool) ([]string, error) {
	oids := make([]string, len(changes))
	var names bytes.Buffer
	var want []string
	changes, err := x.w.asKept(ctx, changes)
	if err != nil {
		return nil, err
	}
	for i, c := range changes {
		if c.After.Kind != patch.File && c.After.Kind != patch.Symlink {
			continue
		}
		h := newHash(x.w.format)
		fmt.Fprintf(h, "blob %d\x00", len(c.Content))
		h.Write(c.Content)
		oids[i] = hexOf(h)
		if !write {
			continue
		}
		name := filepath.Join(x.dir, fmt.Sprintf("image-%d", i))
		if err := os.WriteFile(name, c.Content, 0o600); err != nil {
			return nil, pathError(c.Path, err)
		}
		names.WriteString(name + "\n")
		want = append(want, oids[i])
	}
	if len(want) == 0 {
		return oids, nil
	}
	if strings.Contains(x.dir, "\n") {
		return nil, fmt.Errorf("a line break in the workspace's path %q", x.w.root)
	}
	out, err := x.git(ctx, call{args: []string{"hash-object", "-w", "--no-filters", "--stdin-paths"}, stdin: names.Bytes()})
	if err != nil {
		return nil, err
	}
	if got := strings.Join(strings.Fields(string(out)), " "); got != strings.Join(want, " ") {
		return nil, errors.New("git hash-object gives other ids than the images have")
	}
	return oids, nil
}
