package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/oklog/ulid/v2"
)

// A site is a repository, a data folder, and people and agents who use them
// through servers that come and go.
type site struct {
	root, data string
	ws         string
	tokens     map[string]string // by name

	mu   sync.Mutex
	acks []ack
}

// An ack is a write that was answered well: from then on it must not be lost.
type ack struct {
	who, method, path, key string
	body                   any
	position               float64
	ids                    map[string]string
}

// everyKind is what the repository holds, and what a patch of every kind makes
// of it.
func everyKind(t *testing.T, root string, after bool) {
	t.Helper()
	if !after {
		write(t, root, "text.txt", "one\ntwo\nthree\n", 0o644)
		write(t, root, "old-name.txt", strings.Repeat("a line that stays as it is\n", 20), 0o644)
		write(t, root, "gone.txt", "will be removed\n", 0o644)
		write(t, root, "alone/only.txt", "its folder goes with it\n", 0o644)
		write(t, root, "run.sh", "#!/bin/sh\n", 0o644)
		write(t, root, "picture.bin", string(bytes.Repeat([]byte{0, 1, 0xfe, 0xff}, 500)), 0o644)
		write(t, root, "untouched.txt", "nobody's business\n", 0o644)
		write(t, root, "untouched.sh", "#!/bin/sh\n", 0o755)
		link(t, root, "link", "text.txt")
		return
	}
	write(t, root, "text.txt", "one\n2\nthree\n", 0o644)
	write(t, root, "deep/er/new-name.txt", strings.Repeat("a line that stays as it is\n", 20)+"and one more\n", 0o644)
	write(t, root, "deep/er/new.txt", "made\n", 0o755)
	write(t, root, "new.bin", string(bytes.Repeat([]byte{7, 0, 0xff}, 300)), 0o644)
	write(t, root, "picture.bin", string(bytes.Repeat([]byte{0, 1, 0xfe, 0xfd}, 400)), 0o644)
	link(t, root, "link", "untouched.txt")
	link(t, root, "deep/new-link", "../text.txt")
	if err := errors.Join(os.Remove(filepath.Join(root, "old-name.txt")), os.Remove(filepath.Join(root, "gone.txt")),
		os.RemoveAll(filepath.Join(root, "alone")), os.Chmod(filepath.Join(root, "run.sh"), 0o755)); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, root, name, to string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if err := os.Symlink(to, path); err != nil {
		t.Fatal(err)
	}
}

// gitIn runs git in a folder and returns what it printed.
func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := gitOutput(t.Context(), dir, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func commit(t *testing.T, root string) {
	t.Helper()
	gitIn(t, root, "init", "-q")
	gitIn(t, root, "add", "-A")
	gitIn(t, root, "-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "first")
}

// everyKindPatch returns the patch, and the tree before and after it.
func everyKindPatch(t *testing.T) (patch, before, after string) {
	t.Helper()
	dir := t.TempDir()
	everyKind(t, dir, false)
	commit(t, dir)
	before = lies(t, dir)
	everyKind(t, dir, true)
	after = lies(t, dir)
	gitIn(t, dir, "add", "-A")
	return gitIn(t, dir, "diff", "--cached", "--binary", "-M", "HEAD"), before, after
}

// lies lists every file under root but the service's and git's: kind, mode and
// content.
func lies(t *testing.T, root string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		if rel == ".git" || rel == ".roundtable" {
			return fs.SkipDir
		}
		info, err := os.Lstat(path)
		if err != nil || info.IsDir() {
			return err
		}
		var content []byte
		if info.Mode()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			content = []byte(to)
		} else if content, err = os.ReadFile(path); err != nil {
			return err
		}
		fmt.Fprintf(&b, "%s %v %x\n", rel, info.Mode(), sha256.Sum256(content))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// found makes a repository with files, governed from a data folder beside it.
func found(t *testing.T, files func(root string)) *site {
	t.Helper()
	dir := t.TempDir()
	return foundIn(t, filepath.Join(dir, "repository"), filepath.Join(dir, "data"), files)
}

func foundIn(t *testing.T, root, data string, files func(root string)) *site {
	t.Helper()
	s := &site{root: root, data: data, tokens: map[string]string{}}
	files(s.root)
	commit(t, s.root)
	write(t, s.root, "untracked.txt", "not in git\n", 0o600)
	var m made
	if err := json.Unmarshal(offlineRun(t, "init", s.root, "--data", s.data, "--json"), &m); err != nil {
		t.Fatal(err)
	}
	s.ws, s.tokens["admin"] = m.Workspace, m.Token
	return s
}

// people makes principals, through a server: an author, a reviewer of another
// owner, and a person who applies.
func (s *site) people(t *testing.T, at string, authors ...string) {
	t.Helper()
	for _, a := range authors {
		s.join(t, at, a, "agent", "blue", "implementer")
	}
	s.join(t, at, "critic", "agent", "red", "reviewer")
	s.join(t, at, "ada", "human", "", "operator", "auditor")
}

func (s *site) join(t *testing.T, at, name, kind, owner string, roles ...string) {
	t.Helper()
	in := args{"name": name, "kind": kind}
	if owner != "" {
		in["owner"] = owner
	}
	var grants []args
	for _, r := range roles {
		grants = append(grants, args{"workspace_id": s.ws, "role": r})
	}
	in["roles"] = grants
	p := s.must(t, at, "admin", "POST", "/principals", in)
	tok := s.must(t, at, "admin", "POST", "/tokens", args{"principal_id": text(p, "principal", "principal_id")})
	s.tokens[name] = text(tok, "token")
}

// here is a path of the workspace.
func (s *site) here(path string) string { return "/workspaces/" + s.ws + path }

// do sends a call under a key; a refusal is a *problem. A write that is
// answered well is noted.
func (s *site) do(t *testing.T, at, who, method, path, key string, body any) (map[string]any, error) {
	out, err := s.send(t, at, who, method, path, key, body)
	if err != nil || method == "GET" {
		return out, err
	}
	a := ack{who, method, path, key, body, 0, answered(out)}
	a.position, _ = out["position"].(float64)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks = append(s.acks, a)
	return out, nil
}

func (s *site) send(t *testing.T, at, who, method, path, key string, body any) (out map[string]any, err error) {
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		in = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(t.Context(), method, at+"/api/v1"+path, in)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+s.tokens[who])
	if method != "GET" {
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Idempotency-Key", key)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode >= 400 {
		p := &problem{}
		if err := json.NewDecoder(res.Body).Decode(p); err != nil {
			return nil, fmt.Errorf("%s %s: %s, cut off: %w", method, path, res.Status, err)
		}
		return nil, p
	}
	return out, json.NewDecoder(res.Body).Decode(&out)
}

// must is do of what must succeed, under a key of its own.
func (s *site) must(t *testing.T, at, who, method, path string, body any) map[string]any {
	t.Helper()
	out, err := s.do(t, at, who, method, path, ulid.Make().String(), body)
	if err != nil {
		t.Fatalf("%s %s by %s: %v", method, path, who, err)
	}
	return out
}

// answered reads which entities an answer is about.
func answered(out map[string]any) map[string]string {
	m := map[string]string{}
	for name, v := range out {
		if id := text(v, name+"_id"); id != "" {
			m[name] = id
		}
		if strings.HasSuffix(name, "_id") {
			m[name] = text(v)
		}
	}
	return m
}

// appliable brings a proposal to where nothing but the apply is missing.
func (s *site) appliable(t *testing.T, at, patch string) (proposal string) {
	t.Helper()
	s.must(t, at, "coder", "POST", s.here("/claims"), args{"resource_id": "directory:", "claim_type": "write"})
	p := s.must(t, at, "coder", "POST", s.here("/proposals"), args{"title": "every kind", "summary_md": "s", "patch": patch})
	proposal = text(p, "proposal", "proposal_id")
	s.must(t, at, "critic", "POST", s.here("/proposals/"+proposal+"/votes"), args{"vote": "approve", "reason_md": "fine"})
	g := s.must(t, at, "ada", "GET", s.here("/proposals/"+proposal+"/gates"), nil)
	if g["appliable"] != true {
		t.Fatalf("not appliable: %v", g)
	}
	return proposal
}

// journals lists the journals that are left in the repository.
func (s *site) journals(t *testing.T) []string {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(s.root, ".roundtable", "tx", "*"))
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(left)
	return left
}
