package sandbox

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const failureFD = 4 // a pipe to the supervisor: ready, and why the command was not started

// ready goes before the attempt to become the command: without it, this
// process ended before, for a reason of its own.
const ready = "+"

const niceness = 10

// execute puts the limits on this process and becomes the command. It returns
// only if that failed.
func execute() int {
	unix.CloseOnExec(configFD)
	unix.CloseOnExec(failureFD)
	failure := os.NewFile(failureFD, "failure")
	fmt.Fprint(failure, executeOrder(failure))
	return 1
}

func executeOrder(failure *os.File) error {
	o, err := readOrder(configFD)
	if err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	runtime.LockOSThread() // capabilities and Landlock domains belong to threads; this one becomes the command
	if o.Backend == LandlockLSM {
		if err := o.landlock(); err != nil {
			return err
		}
	}
	o.Limits.CPU = time.Duration(o.CPU)
	if err := o.Limits.apply(); err != nil {
		return err
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	if err := os.Chdir(o.Dir); err != nil {
		return fmt.Errorf("enter the working directory: %w", err)
	}
	if err := closeFrom(failureFD + 1); err != nil {
		return err
	}
	unix.Umask(0o022)
	// The supervisor, and the service, come first.
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, niceness); err != nil {
		return fmt.Errorf("set the priority: %w", err)
	}
	if _, err := failure.WriteString(ready); err != nil {
		return err
	}
	return fmt.Errorf("start %s: %w", o.Path, syscall.Exec(o.Path, o.Argv, os.Environ()))
}

// dropPrivileges gives up all capabilities and the means to gain any, for
// good. Root stays the owner of its files and no more than that.
func dropPrivileges() error {
	for c := uintptr(0); c <= 63; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err == unix.EINVAL {
			break // past the last that this kernel has
		}
		if err == unix.EPERM {
			break // without CAP_SETPCAP: no_new_privs is what keeps the set from being used
		}
		if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("clear ambient capabilities: %w", err)
	}
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("drop capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("prctl(no_new_privs): %w", err)
	}
	return nil
}

// closeFrom marks every descriptor from first on to be closed when the command
// starts: whatever this process inherited, the command does not.
func closeFrom(first uint) error {
	if err := unix.CloseRange(first, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("close_range: %w", err)
	}
	return nil
}
