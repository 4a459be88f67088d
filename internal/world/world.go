// Package world joins the governed trees, the patch engine and the blob store
// into what commands and workers see of files.
//
// What always holds: a workspace is opened once for each root and kept; bytes
// that an event names are in the blob store before the event is written; an
// error that may be shown is a fault.
package world

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/blob"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/policy"
	"roundtable/internal/redact"
	"roundtable/internal/repo"
	"roundtable/internal/runner"
)

// A World is everything outside the log that commands look at.
type World struct {
	// Known says what a governed folder was when it came under governance, git
	// or folder, and "" of one that is not governed yet. It may be nil. A git
	// work tree that has lost its .git is not opened as a plain folder.
	Known func(ctx context.Context, root string) (kind string, err error)

	blobs *blob.Store
	data  string // the data folder: no workspace's business
	opts  repo.Options

	mu   sync.Mutex
	open map[string]*space // by root
}

type space struct {
	*repo.Workspace
	sha256 bool // object ids of the repository
}

// New returns a world over the blobs. The data folder is kept out of every
// workspace that it lies in.
func New(blobs *blob.Store, data string, o repo.Options) *World {
	o.Blobs = blobs
	return &World{blobs: blobs, data: data, opts: o, open: map[string]*space{}}
}

// Close closes the workspaces.
func (w *World) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var err error
	for _, s := range w.open {
		err = errors.Join(err, s.Close())
	}
	w.open = map[string]*space{}
	return err
}

// Workspace opens the governed folder at root, or returns it if it is open.
// Git is told to ignore the state folder in it.
func (w *World) Workspace(ctx context.Context, root string) (*repo.Workspace, error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return nil, err
	}
	return s.Workspace, nil
}

func (w *World) space(ctx context.Context, root string) (*space, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s, ok := w.open[root]; ok {
		return s, s.Still()
	}
	o := w.opts
	if rel, err := filepath.Rel(root, w.data); err == nil && filepath.IsLocal(rel) && rel != "." {
		o.Reserved = append([]string{filepath.ToSlash(rel)}, o.Reserved...)
	}
	known, err := w.known(ctx, root)
	if err != nil {
		return nil, err
	}
	ws, err := repo.Open(ctx, root, o)
	if err != nil {
		return nil, absent(root, known, err)
	}
	if known == "git" && !ws.Git() {
		return nil, errors.Join(unusable(root, "it has no .git any more"), ws.Close())
	}
	if err := ws.InitExclude(ctx); err != nil {
		return nil, errors.Join(absent(root, known, err), ws.Close())
	}
	s := &space{ws, ws.SHA256()}
	w.open[root] = s
	return s, nil
}

func (w *World) known(ctx context.Context, root string) (kind string, err error) {
	if w.Known != nil {
		kind, err = w.Known(ctx, root)
	}
	return kind, err
}

// absent says of a governed folder that is gone, closed to the service or no
// longer what it was that it may come back: what is known of the workspace
// stays as it is.
func absent(root, known string, err error) error {
	code := fault.CodeOf(err)
	switch {
	case code == "workspace.no_folder" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission):
		return fault.Errorf(fault.Unavailable, "workspace_unavailable", "the folder %s of this workspace is not there, or the service may not open it", root)
	case known == "git" && (code == "workspace.not_git" || code == "workspace.not_toplevel"):
		return unusable(root, err.Error())
	}
	return err
}

func unusable(root, why string) error {
	return fault.Errorf(fault.Unavailable, "workspace_unavailable", "the folder %s was put under governance as a Git work tree, and is none that can be used: %s; put back what lay there, or mend it with git, and send the call again", root, why)
}

// Root resolves a folder that is to be governed.
func (w *World) Root(ctx context.Context, dir string) (root, kind string, err error) {
	if root, err = CheckRoot(dir, w.data); err != nil {
		return "", "", err
	}
	s, err := w.space(ctx, root)
	if err != nil {
		return "", "", err
	}
	if s.Git() {
		return root, "git", nil
	}
	return root, "folder", nil
}

// Keep stores bytes durably under their digest.
func (w *World) Keep(ctx context.Context, data []byte) (string, error) {
	return w.blobs.Put(ctx, bytes.NewReader(data))
}

// Kept gives bytes back.
func (w *World) Kept(ctx context.Context, digest string) ([]byte, error) {
	return w.blobs.Get(ctx, digest)
}

// Argv splits a test command, and refuses one that may not run.
func (w *World) Argv(command string) ([]string, error) {
	argv, err := runner.Split(command)
	if err != nil {
		return nil, err
	}
	return argv, runner.Allowed(argv, runner.DefaultAllow())
}

// Digest says what a resource holds now.
func (w *World) Digest(ctx context.Context, root string, r domain.Resource) (events.BaseHash, error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return events.BaseHash{}, err
	}
	state, hash, err := s.Digest(ctx, r.Kind, r.Path)
	return events.BaseHash{State: string(state), Hash: hash}, err
}

// fitted is a patch with what it makes of the tree as it lies now.
type fitted struct {
	patch   *patch.Patch
	result  *patch.Result
	refused *patch.Refusal
	ignored *fault.Error // it is about files that git ignores, or would ignore
	strays  *fault.Error // git would convert the bytes in a way that no patch can say
}

// fit parses a patch and applies it in memory, to what git keeps of the files.
func (s *space) fit(ctx context.Context, tree patch.Tree, data []byte) (f fitted, err error) {
	if state, err := tree.Stat(policy.File); err != nil || state.Kind != patch.Absent {
		return f, errors.Join(err, noPolicy("the tree has"))
	}
	if f.patch, err = patch.Parse(data, patch.Options{SHA256: s.sha256, UTF8Names: true}); err == nil {
		f.patch, err = f.patch.Resolve(tree)
	}
	if err == nil {
		for _, p := range f.patch.Touched() {
			if strings.EqualFold(p, policy.File) {
				return f, noPolicy("the patch touches")
			}
		}
		if f.ignored, err = s.ignored(ctx, tree, f.patch); err != nil || f.ignored != nil {
			return f, err
		}
		if err = s.apply(ctx, tree, &f); err == nil {
			return f, nil
		}
	}
	if r, ok := errors.AsType[*patch.Refusal](err); ok {
		f.refused, err = r, nil
	}
	return f, err
}

// apply fills in what the patch gives under the attributes of its paths.
func (s *space) apply(ctx context.Context, tree patch.Tree, f *fitted) error {
	sources := f.patch.Sources()
	paths := append(f.patch.Touched(), sources...)
	if err := s.CheckedOut(ctx, paths); err != nil {
		return err
	}
	with, err := s.WithAttributes(ctx, tree, paths)
	if err != nil {
		return err
	}
	if f.result, err = patch.Apply(f.patch, with); err != nil {
		return err
	}
	gone, err := s.IgnoredAfter(ctx, tree, f.result.Changes)
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		f.ignored = ignored(gone[0], "git would ignore %s as the patch leaves it, so it would be no part of the governed tree: its tests would not be those of the tree after, and it could not be taken back")
		return nil
	}
	err = s.CheckConversion(ctx, with, f.result.Changes, sources)
	if e, ok := errors.AsType[*fault.Error](err); ok && e.Kind != fault.Internal {
		f.strays, err = e, nil
	}
	return err
}

// ignored refuses a patch of, or a copy from, files that lie there and that
// git ignores: they are no part of the tree that is governed, and nothing of
// what they hold may be told.
func (s *space) ignored(ctx context.Context, tree patch.Tree, p *patch.Patch) (*fault.Error, error) {
	found, err := s.Ignored(ctx, append(p.Touched(), p.Sources()...), func(path string) (bool, error) {
		st, err := tree.Stat(path)
		return st.Kind == patch.File || st.Kind == patch.Symlink, err
	})
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return ignored(found[0], "%s is there and git ignores it, so it is no part of the governed tree"), nil
}

func ignored(path, why string) *fault.Error {
	return fault.Errorf(fault.Refused, "path.ignored", why, patch.Show(path)).With("path", patch.Show(path)).At("/patch", "a path that git ignores")
}

func noPolicy(where string) error {
	return fault.Errorf(fault.Refused, "policy_not_supported", "%s a file %s, and this version has the built-in policy only: it would be ignored, so nothing is done", where, policy.File)
}

// Inspect parses a patch and fits it to the tree as it lies now.
func (w *World) Inspect(ctx context.Context, root string, data []byte) (in commands.Inspection, err error) {
	s, err := w.space(ctx, root)
	if err != nil {
		return in, err
	}
	view, err := s.View(ctx)
	if err != nil {
		return in, err
	}
	defer func() { err = errors.Join(err, view.Close()) }()
	f, err := s.fit(ctx, view, data)
	if err != nil {
		return in, err
	}
	if f.ignored != nil {
		return commands.Inspection{Refused: f.ignored, Never: true}, nil
	}
	if f.refused != nil {
		in.Refused = refusal(f.refused)
		in.Never = f.refused.Class.Stage() != patch.StageApply
		if in.Never {
			return in, nil
		}
	}
	if f.strays != nil {
		in.Refused = f.strays
	}
	for _, d := range f.patch.Files() {
		in.Files = append(in.Files, patched(d))
	}
	var changes []patch.Change
	if f.result != nil {
		changes = f.result.Changes
	}
	if in.Refused == nil {
		if in.Dirty, err = s.Uncommitted(ctx, f.patch.Touched()); err != nil {
			return in, err
		}
	}
	base, err := view.Base(ctx, changes, append(f.patch.Touched(), f.patch.Sources()...))
	in.Base = events.Base{Commit: base.Commit, PathsDigest: base.PathsDigest}
	for _, p := range f.patch.Touched() {
		in.Base.Paths = append(in.Base.Paths, pathState(p, base.States[p]))
	}
	for _, p := range f.patch.Sources() {
		in.Base.Sources = append(in.Base.Sources, pathState(p, base.States[p]))
	}
	return in, err
}

func patched(d patch.FileDiff) events.PatchedFile {
	return events.PatchedFile{Op: string(d.Op), Path: d.Path(), OldPath: d.OldPath, OldMode: d.OldMode, Mode: d.NewMode,
		Binary: d.Binary, Added: d.Added, Removed: d.Removed}
}

func pathState(path string, s patch.State) events.PathState {
	return events.PathState{Path: path, Kind: string(s.Kind), Mode: s.Mode, SHA256: s.SHA256, Size: s.Size}
}

func state(s events.PathState) patch.State {
	return patch.State{Kind: patch.Kind(s.Kind), Mode: s.Mode, SHA256: s.SHA256, Size: s.Size}
}

// maxSuggestion bounds a repaired patch in an answer, in bytes.
const maxSuggestion = 64 << 10

// refusal shows the engine's refusal to whoever sent the patch.
func refusal(r *patch.Refusal) *fault.Error {
	why := strings.TrimPrefix(r.Error(), string(r.Class)+": ")
	if r.Class == patch.PathNotUTF8 {
		why += "; the history holds names as text, so give the file a UTF-8 name with Git first, or take the patch with roundtable patch apply"
	}
	e := fault.Errorf(fault.Refused, string(r.Class), "%s", redact.Text(why)).At("/patch", redact.Text(r.Detail))
	if r.Line > 0 {
		e.With("line", r.Line)
	}
	if r.Path != "" {
		e.With("path", r.Path)
	}
	if r.Hint != "" {
		e.With("hint", string(r.Hint))
	}
	if len(r.Suggestion) > 0 && len(r.Suggestion) <= maxSuggestion {
		e.With("suggested_patch", strings.ToValidUTF8(string(r.Suggestion), "\uFFFD"))
	}
	if len(r.States) > 0 {
		e.With("paths", r.States)
	}
	return e
}
