package sandbox

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// watchEvery is how often the supervisor looks at what the kernel does not
// bound for it: what a command may take at most is overrun by what it can take
// in this time.
const watchEvery = 100 * time.Millisecond

// The limits that the supervisor keeps, as Status.Exceeded names them.
const (
	ExceededMemory    = "memory"
	ExceededProcesses = "processes"
)

// watch kills the command's processes once they have passed a limit, and says
// so in s.exceeded. It returns when stop is closed.
func (s *supervisor) watch(stop <-chan struct{}) {
	l := s.order.Limits
	if os.Getuid() != 0 {
		l.Processes = 0 // the kernel does it
	}
	if l.Memory == 0 && l.Processes == 0 {
		return
	}
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		u, err := s.usage()
		switch {
		case err != nil:
			continue // a look that failed: the next may not
		case l.Memory > 0 && u.memory > l.Memory:
			s.exceeded.Store(ExceededMemory)
		case l.Processes > 0 && u.tasks > l.Processes:
			s.exceeded.Store(ExceededProcesses)
		default:
			continue
		}
		s.killAll()
		return
	}
}

// A usage is what a command's processes take.
type usage struct {
	memory uint64 // bytes of their own, in memory; what they share after a fork counts for each
	tasks  uint64 // processes and threads
}

// usage looks at every process of the command.
func (s *supervisor) usage() (usage, error) {
	var sum usage
	list, err := descendants(os.Getpid())
	if err != nil {
		return sum, err
	}
	page := uint64(os.Getpagesize())
	for _, pid := range list {
		dir := "/proc/" + strconv.Itoa(pid)
		statm, err := os.ReadFile(dir + "/statm")
		if err != nil {
			continue // it has just ended
		}
		var size, resident, shared uint64
		if _, err := fmt.Sscan(string(statm), &size, &resident, &shared); err != nil {
			return sum, fmt.Errorf("%s/statm: %w", dir, err)
		}
		sum.memory += (resident - min(shared, resident)) * page
		fields := statFields(pid)
		if len(fields) <= statThreads {
			continue
		}
		threads, err := strconv.ParseUint(string(fields[statThreads]), 10, 64)
		if err != nil {
			return sum, fmt.Errorf("%s/stat: %w", dir, err)
		}
		sum.tasks += threads
	}
	return sum, nil
}

// The fields of /proc/pid/stat after the name (proc(5) counts from 3 there).
const (
	statParent  = 1
	statThreads = 17
)

// statFields returns them, and none if the process has ended.
func statFields(pid int) [][]byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// pid (name) state ppid …, where the name may hold anything.
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}
