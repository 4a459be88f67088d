package runner

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"roundtable/internal/sandbox"
)

// How long is waited for what takes no time on a healthy machine.
const (
	killTime  = 5 * time.Second // for a killed tree to be gone, before its supervisor is ended too
	drainTime = time.Second     // for the output to end once the command has; it does at once if the tree ended
)

// await returns when the command has ended, having ended it if its time was up
// or ctx was cancelled; then it says so.
func (r *Runner) await(ctx context.Context, timeout time.Duration, cmd *sandbox.Command) (stopped State) {
	limit := time.NewTimer(timeout)
	defer limit.Stop()
	select {
	case <-cmd.Done():
		return ""
	case <-limit.C:
		stopped = TimedOut
	case <-ctx.Done():
		stopped = Cancelled
	}
	// Each step is for when the one before had no effect, whether that failed
	// or was ignored; the last always has.
	for _, step := range []struct {
		do   func() error
		wait time.Duration
	}{{cmd.Terminate, r.o.Grace}, {cmd.Kill, killTime}} {
		if step.do() != nil {
			continue
		}
		if done(cmd, step.wait) {
			return stopped
		}
	}
	for cmd.Destroy(); !done(cmd, killTime); {
		cmd.Destroy()
	}
	return stopped
}

// done reports whether the command ends within d.
func done(cmd *sandbox.Command, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-cmd.Done():
		return true
	case <-t.C:
		return false
	}
}

// A reading is the output of a command being read.
type reading struct {
	from *os.File
	into *collector
	done chan error
}

// read reads all output of a command until finish.
func read(from *os.File, s Spec) *reading {
	r := &reading{from: from, into: newCollector(s.MaxOutput), done: make(chan error, 1)}
	go func() {
		buf := make([]byte, 64<<10)
		for {
			n, err := from.Read(buf)
			if n > 0 {
				r.into.Write(buf[:n])
				if s.Live != nil {
					s.Live(buf[:n])
				}
			}
			if err == io.EOF {
				err = nil
			} else if err == nil {
				continue
			}
			r.done <- err
			return
		}
	}()
	return r
}

// finish waits for the end of the output of a command that has ended.
func (r *reading) finish() Output {
	late := time.AfterFunc(drainTime, func() { r.from.SetReadDeadline(time.Unix(1, 0)) })
	defer late.Stop()
	err := <-r.done
	out := r.into.output()
	out.Incomplete = err != nil
	return out
}

// roomOn returns a problem if the disk of dir is as good as full.
func (r *Runner) roomOn(dir string) error {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return problemf("disk_unknown", "how much room there is for %s cannot be seen: %v", dir, err)
	}
	free := st.Bavail * uint64(st.Bsize)
	if free < r.o.DiskMargin {
		return problemf("disk_full", "the disk of %s has %d bytes free, fewer than the %d that must stay free", dir, free, r.o.DiskMargin)
	}
	if st.Files > 0 && st.Ffree == 0 {
		return problemf("disk_full", "the disk of %s has no room for another file", dir)
	}
	return nil
}
