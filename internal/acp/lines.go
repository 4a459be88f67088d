package acp

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// DefaultMaxLine is the longest line that is read unless told otherwise, in
// bytes.
const DefaultMaxLine = 32 << 20

// ErrTooLong is wrapped by the error for a line over the limit. The line is
// gone and the next one can be read.
var ErrTooLong = errors.New("line too long")

// A LineReader reads lines of bounded length. It reads in pieces, so that a
// line over the limit never takes more memory than the limit.
type LineReader struct {
	r   *bufio.Reader
	max int
	buf []byte
}

// NewLineReader reads lines of at most limit bytes from r; 0 means
// DefaultMaxLine.
func NewLineReader(r io.Reader, limit int) *LineReader {
	if limit <= 0 {
		limit = DefaultMaxLine
	}
	return &LineReader{r: bufio.NewReaderSize(r, 64<<10), max: limit}
}

// Next returns the next line without its end, valid until the next call. The
// end of the stream ends a line too; after it comes io.EOF. On an error that
// wraps ErrTooLong, the returned bytes are the beginning of the line.
func (l *LineReader) Next() ([]byte, error) {
	l.buf = l.buf[:0]
	if cap(l.buf) > 1<<20 {
		l.buf = nil // do not keep what one long line needed
	}
	long := false
	for {
		piece, err := l.r.ReadSlice('\n')
		body := bytes.TrimSuffix(piece, []byte("\n"))
		if !long {
			room := l.max - len(l.buf)
			long = len(body) > room
			l.buf = append(l.buf, body[:min(len(body), room)]...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || len(l.buf) == 0 && !long):
			return nil, err
		case long:
			return l.buf[:min(len(l.buf), 1<<10)], fmt.Errorf("%w: message exceeds %d bytes", ErrTooLong, l.max)
		}
		return bytes.TrimSuffix(l.buf, []byte("\r")), nil
	}
}
