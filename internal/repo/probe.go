package repo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/kernel"
)

// exchanges says whether renameat2 does what it says here. Before a probe it
// is not relied on.
func (w *Workspace) exchanges() bool {
	w.probe.Lock()
	defer w.probe.Unlock()
	return w.exact != nil && *w.exact
}

// Probe tries what the file system under the root can do, and judges by what
// the files then are: there are file systems that take the flags and ignore
// them. The first answer is kept.
func (w *Workspace) Probe(ctx context.Context) (ProbeResult, error) {
	w.probe.Lock()
	defer w.probe.Unlock()
	r := ProbeResult{Openat2: !w.at.walk.Load(), SyncFS: kernel.SyncfsReports()}
	if w.exact == nil {
		detail, err := w.tryRenames()
		if err = errors.Join(err, ctx.Err()); err != nil {
			return r, err
		}
		exact := detail == ""
		w.exact, w.inexact = &exact, detail
	}
	r.AtomicDetect, r.Detail = *w.exact, w.inexact
	return r, nil
}

// tryRenames says what renameat2 does wrong; nothing if all is well.
func (w *Workspace) tryRenames() (detail string, err error) {
	fd, err := w.at.open(stateDir+"/tmp", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return "", pathError(stateDir, err)
	}
	a, b := place{fd, "probe-" + rand.Text()}, place{fd, "probe-" + rand.Text()}
	defer func() {
		for _, p := range []place{a, b} {
			if err2 := calls.Unlinkat(fd, p.name, 0); err2 != nil && !errors.Is(err2, unix.ENOENT) {
				err = errors.Join(err, err2)
			}
		}
		err = errors.Join(err, calls.Close(fd))
	}()
	inode := map[place]uint64{}
	for _, p := range []place{a, b} {
		if inode[p], err = newFile(p); err != nil {
			return "", pathError(stateDir, err)
		}
	}
	swapped := func() (bool, error) {
		_, atA, errA := a.stat()
		_, atB, errB := b.stat()
		return atA.Ino == inode[b] && atB.Ino == inode[a], errors.Join(errA, errB)
	}
	switch err := rename(a, b, unix.RENAME_EXCHANGE); {
	case err != nil && !unknownFlag(err):
		return "", pathError(stateDir, err)
	case err != nil:
		return fmt.Sprintf("RENAME_EXCHANGE: %v", err), nil
	}
	if ok, err := swapped(); err != nil || !ok {
		return "RENAME_EXCHANGE does not exchange", pathError(stateDir, err)
	}
	switch err := rename(a, b, unix.RENAME_NOREPLACE); {
	case err != nil && !errors.Is(err, unix.EEXIST) && !unknownFlag(err):
		return "", pathError(stateDir, err)
	case !errors.Is(err, unix.EEXIST):
		return fmt.Sprintf("RENAME_NOREPLACE onto a file answers %v", err), nil
	}
	if ok, err := swapped(); err != nil || !ok {
		return "RENAME_NOREPLACE replaces", pathError(stateDir, err)
	}
	return "", nil
}

// unknownFlag says that a rename failed for want of its flag, and not because
// the disk is full or broken: that says nothing about the flag.
func unknownFlag(err error) bool {
	return errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EPERM)
}

// newFile makes an empty file and returns its inode.
func newFile(p place) (uint64, error) {
	fd, err := calls.Openat(p.dir, p.name, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return 0, err
	}
	var st unix.Stat_t
	err = errors.Join(calls.Fstat(fd, &st), calls.Close(fd))
	return st.Ino, err
}
