// Package calls makes the system calls that the writer of a workspace and the
// blob store rest on. It is one list, so that each of them can be made to fail
// by a test.
//
// What always holds: a call that a signal has interrupted is made again, but
// for close, which has then closed; the error of any other is the kernel's and
// nothing is tried twice.
package calls

import (
	"errors"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A Call is one that is about to be made.
type Call struct {
	What string // the system call: "renameat2", "fsync"
	Name string // of what it is about: the new name of a rename, a slot, a path; may be empty
}

var hook atomic.Pointer[func(Call) error]

// Inject has f asked before each call of the process: an error of f is the
// call's answer, and nothing is done; close closes all the same. restore ends
// that. Only tests call it.
func Inject(f func(Call) error) (restore func()) {
	old := hook.Swap(&f)
	return func() { hook.Store(old) }
}

// try makes a call until no signal interrupts it.
func try(what, name string, call func() error) error {
	for {
		err := asked(what, name)
		if err == nil {
			err = call()
		}
		if err != unix.EINTR {
			return err
		}
	}
}

func asked(what, name string) error {
	if f := hook.Load(); f != nil {
		return (*f)(Call{what, name})
	}
	return nil
}

// Open is open(2).
func Open(name string, flags int, perm uint32) (fd int, err error) {
	fd = -1
	err = try("open", name, func() (err error) {
		fd, err = unix.Open(name, flags|unix.O_CLOEXEC, perm)
		return err
	})
	return fd, err
}

// Openat is openat(2).
func Openat(dir int, name string, flags int, perm uint32) (fd int, err error) {
	fd = -1
	err = try("openat", name, func() (err error) {
		fd, err = unix.Openat(dir, name, flags|unix.O_CLOEXEC, perm)
		return err
	})
	return fd, err
}

// Openat2 is openat2(2).
func Openat2(dir int, name string, how *unix.OpenHow) (fd int, err error) {
	fd = -1
	err = try("openat2", name, func() (err error) {
		fd, err = unix.Openat2(dir, name, how)
		return err
	})
	return fd, err
}

// Dup is fcntl(2) with F_DUPFD_CLOEXEC.
func Dup(fd int) (again int, err error) {
	again = -1
	err = try("dup", "", func() (err error) {
		again, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	return again, err
}

// Close is close(2). Linux has closed the descriptor whatever it answers.
func Close(fd int) error {
	failed := asked("close", "")
	err := unix.Close(fd)
	if failed != nil {
		err = failed
	}
	if err == unix.EINTR {
		return nil
	}
	return err
}

// Mkdir is mkdir(2).
func Mkdir(name string, perm uint32) error {
	return try("mkdir", name, func() error { return unix.Mkdir(name, perm) })
}

// Mkdirat is mkdirat(2).
func Mkdirat(dir int, name string, perm uint32) error {
	return try("mkdirat", name, func() error { return unix.Mkdirat(dir, name, perm) })
}

// Rename is rename(2).
func Rename(from, to string) error {
	return try("rename", to, func() error { return unix.Rename(from, to) })
}

// ErrFlagsIgnored, injected, makes a renameat2 do what it does on a file system
// that takes its flags and ignores them.
var ErrFlagsIgnored = errors.New("the flags are ignored")

// Renameat is renameat(2), or renameat2(2) where there are flags.
func Renameat(fromDir int, from string, toDir int, to string, flags uint) error {
	if flags != 0 {
		err := try("renameat2", to, func() error { return unix.Renameat2(fromDir, from, toDir, to, flags) })
		if err != ErrFlagsIgnored {
			return err
		}
	}
	return try("renameat", to, func() error { return unix.Renameat(fromDir, from, toDir, to) })
}

// Linkat is linkat(2) without flags.
func Linkat(fromDir int, from string, toDir int, to string) error {
	return try("linkat", to, func() error { return unix.Linkat(fromDir, from, toDir, to, 0) })
}

// Symlinkat is symlinkat(2).
func Symlinkat(text string, dir int, name string) error {
	return try("symlinkat", name, func() error { return unix.Symlinkat(text, dir, name) })
}

// Unlink is unlink(2).
func Unlink(name string) error {
	return try("unlink", name, func() error { return unix.Unlink(name) })
}

// Unlinkat is unlinkat(2).
func Unlinkat(dir int, name string, flags int) error {
	return try("unlinkat", name, func() error { return unix.Unlinkat(dir, name, flags) })
}

// Fsync is fsync(2).
func Fsync(fd int, name string) error {
	return try("fsync", name, func() error { return unix.Fsync(fd) })
}

// Syncfs is syncfs(2).
func Syncfs(fd int) error {
	return try("syncfs", "", func() error { return unix.Syncfs(fd) })
}

// Flock is flock(2).
func Flock(fd, how int) error {
	return try("flock", "", func() error { return unix.Flock(fd, how) })
}

// Run runs a program that changes what recovery looks at.
func Run(name string, run func() error) error {
	return try("exec", name, run)
}
