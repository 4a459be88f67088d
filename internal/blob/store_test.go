package blob_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"roundtable/internal/blob"
	"roundtable/internal/fault"
)

func open(t *testing.T, dir string, o blob.Options) *blob.Store {
	t.Helper()
	s, err := blob.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func digestOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestPutGet(t *testing.T) {
	s := open(t, t.TempDir(), blob.Options{})
	rapid.Check(t, func(rt *rapid.T) {
		all := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 20).Draw(rt, "blobs")
		var sources []func() (io.ReadCloser, error)
		for _, b := range all {
			sources = append(sources, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b)), nil })
		}
		got, err := s.PutAll(context.Background(), sources)
		if err != nil || len(got) != len(all) {
			rt.Fatal(got, err)
		}
		for i, b := range all {
			if got[i] != digestOf(b) {
				rt.Fatalf("digest %s of %q", got[i], b)
			}
			if has, err := s.Has(got[i]); !has || err != nil {
				rt.Fatal(has, err)
			}
			if back, err := s.Get(context.Background(), got[i]); err != nil || !bytes.Equal(back, b) {
				rt.Fatalf("%q came back as %q: %v", b, back, err)
			}
		}
	})
}

func TestManyAtOnceAreSynced(t *testing.T) {
	s := open(t, t.TempDir(), blob.Options{})
	var sources []func() (io.ReadCloser, error)
	for i := range 100 { // past the number that is synced one by one
		sources = append(sources, func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(fmt.Sprint(i))), nil })
	}
	got, err := s.PutAll(t.Context(), sources)
	if err != nil {
		t.Fatal(err)
	}
	if b, err := s.Get(t.Context(), got[99]); string(b) != "99" {
		t.Fatalf("%q %v", b, err)
	}
}

func TestModes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, blob.Options{})
	if _, err := s.PutBytes(t.Context(), []byte("x")); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir { // the folder itself was there before
			return err
		}
		fi, err := d.Info()
		if want := map[bool]fs.FileMode{true: 0o700, false: 0o600}[d.IsDir()]; err == nil && fi.Mode().Perm() != want {
			t.Errorf("%s has %v", path, fi.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestMissingAndBadDigests(t *testing.T) {
	s := open(t, t.TempDir(), blob.Options{})
	if _, err := s.Get(t.Context(), digestOf(nil)); fault.KindOf(err) != fault.NotFound {
		t.Errorf("missing: %v", err)
	}
	for _, bad := range []string{"", "../../etc/passwd", strings.Repeat("A", 64), strings.Repeat("0", 63), strings.Repeat("0", 65)} {
		if _, err := s.Get(t.Context(), bad); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
		if _, err := s.Has(bad); fault.KindOf(err) != fault.Invalid {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestDamageIsSeenAndMended(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, blob.Options{})
	d, err := s.PutBytes(t.Context(), []byte("right"))
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, d[:2], d[2:])
	for _, bad := range []string{"wrong", "righ", ""} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if b, err := s.Get(t.Context(), d); err == nil || b != nil {
			t.Errorf("%q was returned", b)
		}
		if _, err := s.PutBytes(t.Context(), []byte("right")); err != nil {
			t.Fatal(err)
		}
		if b, err := s.Get(t.Context(), d); string(b) != "right" {
			t.Errorf("not mended: %q %v", b, err)
		}
	}
}

func TestBound(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, blob.Options{MaxBytes: 10})
	if _, err := s.PutBytes(t.Context(), make([]byte, 10)); err != nil {
		t.Error(err)
	}
	if _, err := s.PutBytes(t.Context(), make([]byte, 11)); fault.KindOf(err) != fault.TooLarge {
		t.Errorf("past the bound: %v", err)
	}
	empty(t, dir)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Join(dir, "tmp")); err != nil || len(left) > 0 {
		t.Errorf("left in tmp: %v %v", left, err)
	}
}

func TestSourceThatFails(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, blob.Options{})
	broken := errors.New("broken")
	sources := []func() (io.ReadCloser, error){
		func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader("fine")), nil },
		func() (io.ReadCloser, error) {
			return io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{broken})), nil
		},
	}
	if _, err := s.PutAll(t.Context(), sources); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.PutBytes(ctx, []byte("y")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	empty(t, dir)
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// The same and other blobs at once, over two handles of one folder.
func TestConcurrent(t *testing.T) {
	dir := t.TempDir()
	stores := []*blob.Store{open(t, dir, blob.Options{}), open(t, dir, blob.Options{})}
	var wg sync.WaitGroup
	for i := range 32 {
		wg.Go(func() {
			b := []byte(fmt.Sprint("blob ", i%4))
			d, err := stores[i%2].PutBytes(t.Context(), b)
			if err != nil {
				t.Error(err)
				return
			}
			if back, err := stores[(i+1)%2].Get(t.Context(), d); !bytes.Equal(back, b) {
				t.Errorf("%q %v", back, err)
			}
		})
	}
	wg.Wait()
	empty(t, dir)
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	first := open(t, dir, blob.Options{})
	stray := filepath.Join(dir, "tmp", "put-stray")
	if err := os.WriteFile(stray, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := open(t, dir, blob.Options{})
	if _, err := os.Stat(stray); err != nil {
		t.Error("swept while another had the store open")
	}
	if err := errors.Join(first.Close(), second.Close()); err != nil {
		t.Fatal(err)
	}
	open(t, dir, blob.Options{})
	empty(t, dir)
}

// What a Put has answered survives the kill of the process.
func TestKilled(t *testing.T) {
	const env = "ROUNDTABLE_BLOB_TEST_DIR"
	if dir := os.Getenv(env); dir != "" {
		s := open(t, dir, blob.Options{})
		for i := 0; ; i++ {
			d, err := s.PutBytes(t.Context(), fmt.Append(nil, "blob ", i))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Println(d, i)
		}
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), env+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for len(said) < 10 {
		var d, i string
		if _, err := fmt.Fscanln(out, &d, &i); err != nil {
			t.Fatal(err)
		}
		said[d] = "blob " + i
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatal("not killed")
	}
	s := open(t, dir, blob.Options{})
	empty(t, dir)
	for d, want := range said {
		if b, err := s.Get(t.Context(), d); string(b) != want {
			t.Errorf("%q %v", b, err)
		}
	}
}
