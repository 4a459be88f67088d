package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// modeOf returns git's mode of what a stat found, by the owner's x bit; empty
// for what is neither a file nor a link.
func modeOf(st *unix.Stat_t) string {
	switch {
	case st.Mode&unix.S_IFMT == unix.S_IFLNK:
		return "120000"
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return ""
	case st.Mode&unix.S_IXUSR != 0:
		return "100755"
	}
	return "100644"
}

// stat returns what lies at a place without its digest.
func (p place) stat() (patch.State, unix.Stat_t, error) {
	var st unix.Stat_t
	err := calls.Fstatat(p.dir, p.name, &st, unix.AT_SYMLINK_NOFOLLOW)
	if gone(err) {
		return patch.State{Kind: patch.Absent}, st, nil
	}
	if err != nil {
		return patch.State{}, st, err
	}
	s := patch.State{Mode: modeOf(&st)}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFREG:
		s.Kind, s.Size = patch.File, st.Size
	case unix.S_IFLNK:
		s.Kind, s.Size = patch.Symlink, st.Size
	case unix.S_IFDIR:
		s.Kind = patch.Dir
	default:
		s.Kind = patch.Special
	}
	return s, st, nil
}

// look returns what lies at a place with the digest of its bytes. A folder or
// special file has none.
func (p place) look(ctx context.Context) (patch.State, error) {
	h := sha256.New()
	s, err := p.copyTo(ctx, h)
	if err == nil && (s.Kind == patch.File || s.Kind == patch.Symlink) {
		s.SHA256 = hex.EncodeToString(h.Sum(nil))
	}
	return s, err
}

// read returns the bytes of a file, at most limit, or the text of a link.
func (p place) read(ctx context.Context, limit int64) ([]byte, patch.State, error) {
	s, _, err := p.stat()
	if err == nil && s.Size > limit {
		return nil, s, fault.Errorf(fault.TooLarge, "limit.file_bytes", "%q has %d bytes; at most %d are read", p.name, s.Size, limit)
	}
	if err != nil {
		return nil, s, err
	}
	var b bytes.Buffer
	s, err = p.copyTo(ctx, &limited{w: &b, left: limit})
	if err == nil && s.Kind != patch.File && s.Kind != patch.Symlink {
		err = fmt.Errorf("%q is %s: it has no bytes: %w", p.name, s.Kind, os.ErrInvalid)
	}
	return b.Bytes(), s, err
}

// copyTo writes the bytes that lie at a place to w and returns their state
// without the digest. Nothing but a regular file is opened.
func (p place) copyTo(ctx context.Context, w io.Writer) (patch.State, error) {
	for range tries {
		s, _, err := p.stat()
		if err != nil {
			return s, err
		}
		switch s.Kind {
		case patch.Symlink:
			text, err := p.readlink()
			if errors.Is(err, unix.EINVAL) || gone(err) {
				continue // it has just become something else
			}
			if err != nil {
				return s, err
			}
			s.Size = int64(len(text))
			_, err = w.Write(text)
			return s, err
		case patch.File:
			f, st, err := p.openFile()
			if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOENT) || errors.Is(err, errNotRegular) {
				continue // the same
			}
			if err != nil {
				return s, err
			}
			n, err := io.Copy(w, &ctxReader{ctx, f})
			s.Mode, s.Size = modeOf(&st), n
			return s, errors.Join(err, f.Close())
		default:
			return s, nil
		}
	}
	return patch.State{}, fmt.Errorf("%q: %w", p.name, unix.EAGAIN)
}

// errNotRegular means: what was to be opened is a folder or special by now.
var errNotRegular = errors.New("not a regular file")

// openFile opens a regular file to be read. A FIFO that was put in its place
// does not block.
func (p place) openFile() (*calls.File, unix.Stat_t, error) {
	var st unix.Stat_t
	fd, err := openat(p.dir, p.name, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC)
	if err != nil {
		return nil, st, err
	}
	if err := calls.Fstat(fd, &st); err != nil {
		return nil, st, errors.Join(err, calls.Close(fd))
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, st, errors.Join(errNotRegular, calls.Close(fd))
	}
	return calls.NewFile(fd, p.name), st, nil
}

func (p place) readlink() ([]byte, error) {
	for size := 256; ; size *= 4 {
		b := make([]byte, size)
		n, err := calls.Readlinkat(p.dir, p.name, b)
		if err != nil || n < size {
			return b[:max(n, 0)], err
		}
	}
}

// lookAt returns what lies at a path below the anchor, with its digest.
func (a *anchor) lookAt(ctx context.Context, rel string) (patch.State, error) {
	p, err := a.parent(rel)
	if gone(err) {
		return patch.State{Kind: patch.Absent}, nil
	}
	if err != nil {
		return patch.State{}, pathError(rel, err)
	}
	s, err := p.look(ctx)
	return s, pathError(rel, errors.Join(err, p.close()))
}

// A limited writer refuses more than was allowed: a file may grow while it is
// read.
type limited struct {
	w    io.Writer
	left int64
}

func (l *limited) Write(p []byte) (int, error) {
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, fault.Errorf(fault.TooLarge, "limit.file_bytes", "a file grew past the limit while it was read")
	}
	return l.w.Write(p)
}

type ctxReader struct {
	ctx context.Context
	r   io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.r.Read(p)
}
