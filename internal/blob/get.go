package blob

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// Get returns the bytes of a blob, after comparing them with the digest. One
// that is not stored is a fault not_found, blob_missing; one that is damaged
// is an internal error.
func (s *Store) Get(ctx context.Context, digest string) ([]byte, error) {
	r, err := s.Open(digest)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(reader{ctx, r})
	if err = errors.Join(err, r.Close()); err != nil {
		return nil, err
	}
	return b, nil
}

// Open returns a blob to be read. The last Read fails, instead of answering
// io.EOF, if the bytes were not those of the digest.
func (s *Store) Open(digest string) (io.ReadCloser, error) {
	if err := check(digest); err != nil {
		return nil, err
	}
	f, err := calls.OpenFile(s.path(digest), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Errorf(fault.NotFound, "blob_missing", "no blob %s is stored", digest)
	}
	if err != nil {
		return nil, err
	}
	return &verified{f: f, want: digest, h: sha256.New()}, nil
}

type verified struct {
	f    *calls.File
	want string
	h    hash.Hash
}

func (v *verified) Read(p []byte) (int, error) {
	n, err := v.f.Read(p)
	v.h.Write(p[:n])
	if err == io.EOF && hex.EncodeToString(v.h.Sum(nil)) != v.want {
		return n, errors.New("blob " + v.want + " is damaged")
	}
	return n, err
}

func (v *verified) Close() error { return v.f.Close() }
