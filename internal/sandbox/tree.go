package sandbox

import (
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// endWait bounds the wait for what a killed process still has to do: nothing
// but a stuck kernel or disk makes it matter.
const endWait = 5 * time.Second

// killDescendants kills every process below root, which itself stays. It stops
// them all first, until a look finds none that runs: so none can start another
// behind its back, however fast they fork. Then it waits for their end.
//
// Each is held by a descriptor before its parent is looked at again, so that a
// number that has gone to a stranger in between is never signalled.
func killDescendants(root int) error {
	held := map[int]int{} // pid → descriptor
	defer func() {
		for _, fd := range held {
			unix.Close(fd)
		}
	}()
	for {
		found, err := descendants(root)
		if err != nil {
			return err
		}
		fresh := 0
		for _, pid := range found {
			if _, ok := held[pid]; ok {
				continue
			}
			fd, err := unix.PidfdOpen(pid, 0)
			if err == unix.ESRCH {
				continue
			}
			if err != nil {
				return fmt.Errorf("pidfd_open: %w", err)
			}
			parent, live := parentOf(pid)
			if _, ok := held[parent]; !live || parent != root && !ok {
				unix.Close(fd) // not ours, or its parent has just ended: found again next time
				continue
			}
			held[pid] = fd
			fresh++
			if err := unix.PidfdSendSignal(fd, unix.SIGSTOP, nil, 0); err != nil && err != unix.ESRCH {
				return fmt.Errorf("stop process %d: %w", pid, err)
			}
		}
		if fresh == 0 {
			break
		}
	}
	for pid, fd := range held {
		if err := unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0); err != nil && err != unix.ESRCH {
			return fmt.Errorf("kill process %d: %w", pid, err)
		}
	}
	for pid, fd := range held {
		if err := awaitEnd(fd); err != nil {
			return fmt.Errorf("process %d: %w", pid, err)
		}
	}
	return nil
}

// awaitEnd waits for a process that was killed to end.
func awaitEnd(pidfd int) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}, int(endWait/time.Millisecond))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("poll: %w", err)
		case n == 0:
			return fmt.Errorf("still there %v after it was killed", endWait)
		default:
			return nil
		}
	}
}

// descendants lists the live processes below root, parents first.
func descendants(root int) ([]int, error) {
	children := map[int][]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if parent, live := parentOf(pid); live {
			children[parent] = append(children[parent], pid)
		}
	}
	list := []int{root}
	for i := 0; i < len(list); i++ {
		list = append(list, children[list[i]]...)
	}
	return list[1:], nil
}

// parentOf returns the parent of a process, and false if it has ended. One
// that has ended and is not reaped yet cannot be told to do anything, but its
// children can: it counts as live.
func parentOf(pid int) (parent int, live bool) {
	fields := statFields(pid)
	if len(fields) <= statParent {
		return 0, false
	}
	parent, err := strconv.Atoi(string(fields[statParent]))
	return parent, err == nil
}
