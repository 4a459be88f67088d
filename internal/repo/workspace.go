package repo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"roundtable/internal/calls"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// A Workspace is one governed folder. It is safe for concurrent use.
type Workspace struct {
	root     string
	o        Options
	at       *anchor
	reserved []string

	gitDir, commonDir, index string    // absolute; empty in a plain folder
	format                   string    // "sha1" or "sha256"
	settings                 []setting // besides the hardened ones, of every call
	execPath                 string    // where git's own helpers are, which says where it was installed

	tmp     *calls.File   // locked while the workspace is open: then a private index may be a live one
	owned   *calls.File   // locked while the workspace is open for a service
	busy    chan struct{} // holds one token: of whoever writes
	moves   sync.RWMutex  // held by whoever moves files, and shared by whoever reads several that belong together
	moved   int           // how often moves was taken to move files
	probe   sync.Mutex
	exact   *bool           // what the probe found out about renameat2
	inexact string          // what it does wrong
	config  config          // the person's settings
	kept    indexCache      // of the index
	heads   headCache       // of HEAD
	attrs   attrCache       // of attributes
	durable map[string]bool // attempts whose marker this process knows to be on the disk; of whoever writes
	lock    *calls.File     // while somebody in this process changes the workspace
	indexed map[string]bool // attempts whose index this process has brought up; of whoever writes
	lax     bool            // only in tests, as their control: staged files and markers that are found are not synced
	blind   bool            // the same: recovery does not look at the branch
	late    bool            // the same: the index is locked only after the branch has moved

	objects, headers reader
}

func (o Options) withDefaults() Options {
	o.Git = cmp.Or(o.Git, "git")
	o.Path = cmp.Or(o.Path, "/usr/local/bin:/usr/bin:/bin")
	o.Timeout = cmp.Or(o.Timeout, 2*time.Minute)
	o.MaxFile = cmp.Or(o.MaxFile, 32<<20)
	o.MaxFiles = cmp.Or(o.MaxFiles, 500_000)
	o.MaxOutput = cmp.Or(o.MaxOutput, 256<<20)
	o.LockWait = cmp.Or(o.LockWait, 3*time.Second)
	if o.Step == nil {
		o.Step = func(Step) {}
	}
	return o
}

// Open opens the folder root as a workspace: a Git work tree's top (linked
// worktrees and submodules too) or a plain folder. It makes <root>/.roundtable
// and changes nothing else; with a Scratch folder not even that. One whose
// repository brings a state folder of its own is a fault state.tracked. Call
// Close when done.
func Open(ctx context.Context, root string, o Options) (*Workspace, error) {
	root, err := filepath.Abs(root)
	if err == nil {
		var real string
		if real, err = filepath.EvalSymlinks(root); err == nil {
			root = real
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Errorf(fault.NotFound, "workspace.no_folder", "there is no folder %s", root)
	}
	if err != nil {
		return nil, err
	}
	at, err := openAnchor(root)
	if errors.Is(err, unix.ENOTDIR) {
		return nil, fault.Errorf(fault.Invalid, "workspace.no_folder", "%s is no folder", root)
	}
	if err != nil {
		return nil, err
	}
	w := &Workspace{root: root, o: o.withDefaults(), at: at, busy: make(chan struct{}, 1), durable: map[string]bool{}, indexed: map[string]bool{}, reserved: slices.Clone(o.Reserved),
		objects: reader{mode: "--batch"}, headers: reader{mode: "--batch-check"}}
	if err = w.findGit(ctx); err == nil {
		err = w.brought(ctx, true)
	}
	if w.o.Scratch == "" {
		for _, begin := range []func() error{w.makeState, w.own, w.useTmp} {
			if err == nil {
				err = begin()
			}
		}
	}
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// Close releases the folder.
func (w *Workspace) Close() error {
	err := errors.Join(w.objects.close(), w.headers.close(), w.at.f.Close())
	for _, f := range []*calls.File{w.tmp, w.owned} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// Root returns the absolute path of the folder.
func (w *Workspace) Root() string { return w.root }

// Git says whether the workspace is a Git work tree.
func (w *Workspace) Git() bool { return w.gitDir != "" }

// Tree returns the files as they lie on disk, read at each call; or, where
// changes are committed, as the branch's newest commit has them. What is not
// the workspace's to show or change (.git, .roundtable, nested repositories)
// reads as patch.Special and is not among the names.
func (w *Workspace) Tree(ctx context.Context) (patch.Tree, error) {
	if w.Commits() {
		tree, _, err := w.branch(ctx)
		return tree, err
	}
	links, err := w.gitlinks(ctx)
	return disk{ctx, w, links}, err
}

// findGit fills in what is known of the repository, if the root is a work tree.
func (w *Workspace) findGit(ctx context.Context) error {
	if _, err := os.Lstat(filepath.Join(w.root, ".git")); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	if _, err := GitVersion(ctx, w.o); err != nil {
		return err
	}
	path, err := w.o.run(ctx, call{dir: "/", args: []string{"--exec-path"}})
	if err != nil {
		return err
	}
	w.execPath = strings.TrimSpace(string(path))
	trust := []setting{{"safe.directory", w.root}} // registering it was the person's decision to trust it
	out, err := w.o.run(ctx, call{dir: w.root, config: trust, args: []string{"rev-parse", "--path-format=absolute",
		"--show-toplevel", "--absolute-git-dir", "--git-common-dir", "--git-path", "index", "--show-object-format"}})
	if err != nil {
		return fault.Errorf(fault.Invalid, "workspace.not_git", "%s has a .git that git cannot use: %v", w.root, err)
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if len(lines) != 5 {
		return fault.Errorf(fault.Invalid, "workspace.not_git", "git cannot name the folders of %s", w.root)
	}
	if top, err := filepath.EvalSymlinks(lines[0]); err != nil || top != w.root {
		return fault.Errorf(fault.Invalid, "workspace.not_toplevel", "%s is not the top of its work tree, which is %s", w.root, lines[0])
	}
	w.gitDir, w.commonDir, w.index, w.format = lines[1], lines[2], lines[3], lines[4]
	for _, dir := range []string{w.gitDir, w.commonDir} {
		if rel, err := filepath.Rel(w.root, dir); err == nil && filepath.IsLocal(rel) && w.ours(rel) {
			w.reserved = append(w.reserved, rel)
		}
	}
	w.settings = trust
	_, err = w.configured(ctx)
	return err
}

// makeState makes the state directory.
func (w *Workspace) makeState() error {
	for _, dir := range []string{stateDir, stateDir + "/tx", stateDir + "/tmp"} {
		p, err := w.at.parent(dir)
		if err != nil {
			return fmt.Errorf("state directory: %w", pathError(dir, err))
		}
		err = calls.Mkdirat(p.dir, p.name, 0o700)
		if errors.Is(err, unix.EEXIST) {
			err = nil
		}
		if err = errors.Join(err, p.close()); err != nil {
			return fmt.Errorf("state directory: %w", pathError(dir, err))
		}
		fd, err := w.at.open(dir, unix.O_RDONLY|unix.O_DIRECTORY) // on the root's own mount, and no link
		if err != nil {
			return fmt.Errorf("state directory: %w", pathError(dir, err))
		}
		if err := calls.Close(fd); err != nil {
			return err
		}
	}
	return nil
}

// InitExclude has git ignore .roundtable through its info/exclude. Repeating
// it changes nothing; in a plain folder it does nothing.
func (w *Workspace) InitExclude(ctx context.Context) error {
	if !w.Git() || ctx.Err() != nil {
		return ctx.Err()
	}
	const line = "/" + stateDir + "/"
	name := filepath.Join(w.commonDir, "info", "exclude")
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	old, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if slices.Contains(strings.Split(string(old), "\n"), line) {
		return nil
	}
	add := line + "\n"
	if len(old) > 0 && !bytes.HasSuffix(old, []byte("\n")) {
		add = "\n" + add
	}
	f, err := os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.WriteString(add)
	return errors.Join(err, f.Sync(), f.Close())
}
