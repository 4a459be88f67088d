package repo

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/patch"
)

// stateDir is the folder in the root that holds the writer's state.
const stateDir = ".roundtable"

// ours says whether a path may belong to the tree: it passes by no Git folder,
// by nothing of the writer's and by nothing else that was reserved.
func (w *Workspace) ours(rel string) bool {
	for i, part := range strings.Split(rel, "/") {
		if strings.EqualFold(part, ".git") || strings.EqualFold(part, "git~1") || i == 0 && strings.EqualFold(part, stateDir) {
			return false
		}
	}
	return !slices.ContainsFunc(w.reserved, func(r string) bool { return within(rel, r) })
}

// within says whether a path is dir or lies below it.
func within(rel, dir string) bool {
	return dir == "" || rel == dir || strings.HasPrefix(rel, dir+"/")
}

// nested returns the first folder on the way to a path that is a repository of
// its own, the path included.
func (w *Workspace) nested(rel string, links map[string]bool) (string, bool, error) {
	for i := 0; i <= len(rel); i++ {
		if i < len(rel) && rel[i] != '/' || i == 0 {
			continue
		}
		dir := rel[:i]
		if links[dir] {
			return dir, true, nil
		}
		fd, err := w.at.open(dir, unix.O_PATH|unix.O_DIRECTORY)
		if gone(err) {
			return "", false, nil
		}
		if err != nil {
			return "", false, pathError(dir, err)
		}
		s, _, err := place{fd, ".git"}.stat()
		if err = errors.Join(err, calls.Close(fd)); err != nil && !errors.Is(err, unix.EACCES) {
			return "", false, pathError(dir, err)
		}
		if err == nil && s.Kind != patch.Absent {
			return dir, true, nil
		}
	}
	return "", false, nil
}

// disk is the tree as it lies on disk.
type disk struct {
	ctx   context.Context // of the one question the tree was made for
	w     *Workspace
	links map[string]bool // gitlinks of the index
}

func (d disk) Stat(rel string) (patch.State, error) {
	switch {
	case rel == "":
		return patch.State{Kind: patch.Dir}, nil
	case !d.w.ours(rel):
		return patch.State{Kind: patch.Special}, nil
	}
	if dir, is, err := d.w.nested(rel, d.links); err != nil || is {
		if dir == rel {
			return patch.State{Kind: patch.Special}, err
		}
		return patch.State{Kind: patch.Absent}, err
	}
	p, err := d.w.at.parent(rel)
	if gone(err) {
		return patch.State{Kind: patch.Absent}, nil
	}
	if err != nil {
		return patch.State{}, pathError(rel, err)
	}
	s, _, err := p.stat()
	return s, pathError(rel, errors.Join(err, p.close()))
}

func (d disk) Read(rel string) ([]byte, error) {
	s, err := d.Stat(rel)
	if err != nil {
		return nil, err
	}
	if s.Kind != patch.File && s.Kind != patch.Symlink {
		return nil, &os.PathError{Op: "read", Path: rel, Err: os.ErrNotExist}
	}
	p, err := d.w.at.parent(rel)
	if err != nil {
		return nil, pathError(rel, err)
	}
	b, _, err := p.read(d.ctx, d.w.o.MaxFile)
	return b, pathError(rel, errors.Join(err, p.close()))
}

// Links is patch.LinkCounter's.
func (d disk) Links(rel string) (int, error) {
	p, err := d.w.at.parent(rel)
	if gone(err) {
		return 0, nil
	}
	if err != nil {
		return 0, pathError(rel, err)
	}
	s, st, err := p.stat()
	if err == nil && s.Kind == patch.Absent {
		return 0, p.close()
	}
	return int(st.Nlink), pathError(rel, errors.Join(err, p.close()))
}

func (d disk) Names(dir string) ([]string, error) {
	if s, err := d.Stat(dir); err != nil || s.Kind != patch.Dir {
		return nil, err
	}
	fd, err := d.w.at.open(dir, unix.O_RDONLY|unix.O_DIRECTORY)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, pathError(dir, err)
	}
	names, err := namesIn(fd)
	prefix := dir
	if prefix != "" {
		prefix += "/"
	}
	names = slices.DeleteFunc(names, func(n string) bool { return !d.w.ours(prefix + n) })
	return names, pathError(dir, err)
}

// namesIn returns the sorted names in an open folder and closes it.
func namesIn(fd int) ([]string, error) {
	f := calls.NewFile(fd, "folder")
	names, err := f.Names()
	slices.Sort(names)
	return names, errors.Join(err, f.Close())
}
