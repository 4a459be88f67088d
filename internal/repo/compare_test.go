package repo

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/fault"
)

// What was written is looked at again: a checkout that is not the tree it
// should be is an error.
func TestCompareSeesWhatIsWrong(t *testing.T) {
	root := t.TempDir()
	if out, err := exec.Command("git", "init", "-q", root).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for name, mode := range map[string]os.FileMode{"f": 0o644, "x": 0o755} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(name), mode); err != nil {
			t.Fatal(err)
		}
	}
	w, err := Open(t.Context(), root, Options{Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(dst string) error{
		"":        func(string) error { return nil },
		"bytes":   func(dst string) error { return os.WriteFile(filepath.Join(dst, "f"), []byte("F"), 0) },
		"mode":    func(dst string) error { return os.Chmod(filepath.Join(dst, "x"), 0o644) },
		"missing": func(dst string) error { return os.Remove(filepath.Join(dst, "f")) },
		"more":    func(dst string) error { return os.WriteFile(filepath.Join(dst, "g"), nil, 0o644) },
		"kind": func(dst string) error {
			return errors.Join(os.Remove(filepath.Join(dst, "f")), os.Symlink("x", filepath.Join(dst, "f")))
		},
	} {
		x, err := w.private(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		dst := t.TempDir()
		id, err := x.checkout(t.Context(), nil, dst)
		if err == nil {
			err = spoil(dst)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := x.compare(t.Context(), id, dst); (err != nil) != (what != "") {
			t.Errorf("%s: %v", what, err)
		}
		if err := x.close(); err != nil {
			t.Error(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// git works by name and the writer by descriptor: where they are no longer the
// same folder, nothing is done.
func TestMoved(t *testing.T) {
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	w, err := Open(t.Context(), root, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Rename(root, root+".old"), os.Mkdir(root, 0o755)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Recover(t.Context()); fault.CodeOf(err) != "workspace.moved" {
		t.Errorf("recovered: %v", err)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// A call of git has bounds.
func TestGitIsBounded(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\ncase $1 in loud) yes;; slow) sleep 600 & wait;; fails) echo no reason >&2; exit 3;; *) cat; env;; esac\n"
	program := filepath.Join(dir, "git")
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	o := Options{Git: program, MaxOutput: 1 << 16, Timeout: 200_000_000, UserEnv: []string{"HOME=/home/person", "GIT_DIR=/evil", "LD_PRELOAD=/evil"}}.withDefaults()
	if _, err := o.run(t.Context(), call{dir: dir, args: []string{"loud"}}); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("loud: %v", err)
	}
	if _, err := o.run(t.Context(), call{dir: dir, args: []string{"slow"}}); !strings.Contains(err.Error(), "deadline") {
		t.Errorf("slow: %v", err)
	}
	o.Timeout = o.withDefaults().Timeout * 600
	if _, err := o.run(t.Context(), call{dir: dir, args: []string{"fails"}}); err == nil || !strings.Contains(err.Error(), "no reason") {
		t.Errorf("fails: %v", err)
	}
	if _, err := o.run(t.Context(), call{dir: dir, args: []string{"fails"}, ok: []int{3}}); err != nil {
		t.Errorf("an exit code that is an answer: %v", err)
	}
	for user, home := range map[bool]string{true: "HOME=/home/person\n", false: "HOME=/nonexistent\n"} {
		out, err := o.run(t.Context(), call{dir: dir, args: []string{"env"}, stdin: []byte("from stdin\n"), user: user, config: []setting{{"a.b=c.d", "e"}}})
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"from stdin\n", home, "=a.b=c.d\n", "LC_ALL=C\n"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("no %q in %s", want, out)
			}
		}
		for _, bad := range []string{"evil", "LD_PRELOAD"} {
			if strings.Contains(string(out), bad) {
				t.Errorf("%q in %s", bad, out)
			}
		}
		if global := strings.Contains(string(out), "GIT_CONFIG_GLOBAL=/dev/null"); global == user {
			t.Errorf("user %v: global configuration off: %v", user, global)
		}
	}

}
