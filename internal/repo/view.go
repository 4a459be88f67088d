package repo

import (
	"context"
	"errors"
	"path"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// A View is the tree for one question: it looks at each folder and path once.
// Where changes are committed it is the branch's.
// It is for one goroutine; close it.
type View struct {
	disk
	branch *committed        // where changes are committed: then the disk does not count
	moved  int               // how often files had been moved when it began
	seen   map[string]looked // paths, and folders on the way to them
	dir    string            // the folder that is open
	fd     int               // of it; -1 if none is
	bytes  map[string][]byte // of files that were read, as long as there is room
	room   int64
}

// maxViewed bounds the bytes that a view keeps of the files it has read.
const maxViewed = 64 << 20

// A looked is what lies at a path.
type looked struct {
	state patch.State
	links int
}

// View returns the files as Tree does.
func (w *Workspace) View(ctx context.Context) (*View, error) {
	if w.Commits() {
		tree, _, err := w.branch(ctx)
		return &View{disk: disk{ctx: ctx, w: w}, branch: tree, fd: -1}, err
	}
	w.moves.RLock() // not in the middle of a move
	moved := w.moved
	w.moves.RUnlock()
	links, err := w.gitlinks(ctx)
	return &View{disk: disk{ctx, w, links}, moved: moved, seen: map[string]looked{}, fd: -1, bytes: map[string][]byte{}, room: maxViewed}, err
}

// Close closes the folder that was looked into last.
func (v *View) Close() error {
	if v.fd < 0 {
		return nil
	}
	fd := v.fd
	v.fd = -1
	return calls.Close(fd)
}

// Stat is patch.Tree's.
func (v *View) Stat(rel string) (patch.State, error) {
	if v.branch != nil {
		return v.branch.Stat(rel)
	}
	l, err := v.look(rel)
	return l.state, err
}

// Links is patch.LinkCounter's.
func (v *View) Links(rel string) (int, error) {
	if v.branch != nil {
		return 1, nil
	}
	l, err := v.look(rel)
	return l.links, err
}

func (v *View) look(rel string) (looked, error) {
	if l, ok := v.seen[rel]; ok {
		return l, nil
	}
	l, ok, err := v.quick(rel)
	if err != nil {
		return l, err
	}
	if !ok {
		if l.state, err = v.disk.Stat(rel); err == nil {
			l.links, err = v.disk.Links(rel)
		}
		if err != nil {
			return l, err
		}
	}
	v.seen[rel] = l
	return l, nil
}

// quick looks at a file, a link or nothing in a folder of the tree, or at such
// a folder. Anything else is not ok and is for disk to say.
func (v *View) quick(rel string) (l looked, ok bool, err error) {
	if rel == "" || !v.w.ours(rel) || v.links[rel] {
		return l, false, nil
	}
	dir := parentOf(rel)
	if dir != "" {
		if up, err := v.look(dir); err != nil || up.state.Kind != patch.Dir {
			return l, false, err
		}
	}
	if ok, err := v.enter(dir); err != nil || !ok {
		return l, false, err
	}
	s, st, err := place{v.fd, path.Base(rel)}.stat()
	switch {
	case err != nil:
		return l, false, nil
	case s.Kind == patch.Absent:
		return looked{state: s}, true, nil
	case s.Kind == patch.File || s.Kind == patch.Symlink:
		return looked{s, int(st.Nlink)}, true, nil
	case s.Kind != patch.Dir:
		return l, false, nil
	}
	if ok, err := v.enter(rel); err != nil || !ok {
		return l, false, err
	}
	git, _, err := place{v.fd, ".git"}.stat()
	return looked{s, int(st.Nlink)}, err == nil && git.Kind == patch.Absent, nil
}

// enter opens a folder, if it is not the one that is open.
func (v *View) enter(dir string) (ok bool, err error) {
	if v.fd >= 0 && v.dir == dir {
		return true, nil
	}
	if err := v.Close(); err != nil {
		return false, err
	}
	fd, err := v.w.at.open(dir, unix.O_PATH|unix.O_DIRECTORY)
	if err != nil {
		return false, nil
	}
	v.dir, v.fd = dir, fd
	return true, nil
}

// Read is patch.Tree's. Nobody changes the bytes.
func (v *View) Read(rel string) ([]byte, error) {
	if v.branch != nil {
		return v.branch.Read(rel)
	}
	if b, ok := v.bytes[rel]; ok {
		return b, nil
	}
	b, err := v.read(rel)
	if v.room -= int64(len(b)); err == nil && v.room >= 0 {
		v.bytes[rel] = b
	}
	return b, err
}

// Names is patch.Tree's.
func (v *View) Names(dir string) ([]string, error) {
	if v.branch != nil {
		return v.branch.Names(dir)
	}
	return v.disk.Names(dir)
}

func (v *View) read(rel string) ([]byte, error) {
	l, err := v.look(rel)
	if err != nil {
		return nil, err
	}
	if err := v.ctx.Err(); err != nil {
		return nil, err
	}
	if l.state.Kind == patch.File && l.state.Size <= v.w.o.MaxFile {
		if ok, err := v.enter(parentOf(rel)); err != nil {
			return nil, err
		} else if ok {
			b, err := v.readFile(rel, l.state.Size)
			if err == nil || fault.CodeOf(err) != "" {
				return b, err
			}
		}
	}
	return v.disk.Read(rel) // or the reason why it cannot be read
}

// readFile reads a regular file of the folder that is open, which had a size
// when it was looked at.
func (v *View) readFile(rel string, size int64) (_ []byte, err error) {
	fd, err := calls.Openat(v.fd, path.Base(rel), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, calls.Close(fd)) }()
	var st unix.Stat_t
	if err := calls.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errNotRegular
	}
	b := make([]byte, 0, size+1)
	for {
		n, err := calls.Read(fd, b[len(b):cap(b)])
		if err != nil {
			return nil, err
		}
		asked := cap(b) - len(b)
		b = b[:len(b)+n]
		switch {
		case n == 0 || n < asked && int64(len(b)) == st.Size: // less than asked for: the end
			return b, nil
		case int64(len(b)) > v.w.o.MaxFile:
			return nil, fault.Errorf(fault.TooLarge, "limit.file_bytes", "%q grew past the limit while it was read", rel)
		case len(b) == cap(b):
			b = append(b, 0)[:len(b)]
		}
	}
}

// Base returns the base made of HEAD and the states of paths, as Snapshot does.
// Of files and links that changes were computed of in this view, their states
// before count; if the writer has moved any since, all are looked at anew.
func (v *View) Base(ctx context.Context, changes []patch.Change, paths []string) (Base, error) {
	if v.branch != nil {
		return v.w.Snapshot(ctx, paths)
	}
	known := map[string]patch.State{}
	for _, c := range changes {
		if c.Before.Kind == patch.File || c.Before.Kind == patch.Symlink {
			known[c.Path] = c.Before
		}
	}
	commit, err := v.w.Head(ctx)
	if err != nil {
		return Base{}, err
	}
	v.w.moves.RLock()
	defer v.w.moves.RUnlock()
	if v.w.moved != v.moved {
		known = nil
	}
	b := Base{Commit: commit, ObjectFormat: v.w.format, States: map[string]patch.State{}}
	for _, p := range paths {
		if s, ok := known[p]; ok {
			b.States[p] = s
		} else if b.States[p], err = v.w.stateOf(ctx, p); err != nil {
			return Base{}, err
		}
	}
	b.PathsDigest = PathsDigest(b.States)
	return b, nil
}

func parentOf(rel string) string {
	if dir := path.Dir(rel); dir != "." {
		return dir
	}
	return ""
}
