package attest

import (
	"context"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// Algorithm is the only one that receipts are signed with.
const Algorithm = "ed25519"

// The files of a ring's folder.
const (
	privateName  = "signing.key" // PKCS #8 in PEM
	publicSuffix = ".pub"        // <key id>.pub: SubjectPublicKeyInfo in PEM
)

// MaxKeyFile bounds a file with keys, in bytes.
const MaxKeyFile = 64 << 10

// A Ring is the folder with the keys of one installation: the private key that
// it signs with, and the public half of every one that it ever had.
type Ring struct {
	dir string
	own func() (*key, error)
}

// NewRing returns the ring in a folder. Nothing is read or made before it is
// asked for.
func NewRing(dir string) *Ring {
	return &Ring{dir: dir, own: sync.OnceValues(func() (*key, error) { return openKey(dir) })}
}

// Ready reads the private key, or makes it where there is none: it is durable
// when this returns.
func (r *Ring) Ready() error {
	_, err := r.own()
	return err
}

// Public lists the public keys, the one that signs first.
func (r *Ring) Public() ([]PublicKey, error) {
	k, err := r.own()
	if err != nil {
		return nil, err
	}
	return publicKeys(r.dir, k.id)
}

// PublicIn lists the public keys that lie in a folder, the one that signs
// first, and makes none.
func PublicIn(dir string) ([]PublicKey, error) {
	k, err := readKey(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no key in %s: it is made when the service starts: %w", dir, err)
	}
	if err != nil {
		return nil, err
	}
	return publicKeys(dir, k.id)
}

// PublicFiles lists the public keys that lie in a folder, by id, without a look
// at the private one: that is nobody's who only checks receipts.
func PublicFiles(dir string) ([]PublicKey, error) { return publicKeys(dir, "") }

// A PublicKey is what receipts are checked with.
type PublicKey struct {
	ID      string // SHA-256 of its SubjectPublicKeyInfo in DER, lowercase hex
	Key     ed25519.PublicKey
	Current bool // the installation signs with it
}

// PEM is the key as its file holds it.
func (p PublicKey) PEM() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: spki(p.Key)}))
}

// spki is the key's SubjectPublicKeyInfo in DER.
func spki(p ed25519.PublicKey) []byte {
	der, err := x509.MarshalPKIXPublicKey(p)
	if err != nil {
		panic(err) // an Ed25519 key can always be written
	}
	return der
}

func idOf(p ed25519.PublicKey) string {
	sum := sha256.Sum256(spki(p))
	return hex.EncodeToString(sum[:])
}

// ParsePublic reads public keys in PEM, one or several, and refuses everything
// else: other kinds of keys, a private key, text around them.
func ParsePublic(data []byte) (keys []PublicKey, err error) {
	if len(data) > MaxKeyFile {
		return nil, fmt.Errorf("it has more than %d bytes", MaxKeyFile)
	}
	for rest := []byte(strings.TrimSpace(string(data))); len(rest) > 0; {
		var b *pem.Block
		at := rest
		if b, rest = pem.Decode(rest); b == nil || !strings.HasPrefix(string(at), "-----BEGIN ") {
			return nil, errors.New("it is no public key in PEM")
		}
		if strings.Contains(b.Type, "PRIVATE") {
			return nil, errors.New("it holds a private key: give the public one")
		}
		if b.Type != "PUBLIC KEY" || len(b.Headers) > 0 {
			return nil, fmt.Errorf("it holds a %s in PEM, and a public key stands as PUBLIC KEY", b.Type)
		}
		any, err := x509.ParsePKIXPublicKey(b.Bytes)
		if err != nil {
			return nil, fmt.Errorf("it is no public key: %w", err)
		}
		p, ok := any.(ed25519.PublicKey)
		if !ok {
			return nil, fmt.Errorf("it is a key of another kind (%T): receipts are signed with Ed25519", any)
		}
		keys = append(keys, PublicKey{ID: idOf(p), Key: p})
		rest = []byte(strings.TrimSpace(string(rest)))
	}
	if len(keys) == 0 {
		return nil, errors.New("it is empty")
	}
	return keys, nil
}

// Verify, KeyID and Public are dsse.Verifier's.
func (p PublicKey) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(p.Key, data, sig) {
		return errors.New("the signature is not one of these bytes")
	}
	return nil
}

// KeyID is dsse.Verifier's.
func (p PublicKey) KeyID() (string, error) { return p.ID, nil }

// Public is dsse.Verifier's.
func (p PublicKey) Public() crypto.PublicKey { return p.Key }

// A key signs for the installation. However it is printed, it shows its id.
type key struct {
	id      string
	private ed25519.PrivateKey
}

func (k *key) String() string   { return "signing key " + k.id }
func (k *key) GoString() string { return k.String() }

// Sign and KeyID are dsse.Signer's.
func (k *key) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(k.private, data), nil
}

func (k *key) KeyID() (string, error) { return k.id, nil }

func (k *key) public() ed25519.PublicKey { return k.private.Public().(ed25519.PublicKey) }

// openKey reads the private key in a folder, or makes one where there is none.
func openKey(dir string) (*key, error) {
	k, err := readKey(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if err := makeKey(dir); err != nil {
		return nil, fmt.Errorf("make the signing key in %s: %w", dir, err)
	}
	return readKey(dir)
}

// readKey reads the private key. One that others may read is refused, and one
// whose public half is not there: every 32 bytes are some private key, so that
// nothing else tells a damaged one. The error is fs.ErrNotExist only if the
// file of the private key is not there.
func readKey(dir string) (*key, error) {
	file := filepath.Join(dir, privateName)
	data, err := readPrivate(file)
	if err != nil {
		return nil, err
	}
	bad := func(why string) error {
		return fmt.Errorf("%s is damaged: %s. Put a copy back, or move it away: then a new key is made, and receipts of the old one are still checked with its public half", file, why)
	}
	b, rest := pem.Decode(data)
	if b == nil || b.Type != "PRIVATE KEY" || len(b.Headers) > 0 || len(rest) > 0 {
		return nil, bad("it is no PRIVATE KEY in PEM")
	}
	any, err := x509.ParsePKCS8PrivateKey(b.Bytes)
	p, ok := any.(ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, bad("it is no Ed25519 key")
	}
	k := &key{private: p}
	k.id = idOf(k.public())
	if _, err := readPublic(dir, k.id+publicSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil, bad("its public half " + k.id + publicSuffix + " is not beside it")
	} else if err != nil {
		return nil, err
	}
	return k, nil
}

// readPrivate reads a file that must be nobody else's to read. The error does
// not hold what is in it.
func readPrivate(file string) ([]byte, error) {
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no file", file)
	case info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s may be read by others (%v): whoever read it can sign receipts. If nobody did: chmod 600; else move it away, and a new key is made", file, info.Mode().Perm())
	case ok && int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s belongs to user %d, and the program runs as %d", file, st.Uid, os.Geteuid())
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxKeyFile+1))
	if err == nil && len(data) > MaxKeyFile {
		err = fmt.Errorf("%s has more than %d bytes", file, MaxKeyFile)
	}
	return data, err
}

// readPublic reads one public key, which must be the one that its file is
// named by.
func readPublic(dir, name string) (PublicKey, error) {
	file := filepath.Join(dir, name)
	f, err := os.Open(file)
	if err != nil {
		return PublicKey{}, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxKeyFile+1))
	if err != nil {
		return PublicKey{}, err
	}
	keys, err := ParsePublic(data)
	if err == nil && (len(keys) != 1 || keys[0].ID+publicSuffix != name) {
		err = errors.New("it is not the key that it is named by")
	}
	if err != nil {
		return PublicKey{}, fmt.Errorf("%s: %w", file, err)
	}
	return keys[0], nil
}

// publicKeys lists the public keys in a folder, that with the id own first.
func publicKeys(dir, own string) (all []PublicKey, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if filepath.Ext(e.Name()) != publicSuffix {
			continue
		}
		p, err := readPublic(dir, e.Name())
		if err != nil {
			return nil, err
		}
		p.Current = p.ID == own
		all = append(all, p)
	}
	slices.SortStableFunc(all, func(a, b PublicKey) int {
		if a.Current != b.Current {
			return map[bool]int{true: -1, false: 1}[a.Current]
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all, nil
}

// makeKey makes a key. Its public half is durable before the private one has
// its name: a crash leaves at most a public key that nothing was signed with.
func makeKey(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return err
	}
	p := PublicKey{ID: idOf(public), Key: public}
	if err := writeNew(dir, p.ID+publicSuffix, []byte(p.PEM()), 0o644); err != nil {
		return err
	}
	return writeNew(dir, privateName, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600)
}

// writeNew makes a file durable under a name that nothing has: whole, or not
// at all.
func writeNew(dir, name string, data []byte, perm os.FileMode) (err error) {
	f, err := os.CreateTemp(dir, "new-") // 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(f.Name()), syncDir(dir)) }()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(perm)
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Link(f.Name(), filepath.Join(dir, name))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
