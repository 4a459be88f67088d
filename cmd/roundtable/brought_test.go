package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

const stolen = "#!/bin/sh\ntouch ran\n"

// hostile makes a repository that brings a state folder, whose journal has
// recovery put a hook back that was never there, and clones it.
func hostile(t *testing.T) (clone, file string) {
	t.Helper()
	dir, file := folder(t)
	before := patch.State{Kind: patch.File, Mode: "100755", SHA256: patch.Digest([]byte(stolen)), Size: int64(len(stolen))}
	line, err := json.Marshal(map[string]any{"version": 1, "transaction_id": "patch-evil", "attempt": 1, "operations": []any{
		map[string]any{"kind": "delete", "path": ".git/hooks/post-checkout", "before": before, "after": patch.State{Kind: patch.Absent}}}})
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(append(line, '\n'))
	state := filepath.Join(dir, ".roundtable")
	save(t, filepath.Join(state, "tx/patch-evil.1/journal"), string(line)+"\n"+hex.EncodeToString(sum[:])+"\n")
	save(t, filepath.Join(state, "tx/patch-evil.1/000000"), stolen)
	if err := errors.Join(os.Chmod(filepath.Join(state, "tx/patch-evil.1/000000"), 0o755), os.Symlink("../../outside", filepath.Join(state, "blobs"))); err != nil {
		t.Fatal(err)
	}
	save(t, filepath.Join(state, "config.yaml"), "insecure: true\n")
	save(t, filepath.Join(state, "log.db"), "no history of yours\n")
	cleanGit(t, dir, "init", "-q")
	cleanGit(t, dir, "add", "-A")
	cleanGit(t, dir, "commit", "-q", "-m", "one")
	clone = filepath.Join(t.TempDir(), "clone")
	cleanGit(t, dir, "clone", "-q", dir, clone)
	return clone, file
}

// image is everything below a folder.
func image(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		text := ""
		if d.Type().IsRegular() {
			text = contents(t, path)
		}
		fmt.Fprintf(&b, "%s %v %q\n", path, d.Type(), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestBroughtState: what a repository brings as a state folder is neither
// believed nor touched, whatever begins in its clone.
func TestBroughtState(t *testing.T) {
	clone, file := hostile(t)
	top := filepath.Dir(clone)
	was := image(t, top)
	data := filepath.Join(clone, ".roundtable")
	for _, args := range [][]string{
		{"patch", "check", "--dir", clone, file},
		{"patch", "apply", "--dir", clone, file},
		{"patch", "apply", "--dir", clone, "--data", filepath.Join(t.TempDir(), "data"), file},
		{"patch", "recover", "--dir", clone},
		{"patch", "recover", "--dir", clone, "--resolve", "patch-evil"},
		{"init", clone},
		{"init", clone, "--data", filepath.Join(t.TempDir(), "data")},
		{"serve", "--data", data},
		{"mcp", "--data", data},
		{"token", "issue", "--data", data, "--principal", "admin"},
		{"log", "verify", "--data", data},
		{"key", "show", "--data", data},
		{"doctor", "--data", data},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), args, terminal{in: strings.NewReader(""), out: &out, err: &errs, env: func(name string) string {
			return map[string]string{"ROUNDTABLE_TOKEN": "rt_known"}[name]
		}})
		if code == 0 || !strings.Contains(out.String()+errs.String(), "Git tracks") {
			t.Errorf("%q: %d %s%s", args, code, &out, &errs)
		}
		if now := image(t, top); now != was {
			t.Fatalf("%q changed\n%s\nto\n%s", args, was, now)
		}
	}
}

// TestBroughtByArchive: an archive can carry the folder without Git knowing it.
func TestBroughtByArchive(t *testing.T) {
	clone, file := hostile(t)
	cleanGit(t, clone, "rm", "-q", "-r", "--cached", ".roundtable")
	cleanGit(t, clone, "commit", "-q", "-m", "two")
	if v, code := toolJSON[verdict](t, "patch", "apply", "--dir", clone, file); code == 0 || v.Class != "state.not_plain" {
		t.Errorf("a link in place of the blobs: %d %+v", code, v)
	}
	if err := os.Remove(filepath.Join(clone, ".roundtable", "blobs")); err != nil {
		t.Fatal(err)
	}
	v, code := toolJSON[verdict](t, "patch", "apply", "--dir", clone, file)
	if code == 0 || v.Class != "state.needs_attention" {
		t.Errorf("%d %+v", code, v)
	}
	r, code := toolJSON[recovery](t, "patch", "recover", "--dir", clone)
	if code != 1 || r.Outcome != "needs_attention" || len(r.Transactions) != 1 || r.Transactions[0].Applied != "unknown" {
		t.Errorf("%d %+v", code, r)
	}
	if _, err := os.Lstat(filepath.Join(clone, ".git/hooks/post-checkout")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the hook: %v", err)
	}
	if err := os.Rename(filepath.Join(clone, ".roundtable/tx/patch-evil.1"), filepath.Join(t.TempDir(), "away")); err != nil {
		t.Fatal(err)
	}
	if v, code := toolJSON[verdict](t, "patch", "apply", "--dir", clone, file); code != 0 || v.Outcome != "applied" {
		t.Errorf("with the folder moved away: %d %+v", code, v)
	}
}
