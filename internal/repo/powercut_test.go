package repo_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/blob"
	"roundtable/internal/patch"
)

// A disk is a file system in an image. What has not been synced is not in the
// image yet, so that a copy of it is what a power cut leaves.
type disk struct{ image, at string }

// newDisk copies and mounts an image, or makes a new one. It skips the test
// where that cannot be done.
func newDisk(t *testing.T, of string) disk {
	t.Helper()
	dir := memory(t)
	d := disk{filepath.Join(dir, "image"), filepath.Join(dir, "at")}
	must(t, os.Mkdir(d.at, 0o755))
	if of == "" {
		must(t, os.WriteFile(d.image, nil, 0o600))
		must(t, os.Truncate(d.image, 16<<20))
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", d.image).CombinedOutput(); err != nil {
			t.Skipf("making a file system: %v %s", err, out)
		}
	} else {
		must(t, copyAll(of, d.image))
	}
	// The kernel must not sync by itself meanwhile.
	if out, err := exec.Command("mount", "-o", "loop,commit=300", d.image, d.at).CombinedOutput(); err != nil {
		t.Skipf("mounting an image takes root and a loop device: %v %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", d.at).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
	})
	return d
}

func copyAll(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

func (d disk) killing() killing {
	return killing{root: filepath.Join(d.at, "root"), blobs: filepath.Join(d.at, "blobs")}
}

// cut applies, cuts the power before step n, and says whether the tree is
// whole after the next start, and whether the step was reached.
func cut(t *testing.T, n int, lax bool) (whole, reached bool) {
	t.Helper()
	d := newDisk(t, "")
	k := d.killing()
	apart := lax || n%4 == 1
	if apart {
		k.blobs = memory(t) // elsewhere, where its syncs do not sync the staged files too
	}
	for p, s := range everyKind.files {
		write(t, k.root, p, s)
	}
	must(t, os.Chmod(k.root, 0o755))
	before := listing(t, k.root, false)
	f, err := os.Open(d.at)
	must(t, err)
	must(t, errors.Join(unix.Syncfs(int(f.Fd())), f.Close()))
	changes := everyKind.changes
	if n%2 == 0 { // past the number that is synced one by one
		changes = slices.Clone(changes)
		for i := range 4 {
			changes = append(changes, change(fmt.Sprint("many/", i), "", "100644 one of many\n"))
		}
	}
	j := k.apply(0)
	j.Apply, j.StopAt, j.Lax = changes, n, lax
	cmd := j.command(t)
	must(t, cmd.Start())
	var ws unix.WaitStatus
	_, err = unix.Wait4(cmd.Process.Pid, &ws, unix.WUNTRACED, nil)
	must(t, err)
	if ws.Stopped() {
		reached = true
	}
	after := tree(t, after(everyKind.files, changes))
	cutOff := filepath.Join(memory(t), "image")
	must(t, copyAll(d.image, cutOff))
	if reached {
		must(t, cmd.Process.Kill())
		_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
		must(t, err)
	} else if ws.ExitStatus() != 0 {
		t.Fatalf("the apply failed: %v", ws)
	}
	next := newDisk(t, cutOff).killing()
	if apart {
		next.blobs = k.blobs
	}
	k = next
	if lax {
		err := k.recovery(0).command(t).Run()
		now := listing(t, k.root, false)
		return err == nil && (now == before || now == after), reached
	}
	k.recovery(0).run(t)
	k.before, k.after = before, after
	if s := k.settled(t, fmt.Sprint("power cut before step ", n)); s == "before" && !reached {
		t.Errorf("what was answered as applied is gone")
	} else if s == "after" {
		imagesThere(t, k, changes)
	}
	return true, reached
}

// imagesThere fails unless every image of the changes is in the blob store.
func imagesThere(t *testing.T, k killing, changes []patch.Change) {
	t.Helper()
	store, err := blob.Open(k.blobs, blob.Options{})
	must(t, err)
	for _, c := range changes {
		for _, s := range []patch.State{c.Before, c.After} {
			if s.Kind != patch.Absent {
				if _, err := store.Get(t.Context(), s.SHA256); err != nil {
					t.Errorf("%s: %v", c.Path, err)
				}
			}
		}
	}
	must(t, store.Close())
}

func TestPowerCut(t *testing.T) {
	stride := 23
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		stride = 1
	}
	cuts, more := 0, true
	for n := 2; more; n += stride {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			more = false // also where it is skipped
			_, more = cut(t, n, false)
		})
		cuts++
	}
	t.Logf("%d cuts", cuts)
}

// Without syncing staged files a power cut leaves a broken tree: the test can
// fail.
func TestPowerCutWithoutSync(t *testing.T) {
	ran, broken, more := 0, 0, true
	for n := 50; more && broken == 0; n += 6 {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			more = false
			var whole bool
			whole, more = cut(t, n, true)
			ran++
			if !whole {
				broken++
			}
		})
	}
	if ran > 0 && broken == 0 {
		t.Error("no power cut left a broken tree")
	}
}

// A process dies when it has named the marker and before that is durable, the
// next one finds it, and the power is cut as soon as that may have told anybody:
// the marker is on the disk.
func TestPowerCutAfterKill(t *testing.T) {
	if s := cutAfterKill(t, false); s != "after" {
		t.Errorf("the tree is %s, and it was told as applied", s)
	}
	// Without that care it is not: the test can fail.
	if s := cutAfterKill(t, true); s != "before" {
		t.Errorf("without syncing the marker the tree is %s", s)
	}
}

func cutAfterKill(t *testing.T, lax bool) (state string) {
	t.Helper()
	d := newDisk(t, "")
	k := d.killing()
	k.blobs = memory(t) // elsewhere: opening it syncs the file system that it is on
	for p, s := range everyKind.files {
		write(t, k.root, p, s)
	}
	must(t, os.Chmod(k.root, 0o755))
	k.before = listing(t, k.root, false)
	k.after = tree(t, after(everyKind.files, everyKind.changes))
	f, err := os.Open(d.at)
	must(t, err)
	must(t, errors.Join(unix.Syncfs(int(f.Fd())), f.Close()))
	j := k.apply(0)
	j.KillStep = "verify/name_sync"
	if killed, out := j.run(t); !killed {
		t.Fatal("not killed: ", out)
	}
	j = k.recovery(0)
	j.Lax, j.StopStep = lax, "finish/look"
	cmd := j.command(t)
	must(t, cmd.Start())
	var ws unix.WaitStatus
	_, err = unix.Wait4(cmd.Process.Pid, &ws, unix.WUNTRACED, nil)
	must(t, err)
	if !ws.Stopped() {
		t.Fatalf("the recovery did not find the marker: %v", ws)
	}
	cutOff := filepath.Join(memory(t), "image")
	must(t, copyAll(d.image, cutOff))
	must(t, cmd.Process.Kill())
	_, err = unix.Wait4(cmd.Process.Pid, &ws, 0, nil)
	must(t, err)
	next := newDisk(t, cutOff).killing()
	next.before, next.after, next.blobs = k.before, k.after, k.blobs
	next.recovery(0).run(t)
	return next.settled(t, "power cut after a recovery")
}
