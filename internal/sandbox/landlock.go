package sandbox

import (
	"fmt"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"
)

// landlock gives this process and all it will start the files of the order
// and, unless it may use the network, no TCP connections. What the kernel is
// too old for is left out; what it has, must work.
func (o order) landlock() error {
	abi := landlockABI()
	if abi == 0 {
		return fmt.Errorf("this kernel has no Landlock")
	}
	rules := []landlock.Rule{
		landlock.RODirs("/proc").IgnoreIfMissing(),
		landlock.ROFiles("/proc/self/exe"),
		landlock.RWFiles("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty").IgnoreIfMissing(),
		landlock.RWDirs("/dev/shm", "/dev/pts").IgnoreIfMissing(),
	}
	for _, b := range o.Binds {
		var st unix.Stat_t
		if err := unix.Stat(b.Path, &st); err != nil {
			return fmt.Errorf("landlock: %s: %w", b.Path, err)
		}
		dir := st.Mode&unix.S_IFMT == unix.S_IFDIR
		switch {
		case b.Writable && dir:
			rules = append(rules, landlock.RWDirs(b.Path).WithRefer())
		case b.Writable:
			rules = append(rules, landlock.RWFiles(b.Path))
		case dir:
			rules = append(rules, landlock.RODirs(b.Path))
		default:
			rules = append(rules, landlock.ROFiles(b.Path))
		}
	}
	best := landlock.V7.BestEffort()
	if err := best.RestrictPaths(rules...); err != nil {
		return fmt.Errorf("landlock: files: %w", err)
	}
	if !o.Network {
		// Listening stays allowed: only what leaves is refused.
		connect := landlock.Config{HandledAccessNet: ll.AccessNetConnectTCP}.BestEffort()
		if err := connect.RestrictNet(); err != nil {
			return fmt.Errorf("landlock: network: %w", err)
		}
	}
	// Processes outside, the supervisor among them, get no signals from inside.
	if err := best.RestrictScoped(); err != nil {
		return fmt.Errorf("landlock: signals: %w", err)
	}
	return nil
}

// landlockABI returns the kernel's version of Landlock, 0 if it has none.
func landlockABI() int {
	const version = 1 // LANDLOCK_CREATE_RULESET_VERSION
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, version)
	if errno != 0 {
		return 0
	}
	return int(abi)
}
