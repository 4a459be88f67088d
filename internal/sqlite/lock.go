package sqlite

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lockName is the file in the data folder that its one user locks. It holds
// the user's process id and stays when the lock is gone: only the lock counts.
const lockName = "server.lock"

// A HeldError says that another process uses the data folder.
type HeldError struct {
	Dir string
	PID int // of the holder; 0 if it could not be learned
}

func (e *HeldError) Error() string {
	who := "another process"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	return fmt.Sprintf("%s uses the data folder %s: stop it, or ask it over HTTP", who, e.Dir)
}

// LockDir takes dir for this process until unlock is called or the process
// ends, however it ends. If another has it, the error is a *HeldError.
func LockDir(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if err := flock(f); err != nil {
		defer f.Close()
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		return nil, &HeldError{Dir: dir, PID: holder(f)}
	}
	text := strconv.Itoa(os.Getpid()) + "\n"
	if err := f.Truncate(0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() error {
		// Closing alone would leave the lock to a child that is about to be
		// something else and still has the descriptor.
		return errors.Join(syscall.Flock(int(f.Fd()), syscall.LOCK_UN), f.Close())
	}, nil
}

func flock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}

// holder reads the process id in f; between taking the lock and writing its
// id a holder is unknown.
func holder(f *os.File) int {
	b := make([]byte, 32)
	n, err := f.ReadAt(b, 0)
	if n == 0 && err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b[:n])))
	if err != nil {
		return 0
	}
	return pid
}
