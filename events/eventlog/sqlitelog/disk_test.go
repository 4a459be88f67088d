package sqlitelog

import (
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/vfs"
)

// A disk is a file system in memory that can fail and lose power. It is a
// SQLite VFS for one connection at a time, which must be in exclusive locking
// mode.
type disk struct {
	mu    sync.Mutex
	files map[string]*diskFile

	changes  int // writes, truncations and syncs so far
	failFrom int // the first change that fails; 0: none
	failFor  int // how many fail; 0: all that follow, and reads too: the machine is off
}

// A diskFile is what the process sees, what would survive a power cut, and the
// changes in between.
type diskFile struct {
	seen, stable []byte
	pending      []change
}

// A change is a write at off, or with no data a truncation to off.
type change struct {
	off  int64
	data []byte
}

const sector = 512

func newDisk() *disk { return &disk{files: map[string]*diskFile{}} }

// clone returns a disk with the same files, all stable.
func (d *disk) clone() *disk {
	c := newDisk()
	for name, f := range d.files {
		c.files[name] = &diskFile{seen: slices.Clone(f.seen), stable: slices.Clone(f.seen)}
	}
	return c
}

// cut returns the disk as it is after a power cut: of each sector of each
// change that was not synced, it is chance whether it is there.
func (d *disk) cut(rnd *rand.Rand) *disk {
	d.mu.Lock()
	defer d.mu.Unlock()
	after := newDisk()
	kept := rnd.Float64() // also near none and near all
	for _, name := range sorted(d.files) {
		f := d.files[name]
		b := slices.Clone(f.stable)
		for _, c := range f.pending {
			if c.data == nil {
				if rnd.Float64() < kept {
					b = resize(b, c.off)
				}
				continue
			}
			for from := int64(0); from < int64(len(c.data)); {
				to := min(int64(len(c.data)), (c.off+from)/sector*sector+sector-c.off)
				if rnd.Float64() < kept {
					b = writeAt(b, c.off+from, c.data[from:to])
				}
				from = to
			}
		}
		after.files[name] = &diskFile{seen: b, stable: slices.Clone(b)}
	}
	return after
}

func sorted(files map[string]*diskFile) (names []string) {
	for name := range files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func resize(b []byte, size int64) []byte {
	if int64(len(b)) > size {
		return b[:size]
	}
	return append(b, make([]byte, size-int64(len(b)))...)
}

func writeAt(b []byte, off int64, data []byte) []byte {
	if end := off + int64(len(data)); end > int64(len(b)) {
		b = resize(b, end)
	}
	copy(b[off:], data)
	return b
}

// step counts a change and says whether it fails.
func (d *disk) step() bool {
	d.changes++
	if d.failFrom == 0 || d.changes < d.failFrom {
		return false
	}
	return d.failFor == 0 || d.changes < d.failFrom+d.failFor
}

// off says whether the machine has been switched off.
func (d *disk) off() bool { return d.failFrom > 0 && d.failFor == 0 && d.changes >= d.failFrom }

func (d *disk) Open(name string, flags vfs.OpenFlag) (vfs.File, vfs.OpenFlag, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off() {
		return nil, flags, sqlite3.IOERR
	}
	f := d.files[name]
	if f == nil || name == "" {
		if name != "" && flags&vfs.OPEN_CREATE == 0 {
			return nil, flags, sqlite3.CANTOPEN
		}
		f = &diskFile{}
		if name != "" {
			d.files[name] = f
		}
	}
	return &handle{disk: d, file: f}, flags, nil
}

func (d *disk) Delete(name string, _ bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.step() {
		return sqlite3.IOERR_DELETE
	}
	delete(d.files, name)
	return nil
}

func (d *disk) Access(name string, _ vfs.AccessFlag) (bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.files[name] != nil, nil
}

func (d *disk) FullPathname(name string) (string, error) { return "/" + strings.Trim(name, "/"), nil }

// A handle is an open file. Locks are of no use to the one connection.
type handle struct {
	disk *disk
	file *diskFile
	lock vfs.LockLevel
}

func (h *handle) Close() error { return nil }

func (h *handle) ReadAt(b []byte, off int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.off() {
		return 0, sqlite3.IOERR_READ
	}
	if off >= int64(len(h.file.seen)) {
		return 0, io.EOF
	}
	n := copy(b, h.file.seen[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (h *handle) WriteAt(b []byte, off int64) (int, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.step() {
		return 0, sqlite3.IOERR_WRITE
	}
	h.file.seen = writeAt(h.file.seen, off, b)
	h.file.pending = append(h.file.pending, change{off, slices.Clone(b)})
	return len(b), nil
}

func (h *handle) Truncate(size int64) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.step() {
		return sqlite3.IOERR_TRUNCATE
	}
	h.file.seen = resize(h.file.seen, size)
	h.file.pending = append(h.file.pending, change{off: size})
	return nil
}

func (h *handle) Sync(vfs.SyncFlag) error {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	if h.disk.step() {
		return sqlite3.IOERR_FSYNC
	}
	h.file.stable, h.file.pending = slices.Clone(h.file.seen), nil
	return nil
}

func (h *handle) Size() (int64, error) {
	h.disk.mu.Lock()
	defer h.disk.mu.Unlock()
	return int64(len(h.file.seen)), nil
}

func (h *handle) Lock(l vfs.LockLevel) error                      { h.lock = l; return nil }
func (h *handle) Unlock(l vfs.LockLevel) error                    { h.lock = l; return nil }
func (h *handle) CheckReservedLock() (bool, error)                { return false, nil }
func (h *handle) SectorSize() int                                 { return sector }
func (h *handle) DeviceCharacteristics() vfs.DeviceCharacteristic { return 0 }
