package blob

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// syncTogether makes everything durable on the file system of a file.
func syncTogether(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	if err := errors.Join(unix.Syncfs(int(f.Fd())), f.Close()); err != nil {
		return fmt.Errorf("sync: %w", err)
	}
	return nil
}

func syncEach(names []string) error {
	for _, name := range names {
		f, err := os.OpenFile(name, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("sync %s: %w", name, err)
		}
	}
	return nil
}
