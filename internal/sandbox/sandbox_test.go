package sandbox_test

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"roundtable/internal/sandbox"
)

func TestMain(m *testing.M) {
	if status, ok := sandbox.Main(os.Args); ok {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// run runs a shell script by a backend in a directory of its own.
func run(t *testing.T, b sandbox.Backend, script string, change func(*sandbox.Spec)) (string, sandbox.Status) {
	t.Helper()
	s := sandbox.Spec{
		Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Dir: t.TempDir(),
		Env: []string{"PATH=/usr/bin:/bin"},
	}
	s.ReadWrite = []string{s.Dir}
	if change != nil {
		change(&s)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	s.Stdout, s.Stderr = out, out
	c, err := sandbox.Start(b, s)
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.Wait()
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(io.NewSectionReader(out, 0, 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	return string(text), st
}

func TestProbe(t *testing.T) {
	r, err := sandbox.Probe(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", r)
}
