package repo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
)

// acquire waits until nobody else in this process changes the workspace, and
// takes the lock that keeps other processes out; the kernel frees it when a
// process dies. One that another process holds is a fault state.locked.
func (w *Workspace) acquire(ctx context.Context) (release func(), err error) {
	if w.o.Scratch != "" {
		return nil, errors.New("repo: a workspace with a scratch folder is only looked at")
	}
	select {
	case w.busy <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f, err := w.lockFile(stateDir+"/lock", fmt.Sprint(os.Getpid()), "another process changes")
	if err == nil {
		if err = w.Still(); err != nil {
			err = errors.Join(err, f.Close())
		}
	}
	if err != nil {
		<-w.busy
		return nil, err
	}
	w.lock = f
	return func() {
		w.lock = nil
		_ = calls.Flock(f.Fd(), unix.LOCK_UN) // also for a child that has the descriptor until it executes git
		_ = f.Close()                         // the descriptor is gone, whatever that answers, and the lock with it
		<-w.busy
	}, nil
}

// own keeps the workspace for one service as long as it is open: two logs of
// one tree could not both be right. The kernel frees it when the process dies.
func (w *Workspace) own() (err error) {
	if w.o.Owner != "" {
		w.owned, err = w.lockFile(stateDir+"/service", fmt.Sprintf("%d with the data folder %s", os.Getpid(), w.o.Owner), "another service governs")
	}
	return err
}

// lockFile takes a lock, and writes into its file who has it.
func (w *Workspace) lockFile(rel, holder, taken string) (*calls.File, error) {
	p, err := w.at.parent(rel)
	if err != nil {
		return nil, pathError(rel, err)
	}
	fd, err := calls.Openat(p.dir, p.name, unix.O_RDWR|unix.O_CREAT|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0o600)
	if err2 := p.close(); err == nil && err2 != nil {
		err = errors.Join(err2, calls.Close(fd))
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENXIO) {
		return nil, noFile(w.root, rel)
	}
	if err != nil {
		return nil, pathError(rel, err)
	}
	f := calls.NewFile(fd, rel)
	var st unix.Stat_t
	if err := calls.Fstat(fd, &st); err != nil {
		return nil, errors.Join(err, f.Close())
	} else if st.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil, errors.Join(noFile(w.root, rel), f.Close())
	}
	err = calls.Flock(fd, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		b := make([]byte, 4096)
		n, _ := f.ReadAt(b, 0) // only to name the holder; without it the fault is still right
		pid, _, _ := strings.Cut(strings.TrimSpace(string(b[:n])), " ")
		err = fault.Errorf(fault.Unavailable, "state.locked", "%s %s: process %s", taken, w.root, bytes.TrimSpace(b[:n])).With("pid", pid)
	}
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = fmt.Fprintln(f, holder)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func noFile(root, rel string) error {
	return fault.Errorf(fault.Refused, "state.not_plain", "%s in %s is no plain file, and this program made none but plain ones there: move it away", rel, root).With("path", rel)
}

// useTmp says, by a shared lock, that the folder of private indexes is in use,
// and first removes what dead processes left in it if nobody else uses it.
func (w *Workspace) useTmp() error {
	fd, err := w.at.open(stateDir+"/tmp", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return pathError(stateDir, err)
	}
	w.tmp = calls.NewFile(fd, stateDir+"/tmp")
	switch err := calls.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {
	case errors.Is(err, unix.EWOULDBLOCK):
		return calls.Flock(fd, unix.LOCK_SH)
	case err != nil:
		return fmt.Errorf("lock %s: %w", w.tmp.Name(), err)
	}
	root, err := os.OpenRoot(filepath.Join(w.root, stateDir, "tmp"))
	if err != nil {
		return err
	}
	left, err := w.tmp.Names()
	for _, n := range left {
		err = errors.Join(err, root.RemoveAll(n))
	}
	return errors.Join(err, root.Close(), calls.Flock(fd, unix.LOCK_SH))
}

// Still says whether the folder that is open is still the one of that name, by
// which git works. A fault workspace_unavailable says that there is none, and
// workspace.moved that it is another.
func (w *Workspace) Still() error {
	var open, named unix.Stat_t
	if err := calls.Fstat(w.at.fd(), &open); err != nil {
		return err
	}
	if err := calls.Stat(w.root, &named); err != nil && !gone(err) {
		return pathError(w.root, err)
	} else if err != nil {
		return fault.Errorf(fault.Unavailable, "workspace_unavailable", "the folder %s of this workspace is not there; put it back, and send the call again", w.root)
	} else if open.Dev != named.Dev || open.Ino != named.Ino {
		return fault.Errorf(fault.Conflict, "workspace.moved", "%s is no longer the folder that was opened; put that one back, or restart the service to have it govern what lies there now", w.root)
	}
	return nil
}
