package repo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// committed is the tree of a commit, folder by folder as it is asked for.
type committed struct {
	ctx    context.Context // of the one question the tree was made for
	w      *Workspace
	commit string // none: no files

	mu      sync.Mutex
	folders map[string]map[string]item // by path; nil of what is no folder
}

// An item is an entry of a tree object.
type item struct{ mode, oid string }

const (
	modeTree = "40000"
	modeLink = "160000" // another repository
)

func (w *Workspace) treeOf(ctx context.Context, commit string) *committed {
	return &committed{ctx: ctx, w: w, commit: commit, folders: map[string]map[string]item{}}
}

// folder returns the entries of a folder; nil if it is none.
func (c *committed) folder(dir string) (map[string]item, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open(dir)
}

func (c *committed) open(dir string) (map[string]item, error) {
	if f, known := c.folders[dir]; known {
		return f, nil
	}
	oid := c.commit
	if dir != "" {
		up, name := path.Split(dir)
		in, err := c.open(strings.TrimSuffix(up, "/"))
		if err != nil {
			return nil, err
		}
		if e := in[name]; e.mode == modeTree {
			oid = e.oid
		} else {
			oid = ""
		}
	}
	var f map[string]item
	if oid != "" {
		var b bytes.Buffer
		if dir == "" {
			oid += "^{tree}"
		}
		if err := c.w.object(c.ctx, oid, &limited{w: &b, left: c.w.o.MaxOutput}, "tree"); err != nil {
			return nil, err
		}
		var err error
		if f, err = parseTree(b.Bytes(), newHash(c.w.format).Size()); err != nil {
			return nil, fmt.Errorf("the tree of %s: %w", quote(dir), err)
		}
	}
	c.folders[dir] = f
	return f, nil
}

// parseTree reads a tree object, whose ids have so many bytes.
func parseTree(b []byte, size int) (map[string]item, error) {
	out := map[string]item{}
	for len(b) > 0 {
		head, rest, ok := bytes.Cut(b, []byte{0})
		mode, name, ok2 := strings.Cut(string(head), " ")
		if !ok || !ok2 || len(rest) < size {
			return nil, fmt.Errorf("a broken tree object")
		}
		switch {
		case mode == modeTree, mode == modeLink, mode == "120000":
		case len(mode) == 6 && (mode[3]-'0')&1 != 0:
			mode = "100755"
		default:
			mode = "100644" // older versions of git wrote 100664 too
		}
		out[name] = item{mode, hex.EncodeToString(rest[:size])}
		b = rest[size:]
	}
	return out, nil
}

// item returns the entry of a path; the zero one if there is none.
func (c *committed) item(rel string) (item, error) {
	dir, name := path.Split(rel)
	f, err := c.folder(strings.TrimSuffix(dir, "/"))
	return f[name], err
}

// file returns the entry of a path if it is a file or a link.
func (c *committed) file(rel string) (item, error) {
	e, err := c.item(rel)
	if e.mode == modeTree || e.mode == modeLink {
		e = item{}
	}
	return e, err
}

// Stat is patch.Tree's.
func (c *committed) Stat(rel string) (patch.State, error) {
	switch {
	case rel == "":
		return patch.State{Kind: patch.Dir}, nil
	case !c.w.ours(rel):
		return patch.State{Kind: patch.Special}, nil
	}
	e, err := c.item(rel)
	if err != nil {
		return patch.State{}, err
	}
	s := patch.State{Kind: patch.File, Mode: e.mode}
	switch e.mode {
	case "":
		return patch.State{Kind: patch.Absent}, nil
	case modeTree:
		return patch.State{Kind: patch.Dir}, nil
	case modeLink:
		return patch.State{Kind: patch.Special}, nil
	case "120000":
		s.Kind = patch.Symlink
	}
	h, err := c.w.ask(c.ctx, &c.w.headers, e.oid, nil)
	if err == nil && h.kind != "blob" {
		err = fault.Errorf(fault.Unavailable, "state.object_missing", "the repository lacks the bytes of %s (%s)", quote(rel), e.oid)
	}
	s.Size = h.size
	return s, err
}

// Read is patch.Tree's.
func (c *committed) Read(rel string) ([]byte, error) {
	e, err := c.file(rel)
	if err != nil {
		return nil, err
	}
	if e.mode == "" || !c.w.ours(rel) {
		return nil, &os.PathError{Op: "read", Path: rel, Err: os.ErrNotExist}
	}
	var b bytes.Buffer
	err = c.w.object(c.ctx, e.oid, &limited{w: &b, left: c.w.o.MaxFile}, "blob")
	return b.Bytes(), pathError(rel, err)
}

// Names is patch.Tree's.
func (c *committed) Names(dir string) ([]string, error) {
	if dir != "" && !c.w.ours(dir) {
		return nil, nil
	}
	f, err := c.folder(dir)
	if dir != "" {
		dir += "/"
	}
	names := slices.Sorted(maps.Keys(f))
	return slices.DeleteFunc(names, func(n string) bool { return !c.w.ours(dir + n) }), err
}

// look returns the state of a path with its digest.
func (c *committed) look(rel string) (patch.State, error) {
	s, err := c.Stat(rel)
	if err != nil || s.Kind != patch.File && s.Kind != patch.Symlink {
		return s, err
	}
	e, err := c.file(rel)
	if err != nil {
		return s, err
	}
	h := sha256.New()
	if err := c.w.object(c.ctx, e.oid, h, "blob"); err != nil {
		return s, pathError(rel, err)
	}
	s.SHA256 = hex.EncodeToString(h.Sum(nil))
	return s, nil
}
