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
	// Argv splits a test command, and refuses one that may not run.
	Argv(command string) ([]string, error)
	// Reverse makes the patch that takes the files back to what they were.
	// Paths that are no longer as the transaction left them are named instead.
	Reverse(ctx context.Context, root string, files []events.ChangedPath) (patch []byte, changed []string, err error)
	// Lies compares a transaction's paths and journal with what lies there now.
	Lies(ctx context.Context, root, transaction string, attempt int, files []events.ChangedPath) (wire.Recovery, error)
	// Planned returns the states before and after that an attempt's journal
	// holds; none if there is no journal.
	Planned(ctx context.Context, root, transaction string, attempt int) ([]events.ChangedPath, error)
}

// An Inspection is what a patch is, and what it meets in the tree as it lies.
type Inspection struct {
	Files   []events.PatchedFile
	Base    events.Base  // the touched paths as they lie now
	Refused *fault.Error // why the patch is not taken
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
