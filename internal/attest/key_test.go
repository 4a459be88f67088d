package attest_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"roundtable/internal/attest"
)

func write(t *testing.T, path string, data []byte, perm os.FileMode) {
	t.Helper()
	if err := os.WriteFile(path, data, perm); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, perm); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestKeyStays: the key is made once, for its owner alone, and another start
// has the same one.
func TestKeyStays(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data", "keys")
	if _, err := attest.PublicIn(dir); err == nil {
		t.Error("a key is there before one was made")
	}
	var first []byte
	for range 3 {
		r := attest.NewRing(dir)
		if err := r.Ready(); err != nil {
			t.Fatal(err)
		}
		data := sign(t, r, fixed)
		if first == nil {
			first = data
		}
		if !bytes.Equal(data, first) {
			t.Error("another start signs otherwise")
		}
	}
	info, err := os.Stat(filepath.Join(dir, "signing.key"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("%v %v", entries, err)
	}
}

// fixed is a receipt that stays the same.
var fixed = simple()

// TestKeyOnce: of many that begin at once, all have the one key.
func TestKeyOnce(t *testing.T) {
	r := attest.NewRing(t.TempDir())
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			if keys, err := r.Public(); err != nil || len(keys) != 1 {
				t.Errorf("%v %v", keys, err)
			}
		})
	}
	wg.Wait()
}

// TestKeyRefused: a key that others could have read, or that is damaged, is not
// signed with, and nothing is put in its place.
func TestKeyRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(t *testing.T, dir, file string)
		want  string
	}{
		"readable by the group": {func(t *testing.T, _, file string) { write(t, file, read(t, file), 0o640) }, "chmod 600"},
		"readable by all":       {func(t *testing.T, _, file string) { write(t, file, read(t, file), 0o604) }, "chmod 600"},
		"empty":                 {func(t *testing.T, _, file string) { write(t, file, nil, 0o600) }, "damaged"},
		"cut":                   {func(t *testing.T, _, file string) { write(t, file, read(t, file)[:60], 0o600) }, "damaged"},
		"something after":       {func(t *testing.T, _, file string) { write(t, file, append(read(t, file), 'x'), 0o600) }, "damaged"},
		"another key": {func(t *testing.T, _, file string) {
			other := t.TempDir()
			if err := attest.NewRing(other).Ready(); err != nil {
				t.Fatal(err)
			}
			write(t, file, read(t, filepath.Join(other, "signing.key")), 0o600)
		}, "damaged"},
		"huge": {func(t *testing.T, _, file string) { write(t, file, make([]byte, 1<<20), 0o600) }, "more than"},
		"a link": {func(t *testing.T, dir, file string) {
			if err := os.Rename(file, filepath.Join(dir, "elsewhere")); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink("elsewhere", file); err != nil {
				t.Fatal(err)
			}
		}, "symbolic link"},
		"a folder": {func(t *testing.T, _, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(file, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "no file"},
		"no public half": {func(t *testing.T, dir, _ string) {
			all, err := filepath.Glob(filepath.Join(dir, "*.pub"))
			if err != nil || len(all) != 1 || os.Remove(all[0]) != nil {
				t.Fatal(all, err)
			}
		}, "damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := attest.NewRing(dir).Ready(); err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(dir, "signing.key")
			secret := strings.Split(string(read(t, file)), "\n")[1]
			c.spoil(t, dir, file)
			r := attest.NewRing(dir)
			err := r.Ready()
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), secret) {
				t.Errorf("%v, want %s", err, c.want)
			}
			if data, err := r.Sign(simple()); err == nil {
				t.Errorf("signed: %s", data)
			}
		})
	}
}

// TestKeyLost: after the loss of a key another is made, and receipts of the old
// one are still checked with what is left of it.
func TestKeyLost(t *testing.T) {
	dir := t.TempDir()
	old := sign(t, attest.NewRing(dir), simple())
	if err := os.Remove(filepath.Join(dir, "signing.key")); err != nil {
		t.Fatal(err)
	}
	r := attest.NewRing(dir)
	keys, err := r.Public()
	if err != nil || len(keys) != 2 || !keys[0].Current || keys[1].Current {
		t.Fatalf("%v %v", keys, err)
	}
	v, err := attest.Verify(old, keys)
	if err != nil || v.Key != keys[1].ID {
		t.Errorf("%v %v", v.Key, err)
	}
	refused(t, old, keys[:1], attest.OtherKey)
	if v, err := attest.Verify(sign(t, r, simple()), keys); err != nil || v.Key != keys[0].ID {
		t.Errorf("%v %v", v.Key, err)
	}
	files, err := attest.PublicFiles(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%v %v", files, err)
	}
}

// TestKeyHidden: no way of printing a ring shows the private key.
func TestKeyHidden(t *testing.T) {
	dir := t.TempDir()
	r := attest.NewRing(dir)
	if err := r.Ready(); err != nil {
		t.Fatal(err)
	}
	secret := strings.Split(string(read(t, filepath.Join(dir, "signing.key"))), "\n")[1]
	for _, f := range []string{"%v", "%+v", "%#v", "%s"} {
		if text := fmt.Sprintf(f, r); strings.Contains(text, secret) || strings.Contains(text, "private") {
			t.Errorf("%s: %s", f, text)
		}
	}
}

// TestOpenSSL: the files of the keys are what other tools read, and the id is
// what they make of them.
func TestOpenSSL(t *testing.T) {
	if _, err := exec.LookPath("openssl"); err != nil {
		t.Skip("openssl is not installed")
	}
	dir := t.TempDir()
	keys, err := attest.NewRing(dir).Public()
	if err != nil {
		t.Fatal(err)
	}
	der, err := exec.Command("openssl", "pkey", "-pubin", "-in", filepath.Join(dir, keys[0].ID+".pub"), "-outform", "DER").Output()
	if err != nil || sha(string(der)) != keys[0].ID {
		t.Errorf("%x %v", der, err)
	}
	public, err := exec.Command("openssl", "pkey", "-in", filepath.Join(dir, "signing.key"), "-pubout").Output()
	if err != nil || string(public) != keys[0].PEM() {
		t.Errorf("%s %v", public, err)
	}
}

// TestParsePublic: only Ed25519 public keys are taken, and a private one is
// called what it is without being shown.
func TestParsePublic(t *testing.T) {
	_, a := ring(t)
	_, b := ring(t)
	if keys, err := attest.ParsePublic([]byte(a[0].PEM() + "\n" + b[0].PEM())); err != nil || len(keys) != 2 || keys[1].ID != b[0].ID {
		t.Errorf("%v %v", keys, err)
	}
	_, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := x509.MarshalPKIXPublicKey(&ec.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	block := func(typ string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: der}))
	}
	for name, c := range map[string]struct{ text, want string }{
		"empty":        {" \n", "empty"},
		"text":         {"key", "no public key"},
		"text before":  {"mine:\n" + a[0].PEM(), "no public key"},
		"text after":   {a[0].PEM() + "mine", "no public key"},
		"private":      {block("PRIVATE KEY", secret), "private key"},
		"another kind": {block("PUBLIC KEY", other), "another kind"},
		"another name": {block("CERTIFICATE", other), "CERTIFICATE"},
		"no key in it": {block("PUBLIC KEY", []byte("x")), "no public key"},
		"huge":         {strings.Repeat(a[0].PEM(), 1000), "more than"},
	} {
		_, err := attest.ParsePublic([]byte(c.text))
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), base64.StdEncoding.EncodeToString(secret)[20:]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
