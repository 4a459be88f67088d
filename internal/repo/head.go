package repo

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// A headCache keeps which commit git last said HEAD is, and where a branch was
// found among the packed ones.
type headCache struct {
	sync.Mutex
	known string // git has resolved HEAD to it and has its commit
	of    stamp  // of packed-refs
	ref   string // that was looked for there
	id    string // what it was; may be none
}

// Head returns HEAD's commit, or that of the branch that is committed to;
// empty in a plain folder or before the first one. Git is asked once for each
// commit that HEAD comes to be.
func (w *Workspace) Head(ctx context.Context) (string, error) {
	if !w.Git() {
		return "", nil
	}
	if w.Commits() {
		t, err := w.target(ctx)
		return t.old, err
	}
	w.heads.Lock()
	defer w.heads.Unlock()
	id := w.readHead()
	if id != "" && id == w.heads.known {
		return id, nil
	}
	out, err := w.git(ctx, call{args: []string{"rev-parse", "--quiet", "--verify", "HEAD^{commit}"}, ok: []int{1}})
	if err != nil {
		return "", err
	}
	now := strings.TrimSpace(string(out))
	if now == "" {
		return "", w.unborn(ctx)
	}
	if now == id {
		w.heads.known = id
	}
	return now, nil
}

// unborn says why HEAD, of which git knows no commit, is not simply a branch
// before its first one; nil if it is.
func (w *Workspace) unborn(ctx context.Context) error {
	if _, err := w.symbolic(ctx); err != nil {
		return err
	}
	return w.lost(ctx, "HEAD")
}

// readHead reads what HEAD says, through one branch; empty where that is not
// to be told so simply.
func (w *Workspace) readHead() string {
	head := readShort(filepath.Join(w.gitDir, "HEAD"))
	ref, isRef := strings.CutPrefix(head, "ref: ")
	if !isRef {
		return w.objectID(head)
	}
	if !strings.HasPrefix(ref, "refs/heads/") || !clean(ref) {
		return ""
	}
	name := filepath.Join(w.commonDir, filepath.FromSlash(ref))
	if _, err := os.Lstat(name); err == nil {
		return w.objectID(readShort(name))
	} else if !gone(err) {
		return ""
	}
	return w.packed(ref)
}

// objectID returns a full object id, and nothing of what is none.
func (w *Workspace) objectID(s string) string {
	want := map[string]int{"sha1": 40, "sha256": 64}[w.format]
	if len(s) != want || strings.Trim(s, "0123456789abcdef") != "" {
		return ""
	}
	return s
}

// packed looks for a branch among the packed ones.
func (w *Workspace) packed(ref string) string {
	name := filepath.Join(w.commonDir, "packed-refs")
	now := time.Now()
	before, err := stampOf(name)
	if err != nil || !before.there {
		return ""
	}
	if w.heads.of == before && w.heads.ref == ref {
		return w.heads.id
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	id := ""
	if at := bytes.Index(data, []byte(" "+ref+"\n")); at >= 0 {
		id = w.objectID(string(data[bytes.LastIndexByte(data[:at], '\n')+1 : at]))
	}
	w.heads.of = stamp{}
	if after, err := stampOf(name); err == nil && after == before && before.settled(now) {
		w.heads.of, w.heads.ref, w.heads.id = before, ref, id
	}
	return id
}

// readShort reads a small file of one line; nothing of what is none.
func readShort(name string) string {
	const most = 4096
	f, err := os.Open(name)
	if err != nil {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err = errors.Join(err, f.Close()); err != nil || len(data) == most {
		return ""
	}
	line, ok := strings.CutSuffix(string(data), "\n")
	if !ok || strings.Contains(line, "\n") {
		return ""
	}
	return line
}
