package blob_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"roundtable/internal/blob"
	"roundtable/internal/fault"
)

// TestNoLinkIsFollowed: a link at the store's place, or at that of anything in
// it, leads nothing out of the store.
func TestNoLinkIsFollowed(t *testing.T) {
	first := digestOf([]byte("x"))[:2]
	for _, at := range []string{"", "tmp", "lock", first} {
		t.Run("at "+at, func(t *testing.T) {
			top, outside := t.TempDir(), t.TempDir()
			dir := filepath.Join(top, "blobs")
			link := filepath.Join(dir, at)
			if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
				t.Fatal(err)
			}
			to := outside
			if at == "lock" {
				to = filepath.Join(outside, "made")
			}
			if err := os.Symlink(to, link); err != nil {
				t.Fatal(err)
			}
			s, err := blob.Open(dir, blob.Options{})
			if err == nil {
				_, err = s.PutBytes(t.Context(), []byte("x"))
				s.Close()
			}
			if fault.CodeOf(err) != "state.not_plain" {
				t.Errorf("got %v", err)
			}
			if left, err := os.ReadDir(outside); err != nil || len(left) > 0 {
				t.Errorf("outside lies %v (%v)", left, err)
			}
		})
	}
}

// TestLockIsAFile: what lies in place of the lock is told, and not waited for.
func TestLockIsAFile(t *testing.T) {
	for what, put := range map[string]func(string) error{
		"folder": func(name string) error { return os.Mkdir(name, 0o700) },
		"socket": func(name string) error { return syscall.Mknod(name, syscall.S_IFSOCK|0o600, 0) },
	} {
		dir := t.TempDir()
		if err := put(filepath.Join(dir, "lock")); err != nil {
			t.Fatal(err)
		}
		if _, err := blob.Open(dir, blob.Options{}); fault.CodeOf(err) != "state.not_plain" {
			t.Errorf("%s: %v", what, err)
		}
	}
}
