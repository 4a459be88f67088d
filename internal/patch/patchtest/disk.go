package patchtest

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"roundtable/internal/patch"
)

// Write puts the tree before the case into the folder root, which is empty.
// What a hard link leads to is there already.
func (c Case) Write(t testing.TB, root string) {
	t.Helper()
	for _, e := range c.Before {
		full := filepath.Join(root, e.Path)
		if e.Mode == "040000" {
			must(t, os.MkdirAll(full, 0o755))
			continue
		}
		must(t, os.MkdirAll(filepath.Dir(full), 0o755))
		switch {
		case e.Mode == "fifo":
			must(t, syscall.Mkfifo(full, 0o644))
		case e.Mode == "120000":
			must(t, os.Symlink(string(e.Data), full))
		case e.Hardlink != "":
			must(t, os.Link(filepath.Join(root, e.Hardlink), full))
		default:
			must(t, os.WriteFile(full, e.Data, 0o644))
			if e.Mode == "100755" {
				must(t, os.Chmod(full, 0o755))
			}
		}
	}
}

// Read gives the folder root as expect.txt writes trees; .git and .roundtable
// in it are left out.
func Read(t testing.TB, root string) []string {
	t.Helper()
	m := patch.NewMapTree()
	must(t, filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		if err != nil || full == root {
			return err
		}
		rel, err := filepath.Rel(root, full)
		if err != nil {
			return err
		}
		if rel == ".git" || rel == ".roundtable" {
			return fs.SkipDir
		}
		return put(m, rel, full, d)
	}))
	return Lines(t, m)
}

func put(m *patch.MapTree, rel, full string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	switch info.Mode().Type() {
	case fs.ModeDir:
		m.PutDir(rel)
	case fs.ModeSymlink:
		text, err := os.Readlink(full)
		if err != nil {
			return err
		}
		m.Put(rel, "120000", []byte(text))
	case 0:
		data, err := os.ReadFile(full)
		if err != nil {
			return err
		}
		mode := "100644"
		if info.Mode()&0o100 != 0 {
			mode = "100755"
		}
		m.Put(rel, mode, data)
	default:
		m.PutSpecial(rel)
	}
	return nil
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
