package calls

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A File is an open file or folder. Close it once.
type File struct {
	f    *os.File
	fd   int
	name string
}

// NewFile makes a File of a descriptor, which it then owns. The name is for
// messages.
func NewFile(fd int, name string) *File {
	return &File{os.NewFile(uintptr(fd), name), fd, name}
}

// OpenFile is Open that gives a File.
func OpenFile(name string, flags int, perm uint32) (*File, error) {
	fd, err := Open(name, flags, perm)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return NewFile(fd, name), nil
}

// Fd returns the descriptor, which is the File's to close.
func (f *File) Fd() int { return f.fd }

// Name returns the name that was given.
func (f *File) Name() string { return f.name }

// Read is io.Reader's.
func (f *File) Read(b []byte) (n int, err error) {
	err = try("read", f.name, func() (err error) {
		n, err = f.f.Read(b)
		return err
	})
	return n, err
}

// ReadAt is io.ReaderAt's.
func (f *File) ReadAt(b []byte, off int64) (n int, err error) {
	err = try("pread", f.name, func() (err error) {
		n, err = f.f.ReadAt(b, off)
		return err
	})
	return n, err
}

// Write is io.Writer's: all of b, or an error.
func (f *File) Write(b []byte) (n int, err error) {
	err = try("write", f.name, func() (err error) {
		n, err = f.f.Write(b)
		return err
	})
	return n, err
}

// Truncate is ftruncate(2).
func (f *File) Truncate(size int64) error {
	return try("ftruncate", f.name, func() error { return f.f.Truncate(size) })
}

// Sync is fsync(2).
func (f *File) Sync() error {
	return try("fsync", f.name, f.f.Sync)
}

// Names returns the names in an open folder, from where its reading stands.
func (f *File) Names() (names []string, err error) {
	err = try("getdents", f.name, func() (err error) {
		names, err = f.f.Readdirnames(-1)
		return err
	})
	return names, err
}

// Close closes the file, whatever it answers.
func (f *File) Close() error {
	failed := asked("close", f.name)
	if err := f.f.Close(); err != nil {
		return err
	}
	if failed == unix.EINTR {
		return nil
	}
	return failed
}

var (
	_ io.ReadWriteCloser = (*File)(nil)
	_ io.ReaderAt        = (*File)(nil)
)
