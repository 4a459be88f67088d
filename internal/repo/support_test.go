package repo_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"roundtable/internal/blob"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// A spec is a file as a test writes it down: "100644 text", "100755 text",
// "120000 target"; empty is nothing.
type spec = string

var none = patch.State{Kind: patch.Absent}

func stateOf(s spec) (patch.State, []byte) {
	if s == "" {
		return none, nil
	}
	mode, text, _ := strings.Cut(s, " ")
	sum := sha256.Sum256([]byte(text))
	st := patch.State{Kind: patch.File, Mode: mode, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(text))}
	if mode == "120000" {
		st.Kind = patch.Symlink
	}
	return st, []byte(text)
}

// change is a change of a path from one spec to another.
func change(path string, before, after spec) patch.Change {
	b, _ := stateOf(before)
	a, content := stateOf(after)
	return patch.Change{Path: path, Before: b, After: a, Content: content}
}

// write puts a file into a folder.
func write(t testing.TB, root, path string, s spec) {
	t.Helper()
	full := filepath.Join(root, path)
	must(t, os.MkdirAll(filepath.Dir(full), 0o777))
	if err := os.Remove(full); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	st, content := stateOf(s)
	switch st.Mode {
	case "120000":
		must(t, os.Symlink(string(content), full))
	case "100755":
		must(t, os.WriteFile(full, content, 0o755))
	case "100644":
		must(t, os.WriteFile(full, content, 0o644))
	}
}

// listing is every file, link and folder below root with mode and bytes, but
// for what .git holds and, unless wanted, .roundtable.
func listing(t testing.TB, root string, state bool) string {
	t.Helper()
	var lines []string
	must(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if rel == ".git" || rel == ".roundtable" && !state {
			if !d.IsDir() {
				return nil
			}
			return fs.SkipDir
		}
		fi, err := d.Info()
		if err != nil {
			return err
		}
		line := fmt.Sprintf("%s %v", rel, fi.Mode())
		switch {
		case rel == ".roundtable/lock": // holds a process id
		case fi.Mode().IsRegular():
			b, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %q", b)
		case fi.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			line += " -> " + to
		}
		lines = append(lines, line)
		return nil
	}))
	sort.Strings(lines)
	return strings.Join(lines, "\n")
}

// git runs the real git as a person would, without their configuration.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "init.defaultBranch=main", "-c", "gc.auto=0"}, args...)...)
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/nonexistent", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

// gitRepo makes a repository with one commit of the files given.
func gitRepo(t testing.TB, files map[string]spec) string {
	t.Helper()
	return gitRepoIn(t, t.TempDir(), files)
}

// gitRepoIn makes it in an empty folder, or goes on with one that was begun.
func gitRepoIn(t testing.TB, root string, files map[string]spec) string {
	t.Helper()
	git(t, root, "init", "-q")
	for path, s := range files {
		write(t, root, path, s)
	}
	git(t, root, "add", "-A")
	git(t, root, "commit", "-q", "--allow-empty", "-m", "first")
	return root
}

func open(t testing.TB, root string, o repo.Options) *repo.Workspace {
	t.Helper()
	if o.Blobs == nil {
		o.Blobs = blobs(t, t.TempDir())
	}
	o.Path = os.Getenv("PATH")
	w, err := repo.Open(t.Context(), root, o)
	must(t, err)
	t.Cleanup(func() { must(t, w.Close()) })
	return w
}

func blobs(t testing.TB, dir string) *blob.Store {
	t.Helper()
	s, err := blob.Open(dir, blob.Options{})
	must(t, err)
	t.Cleanup(func() { must(t, s.Close()) })
	return s
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func ctx(t testing.TB) context.Context { return t.Context() }

// memory is a temporary folder on a file system without a disk, where the
// machine has one: a killed process leaves the same there, sooner.
func memory(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "repo-test-")
	if err != nil {
		return t.TempDir()
	}
	must(t, os.Chmod(dir, 0o755))
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	return dir
}
