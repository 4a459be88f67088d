package repo

import (
	"errors"
	"fmt"
	"path"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// contained is how every path is resolved: below the root, by no link, on the
// root's own mount.
const contained = unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS | unix.RESOLVE_NO_XDEV

// tries bounds how often a resolution is repeated that a rename elsewhere has
// disturbed.
const tries = 100

// An anchor is an open folder below which paths are resolved.
type anchor struct {
	f    *calls.File
	dev  uint64
	walk atomic.Bool // the kernel has no openat2: walk the components instead
}

func openAnchor(dir string) (*anchor, error) {
	f, err := calls.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err := calls.Fstat(f.Fd(), &st); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &anchor{f: f, dev: st.Dev}, nil
}

func (a *anchor) fd() int { return a.f.Fd() }

// open opens a path below the anchor; "" is the anchor itself. It follows no
// link. flags are those of open(2); O_CLOEXEC and O_NOFOLLOW are added.
func (a *anchor) open(rel string, flags int) (int, error) {
	if rel == "" {
		rel = "."
	}
	flags |= unix.O_CLOEXEC | unix.O_NOFOLLOW
	if a.walk.Load() {
		return a.walkTo(rel, flags)
	}
	how := unix.OpenHow{Flags: uint64(flags), Resolve: contained}
	for range tries {
		fd, err := calls.Openat2(a.fd(), rel, &how)
		switch err {
		case nil:
			return fd, nil
		case unix.EAGAIN:
			continue
		case unix.ENOSYS, unix.EPERM: // EPERM is what some sandboxes answer to a call they do not know
			if !a.hasOpenat2() {
				a.walk.Store(true)
				return a.walkTo(rel, flags)
			}
		}
		return -1, err
	}
	return -1, unix.EAGAIN
}

func (a *anchor) hasOpenat2() bool {
	fd, err := calls.Openat2(a.fd(), ".", &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: contained})
	if err != nil {
		return false
	}
	return calls.Close(fd) == nil
}

// walkTo opens a path component by component, each without following a link
// and on the anchor's device.
func (a *anchor) walkTo(rel string, flags int) (int, error) {
	at, err := openat(a.fd(), ".", unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC)
	if err != nil {
		return -1, err
	}
	parts := strings.Split(rel, "/")
	for i, part := range parts {
		how := unix.O_PATH | unix.O_DIRECTORY | unix.O_NOFOLLOW | unix.O_CLOEXEC
		if i == len(parts)-1 {
			how = flags
		}
		if part == ".." {
			return -1, errors.Join(unix.EXDEV, calls.Close(at))
		}
		next, err := openat(at, part, how)
		if err2 := calls.Close(at); err2 != nil && err == nil {
			err = errors.Join(err2, calls.Close(next))
		}
		if err != nil {
			return -1, err
		}
		at = next
		var st unix.Stat_t
		if err := calls.Fstat(at, &st); err != nil {
			return -1, errors.Join(err, calls.Close(at))
		}
		if st.Dev != a.dev {
			return -1, errors.Join(unix.EXDEV, calls.Close(at))
		}
	}
	return at, nil
}

func openat(at int, name string, flags int) (int, error) {
	return calls.Openat(at, name, flags, 0)
}

// A place is a name in an open folder: what every change is made at.
type place struct {
	dir  int
	name string
}

// parent opens the folder that a path lies in.
func (a *anchor) parent(rel string) (place, error) {
	dir, name := path.Split(rel)
	fd, err := a.open(strings.TrimSuffix(dir, "/"), unix.O_RDONLY|unix.O_DIRECTORY)
	return place{fd, name}, err
}

func (p place) close() error { return calls.Close(p.dir) }

// gone says that an error of a resolution means: nothing lies there. A path
// below a file or a link is not there.
func gone(err error) bool {
	return errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP)
}

// answer is the error of a whole request: a fault, also where a call failed of
// which no path is known.
func answer(err error) error {
	if errors.Is(err, errDamaged) {
		return fault.Errorf(fault.Conflict, "state.needs_attention", "%v", err)
	}
	of := pathError(stateDir, err)
	if _, is := errors.AsType[*fault.Error](of); is {
		return of
	}
	return err
}

// pathError says for which path a system call failed, as a fault where the
// reason is one the caller should know.
func pathError(rel string, err error) error {
	if _, is := errors.AsType[*fault.Error](err); is || err == nil {
		return err
	}
	switch {
	case errors.Is(err, unix.EXDEV):
		return fault.Errorf(fault.Refused, "state.cross_device", "%q lies on another mount than the workspace", rel).With("path", rel)
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return fault.Errorf(fault.Unavailable, "state.no_space", "the disk is full (at %q)", rel).With("path", rel)
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM), errors.Is(err, unix.EROFS):
		return fault.Errorf(fault.Refused, "state.permission", "the service may not do this at %q: %v", rel, err).With("path", rel)
	case errors.Is(err, unix.EIO), errors.Is(err, unix.EUCLEAN), errors.Is(err, unix.EBADMSG):
		return fault.Errorf(fault.Unavailable, "state.io", "the disk failed at %q: %v; look at it before you try again", rel, err).With("path", rel)
	}
	return fmt.Errorf("%q: %w", rel, err)
}
