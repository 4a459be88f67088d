package world

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"roundtable/internal/fault"
)

// CheckRoot resolves a folder that is to be governed, and refuses what is none
// or what is the service's or Git's own: the data folder, a .git or .roundtable
// folder, and all inside them. The data folder need not be there yet.
func CheckRoot(dir, data string) (root string, err error) {
	bad := func(why string) error {
		return fault.Errorf(fault.Invalid, "invalid_root", "%s %s", dir, why).At("/root", why)
	}
	if !filepath.IsAbs(dir) {
		return "", bad("is not an absolute path")
	}
	if root, err = filepath.EvalSymlinks(dir); err != nil {
		return "", bad("is not there or cannot be read")
	}
	if info, err := os.Stat(root); err != nil || !info.IsDir() {
		return "", bad("is not a folder")
	}
	own := func(why string) error {
		return fault.Errorf(fault.Refused, "root_reserved", "%s %s, which no workspace may change", dir, why).At("/root", why)
	}
	for name := range strings.SplitSeq(filepath.ToSlash(root), "/") {
		if strings.EqualFold(name, ".git") || strings.EqualFold(name, ".roundtable") {
			return "", own("is or lies in a " + strings.ToLower(name) + " folder")
		}
	}
	if gitDir(root) {
		return "", own("is a Git repository's own folder, not a work tree")
	}
	inside, err := lies(root, data)
	if err != nil {
		return "", err
	}
	if inside {
		return "", own("is or lies in the data folder of the service")
	}
	return root, nil
}

// gitDir reports whether dir is the folder that Git keeps a repository in,
// whatever its name: a bare repository, or the Git folder of a work tree.
func gitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// lies reports whether dir, which has no links in its path, is or lies in the
// folder data, whatever names the file system knows it by.
func lies(dir, data string) (bool, error) {
	of, err := os.Stat(data)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	for {
		info, err := os.Stat(dir)
		if err != nil {
			return false, err
		}
		if os.SameFile(info, of) {
			return true, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false, nil
		}
		dir = up
	}
}
