package calls_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
)

// aside says which functions of os and syscall a file may call all the same:
// what it does with them can be made again and nothing durable rests on it.
var aside = map[string][]string{
	"repo/candidate.go":   {"WriteFile"},                 // the private index and its objects
	"repo/ignored.go":     {"MkdirTemp", "RemoveAll"},    // ignore files to ask git about
	"repo/git.go":         {"Kill", "NewFile"},           // of git itself
	"repo/head.go":        {"Lstat", "ReadFile", "Open"}, // git's own files, read only
	"repo/index.go":       {"Stat", "Chtimes"},           // the private index
	"repo/lock.go":        {"Getpid", "OpenRoot"},        // the sweep of private indexes
	"repo/manifest.go":    {"OpenRoot"},                  // a copy of the tree elsewhere
	"repo/materialise.go": {"MkdirAll", "ReadDir"},
	"repo/private.go":     {"MkdirTemp", "Mkdir", "RemoveAll", "Open", "OpenFile"},
	"repo/strays.go":      {"MkdirTemp", "RemoveAll", "MkdirAll", "WriteFile"}, // attribute files to ask git about
	"repo/tracked.go":     {"ReadFile", "Open"},                                // git's index, read only
	"repo/workspace.go":   {"Lstat", "MkdirAll", "ReadFile", "OpenFile"},       // finding git; info/exclude
}

// No file of the writer or of the blob store makes a system call but through
// this package: else a test could not make it fail.
func TestNobodyElseCalls(t *testing.T) {
	for _, dir := range []string{"repo", "blob"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range direct(t, filepath.ToSlash(filepath.Join(dir, filepath.Base(file))), b) {
				t.Errorf("%s: %s is called past the package calls", file, bad)
			}
		}
	}
}

func TestDirectIsSeen(t *testing.T) {
	const src = `package repo
import ("os"; "syscall"; "golang.org/x/sys/unix")
func f() { unix.Fsync(1); os.Rename("a", "b"); syscall.Kill(1, 9); var st unix.Stat_t; _ = st; os.Getpid() }`
	if got := direct(t, "repo/new.go", []byte(src)); !slices.Equal(got, []string{"unix.Fsync", "os.Rename", "syscall.Kill", "os.Getpid"}) {
		t.Errorf("saw %v", got)
	}
	if got := direct(t, "repo/git.go", []byte(src)); slices.Contains(got, "syscall.Kill") || len(got) != 3 {
		t.Errorf("saw %v where Kill is allowed", got)
	}
}

// direct are the functions of unix, syscall and os that a source calls and is
// not allowed to.
func direct(t *testing.T, name string, src []byte) (bad []string) {
	t.Helper()
	parsed, err := parser.ParseFile(token.NewFileSet(), name, src, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if x, ok := sel.X.(*ast.Ident); ok && slices.Contains([]string{"unix", "syscall", "os"}, x.Name) {
			if x.Name == "unix" || !slices.Contains(aside[name], sel.Sel.Name) {
				bad = append(bad, x.Name+"."+sel.Sel.Name)
			}
		}
		return true
	})
	return bad
}

// Nothing but a test has calls fail.
func TestOnlyTestsInject(t *testing.T) {
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), "calls.Inject(") {
			t.Errorf("%s injects faults", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestInject(t *testing.T) {
	var seen []calls.Call
	left := 2
	restore := calls.Inject(func(c calls.Call) error {
		seen = append(seen, c)
		if left--; left >= 0 {
			return unix.EINTR
		}
		return unix.ENOSPC
	})
	defer restore()
	dir := t.TempDir()
	if err := calls.Mkdir(filepath.Join(dir, "a"), 0o700); err != unix.ENOSPC {
		t.Errorf("got %v", err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("made all the same: %v", err)
	}
	if len(seen) != 3 || seen[2].What != "mkdir" {
		t.Errorf("asked %v", seen)
	}
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd, err := unix.Dup(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if err := calls.Close(fd); err != unix.ENOSPC {
		t.Errorf("close: %v", err)
	}
	if err := unix.Close(fd); err != unix.EBADF {
		t.Errorf("close that was made to fail leaves the descriptor open: %v", err)
	}
	restore()
	if err := calls.Mkdir(filepath.Join(dir, "a"), 0o700); err != nil {
		t.Error(err)
	}
}
