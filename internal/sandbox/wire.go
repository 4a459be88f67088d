package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// What this process and the supervisor share: the descriptors, by number, the
// order and the status, as JSON.
const (
	configFD  = 3 // a file: the order
	controlFD = 4 // a pipe to the supervisor: see the control bytes; its end means kill
	statusFD  = 5 // a pipe from the supervisor: one report
	infoFD    = 6 // a pipe from bwrap: which process is pid 1; 7 is its other end
)

// The control bytes.
const (
	askToEnd = 'T' // SIGTERM to the command's process group
	killTree = 'K' // SIGKILL to every process it started
)

// An order is what the supervisor is told to do.
type order struct {
	Path    string    `json:"path"`
	Argv    []string  `json:"argv"`
	Dir     string    `json:"dir"`
	Backend Backend   `json:"backend"`
	Binds   []bind    `json:"binds"` // as for mounts, parents first; also the Landlock rules
	Overlay []Overlay `json:"overlay,omitempty"`
	Network bool      `json:"network"`
	Limits  Limits    `json:"limits"`
	CPU     int64     `json:"cpu_ns"`
}

// A bind is a path that the command may see.
type bind struct {
	Path     string `json:"path"`
	Writable bool   `json:"writable,omitempty"`
	Link     string `json:"link,omitempty"` // the path is this symbolic link and nothing is mounted
}

// A report is how it went.
type report struct {
	StartError string `json:"start_error,omitempty"` // the command was not started
	Code       int    `json:"code"`
	Signal     int    `json:"signal,omitempty"`
	TreeEnded  bool   `json:"tree_ended"`
	Exceeded   string `json:"exceeded,omitempty"`
	Landlocked bool   `json:"landlocked,omitempty"`
	// Namespaces of the supervisor by kind, as /proc/self/ns shows them.
	Namespaces map[string]string `json:"namespaces,omitempty"`
}

// file returns the order as an anonymous file to be inherited.
func (o order) file() (*os.File, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, fmt.Errorf("sandbox: %w", err)
	}
	fd, err := unix.MemfdCreate("order", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("sandbox: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), "order")
	if _, err := f.WriteAt(text, 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("sandbox: write the order: %w", err)
	}
	return f, nil
}

// readOrder reads the order that this process inherited and leaves the file
// open and as it was, to be inherited again. An *os.File would not do: once it
// is garbage the descriptor is closed, and the number goes to another file.
func readOrder(fd int) (order, error) {
	var o order
	err := json.NewDecoder(io.NewSectionReader(descriptor(fd), 0, 1<<30)).Decode(&o)
	return o, err
}

// A descriptor is read at positions and never closed.
type descriptor int

// ReadAt reads as io.ReaderAt has it.
func (d descriptor) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		m, err := unix.Pread(int(d), p[n:], off+int64(n))
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return n, os.NewSyscallError("pread", err)
		case m == 0:
			return n, io.EOF
		default:
			n += m
		}
	}
	return n, nil
}

// namespaces returns the namespaces of this process.
func namespaces() (map[string]string, error) {
	ns := map[string]string{}
	for _, kind := range []string{"user", "pid", "mnt", "net", "ipc", "uts"} {
		to, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return nil, fmt.Errorf("namespaces: %w", err)
		}
		ns[kind] = to
	}
	return ns, nil
}
