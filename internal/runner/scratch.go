package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const scratchPrefix = "run-"

// A scratch is a run's own directory and those in it.
type scratch struct{ dir, home, temp, cache string }

func newScratch(below string) (scratch, error) {
	below, err := filepath.EvalSymlinks(below)
	if err != nil {
		return scratch{}, err
	}
	dir, err := os.MkdirTemp(below, scratchPrefix)
	if err != nil {
		return scratch{}, err
	}
	s := scratch{dir, filepath.Join(dir, "home"), filepath.Join(dir, "tmp"), filepath.Join(dir, "cache")}
	for _, d := range []string{s.home, s.temp, s.cache} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return s, err
		}
	}
	return s, nil
}

// remove removes it all.
func (s scratch) remove() error { return RemoveAll(s.dir) }

// Clean removes what runs have left behind in a crash of the service. It must
// not be called while a command runs.
func (r *Runner) Clean() error {
	left, err := filepath.Glob(filepath.Join(r.o.Dir, scratchPrefix+"*"))
	if err != nil {
		return fmt.Errorf("runner: %w", err)
	}
	for _, dir := range left {
		err = errors.Join(err, RemoveAll(dir))
	}
	return err
}

// RemoveAll removes a directory that a command could write to, and all in it:
// also what the command made unremovable to an owner that is not root.
func RemoveAll(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			// Before it is read: WalkDir calls first and reads then.
			return os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
