package client

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"roundtable/internal/acp"
)

// TestFIFO: an agent that names a FIFO as a file is refused at once, and no
// file is opened that would wait for its other end.
func TestFIFO(t *testing.T) {
	dir := t.TempDir()
	c := &Client{cfg: Config{Root: dir}}
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := errors.Join(syscall.Mkfifo(fifo, 0o600), os.WriteFile(file, []byte("something longer"), 0o600)); err != nil {
		t.Fatal(err)
	}
	ask := func(path string) json.RawMessage {
		b, err := json.Marshal(map[string]string{"sessionId": "s", "path": path, "content": "new"})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for name, call := range map[string]func(json.RawMessage) (any, error){
		"read":  func(raw json.RawMessage) (any, error) { return c.readFile(t.Context(), raw) },
		"write": func(raw json.RawMessage) (any, error) { return c.writeFile(t.Context(), raw) },
	} {
		_, err := call(ask(fifo))
		if e, ok := errors.AsType[*acp.Error](err); !ok || e.Code != acp.CodeInvalidParams {
			t.Errorf("%s of a FIFO: %v", name, err)
		}
		if _, err := call(ask(file)); err != nil {
			t.Errorf("%s of a file: %v", name, err)
		}
	}
	if b, err := os.ReadFile(file); string(b) != "new" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}

// TestRealName: an agent may name files by the real name of a folder that the
// client knows by a link.
func TestRealName(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real"), filepath.Join(dir, "link")
	if err := errors.Join(os.Mkdir(real, 0o700), os.Symlink(real, link), os.WriteFile(filepath.Join(real, "f"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := &Client{cfg: Config{Root: link}}
	for path, inside := range map[string]bool{filepath.Join(link, "f"): true, filepath.Join(real, "f"): true, filepath.Join(dir, "f"): false, real + "x/f": false} {
		root, rel, err := c.inside(path)
		if (err == nil) != inside || inside && rel != "f" {
			t.Errorf("%s: %q, %v", path, rel, err)
		}
		if root != nil {
			root.Close()
		}
	}
}
