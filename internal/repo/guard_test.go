package repo_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

func TestTwoProcesses(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 a\n")
	other := open(t, root, repo.Options{})
	var inside error
	w := open(t, root, repo.Options{Step: func(s repo.Step) {
		if s.Name == "sync" {
			_, inside = other.Recover(ctx(t))
		}
	}})
	_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "100644 b\n")}})
	must(t, err)
	var e *fault.Error
	if !errors.As(inside, &e) || e.Code != "state.locked" || e.Context["pid"] != fmt.Sprint(os.Getpid()) {
		t.Errorf("the other got %v", inside)
	}
	if _, err := other.Recover(ctx(t)); err != nil {
		t.Errorf("after it: %v", err)
	}
}

// unprivileged runs the named test again as uid 65534 on a folder of its own.
// It says whether this is that run.
func unprivileged(t *testing.T) bool {
	t.Helper()
	if os.Getenv("ROUNDTABLE_REPO_TEST_UNPRIVILEGED") != "" || os.Getuid() != 0 {
		return true
	}
	dir := memory(t)
	must(t, os.Chmod(dir, 0o777))
	bin := filepath.Join(dir, "test")
	b, err := os.ReadFile(os.Args[0])
	must(t, err)
	must(t, os.WriteFile(bin, b, 0o755))
	cmd := exec.Command(bin, "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir, "ROUNDTABLE_REPO_TEST_UNPRIVILEGED=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("as uid 65534: %v: %s", err, out)
	}
	return false
}

func TestWithoutPermission(t *testing.T) {
	if !unprivileged(t) {
		return
	}
	root := gitRepo(t, map[string]spec{"a": "100644 a\n", "shut/b": "100644 b\n", "dark": "100644 c\n", "z/y": "100644 y\n"})
	w := open(t, root, repo.Options{})
	must(t, os.Chmod(filepath.Join(root, "shut"), 0o555))
	must(t, os.Chmod(filepath.Join(root, "dark"), 0))
	t.Cleanup(func() { must(t, os.Chmod(filepath.Join(root, "shut"), 0o755)) })
	before := func() string {
		out, err := exec.Command("ls", "-lR", root).Output()
		must(t, err)
		return string(out)
	}
	was := before()
	for _, changes := range [][]patch.Change{
		{change("a", "100644 a\n", "100644 x\n"), change("shut/b", "100644 b\n", "100644 x\n")}, // fails at the move
		{change("a", "100644 a\n", ""), change("shut/new", "", "100644 x\n"), change("z/y", "100644 y\n", "")},
		{change("a", "100644 a\n", "100644 x\n"), change("dark", "100644 c\n", "100644 x\n")}, // cannot be read
	} {
		_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: changes})
		if fault.CodeOf(err) != "state.permission" {
			t.Errorf("%s: %v", changes[len(changes)-1].Path, err)
		}
		if now := before(); now != was {
			t.Errorf("the tree was\n%s\nis\n%s", was, now)
		}
	}
	if is, hash, err := w.Digest(ctx(t), "file", "dark"); is != repo.Unreadable || hash != "" || err != nil {
		t.Errorf("digest of an unreadable file: %s %s %v", is, hash, err)
	}
	write(t, root, "dark2", "100644 new\n")
	must(t, os.Chmod(filepath.Join(root, "dark2"), 0))
	if _, err := w.Candidate(ctx(t), nil); fault.CodeOf(err) != "state.permission" {
		t.Errorf("candidate without a file that cannot be read: %v", err)
	}
	if is, _, err := w.Digest(ctx(t), "directory", ""); is != repo.Unreadable || err != nil {
		t.Errorf("digest of a folder with an unreadable file: %s %v", is, err)
	}
	readonly := t.TempDir()
	must(t, os.Chmod(readonly, 0o555))
	if _, err := repo.Open(ctx(t), readonly, repo.Options{}); fault.CodeOf(err) != "state.permission" {
		t.Errorf("a folder that cannot be written: %v", err)
	}
}

// A replaced file keeps its permission bits, owner, extended attributes and
// ACL; a new one is made under the umask, the folder's group and default ACL.
func TestAttributesAreCarried(t *testing.T) {
	root := t.TempDir()
	write(t, root, "a", "100644 a\n")
	write(t, root, "b", "100644 b\n")
	write(t, root, "c", "100755 c\n")
	a := filepath.Join(root, "a")
	must(t, os.Chmod(a, 0o640))
	must(t, os.Chmod(filepath.Join(root, "b"), 0o604))
	must(t, os.Chmod(filepath.Join(root, "c"), 0o711))
	must(t, unix.Setxattr(a, "user.note", []byte("kept"), 0))
	acl := aclOf(6, 4, 65534, 6, 6, 0)
	must(t, unix.Setxattr(a, "system.posix_acl_access", acl, 0))
	must(t, os.Mkdir(filepath.Join(root, "shared"), 0o755))
	must(t, unix.Setxattr(filepath.Join(root, "shared"), "system.posix_acl_default", aclOf(7, 5, 65534, 7, 7, 0), 0))
	if os.Getuid() == 0 {
		must(t, os.Chown(a, 1234, 5678))
		must(t, os.Chown(filepath.Join(root, "shared"), 0, 4321))
		must(t, unix.Chmod(filepath.Join(root, "shared"), 0o2755))
	}
	must(t, os.WriteFile(filepath.Join(root, "shared/control"), nil, 0o666)) // what the system itself makes of it
	w := open(t, root, repo.Options{})
	old := syscall.Umask(0o027)
	_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{
		change("a", "100644 a\n", "100644 A\n"), change("b", "100644 b\n", "100755 B\n"), change("c", "100755 c\n", "100644 C\n"),
		change("new", "", "100755 n\n"), change("dir/new", "", "100644 n\n"), change("shared/new", "", "100644 x"), change("shared/d/new", "", "100644 x"),
	}})
	syscall.Umask(old)
	must(t, err)
	for path, want := range map[string]os.FileMode{"a": 0o660, "b": 0o705, "c": 0o600, "new": 0o750, "dir": 0o750, "dir/new": 0o640} {
		if fi, err := os.Stat(filepath.Join(root, path)); err != nil || fi.Mode().Perm() != want {
			t.Errorf("%s has %v, want %v; %v", path, fi.Mode(), want, err)
		}
	}
	for attr, want := range map[string][]byte{"user.note": []byte("kept"), "system.posix_acl_access": acl} {
		got := make([]byte, 200)
		n, err := unix.Getxattr(a, attr, got)
		if err != nil || !bytes.Equal(got[:n], want) {
			t.Errorf("%s of a: %x, %v; want %x", attr, got[:max(n, 0)], err, want)
		}
	}
	like := func(path string) string {
		fi, err := os.Stat(filepath.Join(root, path))
		must(t, err)
		b := make([]byte, 200)
		n, err := unix.Getxattr(filepath.Join(root, path), "system.posix_acl_access", b)
		must(t, err)
		st := fi.Sys().(*syscall.Stat_t)
		return fmt.Sprintf("%v %d:%d %x", fi.Mode(), st.Uid, st.Gid, b[:n])
	}
	if got, want := like("shared/new"), like("shared/control"); got != want {
		t.Errorf("a new file is %s; the system makes %s", got, want)
	}
	if got, want := like("shared/d/new"), like("shared/control"); got != want {
		t.Errorf("a new file in a new folder is %s; the system makes %s", got, want)
	}
	if fi, err := os.Stat(a); err == nil && os.Getuid() == 0 {
		if st := fi.Sys().(*syscall.Stat_t); st.Uid != 1234 || st.Gid != 5678 {
			t.Errorf("the owner is %d:%d", st.Uid, st.Gid)
		}
	}
}

// aclOf is a POSIX ACL in the kernel's form: user, group, one named user, mask
// and other.
func aclOf(user, group, named, perm, mask, other uint32) []byte {
	b := []byte{2, 0, 0, 0}
	for _, e := range [][3]uint32{{1, user, 1<<32 - 1}, {2, perm, named}, {4, group, 1<<32 - 1}, {16, mask, 1<<32 - 1}, {32, other, 1<<32 - 1}} {
		b = append(b, byte(e[0]), 0, byte(e[1]), 0, byte(e[2]), byte(e[2]>>8), byte(e[2]>>16), byte(e[2]>>24))
	}
	return b
}

// What a replaced file has and its successor cannot be given is a refusal, and
// nothing has changed. So is a mode that does not come out as it was asked for.
func TestAttributesThatCannotBeKept(t *testing.T) {
	for what, answer := range map[string]error{
		"fchown": unix.EPERM, "fchownat": unix.EPERM, "fsetxattr": unix.EOPNOTSUPP, "fgetxattr": unix.EACCES, "flistxattr": unix.EACCES, "fchmod": unix.EPERM,
	} {
		t.Run(what, func(t *testing.T) {
			if os.Getuid() != 0 && strings.HasPrefix(what, "fchown") {
				t.Skip("giving a file to somebody else takes root")
			}
			root := t.TempDir()
			write(t, root, "other", "100644 o\n")
			write(t, root, "a", "100644 a\n")
			write(t, root, "link", "120000 a")
			must(t, unix.Setxattr(filepath.Join(root, "a"), "user.note", []byte("kept"), 0))
			if os.Getuid() == 0 {
				must(t, os.Chown(filepath.Join(root, "a"), 1234, 5678))
				must(t, os.Lchown(filepath.Join(root, "link"), 1234, 5678))
			}
			was := listing(t, root, false)
			without(t, what, answer)
			_, err := open(t, root, repo.Options{}).Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{
				change("other", "100644 o\n", ""), change("a", "100644 a\n", "100644 A\n"), change("link", "120000 a", "120000 other2"),
			}})
			if fault.CodeOf(err) != "state.permission" {
				t.Errorf("got %v", err)
			}
			if now := listing(t, root, false); now != was {
				t.Errorf("the tree is\n%s", now)
			}
			if left, err := os.ReadDir(filepath.Join(root, ".roundtable", "tx")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// A disk that is full when the plan, the staging, the images or the journal
// come to it is said so, and nothing has changed.
func TestFullDiskBefore(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	for _, at := range []string{"plan", "stage", "stage_folder", "images", "write"} {
		t.Run(at, func(t *testing.T) {
			root := t.TempDir()
			if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=256k"); err != nil {
				t.Skipf("mounting a small file system: %v", err)
			}
			t.Cleanup(func() { must(t, unix.Unmount(root, unix.MNT_DETACH)) })
			write(t, root, "a", "100644 a\n")
			write(t, root, "dir/b", "100644 b\n")
			store := blobs(t, filepath.Join(root, ".blobs"))
			was := listing(t, root, false)
			full := filepath.Join(root, ".roundtable", "full")
			w := open(t, root, repo.Options{Blobs: store, Reserved: []string{".blobs"}, Step: func(s repo.Step) {
				if s.Phase == repo.Prepare && s.Name == at {
					f, err := os.OpenFile(full, os.O_CREATE|os.O_WRONLY, 0o600)
					for err == nil {
						_, err = f.Write(make([]byte, 4096))
					}
					must(t, f.Close())
				}
			}})
			_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "100644 A\n"), change("dir/b", "100644 b\n", "")}})
			if fault.CodeOf(err) != "state.no_space" {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadDir(filepath.Join(root, ".roundtable", "tx")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
			must(t, os.Remove(full))
			if now := withoutBlobs(listing(t, root, false)); now != withoutBlobs(was) {
				t.Errorf("the tree is\n%s", now)
			}
		})
	}
}

func withoutBlobs(listing string) string {
	var lines []string
	for line := range strings.SplitSeq(listing, "\n") {
		if !strings.HasPrefix(line, ".blobs") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

// A full disk is said before anything has changed.
func TestFullDisk(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting a small file system takes root")
	}
	root := t.TempDir()
	if err := unix.Mount("tmpfs", root, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("mounting a small file system: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(root, unix.MNT_DETACH)) })
	write(t, root, "a", "100644 a\n")
	write(t, root, "b", "100644 b\n")
	was := listing(t, root, false)
	w := open(t, root, repo.Options{})
	big := "100644 " + strings.Repeat("x", 512<<10)
	_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("a", "100644 a\n", "100644 A\n"), change("b", "100644 b\n", big)}})
	if fault.CodeOf(err) != "state.no_space" {
		t.Errorf("got %v", err)
	}
	if now := listing(t, root, false); now != was {
		t.Errorf("the tree is\n%s", now)
	}
	if left, err := os.ReadDir(filepath.Join(root, ".roundtable", "tx")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v %v", left, err)
	}
}

// A mount inside the workspace is not ours to change.
func TestOtherMount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("mounting takes root")
	}
	root := t.TempDir()
	must(t, os.Mkdir(filepath.Join(root, "m"), 0o755))
	if err := unix.Mount("tmpfs", filepath.Join(root, "m"), "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("mounting: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(filepath.Join(root, "m"), unix.MNT_DETACH)) })
	write(t, root, "m/f", "100644 f\n")
	for _, walk := range []bool{false, true} {
		w := open(t, root, repo.Options{})
		if walk {
			w.WalkComponents()
		}
		_, err := w.Apply(ctx(t), "TX-1", 1, repo.Plan{Changes: []patch.Change{change("m/f", "100644 f\n", "100644 g\n")}})
		if fault.CodeOf(err) != "state.cross_device" {
			t.Errorf("got %v", err)
		}
	}
}
