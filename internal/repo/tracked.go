package repo

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// An index is what git's index tracks, as far as a patch is judged by it.
type index struct {
	names []byte          // of all entries, one after the other, in git's order
	ends  []uint32        // where each ends
	oids  []byte          // of all entries
	size  int             // of one object id
	links map[string]bool // gitlinks
	skips map[string]bool // entries that are not checked out by the person's wish
	state string          // the name at the root by which something is tracked that is taken for the state folder
}

func (x *index) len() int { return len(x.ends) }

func (x *index) name(i int) []byte {
	from := uint32(0)
	if i > 0 {
		from = x.ends[i-1]
	}
	return x.names[from:x.ends[i]]
}

func (x *index) add(name, oid []byte, mode uint32) {
	if top, _, _ := bytes.Cut(name, []byte("/")); x.state == "" && !x.follows(top) && patch.IsStateFolder(string(top)) {
		x.state = string(top)
	}
	x.names = append(x.names, name...)
	x.ends = append(x.ends, uint32(len(x.names)))
	x.oids = append(x.oids, oid...)
	if mode == 0o160000 {
		x.links[string(name)] = true
	}
}

// follows says whether the entry before lies in the same folder of the root.
func (x *index) follows(top []byte) bool {
	if x.len() == 0 {
		return false
	}
	last := x.name(x.len() - 1)
	return len(last) > len(top) && last[len(top)] == '/' && bytes.HasPrefix(last, top)
}

// find returns the object id of a tracked path; several entries of one that is
// not merged have none.
func (x *index) find(path string) (oid string, tracked bool) {
	i := sort.Search(x.len(), func(i int) bool { return string(x.name(i)) >= path })
	if i == x.len() || string(x.name(i)) != path {
		return "", false
	}
	if i+1 < x.len() && string(x.name(i+1)) == path {
		return "", true
	}
	return hex.EncodeToString(x.oids[i*x.size : (i+1)*x.size]), true
}

// An indexCache keeps what was read of an index until another lies there: by
// its stamp, or by the checksum that git ends it with.
type indexCache struct {
	sync.Mutex
	of  stamp // none if it may not show a change
	sum string
	is  *index
}

// tracked returns the index as it is now.
func (w *Workspace) tracked(ctx context.Context) (*index, error) {
	if !w.Git() {
		return &index{}, nil
	}
	w.kept.Lock()
	defer w.kept.Unlock()
	now := time.Now()
	before, err := stampOf(w.index)
	if err != nil {
		return nil, w.unread(err)
	}
	size := newHash(w.format).Size()
	if !before.there {
		return &index{size: size}, nil
	}
	if w.kept.is != nil && (w.kept.of == before || w.kept.sum != "" && w.kept.sum == w.indexSum(before.size, size)) {
		return w.kept.is, nil
	}
	w.kept.is, w.kept.of, w.kept.sum = nil, stamp{}, ""
	data, err := os.ReadFile(w.index)
	if errors.Is(err, os.ErrNotExist) {
		return &index{size: size}, nil
	}
	if err != nil {
		return nil, w.unread(err)
	}
	x, err := w.readIndex(ctx, data, size)
	if err != nil {
		return nil, err
	}
	after, err := stampOf(w.index)
	if err != nil || before != after {
		return x, err
	}
	w.kept.is, w.kept.sum = x, checksum(data, size)
	if before.settled(now) {
		w.kept.of = before
	}
	return x, nil
}

// unread is why the index could not be read: by the machine's fault, or because
// of what lies there.
func (w *Workspace) unread(err error) error {
	of := pathError(".git/index", err)
	if _, is := errors.AsType[*fault.Error](of); is {
		return of
	}
	return w.unusable(unreadableIndex, err)
}

// indexSum reads the checksum at the end of the index; empty if it has none.
func (w *Workspace) indexSum(length int64, size int) string {
	f, err := os.Open(w.index)
	if err != nil {
		return ""
	}
	end := make([]byte, size)
	_, err = f.ReadAt(end, max(length-int64(size), 0))
	if err = errors.Join(err, f.Close()); err != nil {
		return ""
	}
	return checksum(end, size)
}

// checksum is what an index ends with; empty where git was told to make none.
func checksum(data []byte, size int) string {
	end := data[max(len(data)-size, 0):]
	if len(bytes.Trim(end, "\x00")) == 0 {
		return ""
	}
	return string(end)
}

// readIndex reads an index, or has git read one of a kind that is not known
// here.
func (w *Workspace) readIndex(ctx context.Context, data []byte, size int) (*index, error) {
	if x := parseIndex(data, size); x != nil {
		return x, nil
	}
	if brokenIndex(data, newHash(w.format)) {
		return nil, w.unusable(unreadableIndex, errors.New("it does not end with its checksum: a part of it is missing or damaged"))
	}
	out, err := w.git(ctx, call{args: []string{"ls-files", "-t", "--stage", "-z"}})
	if err != nil {
		return nil, err
	}
	x := &index{size: size, links: map[string]bool{}, skips: map[string]bool{}}
	for _, r := range records(out) {
		head, path, ok := strings.Cut(r, "\t")
		var mode uint32
		var tag, oid string
		var stage int
		if n, err := fmt.Sscanf(head, "%s %o %s %d", &tag, &mode, &oid, &stage); !ok || n != 4 || err != nil {
			return nil, fmt.Errorf("git ls-files answers %q", r)
		}
		raw, err := hex.DecodeString(oid)
		if err != nil || len(raw) != size {
			return nil, fmt.Errorf("git ls-files answers %q", r)
		}
		x.add([]byte(path), raw, mode)
		if tag == "S" {
			x.skips[path] = true
		}
	}
	return x, nil
}

// brokenIndex reports whether an index does not end with the checksum of what
// is before. Git does not look, and reads zeros where the rest is missing.
func brokenIndex(data []byte, h hash.Hash) bool {
	size := h.Size()
	if len(data) < 12+size || string(data[:4]) != "DIRC" || checksum(data, size) == "" {
		return false
	}
	h.Write(data[:len(data)-size])
	return checksum(data, size) != string(h.Sum(nil))
}

// parseIndex reads an index file of version 2, 3 or 4 with object ids of a
// size; nil if it is of another kind, or in pieces.
func parseIndex(data []byte, size int) *index {
	if len(data) < 12+size || string(data[:4]) != "DIRC" {
		return nil
	}
	version, n := binary.BigEndian.Uint32(data[4:]), int(binary.BigEndian.Uint32(data[8:]))
	body := data[12 : len(data)-size]
	if version < 2 || version > 4 || n > len(body)/(42+size) || len(data) > 1<<31 {
		return nil
	}
	x := &index{size: size, links: map[string]bool{}, skips: map[string]bool{}, ends: make([]uint32, 0, n), oids: make([]byte, 0, n*size)}
	x.names = make([]byte, 0, max(len(body)-n*(44+size), 0))
	for range n {
		rest := x.entry(body, version)
		if rest == nil {
			return nil
		}
		body = rest
	}
	if !extensionsKnown(body) {
		return nil
	}
	return x
}

// entry reads one entry and returns what follows it; nil if it is broken.
func (x *index) entry(b []byte, version uint32) (rest []byte) {
	const skipWorktree = 0x4000 // of the second flags
	fixed := 42 + x.size
	if len(b) < fixed+2 {
		return nil
	}
	mode, oid := binary.BigEndian.Uint32(b[24:]), b[40:40+x.size]
	flags := binary.BigEndian.Uint16(b[40+x.size:])
	skip := false
	if flags&0x4000 != 0 {
		if version < 3 {
			return nil
		}
		skip = binary.BigEndian.Uint16(b[fixed:])&skipWorktree != 0
		fixed += 2
	}
	var keep []byte
	from := fixed
	if version == 4 {
		strip, n := stripLength(b[fixed:])
		last := []byte(nil)
		if x.len() > 0 {
			last = x.name(x.len() - 1)
		}
		if n == 0 || strip > len(last) {
			return nil
		}
		keep, from = last[:len(last)-strip], fixed+n
	}
	end := bytes.IndexByte(b[from:], 0)
	if end < 0 || mode == 0o40000 {
		return nil
	}
	name := b[from : from+end]
	next := from + end + 1
	if version < 4 {
		next = (from + end + 8) &^ 7
	} else {
		name = append(bytes.Clone(keep), name...)
	}
	if next > len(b) || x.len() > 0 && bytes.Compare(x.name(x.len()-1), name) > 0 {
		return nil
	}
	x.add(name, oid, mode)
	if skip {
		x.skips[string(name)] = true
	}
	return b[next:]
}

// stripLength reads how much of the name before goes, and how many bytes say
// so; none if they are broken.
func stripLength(b []byte) (value, n int) {
	for i, c := range b[:min(len(b), 5)] {
		if i > 0 {
			value = (value + 1) << 7
		}
		value += int(c & 0x7f)
		if c&0x80 == 0 {
			return value, i + 1
		}
	}
	return 0, 0
}

// extensionsKnown says that nothing behind the entries changes what they mean:
// no split index, no folders in place of entries.
func extensionsKnown(b []byte) bool {
	for len(b) > 0 {
		if len(b) < 8 || b[0] < 'A' || b[0] > 'Z' {
			return false
		}
		size := int(binary.BigEndian.Uint32(b[4:]))
		if size > len(b)-8 {
			return false
		}
		b = b[8+size:]
	}
	return true
}
