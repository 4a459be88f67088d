package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/internal/blob"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// interrupted dies in the middle of an apply to dir: at the named step of a
// phase.
func interrupted(t *testing.T, dir, id, at string) {
	t.Helper()
	blobs, err := blob.Open(filepath.Join(dir, ".roundtable", "blobs"), blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := repo.Open(t.Context(), dir, repo.Options{Blobs: blobs, Step: func(s repo.Step) {
		if s.Name == at {
			panic(at)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := w.Tree(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p, err := patch.Parse([]byte(onePatch), patch.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := patch.Apply(p, tree)
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Errorf("there was no step %s", at)
			}
		}()
		_, err := w.Apply(context.WithoutCancel(t.Context()), id, 1, repo.Plan{Changes: r.Changes})
		t.Errorf("applied: %v", err)
	}()
	if err := errors.Join(w.Close(), blobs.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPatchRecover: what died before the commit point is taken back, what died
// after it is finished; an apply does that by itself.
func TestPatchRecover(t *testing.T) {
	for _, c := range []struct{ id, at, applied, want string }{
		{"patch-1", "verify", "no", "one\ntwo\n"},
		{"patch-1", "marked", "yes", "one\nzwei\n"},
		{"TX-1", "marked", "yes", "one\nzwei\n"},
	} {
		t.Run(c.id+" "+c.at, func(t *testing.T) {
			dir, file := folder(t)
			interrupted(t, dir, c.id, c.at)
			if _, errs, _ := tool(t, "", "patch", "check", "--dir", dir, file); !strings.Contains(errs, "patch recover --dir "+dir) {
				t.Errorf("check does not warn: %q", errs)
			}
			r, code := toolJSON[recovery](t, "patch", "recover", "--dir", dir)
			if code != 0 || r.Outcome != "recovered" || len(r.Transactions) != 1 || r.Transactions[0].Applied != c.applied {
				t.Errorf("%d %+v", code, r)
			}
			if got := contents(t, filepath.Join(dir, "a.txt")); got != c.want {
				t.Errorf("%q", got)
			}
			left := 0 // what a service applied is the service's to finish
			if c.id == "TX-1" {
				left = 1
			}
			if got, err := os.ReadDir(filepath.Join(dir, ".roundtable", "tx")); err != nil || len(got) != left {
				t.Errorf("%d left (%v), want %d", len(got), err, left)
			}
		})
	}
	dir, file := folder(t)
	interrupted(t, dir, "patch-1", "verify")
	v, code := toolJSON[verdict](t, "patch", "apply", "--dir", dir, file)
	if code != 0 || v.Outcome != "applied" || contents(t, filepath.Join(dir, "a.txt")) != "one\nzwei\n" {
		t.Errorf("an apply after one that was interrupted: %d %+v", code, v)
	}
}

// TestPatchKeepsImages: both versions of what was changed are in the blob store
// afterwards, and the answer is one line of JSON.
func TestPatchKeepsImages(t *testing.T) {
	dir, file := folder(t)
	data := filepath.Join(t.TempDir(), "data")
	out, _, code := tool(t, "", "patch", "apply", "--dir", dir, "--data", data, file, "--json")
	var v verdict
	if err := json.Unmarshal([]byte(out), &v); err != nil || code != 0 || strings.Count(out, "\n") != 1 {
		t.Fatalf("%d %v %s", code, err, out)
	}
	blobs, err := blob.Open(filepath.Join(data, "blobs"), blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"one\ntwo\n", "one\nzwei\n"} {
		if has, err := blobs.Has(patch.Digest([]byte(text))); !has || err != nil {
			t.Errorf("%q is not kept (%v)", text, err)
		}
	}
	if err := blobs.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestPatchLocked: while another process changes the folder an apply is
// refused, and a check is not hindered.
func TestPatchLocked(t *testing.T) {
	dir, file := folder(t)
	reached, goOn := make(chan struct{}), make(chan struct{})
	blobs, err := blob.Open(filepath.Join(dir, ".roundtable", "blobs"), blob.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := repo.Open(t.Context(), dir, repo.Options{Blobs: blobs, Step: func(s repo.Step) {
		if s.Name == "plan" {
			close(reached)
			<-goOn
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		after := patch.State{Kind: patch.File, Mode: "100644", SHA256: patch.Digest([]byte("n")), Size: 1}
		_, err := w.Apply(context.WithoutCancel(t.Context()), "TX-1", 1, repo.Plan{Changes: []patch.Change{{Path: "n", Before: patch.State{Kind: patch.Absent}, After: after, Content: []byte("n")}}})
		ended <- err
	}()
	<-reached
	v, code := toolJSON[verdict](t, "patch", "apply", "--dir", dir, file)
	if code != 1 || v.Class != "state.locked" || contents(t, filepath.Join(dir, "a.txt")) != "one\ntwo\n" {
		t.Errorf("%d %+v", code, v)
	}
	if v, code := toolJSON[verdict](t, "patch", "check", "--dir", dir, file); code != 0 {
		t.Errorf("%d %+v", code, v)
	}
	close(goOn)
	if err := errors.Join(<-ended, w.Close(), blobs.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestPatchSparse: a file that the checkout leaves out is refused with what to
// do, nothing changes, and once that is done the patch is taken.
func TestPatchSparse(t *testing.T) {
	dir, file := folder(t)
	save(t, filepath.Join(dir, "far", "b.txt"), "one\ntwo\n")
	cleanGit(t, dir, "init", "-q")
	cleanGit(t, dir, "add", "-A")
	cleanGit(t, dir, "commit", "-qm", "x")
	cleanGit(t, dir, "sparse-checkout", "set", "--cone", "near")
	save(t, file, onePatch+strings.ReplaceAll(onePatch, "a.txt", "far/b.txt"))
	for _, what := range []string{"check", "apply"} {
		v, code := toolJSON[verdict](t, "patch", what, "--dir", dir, file)
		if code != 1 || v.Class != "apply.not_checked_out" || v.Path != "far/b.txt" || !strings.Contains(v.Message, "git sparse-checkout add") {
			t.Errorf("%s: %d %+v", what, code, v)
		}
	}
	if got := contents(t, filepath.Join(dir, "a.txt")); got != "one\ntwo\n" {
		t.Errorf("a.txt is %q", got)
	}
	cleanGit(t, dir, "sparse-checkout", "add", "far")
	if v, code := toolJSON[verdict](t, "patch", "apply", "--dir", dir, file); code != 0 || contents(t, filepath.Join(dir, "far", "b.txt")) != "one\nzwei\n" {
		t.Errorf("%d %+v", code, v)
	}
}

// TestPatchSHA256: in a repository with SHA-256 ids the tree is git's, and a
// binary patch goes there and back from the tree after alone.
func TestPatchSHA256(t *testing.T) {
	dir, file := folder(t)
	save(t, filepath.Join(dir, "b.bin"), "a\x00b")
	cleanGit(t, dir, "init", "-q", "--object-format=sha256")
	cleanGit(t, dir, "add", "-A")
	cleanGit(t, dir, "commit", "-qm", "x")
	save(t, filepath.Join(dir, "b.bin"), "a\x00c"+strings.Repeat("x", 3000))
	save(t, file, cleanGit(t, dir, "diff", "--binary")+"\n\n")
	cleanGit(t, dir, "add", "-A")
	want := cleanGit(t, dir, "write-tree")
	cleanGit(t, dir, "reset", "-q", "--hard")
	v, code := toolJSON[verdict](t, "patch", "check", "--dir", dir, file)
	if code != 0 || v.Tree != want || len(want) != 64 || !v.Files[0].Binary {
		t.Errorf("%d %+v, want tree %s", code, v, want)
	}
	for _, args := range [][]string{{"apply", file}, {"reverse", "--out", file + ".back", file}, {"apply", file + ".back"}} {
		if out, errs, code := tool(t, "", append([]string{"patch", args[0], "--dir", dir}, args[1:]...)...); code != 0 {
			t.Fatalf("%s: %d %s %s", args, code, out, errs)
		}
	}
	if got := contents(t, filepath.Join(dir, "b.bin")); got != "a\x00b" {
		t.Errorf("%q", got)
	}
	if status := cleanGit(t, dir, "status", "--porcelain"); status != "" {
		t.Errorf("git sees %q", status)
	}
}

// TestPatchResolve: a transaction that waits for a person is ended at whichever
// attempt it is, by its id alone.
func TestPatchResolve(t *testing.T) {
	dir, _ := folder(t)
	interrupted(t, dir, "patch-1", "verify")
	tx := filepath.Join(dir, ".roundtable", "tx")
	if err := os.Rename(filepath.Join(tx, "patch-1.1"), filepath.Join(tx, "patch-1.3")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(tx, "patch-1.3", "journal"), []byte("cut"), 0o600); err != nil {
		t.Fatal(err)
	}
	if r, code := toolJSON[recovery](t, "patch", "recover", "--dir", dir); code != 1 || r.Outcome != "needs_attention" {
		t.Errorf("%d %+v", code, r)
	}
	if _, errs, code := tool(t, "", "patch", "recover", "--dir", dir, "--resolve", "patch-2"); code != 2 || !strings.Contains(errs, "patch-2") {
		t.Errorf("%d %s", code, errs)
	}
	r, code := toolJSON[recovery](t, "patch", "recover", "--dir", dir, "--resolve", "patch-1")
	if code != 0 || r.Outcome != "recovered" || len(r.Transactions) != 1 || r.Transactions[0].Attempt != 3 || r.Transactions[0].Applied != "unknown" {
		t.Errorf("%d %+v", code, r)
	}
	if r, code = toolJSON[recovery](t, "patch", "recover", "--dir", dir); code != 0 || r.Outcome != "clean" {
		t.Errorf("%d %+v", code, r)
	}
}
