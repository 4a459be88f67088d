package repo

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// A manifest is the state of every file and link of a tree without Git.
// Empty folders, special files and nested repositories are not in it.
type manifest map[string]patch.State

// digest is the SHA-256 over the sorted entries.
func (m manifest) digest() string {
	h := sha256.New()
	for _, p := range slices.Sorted(maps.Keys(m)) {
		s := m[p]
		fmt.Fprintf(h, "%s %d %s %s\x00", s.Mode, s.Size, s.SHA256, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// manifest returns what lies in a folder, with the changes on top. Paths are
// relative to the folder.
func (w *Workspace) manifest(ctx context.Context, dir string, changes []patch.Change) (manifest, error) {
	m := manifest{}
	over := map[string]bool{}
	for _, c := range changes {
		over[c.Path] = true
		if c.After.Kind == patch.File || c.After.Kind == patch.Symlink {
			m[c.Path] = c.After
		}
	}
	err := w.walk(ctx, dir, "", func(rel string, p place) error {
		if over[rel] {
			return nil
		}
		s, err := p.look(ctx)
		if err == nil && s.Kind != patch.Absent {
			m[rel] = s
		}
		return err
	})
	return m, err
}

// walk calls visit for every file and link below dir/rel, with the path
// relative to dir. What does not belong to the tree is passed by.
func (w *Workspace) walk(ctx context.Context, dir, rel string, visit func(rel string, p place) error) error {
	w.moves.RLock()
	defer w.moves.RUnlock()
	left := w.o.MaxFiles
	var step func(rel string) error
	step = func(rel string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		at := join(dir, rel)
		fd, err := w.at.open(at, unix.O_RDONLY|unix.O_DIRECTORY)
		if gone(err) {
			return nil // it went while we walked
		}
		if err != nil {
			return pathError(at, err)
		}
		again, err := calls.Dup(fd) // reading the names closes one
		if err != nil {
			return errors.Join(err, calls.Close(fd))
		}
		defer func() { err = errors.Join(err, calls.Close(fd)) }()
		names, err := namesIn(again)
		if err != nil {
			return pathError(at, err)
		}
		if at != "" && slices.Contains(names, ".git") {
			return nil
		}
		for _, name := range names {
			child, p := join(rel, name), place{fd, name}
			if !w.ours(join(dir, child)) {
				continue
			}
			s, _, err := p.stat()
			if err != nil {
				return pathError(child, err)
			}
			if left--; left < 0 {
				return fault.Errorf(fault.TooLarge, "too_large", "the workspace has more than %d files", w.o.MaxFiles)
			}
			switch s.Kind {
			case patch.Dir:
				err = step(child)
			case patch.File, patch.Symlink:
				err = pathError(child, visit(child, p))
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return step(rel)
}

func join(dir, name string) string {
	if dir == "" || name == "" {
		return dir + name
	}
	return dir + "/" + name
}

// copyTree writes the tree of a plain folder with the changes on top into dst,
// and compares.
func (w *Workspace) copyTree(ctx context.Context, changes []patch.Change, dst string) (CandidateTree, error) {
	out, err := os.OpenRoot(dst)
	if err != nil {
		return CandidateTree{}, err
	}
	want, over := manifest{}, map[string]bool{}
	for _, c := range changes {
		over[c.Path] = true
	}
	err = w.walk(ctx, "", "", func(rel string, p place) (err error) {
		if !over[rel] {
			want[rel], err = copyFile(ctx, p, out, rel)
		}
		return err
	})
	for _, c := range changes {
		if err == nil && (c.After.Kind == patch.File || c.After.Kind == patch.Symlink) {
			want[c.Path] = c.After
			err = writeImage(out, c)
		}
	}
	if err = errors.Join(err, out.Close()); err != nil {
		return CandidateTree{}, err
	}
	id := want.digest()
	got, err := manifestOf(ctx, dst, w.o)
	if err == nil && got.digest() != id {
		err = fmt.Errorf("what was written is not the tree %s", id)
	}
	return CandidateTree{ID: id, Kind: "manifest"}, err
}

// manifestOf is the manifest of any folder.
func manifestOf(ctx context.Context, dir string, o Options) (manifest, error) {
	at, err := openAnchor(dir)
	if err != nil {
		return nil, err
	}
	w := &Workspace{root: dir, o: o, at: at}
	m, err := w.manifest(ctx, "", nil)
	return m, errors.Join(err, at.f.Close())
}

// copyFile copies a file or link and returns the state that was read.
func copyFile(ctx context.Context, p place, out *os.Root, rel string) (patch.State, error) {
	s, _, err := p.stat()
	if err != nil {
		return s, err
	}
	if err := out.MkdirAll(filepath.Dir(rel), 0o777); err != nil {
		return s, err
	}
	if s.Kind == patch.Symlink {
		text, err := p.readlink()
		if err != nil {
			return s, err
		}
		s, err = p.look(ctx)
		return s, errors.Join(err, out.Symlink(string(text), rel))
	}
	h := sha256.New()
	f, err := out.OpenFile(rel, os.O_CREATE|os.O_EXCL|os.O_WRONLY, permOf(s.Mode))
	if err != nil {
		return s, err
	}
	s, err = p.copyTo(ctx, io.MultiWriter(f, h))
	s.SHA256 = hex.EncodeToString(h.Sum(nil))
	return s, errors.Join(err, f.Close())
}

// writeImage writes a change's after-image.
func writeImage(out *os.Root, c patch.Change) error {
	if err := out.MkdirAll(filepath.Dir(c.Path), 0o777); err != nil {
		return err
	}
	if c.After.Kind == patch.Symlink {
		return out.Symlink(string(c.Content), c.Path)
	}
	f, err := out.OpenFile(c.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, permOf(c.After.Mode))
	if err != nil {
		return err
	}
	_, err = f.Write(c.Content)
	return errors.Join(err, f.Close())
}

func permOf(mode string) os.FileMode {
	if mode == "100755" {
		return 0o777
	}
	return 0o666
}
