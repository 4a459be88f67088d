package repo

import (
	"context"
	"errors"

	"roundtable/internal/patch"
)

var errUnbuilt = errors.New("repo: not built yet")

// A Workspace is one governed folder. It is safe for concurrent use.
type Workspace struct{}

// Open opens the folder root as a workspace: a Git work tree's top (linked
// worktrees and submodules too) or a plain folder. It makes <root>/.roundtable
// and changes nothing else. Call Close when done.
func Open(ctx context.Context, root string, o Options) (*Workspace, error) { return nil, errUnbuilt }

// Close releases the folder.
func (w *Workspace) Close() error { return errUnbuilt }

// Root returns the absolute path of the folder.
func (w *Workspace) Root() string { return "" }

// Git says whether the workspace is a Git work tree.
func (w *Workspace) Git() bool { return false }

// Probe tries what the file system can do and judges by the result.
func (w *Workspace) Probe(ctx context.Context) (ProbeResult, error) { return ProbeResult{}, errUnbuilt }

// Tree returns the files as they lie on disk, read at each call.
func (w *Workspace) Tree(ctx context.Context) (patch.Tree, error) { return nil, errUnbuilt }

// Snapshot returns the base made of HEAD and the paths' states on disk.
func (w *Workspace) Snapshot(ctx context.Context, paths []string) (Base, error) {
	return Base{}, errUnbuilt
}

// PathsDigest is the SHA-256 of the states of paths, whatever their order.
func PathsDigest(states map[string]patch.State) string { return "" }

// Changed returns the paths, sorted, that are not in the state given.
func (w *Workspace) Changed(ctx context.Context, states map[string]patch.State) ([]string, error) {
	return nil, errUnbuilt
}

// Digest returns the base hash of a claim's resource: kind "file" or
// "directory" (path "" is the whole tree). The hash is empty unless Present.
func (w *Workspace) Digest(ctx context.Context, kind, path string) (Presence, string, error) {
	return "", "", errUnbuilt
}

// Head returns HEAD's commit; empty in a plain folder or before the first one.
func (w *Workspace) Head(ctx context.Context) (string, error) { return "", errUnbuilt }

// ResolveCommit returns the full id of a commit the repository has, else a
// fault unknown_base.
func (w *Workspace) ResolveCommit(ctx context.Context, rev string) (string, error) {
	return "", errUnbuilt
}

// CheckAttributes refuses, as apply.attr_filter, changes to paths whose bytes
// git would convert between the work tree and its objects.
func (w *Workspace) CheckAttributes(ctx context.Context, changes []patch.Change) error {
	return errUnbuilt
}

// Candidate returns the id of the whole tree that the changes make of the
// snapshot: tracked files as they lie on disk, untracked ones that are not
// ignored, and the changes on top. Nothing of the repository changes.
func (w *Workspace) Candidate(ctx context.Context, changes []patch.Change) (CandidateTree, error) {
	return CandidateTree{}, errUnbuilt
}

// Materialise writes that whole tree into the empty folder dst, which is
// outside the workspace or below its state directory, and checks it.
func (w *Workspace) Materialise(ctx context.Context, changes []patch.Change, dst string) (CandidateTree, error) {
	return CandidateTree{}, errUnbuilt
}

// Apply changes the work tree: wholly, or not at all. A refusal is a fault
// with the code state.stale or state.third_party_edit (a conflict, paths under
// "paths"), state.locked, state.no_space, state.cross_device, state.busy,
// state.needs_attention (both versions kept) or state.unknown (the marker could
// not be made durable: ask Outcome). After success report, then call Finish.
func (w *Workspace) Apply(ctx context.Context, tx string, attempt int, p Plan) (Receipt, error) {
	return Receipt{}, errUnbuilt
}

// Finish removes the folder of a committed transaction once its outcome is in
// the log. It is a fault state.needs_attention when somebody wrote into a
// displaced file after the exchange; both versions are then kept. Finishing
// again changes nothing.
func (w *Workspace) Finish(ctx context.Context, tx string, attempt int) error { return errUnbuilt }

// Outcome returns what the transaction's marker says.
func (w *Workspace) Outcome(tx string, attempt int) (Marker, error) { return None, errUnbuilt }

// Recover settles every transaction that a dead process left. Committed ones
// are returned and left for the caller to report and Finish.
func (w *Workspace) Recover(ctx context.Context) ([]Recovered, error) { return nil, errUnbuilt }

// Resolve ends a transaction that needs attention by a person's decision to
// keep what now lies at its paths. What lies in its folder goes to the blob
// store and is returned.
func (w *Workspace) Resolve(ctx context.Context, tx string, attempt int) ([]Kept, error) {
	return nil, errUnbuilt
}

// State says for each path of a transaction which version it is. Where the
// journal is gone, before and after say what to compare with.
func (w *Workspace) State(ctx context.Context, tx string, attempt int, before, after map[string]patch.State) (Report, error) {
	return Report{}, errUnbuilt
}

// ReadFile returns at most limit bytes, from offset on, of a file of the
// snapshot: one that is tracked, or untracked and not ignored. Any other is a
// fault not_found.
func (w *Workspace) ReadFile(ctx context.Context, path string, offset, limit int64) (FileRead, error) {
	return FileRead{}, errUnbuilt
}

// Files returns the sorted paths of the snapshot's files below dir.
func (w *Workspace) Files(ctx context.Context, dir string) ([]string, error) { return nil, errUnbuilt }

// IsIgnored says whether git ignores the path. Nothing is in a plain folder.
func (w *Workspace) IsIgnored(ctx context.Context, path string) (bool, error) {
	return false, errUnbuilt
}

// InitExclude has git ignore .roundtable through its info/exclude. Repeating
// it changes nothing; in a plain folder it does nothing.
func (w *Workspace) InitExclude(ctx context.Context) error { return errUnbuilt }

// GitVersion returns the version of the git program, such as "2.39.5". It is a
// fault git_too_old below the oldest that can be called safely, 2.32.
func GitVersion(ctx context.Context, o Options) (string, error) { return "", errUnbuilt }
