package proc

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// entry is a process as the system lists it. With its start time it is one
// process for ever, whatever becomes of its number.
type entry struct {
	pid, parent, group int
	started            string
}

// descendants lists the processes that came from this one: below it in the
// tree, in its group, or with its mark. Where the system does not list
// processes there are none.
func (p *Process) descendants() []entry {
	all := list()
	found := map[int]bool{p.PID(): true}
	for grew := true; grew; {
		grew = false
		for _, e := range all {
			if !found[e.pid] && (found[e.parent] || e.group == p.PID() || p.marked(e.pid)) {
				found[e.pid], grew = true, true
			}
		}
	}
	return slices.DeleteFunc(all, func(e entry) bool { return !found[e.pid] || e.pid == p.PID() || e.pid == os.Getpid() })
}

func (p *Process) marked(pid int) bool {
	env, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
	return err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return string(v) == p.mark })
}

// killAll kills the group and the descendants, those of before and those that
// have appeared since, until none is found. It returns how many there were
// after the process itself had ended.
func (p *Process) killAll(before []entry) (survivors int) {
	alone := p.ended()
	killed := map[entry]bool{}
	for range 20 { // a process that forks faster than it can be killed is out of reach
		live := slices.DeleteFunc(append(p.descendants(), before...), func(e entry) bool { return killed[e] || !alive(e) })
		for _, e := range live {
			if killed[e] {
				continue
			}
			killed[e] = true
			if kill(e) && alone {
				survivors++
			}
		}
		if !p.ended() { // later, its number may be another group's
			p.signal(syscall.SIGKILL)
		}
		if len(live) == 0 {
			break
		}
	}
	return survivors
}

// kill kills exactly that process, not another one that got its number.
func kill(e entry) bool {
	fd, err := unix.PidfdOpen(e.pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	if !alive(e) || unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) != nil {
		return false
	}
	gone := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for { // it is on its way; a second is plenty
		if _, err := unix.Poll(gone, 1000); err != unix.EINTR {
			return true
		}
	}
}

func alive(e entry) bool {
	now, state, ok := read(e.pid)
	return ok && now.started == e.started && state != "Z" && state != "X"
}

func list() (all []entry) {
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil
	}
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err != nil {
			continue
		}
		if e, _, ok := read(pid); ok {
			all = append(all, e)
		}
	}
	return all
}

// read reads one line of the process table.
func read(pid int) (e entry, state string, ok bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return e, "", false
	}
	// The name in parentheses may hold anything; what follows the last one is
	// state, parent, group and, as the 20th, the start time.
	i := bytes.LastIndexByte(stat, ')')
	f := strings.Fields(string(stat[i+1:]))
	if i < 0 || len(f) < 20 {
		return e, "", false
	}
	e.pid, e.started = pid, f[19]
	var err1, err2 error
	e.parent, err1 = strconv.Atoi(f[1])
	e.group, err2 = strconv.Atoi(f[2])
	return e, f[0], err1 == nil && err2 == nil
}

func signalName(s syscall.Signal) string { return unix.SignalName(s) }
