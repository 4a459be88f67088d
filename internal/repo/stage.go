package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/kernel"
	"roundtable/internal/patch"
)

// few is the number up to which files and folders are synced one by one; above
// it one syncfs is quicker.
const few = 16

// stage writes the after-images into their slots, and both images into the
// blob store. It also makes a copy of each folder that will be emptied, so that
// one which could not be made again is noticed now. Nothing in the work tree
// changes.
func (t *tx) stage(ctx context.Context, p planned) error {
	together := len(p.moves()) > few && kernel.SyncfsReports()
	for i, op := range p.moves() {
		if err := ctx.Err(); err != nil {
			return err
		}
		if op.Kind == remove {
			continue
		}
		t.step(Prepare, "stage", string(op.Path))
		if err := t.stageOne(ctx, i, op, p.content[i], !together && !t.w.lax); err != nil {
			return stale(string(op.Path), err)
		}
	}
	for i, f := range p.Emptied {
		t.step(Prepare, "stage_folder", string(f.Path))
		if err := t.makeAside(i, f); err != nil {
			return pathError(string(f.Path), err)
		}
	}
	t.step(Prepare, "stage_sync", "")
	if together && !t.w.lax {
		if err := calls.Syncfs(t.dir); err != nil {
			return pathError(txDir, err)
		}
	}
	if err := calls.Fsync(t.dir, t.name()); err != nil {
		return pathError(txDir, err)
	}
	t.step(Prepare, "images", "")
	return t.images(ctx, p)
}

// images puts before- and after-images into the blob store. A before-image that
// is no longer the one planned is stale.
func (t *tx) images(ctx context.Context, p planned) error {
	var sources []func() (io.ReadCloser, error)
	var want, paths []string
	for i, op := range p.Ops {
		if op.Kind != create {
			sources = append(sources, func() (io.ReadCloser, error) {
				r, err := t.before(ctx, string(op.Path))
				return r, stale(string(op.Path), err)
			})
			want, paths = append(want, op.Before.SHA256), append(paths, string(op.Path))
		}
		if op.Kind != remove {
			sources = append(sources, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.content[i])), nil })
			want, paths = append(want, op.After.SHA256), append(paths, string(op.Path))
		}
		if k := op.Kept; k != nil && k.After != op.After {
			sources = append(sources, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.kept[i])), nil })
			want, paths = append(want, k.After.SHA256), append(paths, string(op.Path))
		}
		if k := op.Kept; k != nil && k.Before != op.Before {
			sources = append(sources, func() (io.ReadCloser, error) {
				b, err := t.keptBefore(ctx, string(op.Path))
				return io.NopCloser(bytes.NewReader(b)), err
			})
			want, paths = append(want, k.Before.SHA256), append(paths, string(op.Path))
		}
	}
	got, err := t.w.o.Blobs.PutAll(ctx, sources)
	if err != nil {
		return pathError("blobs", err)
	}
	var moved []string
	for i := range got {
		if got[i] != want[i] {
			moved = append(moved, paths[i])
		}
	}
	if len(moved) > 0 {
		return conflict("state.stale", noLonger, moved)
	}
	return nil
}

const noLonger = "no longer as the proposal expects them"

// stale is the error for a path that cannot be read any more: where somebody
// took it away, that is a conflict.
func stale(rel string, err error) error {
	if gone(err) || errors.Is(err, errNotRegular) {
		return conflict("state.stale", noLonger, []string{rel})
	}
	return pathError(rel, err)
}

// before opens what lies at a path before the apply.
func (t *tx) before(ctx context.Context, rel string) (io.ReadCloser, error) {
	if m := t.j.Ref; m != nil && !m.Here {
		b, err := t.w.treeOf(ctx, m.Old).Read(rel)
		return io.NopCloser(bytes.NewReader(b)), err
	}
	return t.w.image(rel)
}

// image opens the bytes of a file or the text of a link of the work tree.
func (w *Workspace) image(rel string) (io.ReadCloser, error) {
	p, err := w.at.parent(rel)
	if err != nil {
		return nil, err
	}
	r, err := p.image()
	if err2 := p.close(); err == nil && err2 != nil {
		err = errors.Join(err2, r.Close())
	}
	return r, err
}

func (p place) image() (io.ReadCloser, error) {
	if text, err := p.readlink(); err == nil {
		return io.NopCloser(bytes.NewReader(text)), nil
	} else if !errors.Is(err, unix.EINVAL) { // which is: no link
		return nil, err
	}
	f, _, err := p.openFile()
	if err != nil {
		return nil, err
	}
	return f, nil
}

// stageOne writes one after-image.
func (t *tx) stageOne(ctx context.Context, i int, op operation, content []byte, sync bool) error {
	like, err := t.w.modelOf(op)
	if err != nil {
		return err
	}
	if op.After.Kind == patch.Symlink {
		err = t.stageLink(i, like, string(content))
	} else {
		err = t.stageFile(i, op, like, content, sync)
	}
	if err != nil {
		return err
	}
	s, err := t.at(slot(i)).look(ctx)
	if err == nil && s != op.After {
		err = fault.Errorf(fault.Refused, "state.permission", "%s cannot be written with mode %s here", quote(string(op.Path)), op.After.Mode).With("path", string(op.Path))
	}
	return err
}

// A model is what a new file takes over: of the file it replaces, or of the
// folder it comes into.
type model struct {
	file       bool // there is a regular file to be replaced
	uid, gid   int  // -1: as it comes
	perm       uint32
	attrs      map[string][]byte
	defaultACL []byte
}

// modelOf looks at what an operation replaces, else at the nearest folder.
func (w *Workspace) modelOf(op operation) (model, error) {
	m := model{uid: -1, gid: -1}
	if op.Kind == replace {
		p, err := w.at.parent(string(op.Path))
		if err != nil {
			return m, err
		}
		_, st, err := p.stat()
		m.uid, m.gid = int(st.Uid), int(st.Gid)
		if err == nil && op.Before.Kind == patch.File {
			err = m.of(p)
		}
		return m, errors.Join(err, p.close())
	}
	for dir := path.Dir(string(op.Path)); ; dir = path.Dir(dir) {
		fd, err := w.at.open(strings.TrimPrefix(dir, "."), unix.O_RDONLY|unix.O_DIRECTORY)
		if gone(err) && dir != "." {
			continue
		}
		if err != nil {
			return m, err
		}
		var st unix.Stat_t
		err = calls.Fstat(fd, &st)
		if err == nil && st.Mode&unix.S_ISGID != 0 {
			m.gid = int(st.Gid)
		}
		if err == nil {
			m.defaultACL, err = xattr(fd, defaultACL)
		}
		return m, errors.Join(err, calls.Close(fd))
	}
}

// of fills in what goes over from the file at a place.
func (m *model) of(p place) error {
	f, st, err := p.openFile()
	if err != nil {
		return err
	}
	m.file, m.perm = true, st.Mode&0o777
	m.attrs, err = xattrs(f.Fd())
	return errors.Join(err, f.Close())
}

// permFor is the permission bits of a replaced file: kept, but that a change of
// mode sets x where r is set, or clears it.
func permFor(perm uint32, op operation) uint32 {
	switch {
	case op.Before.Mode == op.After.Mode:
		return perm
	case op.After.Mode == "100755":
		return perm | perm&0o444>>2
	}
	return perm &^ 0o111
}

func (t *tx) stageLink(i int, like model, text string) error {
	if err := calls.Symlinkat(text, t.dir, slot(i)); err != nil {
		return err
	}
	if like.uid < 0 && like.gid < 0 {
		return nil
	}
	return t.own(i, like)
}

// own gives a staged link the owner of what it replaces.
func (t *tx) own(i int, like model) error {
	_, st, err := t.at(slot(i)).stat()
	if err != nil || (like.uid < 0 || int(st.Uid) == like.uid) && int(st.Gid) == like.gid {
		return err
	}
	if err := calls.Fchownat(t.dir, slot(i), like.uid, like.gid, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return fault.Errorf(fault.Refused, "state.permission", "the owner of a replaced link cannot be kept: %v", err)
	}
	return nil
}

// stageFile writes the bytes of a slot. A file that replaces one takes over its
// owner, attributes and permission bits; a new one gets what the umask, the
// folder's group and its default ACL make of 0666 or 0777.
func (t *tx) stageFile(i int, op operation, like model, content []byte, sync bool) (err error) {
	perm := uint32(permOf(op.After.Mode))
	if like.file {
		perm = 0o600
	}
	dir := t.dir
	if !like.file && like.defaultACL != nil {
		if dir, err = t.inheriting(i, like.defaultACL); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, calls.Close(dir)) }()
	}
	fd, err := calls.Openat(dir, slot(i), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, perm)
	if err != nil {
		return err
	}
	f := calls.NewFile(fd, string(op.Path))
	_, err = f.Write(content)
	switch {
	case err != nil:
	case like.file:
		err = dress(fd, string(op.Path), like.uid, like.gid, like.attrs, permFor(like.perm, op))
	case like.uid >= 0 || like.gid >= 0:
		err = t.own2(fd, string(op.Path), like)
	}
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil || dir == t.dir {
		return err
	}
	return errors.Join(calls.Renameat(dir, slot(i), t.dir, slot(i), 0), calls.Unlinkat(t.dir, "acl-"+strconv.Itoa(i), unix.AT_REMOVEDIR))
}

// own2 gives a new file the group of its folder, or the owner of the link that
// it replaces.
func (t *tx) own2(fd int, rel string, like model) error {
	var st unix.Stat_t
	if err := calls.Fstat(fd, &st); err != nil {
		return err
	}
	uid, gid := like.uid, like.gid
	if uid < 0 {
		uid = int(st.Uid)
	}
	if gid < 0 {
		gid = int(st.Gid)
	}
	return dress(fd, rel, uid, gid, nil, st.Mode&0o777)
}

// inheriting makes a folder with a default ACL, so that the kernel makes of it
// what it would in the real one.
func (t *tx) inheriting(i int, acl []byte) (int, error) {
	dir := "acl-" + strconv.Itoa(i)
	if err := calls.Mkdirat(t.dir, dir, 0o700); err != nil {
		return -1, err
	}
	fd, err := openat(t.dir, dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC)
	if err != nil {
		return -1, err
	}
	if err := calls.Fsetxattr(fd, defaultACL, acl); err != nil {
		return -1, errors.Join(err, calls.Close(fd))
	}
	return fd, nil
}
