package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"roundtable/internal/blob"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// patchCmd is the patch engine as a tool of its own: on any folder, in Git or
// not, without a server and without a workspace.
type patchCmd struct {
	Check   patchCheckCmd   `cmd:"" help:"Say what a patch would make of a folder, and change nothing in it."`
	Apply   patchApplyCmd   `cmd:"" help:"Change a folder as a patch says: wholly or not at all, whenever it is interrupted."`
	Recover patchRecoverCmd `cmd:"" help:"Settle what an interrupted apply left in a folder."`
	Reverse patchReverseCmd `cmd:"" help:"Write the patch that takes a patch back."`
	Explain patchExplainCmd `cmd:"" help:"Say what a patch states, and of one that is refused how to mend it."`
}

// patchOps are the verbs of patch that are operations. patch.apply is one too:
// it is the command apply.
var patchOps = []string{"validate", "reject"}

// patchTool reports whether the arguments, the first of which is patch, are a
// command of the tool.
func patchTool(args []string) bool { return len(args) < 2 || !slices.Contains(patchOps, args[1]) }

// engineFlags are the engine's options.
type engineFlags struct {
	Strip      *int `help:"Components to take from each name; default: found from the patch and the folder."`
	StrictText bool `help:"Refuse bidirectional, invisible and control characters in added lines."`
	StrictOID  bool `help:"Refuse a text file that is not the one whose id the patch names." name:"strict-oid" negatable:"" default:"true"`
	Attributes bool `help:"Honour what Git's attributes and your configuration say of line ends and filters."`
	JSON       bool `help:"Print JSON." name:"json"`
}

func (f engineFlags) options(sha256 bool) (patch.Options, error) {
	if f.Strip != nil && (*f.Strip < 0 || *f.Strip > 64) {
		return patch.Options{}, fault.Errorf(fault.Invalid, "invalid_flag", "--strip is a number from 0 to 64")
	}
	return patch.Options{Strip: f.Strip, StrictText: f.StrictText, IgnoreOID: !f.StrictOID, SHA256: sha256}, nil
}

// maxPatchFile bounds what is read of a patch: a byte more than the engine
// takes, so that it is the engine that refuses it.
const maxPatchFile = 32<<20 + 1

// readPatch reads the patch from a file, "-" for standard input. What never
// comes is waited for until ctx ends.
func readPatch(ctx context.Context, t terminal, file string) ([]byte, error) {
	type read struct {
		data []byte
		err  error
	}
	done := make(chan read, 1)
	go func() {
		data, err := patchBytes(t, file)
		done <- read{data, err}
	}()
	select {
	case r := <-done:
		return r.data, r.err
	case <-ctx.Done():
		return nil, fmt.Errorf("interrupted before the patch was read to its end: %w", ctx.Err())
	}
}

func patchBytes(t terminal, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(t.in, maxPatchFile))
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, fault.Errorf(fault.Invalid, "invalid_flag", "the patch cannot be read: %v", err)
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPatchFile))
	return data, errors.Join(err, f.Close())
}

// A fitting is a patch held against a folder.
type fitting struct {
	space   *repo.Workspace
	tree    patch.Tree
	sha256  bool           // object ids of the repository
	patch   *patch.Patch   // nil if it cannot be read
	result  *patch.Result  // nil if refused
	refused *patch.Refusal // nil if not
	close   func() error
}

// look opens a folder without touching it, and fits the patch to it.
func (f engineFlags) look(ctx context.Context, dir string, data []byte) (x fitting, err error) {
	scratch, err := os.MkdirTemp("", "roundtable-")
	if err != nil {
		return x, err
	}
	x.close = func() error { return os.RemoveAll(scratch) }
	defer func() {
		if err != nil {
			err = errors.Join(err, x.close())
		}
	}()
	if x.space, err = repo.Open(ctx, dir, repo.Options{UserEnv: os.Environ(), Scratch: scratch}); err != nil {
		return x, err
	}
	x.close = func() error { return errors.Join(x.space.Close(), os.RemoveAll(scratch)) }
	base, err := x.space.Snapshot(ctx, nil)
	if err != nil {
		return x, err
	}
	x.sha256 = base.ObjectFormat == "sha256"
	return x, f.fit(ctx, &x, data)
}

// fit parses the patch and applies it in memory.
func (f engineFlags) fit(ctx context.Context, x *fitting, data []byte) error {
	o, err := f.options(x.sha256)
	if err != nil {
		return err
	}
	if x.tree, err = x.space.Tree(ctx); err != nil {
		return err
	}
	p, err := patch.Parse(data, o)
	if err == nil {
		x.patch = p
		p, err = p.Resolve(x.tree)
	}
	if err == nil {
		x.patch = p
		err = x.space.CheckedOut(ctx, append(p.Touched(), p.Sources()...))
	}
	if err == nil {
		if f.Attributes {
			if x.tree, err = x.space.WithAttributes(ctx, x.tree, append(p.Touched(), p.Sources()...)); err != nil {
				return err
			}
		}
		x.result, err = patch.Apply(p, x.tree)
	}
	if err == nil && f.Attributes {
		err = x.checkConversion(ctx)
	}
	if r, ok := errors.AsType[*patch.Refusal](err); ok {
		x.refused, err = r, nil
	}
	return err
}

// checkConversion refuses what git would convert otherwise than the engine did.
func (x *fitting) checkConversion(ctx context.Context) error {
	err := x.space.CheckConversion(ctx, x.tree, x.result.Changes, x.patch.Sources())
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Code == string(patch.AttrFilter) {
		path, _ := e.Context["path"].(string)
		x.result, err = nil, &patch.Refusal{Class: patch.AttrFilter, Path: path, Detail: e.Detail}
	}
	return err
}

// openToChange opens a folder that is to be changed or recovered. Images go to
// the blob store in data, or in the folder's own state folder.
func openToChange(ctx context.Context, dir, data string) (space *repo.Workspace, done func() error, err error) {
	root, err := filepath.Abs(dir)
	if err == nil {
		root, err = filepath.EvalSymlinks(root)
	}
	if err != nil {
		return nil, nil, err
	}
	o := repo.Options{UserEnv: os.Environ()}
	if data == "" {
		data = filepath.Join(root, ".roundtable")
	} else if rel, err := filepath.Rel(root, data); err == nil && filepath.IsLocal(rel) && rel != "." {
		o.Reserved = []string{filepath.ToSlash(rel)}
	}
	if err := ownData(ctx, data); err != nil {
		return nil, nil, err
	}
	blobs := &lateBlobs{dir: filepath.Join(data, "blobs")}
	o.Blobs = blobs
	if space, err = repo.Open(ctx, root, o); err != nil {
		return nil, nil, err
	}
	return space, func() error { return errors.Join(blobs.close(), space.Close()) }, nil
}

// lateBlobs is a store that is opened when it is first asked: by then the
// state folder has been found to be no link to elsewhere.
type lateBlobs struct {
	dir   string
	once  sync.Once
	store *blob.Store
	err   error
}

func (l *lateBlobs) open() (*blob.Store, error) {
	l.once.Do(func() { l.store, l.err = blob.Open(l.dir, blob.Options{}) })
	return l.store, l.err
}

// PutAll is repo.Blobs'.
func (l *lateBlobs) PutAll(ctx context.Context, sources []func() (io.ReadCloser, error)) ([]string, error) {
	s, err := l.open()
	if err != nil {
		return nil, err
	}
	return s.PutAll(ctx, sources)
}

// Has is repo.Blobs'.
func (l *lateBlobs) Has(digest string) (bool, error) {
	s, err := l.open()
	if err != nil {
		return false, err
	}
	return s.Has(digest)
}

func (l *lateBlobs) close() error {
	if l.store == nil {
		return nil
	}
	return l.store.Close()
}

// unsettled warns of an apply that has not ended, or was interrupted.
func unsettled(t terminal, dir string) {
	left, err := os.ReadDir(filepath.Join(dir, ".roundtable", "tx"))
	if err == nil && len(left) > 0 {
		fmt.Fprintf(t.err, "roundtable: an apply to %s has not ended; if it was interrupted: roundtable patch recover --dir %s\n", dir, dir)
	}
}

// writeNew writes a file that is not there yet, or to standard output.
func writeNew(t terminal, file string, data []byte) (err error) {
	if file == "" || file == "-" {
		_, err := io.Copy(t.out, bytes.NewReader(data))
		return err
	}
	if err := createFile(file, data); err != nil {
		return fault.Errorf(fault.Invalid, "invalid_flag", "the patch cannot be written: %v", err)
	}
	return nil
}
