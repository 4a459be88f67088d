package runner

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"roundtable/internal/fault"
)

// DefaultAllow returns the names of the executables that may be run where
// policy does not say otherwise.
func DefaultAllow() []string {
	return []string{"cargo", "git", "go", "make", "node", "npm", "pnpm", "printf", "pytest", "ruby", "swift", "vitest", "yarn"}
}

// DefaultPath returns the directories in which executables are looked up where
// the service's settings do not say otherwise.
func DefaultPath() []string {
	return []string{"/usr/local/go/bin", "/usr/local/bin", "/usr/bin", "/bin"}
}

// Allowed refuses, as a *fault.Error, a command whose executable is not on the
// allow list. An executable is a bare name, looked up on the service's path
// and never in the tree; a file of the tree may be run only if the list has
// that very path, such as "./scripts/check".
func Allowed(argv, allow []string) error {
	if len(argv) == 0 || argv[0] == "" {
		return fault.Errorf(fault.Invalid, "command_empty", "the command has no executable")
	}
	name := argv[0]
	if slices.Contains(allow, name) && allowable(name) {
		return nil
	}
	sorted := slices.Sorted(slices.Values(allow))
	var f *fault.Error
	switch {
	case strings.Contains(name, "/"):
		f = fault.Errorf(fault.Refused, "command_not_allowed", "%q is a path; a command names an executable, one of: %s", name, strings.Join(sorted, ", "))
	case strings.Contains(name, "="):
		f = fault.Errorf(fault.Refused, "command_not_allowed", "%q sets a variable, which needs a shell; variables go into env", name)
	default:
		f = fault.Errorf(fault.Refused, "command_not_allowed", "%q is not an allowed executable; these are: %s", name, strings.Join(sorted, ", "))
	}
	return f.With("executable", name).With("allowed", sorted)
}

// allowable reports whether name may stand on an allow list: a bare name, or a
// clean path below the tree.
func allowable(name string) bool {
	if !strings.Contains(name, "/") {
		return name != "." && name != ".."
	}
	below, ok := strings.CutPrefix(name, "./")
	return ok && path.Clean(below) == below && filepath.IsLocal(below)
}

// resolve returns the absolute path of an allowed executable. An error means
// that this machine does not have it, or the tree does not.
func resolve(name string, dirs []string, tree string) (string, error) {
	if strings.Contains(name, "/") {
		root, err := os.OpenRoot(tree)
		if err != nil {
			return "", err
		}
		defer root.Close()
		fi, err := root.Stat(name)
		if err != nil {
			return "", err
		}
		return filepath.Join(tree, name), executable(name, fi)
	}
	for _, dir := range dirs {
		file := filepath.Join(dir, name)
		fi, err := os.Stat(file)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			continue
		}
		if err != nil {
			return "", err
		}
		if executable(name, fi) == nil {
			return file, nil
		}
	}
	return "", fmt.Errorf("%s is not installed on this machine (looked in %s)", name, strings.Join(dirs, ":"))
}

func executable(name string, fi fs.FileInfo) error {
	if !fi.Mode().IsRegular() || fi.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", name)
	}
	return nil
}

// workDir returns the absolute path of a directory of the tree.
func workDir(tree, dir string) (string, error) {
	if dir == "" {
		dir = "."
	}
	bad := func(why string) error {
		return fault.Errorf(fault.Invalid, "working_dir_invalid", "working_dir %q %s", dir, why).At("/working_dir", why)
	}
	if strings.ContainsRune(dir, 0) || !filepath.IsLocal(dir) {
		return "", bad("does not lie inside the tree")
	}
	root, err := os.OpenRoot(tree)
	if err != nil {
		return "", err
	}
	defer root.Close()
	fi, err := root.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", bad("does not exist in the tree")
	case err != nil:
		return "", bad("does not lie inside the tree")
	case !fi.IsDir():
		return "", bad("is not a directory")
	}
	return filepath.Join(tree, dir), nil
}
