package blob

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/kernel"
)

// few is the number of files up to which each is synced by itself; above it
// they are written first and synced together at the end.
const few = 16

// Put stores all of r and returns its digest. When it returns without an error
// the blob is durable. What is stored already is not written again. Past the
// store's bound it is a fault too_large, and nothing is kept.
func (s *Store) Put(ctx context.Context, r io.Reader) (digest string, err error) {
	digests, err := s.PutAll(ctx, []func() (io.ReadCloser, error){
		func() (io.ReadCloser, error) { return io.NopCloser(r), nil },
	})
	if err != nil {
		return "", err
	}
	return digests[0], nil
}

// PutBytes is Put of b.
func (s *Store) PutBytes(ctx context.Context, b []byte) (digest string, err error) {
	return s.Put(ctx, bytes.NewReader(b))
}

// PutAll stores what every source gives and returns the digests in their
// order. When it returns without an error all of them are durable; with one,
// some may be stored. Sources are opened one at a time.
func (s *Store) PutAll(ctx context.Context, sources []func() (io.ReadCloser, error)) ([]string, error) {
	digests := make([]string, 0, len(sources))
	staged := map[string]string{} // digest to temporary file
	defer func() {
		for _, tmp := range staged {
			calls.Unlink(tmp) // best effort: what stays is swept at the next Open
		}
	}()
	shards := map[string]bool{}
	for _, open := range sources {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		tmp, digest, size, err := s.stage(ctx, open)
		if err != nil {
			return nil, err
		}
		digests = append(digests, digest)
		shards[filepath.Dir(s.path(digest))] = true
		if _, twice := staged[digest]; twice || s.stored(ctx, digest, size) {
			if err := calls.Unlink(tmp); err != nil {
				return nil, err
			}
			continue
		}
		staged[digest] = tmp
	}
	if err := syncAll(slices.Collect(maps.Values(staged))); err != nil {
		return nil, err
	}
	for digest, tmp := range staged {
		if err := s.enter(digest, tmp); err != nil {
			return nil, err
		}
		delete(staged, digest)
	}
	return digests, s.settle(slices.Sorted(maps.Keys(shards)))
}

// stage writes what a source gives into a temporary file.
func (s *Store) stage(ctx context.Context, open func() (io.ReadCloser, error)) (tmp, digest string, size int64, err error) {
	r, err := open()
	if err != nil {
		return "", "", 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	name := filepath.Join(s.tmp(), "put-"+rand.Text())
	fd, err := calls.Openat(s.temp.Fd(), filepath.Base(name), unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return "", "", 0, err
	}
	f := calls.NewFile(fd, name)
	h := sha256.New()
	size, err = io.Copy(io.MultiWriter(f, h), io.LimitReader(reader{ctx, r}, s.max+1))
	if err == nil && size > s.max {
		err = fault.Errorf(fault.TooLarge, "too_large", "a blob has at most %d bytes", s.max)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", "", 0, errors.Join(err, calls.Unlink(name))
	}
	return name, hex.EncodeToString(h.Sum(nil)), size, nil
}

// stored says whether the blob is there and sound. A damaged one is written
// anew: whoever has its bytes again must not be turned away.
func (s *Store) stored(ctx context.Context, digest string, size int64) bool {
	var st unix.Stat_t
	if err := calls.Lstat(s.path(digest), &st); err != nil || st.Size != size {
		return false
	}
	r, err := s.Open(digest)
	if err != nil {
		return false
	}
	_, err = io.Copy(io.Discard, reader{ctx, r})
	return errors.Join(err, r.Close()) == nil
}

// enter gives a synced temporary file its name.
func (s *Store) enter(digest, tmp string) error {
	dst := s.path(digest)
	if err := calls.Mkdir(filepath.Dir(dst), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	shard, err := openDir(filepath.Dir(dst))
	if err != nil {
		return err
	}
	return errors.Join(calls.Renameat(s.temp.Fd(), filepath.Base(tmp), shard.Fd(), filepath.Base(dst), 0), shard.Close())
}

// settle makes the names durable. A name that was there before is synced too:
// whoever put it may not have come to that yet.
func (s *Store) settle(shards []string) error {
	for _, dir := range shards {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return syncDir(s.dir)
}

// syncAll makes the bytes of files durable.
func syncAll(names []string) error {
	if len(names) > few && kernel.SyncfsReports() {
		return syncTogether(names[0])
	}
	return syncEach(names)
}

// reader ends with the context's error when that is done.
type reader struct {
	ctx context.Context
	r   io.Reader
}

func (r reader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
