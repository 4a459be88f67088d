package sandbox

import (
	"encoding/json"
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
// as it was.
func readOrder() (order, error) {
	var o order
	f := os.NewFile(configFD, "order")
	err := json.NewDecoder(io.NewSectionReader(f, 0, 1<<30)).Decode(&o)
	return o, err
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
