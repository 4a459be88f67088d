package sandbox

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// apply sets the limits on this process and all it will start.
func (l Limits) apply() error {
	cpu := uint64((l.CPU + time.Second - 1) / time.Second)
	for _, r := range []struct {
		name  string
		which int
		value uint64
	}{
		{"file size", unix.RLIMIT_FSIZE, l.FileSize},
		{"open files", unix.RLIMIT_NOFILE, l.OpenFiles},
		{"processes", unix.RLIMIT_NPROC, l.Processes},
		{"cpu time", unix.RLIMIT_CPU, cpu},
	} {
		if r.value == 0 {
			continue
		}
		var old unix.Rlimit
		if err := unix.Getrlimit(r.which, &old); err != nil {
			return fmt.Errorf("read limit of %s: %w", r.name, err)
		}
		v := min(r.value, old.Max)
		if err := unix.Setrlimit(r.which, &unix.Rlimit{Cur: v, Max: v}); err != nil {
			return fmt.Errorf("limit %s to %d: %w", r.name, v, err)
		}
	}
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return fmt.Errorf("limit core files: %w", err)
	}
	return nil
}
