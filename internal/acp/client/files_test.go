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
