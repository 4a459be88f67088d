package repo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// The lock on the index is held by a file of ours that has a second name: by
// that a lock that a dead process left is known to be ours. That of an apply
// is the new index once the branch has moved, and is nothing before; a late
// one, taken afterwards, is never gone by and only taken again.

func (t *tx) heldLock() string {
	return filepath.Join(filepath.Dir(t.w.index), "roundtable-"+t.name())
}

func (t *tx) lateLock() string { return t.heldLock() + ".late" }

// indexLock is the name that git itself locks the index by.
func (w *Workspace) indexLock() string { return w.index + ".lock" }

func indexLocked(lock string) error {
	return fault.Errorf(fault.Unavailable, "state.index_locked", "another program holds %s, so the index cannot be brought to what is committed; try again, and if none is running, remove that file", lock).
		With("lock", lock)
}

// lockIndex takes the lock for a file of ours, which is empty then. A lock that
// somebody else holds is waited for, and never removed.
func (t *tx) lockIndex(ctx context.Context, own string) error {
	lock := t.w.indexLock()
	ours, err := sameFile(own, lock)
	if err != nil || ours {
		return pathError(own, err)
	}
	if err := calls.Unlink(own); err != nil && !missing(err) {
		return pathError(own, err)
	}
	f, err := calls.OpenFile(own, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_CREAT|unix.O_EXCL, 0o600)
	if err != nil {
		return pathError(own, err)
	}
	err = f.Close()
	t.step(Prepare, "index_link", "")
	for end := time.Now().Add(t.w.o.LockWait); err == nil; time.Sleep(10 * time.Millisecond) {
		err = calls.Linkat(unix.AT_FDCWD, own, unix.AT_FDCWD, lock)
		if err == nil {
			return nil
		}
		if errors.Is(err, unix.EEXIST) && time.Now().Before(end) {
			err = ctx.Err()
		}
	}
	if errors.Is(err, unix.EEXIST) {
		err = indexLocked(lock)
	}
	return errors.Join(pathError(own, err), t.dropLock(own))
}

// sameFile says whether two names are of one file.
func sameFile(a, b string) (bool, error) {
	var sa, sb unix.Stat_t
	err := calls.Lstat(a, &sa)
	if err == nil {
		err = calls.Lstat(b, &sb)
	}
	if missing(err) {
		return false, nil
	}
	return err == nil && sa.Dev == sb.Dev && sa.Ino == sb.Ino, err
}

// writeLock fills the lock with a new index, durably, with the owner and the
// permission bits of the old one.
func (t *tx) writeLock(own, from string) (err error) {
	src, err := calls.OpenFile(from, unix.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return pathError(from, err)
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	to, err := calls.OpenFile(own, unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_TRUNC, 0)
	if err != nil {
		return pathError(own, err)
	}
	if _, err = io.Copy(to, src); err == nil {
		err = t.w.dressLock(to)
	}
	if err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err != nil {
		return pathError(own, err)
	}
	return syncFolder(own)
}

func (w *Workspace) dressLock(f *calls.File) error {
	var st unix.Stat_t
	switch err := calls.Lstat(w.index, &st); {
	case missing(err):
		return calls.Fchmod(f.Fd(), 0o644)
	case err != nil:
		return pathError(w.index, err)
	}
	return dress(f.Fd(), w.index, int(st.Uid), int(st.Gid), nil, st.Mode&0o777)
}

// renameLock makes the lock the index, durably.
func (t *tx) renameLock(own string) error {
	t.step(Finish, "index_name", "")
	if err := calls.Rename(t.w.indexLock(), t.w.index); err != nil {
		return pathError(t.w.index, err)
	}
	t.step(Finish, "index_name_sync", "")
	if err := syncFolder(own); err != nil {
		return err
	}
	t.w.indexed[t.name()] = true
	return t.dropLock(own)
}

// dropLocks gives up what this transaction holds of the lock. Where the folder
// of the index is away it would come back with the lock, so that is an error.
func (t *tx) dropLocks() error {
	if t.w.index == "" {
		return nil
	}
	if err := t.w.indexThere(); err != nil {
		return err
	}
	return errors.Join(t.dropLock(t.heldLock()), t.dropLock(t.lateLock()))
}

// indexThere says whether the folder is there that locks on the index lie in,
// where there can be any.
func (w *Workspace) indexThere() error {
	if !w.Commits() {
		return nil
	}
	dir := filepath.Dir(w.index)
	s, err := stampOf(dir)
	if err == nil && !s.there {
		err = w.unusable("it is not there", fmt.Errorf("no %s", dir))
	}
	return err
}

// dropLock removes a file of ours, and the lock before if it is that file.
func (t *tx) dropLock(own string) error {
	ours, err := sameFile(own, t.w.indexLock())
	if err == nil && ours {
		t.step(Finish, "index_unlock", "")
		err = calls.Unlink(t.w.indexLock())
	}
	if err == nil {
		err = calls.Unlink(own)
	}
	if missing(err) {
		return nil
	}
	return pathError(own, err)
}

// syncFolder makes names durable that were given beside a file.
func syncFolder(file string) error {
	dir := filepath.Dir(file)
	return syncDir(dir, func(fd int) error { return calls.Fsync(fd, dir) })
}
