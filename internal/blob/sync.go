package blob

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
)

// syncTogether makes everything durable on the file system of a file.
func syncTogether(name string) error {
	f, err := calls.OpenFile(name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	if err := errors.Join(calls.Syncfs(f.Fd()), f.Close()); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

func syncEach(names []string) error {
	for _, name := range names {
		f, err := calls.OpenFile(name, unix.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("sync %s: %w", name, err)
		}
	}
	return nil
}
