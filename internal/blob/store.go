package blob

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// DefaultMaxBytes is the bound of one blob where Options name none.
const DefaultMaxBytes = 256 << 20

// Options of a Store.
type Options struct {
	MaxBytes int64 // of one blob; DefaultMaxBytes
}

// A Store is a folder of blobs: two digits of the digest, then the rest. It is
// safe for concurrent use, also by several processes.
type Store struct {
	dir  string
	max  int64
	lock *calls.File // shared while the store is open: then a file in tmp may be a live one
}

// Open opens the store in dir and makes the folder where it is missing. What
// interrupted writes left behind is swept, unless another process has the
// store open.
func Open(dir string, o Options) (*Store, error) {
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if err := makeDurable(filepath.Clean(dir)); err != nil {
		return nil, err
	}
	if err := calls.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	lock, err := calls.OpenFile(filepath.Join(dir, "lock"), unix.O_CREAT|unix.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	s := &Store{dir: dir, max: o.MaxBytes, lock: lock}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	return s, nil
}

// makeDurable makes a folder and those above it that are missing, each with a
// synced name.
func makeDurable(dir string) error {
	err := calls.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeDurable(filepath.Dir(dir)); err != nil {
			return err
		}
		err = calls.Mkdir(dir, 0o700)
	}
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return syncDir(filepath.Dir(dir))
}

// Close ends the use of the store. Nothing may be read or put afterwards.
func (s *Store) Close() error { return s.lock.Close() }

// sweep removes temporary files if nobody else can be writing one, and leaves
// the store's lock shared.
func (s *Store) sweep() error {
	fd := s.lock.Fd()
	switch err := calls.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return calls.Flock(fd, unix.LOCK_SH)
	case err != nil:
		return fmt.Errorf("lock %s: %w", s.dir, err)
	}
	tmp, err := calls.OpenFile(s.tmp(), unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	left, err := tmp.Names()
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	for _, name := range left {
		if err := calls.Unlink(filepath.Join(s.tmp(), name)); err != nil {
			return err
		}
	}
	return calls.Flock(fd, unix.LOCK_SH)
}

func (s *Store) tmp() string { return filepath.Join(s.dir, "tmp") }

func (s *Store) path(digest string) string { return filepath.Join(s.dir, digest[:2], digest[2:]) }

// Has says whether the digest is stored.
func (s *Store) Has(digest string) (bool, error) {
	if err := check(digest); err != nil {
		return false, err
	}
	var st unix.Stat_t
	err := calls.Lstat(s.path(digest), &st)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// check refuses what is no digest, so that none can name another file.
func check(digest string) error {
	if len(digest) != 64 || strings.Trim(digest, "0123456789abcdef") != "" {
		return fault.Errorf(fault.Invalid, "bad_digest", "%q is not a SHA-256 in lowercase hex", digest)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := calls.OpenFile(dir, unix.O_RDONLY|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
