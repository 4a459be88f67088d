package commands

import (
	"context"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/fault"
	"roundtable/internal/wire"
)

// World is what commands see of files. It only looks; what it saw goes into
// the events. Its errors are faults where they may be shown.
type World interface {
	// Root resolves a folder that is to be governed, and says whether it is a
	// git work tree or a plain folder.
	Root(ctx context.Context, dir string) (root, kind string, err error)
	// Keep stores bytes durably under their digest; Kept gives them back.
	Keep(ctx context.Context, data []byte) (digest string, err error)
	Kept(ctx context.Context, digest string) ([]byte, error)
	// Digest says what a resource holds now.
	Digest(ctx context.Context, root string, r domain.Resource) (events.BaseHash, error)
	// Inspect parses a patch and fits it to the tree as it lies now.
	Inspect(ctx context.Context, root string, patch []byte) (Inspection, error)
	// Tree returns the id of the whole tree that the patch would give now.
	Tree(ctx context.Context, root string, patch []byte) (string, error)
	// Flaws looks for whitespace errors and conflict markers in the lines that
	// the patch adds now.
	Flaws(ctx context.Context, root string, patch []byte) (Flaws, error)
	// Argv splits a test command, and refuses one that may not run.
	Argv(command string) ([]string, error)
	// Reverse merges the taking back of files into the tree as it lies. Renames
	// are what taking back moves, from where it lies now to where it was.
	Reverse(ctx context.Context, root string, files []events.ChangedPath, renames map[string]string) (Merging, error)
	// Rebase merges what a revision makes of its own base into the tree as it lies.
	Rebase(ctx context.Context, root string, r domain.Revision) (Merging, error)
	// Lies compares a transaction's paths and journal with what lies there now.
	// Where a journal lies there, its states count and files do not.
	Lies(ctx context.Context, root, transaction string, attempt int, files []events.ChangedPath) (Look, error)
	// Branch says where the branch stands that a transaction was or is committed
	// to; nil if it has none.
	Branch(ctx context.Context, root string, t domain.Transaction) (*wire.RecoveryBranch, error)
	// KeepBase stores durably what lies at paths, where it is as the states say:
	// what a revision was made on, for comparing it with others later.
	KeepBase(ctx context.Context, root string, paths []events.PathState) error
	// Since returns HEAD's commit and which paths are no longer in these states.
	Since(ctx context.Context, root string, paths []events.PathState) (head string, changed []string, err error)
	// Preview shows a page of what a revision's patch states.
	Preview(ctx context.Context, root string, v PatchView) (PatchPage, error)
	// Symbols shows a page of the symbols that a revision's patch touches, as
	// many files as v says.
	Symbols(ctx context.Context, root string, v PatchView) (SymbolPage, error)
	// Look returns what lies at paths, never in the middle of an apply. What may
	// not be read is left out.
	Look(ctx context.Context, root string, paths []string) ([]events.PathState, error)
	// Commit returns the full id of a commit that the repository has, by that or
	// by an abbreviation of 7 digits or more; else a fault unknown_base.
	Commit(ctx context.Context, root, rev string) (string, error)
	// Outside returns HEAD's commit and those of paths that git ignores.
	Outside(ctx context.Context, root string, paths []string) (head string, ignored []string, err error)
	// Describe says what the folder at root is, and what can be done in it.
	Describe(ctx context.Context, root string) (wire.Repository, error)
	// Planned returns the states before and after that an attempt's journal
	// holds; none if there is no journal.
	Planned(ctx context.Context, root, transaction string, attempt int) ([]events.ChangedPath, error)
	// Artifact says of each path whether its images are stored and sound, and
	// spells the patch from after to before for people to read.
	Artifact(ctx context.Context, root string, files []events.ChangedPath) ([]wire.RollbackFile, wire.ReversePatch, error)
}

// A Look is what lies at the paths of a transaction, and what its journal says.
type Look struct {
	Repository string // before, after, mixed or diverged
	Journal    string // none, open, committed, aborted or attention
	CanResolve bool   // something waits for a person's decision
	Paths      []LookPath
}

// A LookPath is what lies at one path of a transaction.
type LookPath struct {
	Path  string
	Is    string // before, after or other
	Now   events.PathState
	Held  *events.PathState // a version of it that is neither and lies in the transaction's folder alone
	Stuck string            // why it waits for a person; "" if it does not
}

// A PatchView says which part of which patch is to be shown.
type PatchView struct {
	Revision domain.Revision
	Merged   []byte           // a patch that a merge gave, shown in place of the revision's
	From     *domain.Revision // an earlier one: what differs between both is shown; nil: the patch itself
	At       PatchPlace
	Files    int // at most so many; 0 is all
	Lines    int // at most so many, of hunks; 0 shows no hunks
}

// A PatchPlace is where a page begins: by index, from 0.
type PatchPlace struct{ File, Hunk, Line int }

// A PatchPage is a page of a patch.
type PatchPage struct {
	Bytes int64 // of the whole patch
	Files []wire.PatchFile
	Notes []wire.PatchNote // of the whole patch, the first of them
	Found int              // how many notes there are in all
	Next  *PatchPlace      // of the page after; nil: this is the last

	Counts PatchCounts // of the whole patch
}

// PatchCounts are the sums over a patch.
type PatchCounts struct{ Files, Added, Removed int }

// A Merging is what a three-way merge with the tree as it lies came to.
type Merging struct {
	Patch      []byte               // takes the tree as it lies to the merged one; empty if nothing is left to change
	Base       []events.PathState   // the tree as it lies: the states that the merge was made from
	Merged     []string             // paths whose result is neither side's
	Conflicts  []wire.MergeConflict // the first of them; with any there is no patch
	Paths      []string             // all paths in conflict, raw
	Impossible string               // why there was nothing to merge: the revision gives nothing on its own base
}

// A SymbolPage is a page of symbols.
type SymbolPage struct {
	Files []wire.SymbolFile
	Next  *PatchPlace // its Line counts symbols of the file
}

// An Inspection is what a patch is, and what it meets in the tree as it lies.
type Inspection struct {
	Files   []events.PatchedFile
	Base    events.Base  // the touched paths as they lie now
	Refused *fault.Error // why the patch is not taken
	Dirty   []string     // touched paths with uncommitted work, where changes are committed
	Never   bool         // Refused is about the patch itself and never changes: Files and Base are empty
}

// inspect asks the world about a patch that is kept.
func (u *unit) inspect(ctx context.Context, root, digest string) (Inspection, error) {
	return fact(u, "inspect "+root+" "+digest, func() (Inspection, error) {
		patch, err := u.h.World.Kept(ctx, digest)
		if err != nil {
			return Inspection{}, err
		}
		return u.h.World.Inspect(ctx, root, patch)
	})
}

// tree asks the world for the candidate tree of a patch that is kept.
func (u *unit) tree(ctx context.Context, root, digest string) (string, error) {
	return fact(u, "tree "+root+" "+digest, func() (string, error) {
		patch, err := u.h.World.Kept(ctx, digest)
		if err != nil {
			return "", err
		}
		return u.h.World.Tree(ctx, root, patch)
	})
}

// root loads the folder of the command's workspace.
func (u *unit) root(ctx context.Context) (string, error) {
	ws, err := load[domain.Workspaces](ctx, u, events.WorkspacesStream)
	if err != nil {
		return "", err
	}
	w, err := ws.Get(u.caller.Workspace)
	return w.Root, err
}

// now returns what lies at the paths.
func (l Look) now() (all []events.PathState) {
	for _, p := range l.Paths {
		all = append(all, p.Now)
	}
	return all
}
