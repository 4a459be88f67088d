package patch

import (
	"bytes"
	"compress/zlib"
	"io"
	"strconv"
)

// A binary is the forward part of a binary section, inflated.
type binary struct {
	delta bool
	data  []byte // the file, or the delta that makes it
}

// base85 is git's alphabet, and digit85 the value of each of its characters
// plus one.
const base85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"

var digit85 = func() (d [256]byte) {
	for i, c := range []byte(base85) {
		d[c] = byte(i + 1)
	}
	return d
}()

// readBinary reads the forward part and, where it is given, the reverse part,
// which is checked and, unless somebody wants to undo the patch, dropped.
func readBinary(s *scanner, c *section, p *Patch) *Refusal {
	if n := p.o.oidLen(); len(c.oldOID) != n || len(c.newOID) != n {
		return refuse(BinaryWithoutOID, c.line, "", "a binary section needs an index line with both full object ids; make it with git diff --binary --full-index")
	}
	b, r := readPart(s, p)
	if r != nil {
		return r
	}
	if b == nil {
		if s.eof() {
			return refuse(Truncated, s.line-1, "", "the input ends before the binary data")
		}
		return refuse(BinaryCorrupt, s.line, "", "%s is neither \"literal\" nor \"delta\" with a size", excerpt(s.header()))
	}
	c.bin = b
	back, r := readPart(s, p)
	if p.o.keepReverse {
		c.back = back
	}
	return r
}

// readPart reads one part; nil when none begins here.
func readPart(s *scanner, p *Patch) (*binary, *Refusal) {
	line := s.line
	kind, num, ok := bytes.Cut(s.header(), []byte(" "))
	if !ok || string(kind) != "literal" && string(kind) != "delta" {
		return nil, nil
	}
	size, err := strconv.Atoi(string(num))
	if err != nil || size < 0 || strconv.Itoa(size) != string(num) {
		return nil, refuse(BinaryCorrupt, line, "", "the size of the binary data is not a number")
	}
	if size > p.o.MaxFileBytes {
		return nil, refuse(LimitFileBytes, line, "", "the binary data has %d bytes; a file may have %d", size, p.o.MaxFileBytes)
	}
	s.next()
	packed, r := readBase85(s)
	if r != nil {
		return nil, r
	}
	if p.inflated += size; p.inflated > p.o.MaxTotalBytes {
		return nil, refuse(LimitFileBytes, line, "", "the binary data of the patch has more than %d bytes in all", p.o.MaxTotalBytes)
	}
	data, ok := inflate(packed, size)
	if !ok {
		return nil, refuse(BinaryCorrupt, line, "", "the binary data does not inflate to exactly %d bytes", size)
	}
	b := &binary{string(kind) == "delta", data}
	if b.delta {
		if r := judgeDelta(data, line, p.o); r != nil {
			return nil, r
		}
	}
	return b, nil
}

// judgeDelta refuses a delta that is damaged, or that asks for more than a file
// may have, before there is a file to apply it to.
func judgeDelta(delta []byte, line int, o Options) *Refusal {
	from, rest, ok1 := deltaSize(delta)
	size, rest, ok2 := deltaSize(rest)
	if ok1 && ok2 && max(from, size) > uint64(o.MaxFileBytes) {
		return refuse(LimitFileBytes, line, "", "the delta makes %d bytes of %d; a file may have %d", size, from, o.MaxFileBytes)
	}
	made := uint64(0)
	for ok := ok1 && ok2; len(rest) > 0 || !ok; {
		var op deltaOp
		if ok {
			op, rest, ok = nextDelta(rest)
		}
		if made += op.n; !ok || made > size || op.insert == nil && op.at+op.n > from {
			return refuse(BinaryCorrupt, line, "", "the delta is damaged")
		}
	}
	if made != size {
		return refuse(BinaryCorrupt, line, "", "the delta makes %d bytes, and says %d", made, size)
	}
	return nil
}

// readBase85 reads lines up to and with an empty one.
func readBase85(s *scanner) ([]byte, *Refusal) {
	var out []byte
	for {
		if s.eof() {
			return nil, refuse(Truncated, s.line-1, "", "the input ends within binary data")
		}
		l := s.header()
		if len(l) == 0 {
			s.next()
			return out, nil
		}
		var ok bool
		if out, ok = decode85(out, l); !ok {
			return nil, refuse(BinaryCorrupt, s.line, "", "the line is not base85 as git writes it")
		}
		s.next()
	}
}

// decode85 appends what one line holds: a length, then five characters for
// every four bytes.
func decode85(out, l []byte) ([]byte, bool) {
	n := 0
	switch c := l[0]; {
	case 'A' <= c && c <= 'Z':
		n = int(c-'A') + 1
	case 'a' <= c && c <= 'z':
		n = int(c-'a') + 27
	}
	if l = l[1:]; n == 0 || len(l) != (n+3)/4*5 {
		return out, false
	}
	for ; n > 0; n, l = n-4, l[5:] {
		var v uint64
		for _, c := range l[:5] {
			d := digit85[c]
			if d == 0 {
				return out, false
			}
			v = v*85 + uint64(d-1)
		}
		if v > 0xffffffff {
			return out, false
		}
		g := [4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
		out = append(out, g[:min(n, 4)]...)
	}
	return out, true
}

// encode85 appends lines as git writes them, each with its LF.
func encode85(out, data []byte) []byte {
	for len(data) > 0 {
		n := min(len(data), 52)
		if n <= 26 {
			out = append(out, byte('A'+n-1))
		} else {
			out = append(out, byte('a'+n-27))
		}
		for i := 0; i < n; i += 4 {
			var g [4]byte
			copy(g[:], data[i:n])
			v := uint32(g[0])<<24 | uint32(g[1])<<16 | uint32(g[2])<<8 | uint32(g[3])
			var e [5]byte
			for k := 4; k >= 0; k-- {
				e[k] = base85[v%85]
				v /= 85
			}
			out = append(out, e[:]...)
		}
		out, data = append(out, '\n'), data[n:]
	}
	return out
}

// inflate gives exactly size bytes, made from all of packed.
func inflate(packed []byte, size int) ([]byte, bool) {
	src := bytes.NewReader(packed)
	z, err := zlib.NewReader(src)
	if err != nil {
		return nil, false
	}
	var out bytes.Buffer // grows with what really comes, not with the stated size
	n, err := io.Copy(&out, io.LimitReader(z, int64(size)+1))
	return out.Bytes(), err == nil && n == int64(size) && src.Len() == 0
}

// applyDelta makes the file that a delta, which judgeDelta has passed,
// describes out of its source. Ok is false when it is for a source of another
// size.
func applyDelta(delta, src []byte) (out []byte, ok bool) {
	from, delta, _ := deltaSize(delta)
	_, delta, _ = deltaSize(delta)
	if from != uint64(len(src)) {
		return nil, false
	}
	for len(delta) > 0 {
		var op deltaOp
		if op, delta, ok = nextDelta(delta); !ok {
			return nil, false
		}
		if op.insert == nil {
			op.insert = src[op.at : op.at+op.n]
		}
		out = append(out, op.insert...)
	}
	return out, true
}

// A deltaOp inserts bytes, or, where insert is nil, copies n bytes of the
// source from at on.
type deltaOp struct {
	insert []byte
	at, n  uint64
}

func nextDelta(d []byte) (op deltaOp, rest []byte, ok bool) {
	code := d[0]
	d = d[1:]
	if code&0x80 == 0 {
		n := int(code)
		if n == 0 || n > len(d) {
			return op, nil, false
		}
		return deltaOp{insert: d[:n], n: uint64(n)}, d[n:], true
	}
	var v [7]uint64
	for i := range v {
		if code>>i&1 == 1 {
			if len(d) == 0 {
				return op, nil, false
			}
			v[i], d = uint64(d[0]), d[1:]
		}
	}
	op.at, op.n = v[0]|v[1]<<8|v[2]<<16|v[3]<<24, v[4]|v[5]<<8|v[6]<<16
	if op.n == 0 {
		op.n = 0x10000
	}
	return op, d, true
}

// deltaSize reads a number of seven bits a byte, low first.
func deltaSize(d []byte) (n uint64, rest []byte, ok bool) {
	for i, c := range d {
		if i == 5 {
			break
		}
		n |= uint64(c&0x7f) << (7 * i)
		if c&0x80 == 0 {
			return n, d[i+1:], true
		}
	}
	return 0, nil, false
}
