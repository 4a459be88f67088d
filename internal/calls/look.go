package calls

import "golang.org/x/sys/unix"

// Stat is stat(2).
func Stat(name string, st *unix.Stat_t) error {
	return try("stat", name, func() error { return unix.Stat(name, st) })
}

// Lstat is lstat(2).
func Lstat(name string, st *unix.Stat_t) error {
	return try("lstat", name, func() error { return unix.Lstat(name, st) })
}

// Fstat is fstat(2).
func Fstat(fd int, st *unix.Stat_t) error {
	return try("fstat", "", func() error { return unix.Fstat(fd, st) })
}

// Fstatat is fstatat(2).
func Fstatat(dir int, name string, st *unix.Stat_t, flags int) error {
	return try("fstatat", name, func() error { return unix.Fstatat(dir, name, st, flags) })
}

// Readlinkat is readlinkat(2).
func Readlinkat(dir int, name string, b []byte) (n int, err error) {
	err = try("readlinkat", name, func() (err error) {
		n, err = unix.Readlinkat(dir, name, b)
		return err
	})
	return n, err
}

// Fchown is fchown(2).
func Fchown(fd, uid, gid int) error {
	return try("fchown", "", func() error { return unix.Fchown(fd, uid, gid) })
}

// Fchownat is fchownat(2).
func Fchownat(dir int, name string, uid, gid, flags int) error {
	return try("fchownat", name, func() error { return unix.Fchownat(dir, name, uid, gid, flags) })
}

// Fchmod is fchmod(2).
func Fchmod(fd int, perm uint32) error {
	return try("fchmod", "", func() error { return unix.Fchmod(fd, perm) })
}

// Flistxattr is flistxattr(2).
func Flistxattr(fd int, b []byte) (n int, err error) {
	err = try("flistxattr", "", func() (err error) {
		n, err = unix.Flistxattr(fd, b)
		return err
	})
	return n, err
}

// Fgetxattr is fgetxattr(2).
func Fgetxattr(fd int, attr string, b []byte) (n int, err error) {
	err = try("fgetxattr", attr, func() (err error) {
		n, err = unix.Fgetxattr(fd, attr, b)
		return err
	})
	return n, err
}

// Fsetxattr is fsetxattr(2).
func Fsetxattr(fd int, attr string, value []byte) error {
	return try("fsetxattr", attr, func() error { return unix.Fsetxattr(fd, attr, value, 0) })
}

// Read is read(2).
func Read(fd int, b []byte) (n int, err error) {
	err = try("read", "", func() (err error) {
		n, err = unix.Read(fd, b)
		return err
	})
	return n, err
}

// Statx is statx(2) of an open file.
func Statx(fd, mask int, st *unix.Statx_t) error {
	return try("statx", "", func() error { return unix.Statx(fd, "", unix.AT_EMPTY_PATH, mask, st) })
}
