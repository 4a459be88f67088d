// Package sandbox runs one command isolated from the machine, and ends its
// whole process tree.
//
// What always holds:
//
//   - A command never runs with more than its Spec gives: its environment is
//     exactly Spec.Env, and no descriptor but the three standard ones is open.
//   - Its process tree ends with it, with a Kill and with the death of this
//     process, children that left their process group or session included. What
//     could not be confirmed is said in Status.TreeEnded, never assumed.
//   - Nothing that the command did not start is ever signalled.
//   - Status.Level is what was observed in that run, not what was asked for.
//
// Each command has a supervisor between it and this process: this program run
// again (see Main), as pid 1 of a PID namespace where there is one and else as
// a subreaper. So main must call Main before anything else.
package sandbox

import (
	"fmt"
	"os"
	"time"
)

// A Level says how far a command is kept from the machine.
type Level string

// The levels, weakest first.
const (
	None      Level = "none"      // no isolation at all
	Process   Level = "process"   // own session, limits, no new privileges, tree ended; sees the machine's files and network
	Landlock  Level = "landlock"  // and the kernel refuses files outside the Spec, and TCP connections
	Namespace Level = "namespace" // own user, PID, mount, IPC, UTS and network namespaces
)

var ranks = map[Level]int{None: 0, Process: 1, Landlock: 2, Namespace: 3}

// AtLeast reports whether l isolates as well as m or better. An unknown level
// is at least nothing, and nothing is at least an unknown level.
func (l Level) AtLeast(m Level) bool {
	have, ok := ranks[l]
	want, known := ranks[m]
	return ok && known && have >= want
}

// ParseLevel reads the name of a level.
func ParseLevel(s string) (Level, error) {
	if _, ok := ranks[Level(s)]; !ok {
		return "", fmt.Errorf("no isolation level %q: want none, process, landlock or namespace", s)
	}
	return Level(s), nil
}

// A Backend is one way to isolate a command.
type Backend string

// The backends, in the order in which they are preferred.
const (
	Bubblewrap  Backend = "bubblewrap" // namespaces made by bwrap
	UserNS      Backend = "userns"     // namespaces made by the supervisor itself
	LandlockLSM Backend = "landlock"   // no namespaces; Landlock rules
	Subreaper   Backend = "subreaper"  // no namespaces and no rules
)

// Backends lists all, in the order in which they are preferred.
func Backends() []Backend { return []Backend{Bubblewrap, UserNS, LandlockLSM, Subreaper} }

// Level returns the level that b gives where it works.
func (b Backend) Level() Level {
	switch b {
	case Bubblewrap, UserNS:
		return Namespace
	case LandlockLSM:
		return Landlock
	case Subreaper:
		return Process
	}
	return None
}

// Limits bound a command. A zero leaves the machine's own limit. Memory, and
// Processes of root, are looked at ten times a second and can be overrun by
// what a command takes in between; the others are the kernel's and exact.
type Limits struct {
	FileSize  uint64        `json:"file_size_bytes,omitempty"` // of one file written
	OpenFiles uint64        `json:"open_files,omitempty"`      // per process
	Processes uint64        `json:"processes,omitempty"`       // and threads: no more can be started; those of root are ended past it
	Memory    uint64        `json:"memory_bytes,omitempty"`    // of all processes; past it they are ended
	CPU       time.Duration `json:"-"`                         // per process, whole seconds, rounded up
	Temp      uint64        `json:"temp_bytes,omitempty"`      // of the private /tmp, at level namespace
}

// An Overlay shows the directory Lower at the path At, with everything that is
// written kept in Scratch and Lower never changed.
type Overlay struct {
	Lower   string `json:"lower"`   // absolute; never written
	Scratch string `json:"scratch"` // absolute; need not exist; has a directory of mode 0 below it afterwards
	At      string `json:"at"`      // absolute; where the command sees it
}

// A Spec is one command to run. All paths are absolute and clean and are the
// same inside as outside; those of directories lead through no symbolic link.
type Spec struct {
	Path      string    // the executable
	Argv      []string  // with the name first
	Dir       string    // where it starts; must lie in one of the directories below
	Env       []string  // the whole environment, NAME=value
	ReadWrite []string  // directories it may change
	ReadOnly  []string  // files and directories it may read beside the system's
	Overlays  []Overlay // only the backend UserNS can
	Network   bool      // whether it may reach beyond its own loopback
	Limits    Limits

	Stdin, Stdout, Stderr *os.File // nil is /dev/null; the caller still has to close its own
}

// Status is how a command ended.
type Status struct {
	Code      int    // exit status; -1 if a signal ended it
	Signal    string // name of the signal that ended it, such as SIGKILL; else empty
	Exceeded  string // the limit past which the supervisor ended it: ExceededMemory, ExceededProcesses or empty
	TreeEnded bool   // every process the command started is known to have ended
	Level     Level  // what the command really ran under
	Backend   Backend
	Network   string // "own" (loopback only), "tcp_refused" (TCP connections refused, the rest open) or "shared"
}
