package process_test

import (
	"testing"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/repo"
)

// served opens the workspace again, with changes made in this mode.
func (b *bench) served(o repo.Options) {
	b.t.Helper()
	b.options = o
	b.open()
	b.run()()
}

// modes lists the modes that the history says the workspace was put into.
func (b *bench) modes() (all []string) {
	b.t.Helper()
	es, err := b.store.Stream(b.t.Context(), events.TreeStream(b.ws), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	for _, e := range es {
		if m, ok := e.Payload.(events.WorkspaceApplyModeSet); ok {
			all = append(all, m.Mode+" "+m.Branch)
		}
	}
	return all
}

// TestApplyModeChanges: what lies in the work tree and is not committed is
// nobody's doing where a service begins to commit, nor is what is committed
// where one ceases to; what somebody does after that is found, and once.
func TestApplyModeChanges(t *testing.T) {
	b := setUp(t, files)
	stop := b.run()
	b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"])
	stop()
	b.must(b.as("coder"), commands.ClaimResource{Resource: "file:b.txt", Type: "write"})
	b.must(b.as("ada"), commands.CheckRepository{})

	b.served(repo.Options{Commit: true})
	b.must(b.as("ada"), commands.CheckRepository{})
	b.looks("claim", "")
	b.finds()
	b.write("b.txt", "not committed\n")
	b.must(b.as("ada"), commands.CheckRepository{})
	b.finds()
	b.git("commit", "-qm", "hers", "b.txt")
	for range 2 {
		b.must(b.as("ada"), commands.CheckRepository{})
	}
	b.finds("doctor b.txt")
	if n := b.count("claim.became_stale"); n != 2 { // that on everything, and that on b.txt
		t.Errorf("%d claims are stale", n)
	}

	b.served(repo.Options{Commit: true}) // which is no change
	b.served(repo.Options{})
	b.must(b.as("ada"), commands.CheckRepository{})
	b.finds("doctor b.txt")
	b.write("a.txt", "edited\n")
	b.must(b.as("ada"), commands.CheckRepository{})
	b.finds("doctor b.txt", "doctor a.txt")
	b.served(repo.Options{Commit: true, Branch: "main"})
	b.must(b.as("ada"), commands.CheckRepository{})
	b.finds("doctor b.txt", "doctor a.txt")
	if got := b.modes(); len(got) != 3 || got[0] != "commit " || got[1] != "worktree " || got[2] != "commit main" {
		t.Errorf("%q", got)
	}
}

// TestOtherModeFindsNothing: who looks at what is committed finds nothing of
// what is known of the files, before the workspace has its mode.
func TestOtherModeFindsNothing(t *testing.T) {
	b := setUp(t, files)
	stop := b.run()
	b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"])
	stop()
	b.options = repo.Options{Commit: true}
	b.open()
	b.looks("claim", "")
	b.finds()
	if known, looks, err := b.Modes(t.Context(), b.ws); err != nil || known != (domain.Mode{}) || !looks.Commit {
		t.Errorf("%+v %+v %v", known, looks, err)
	}
	b.must(b.as("ada"), commands.CheckRepository{}) // takes the mode
	b.finds()
	if got := b.modes(); len(got) != 1 {
		t.Errorf("%q", got)
	}
}
