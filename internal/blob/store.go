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
	temp *calls.File // the open folder of files that have no digest yet
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
	at, err := openDir(filepath.Clean(dir))
	if err == nil {
		err = at.Close()
	}
	if err != nil {
		return nil, err
	}
	if err := calls.Mkdir(filepath.Join(dir, "tmp"), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	if err := syncDir(dir); err != nil {
		return nil, err
	}
	temp, err := openDir(filepath.Join(dir, "tmp"))
	if err != nil {
		return nil, err
	}
	lock, err := calls.OpenFile(filepath.Join(dir, "lock"), unix.O_CREAT|unix.O_RDWR|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, errors.Join(plain(filepath.Join(dir, "lock"), err), temp.Close())
	}
	s := &Store{dir: dir, temp: temp, max: o.MaxBytes, lock: lock}
	if err := s.sweep(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// openDir opens a folder of the store, which is no link.
func openDir(name string) (*calls.File, error) {
	f, err := calls.OpenFile(name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	return f, plain(name, err)
}

// plain is the error of opening what must be no link and no special file.
func plain(name string, err error) error {
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) {
		return fault.Errorf(fault.Refused, "state.not_plain", "%s is a link or of another kind than the blob store makes it: move it away", name).With("path", name)
	}
	return err
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
	above, err := calls.OpenFile(filepath.Dir(dir), unix.O_RDONLY|unix.O_DIRECTORY, 0) // the person's, who may have links
	if err != nil {
		return err
	}
	return errors.Join(above.Sync(), above.Close())
}

// Close ends the use of the store. Nothing may be read or put afterwards.
func (s *Store) Close() error { return errors.Join(s.lock.Close(), s.temp.Close()) }

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
	tmp, err := openDir(s.tmp())
	if err != nil {
		return err
	}
	left, err := tmp.Names()
	if err = errors.Join(err, tmp.Close()); err != nil {
		return err
	}
	for _, name := range left {
		if err := calls.Unlinkat(s.temp.Fd(), name, 0); err != nil {
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
	d, err := openDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
