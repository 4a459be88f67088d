package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/internal/auth"
	"roundtable/internal/repo"
	"roundtable/internal/wire"
)

// A deed is what a person does with Git in a workspace whose changes are
// committed, once a patch of a.txt is attached and before it is applied.
type deed struct {
	do      func(b *bench)
	foreign bool   // it changes what the branch has at a.txt, or which branch that is
	fails   string // the code with which an apply fails that was asked for before; "" is none
}

var deeds = map[string]deed{
	"commit": {func(b *bench) { b.write("a.txt", added); b.git("commit", "-qam", "hers") }, true, "state.stale"},
	"amend":  {func(b *bench) { b.write("a.txt", added); b.git("commit", "-qa", "--amend", "-m", "hers") }, true, "state.stale"},
	"switch": {func(b *bench) { b.git("checkout", "-q", "other") }, true, "apply.context_mismatch"},
	"reset":  {func(b *bench) { b.git("reset", "-q", "--hard", "HEAD^") }, true, "apply.context_mismatch"},
	"remove": {func(b *bench) { b.git("rm", "-q", "a.txt"); b.git("commit", "-qm", "gone") }, true, "apply.missing_file"},

	"amend the message":        {func(b *bench) { b.git("commit", "-q", "--amend", "-m", "hers") }, false, ""},
	"commit another file":      {func(b *bench) { b.write("c.txt", added); b.git("add", "c.txt"); b.git("commit", "-qm", "hers") }, false, ""},
	"edit":                     {func(b *bench) { b.write("a.txt", added) }, false, "state.dirty"},
	"stage":                    {func(b *bench) { b.write("a.txt", added); b.git("add", "a.txt") }, false, "state.dirty"},
	"edit another file":        {func(b *bench) { b.write("b.txt", added) }, false, ""},
	"switch to the same bytes": {func(b *bench) { b.git("checkout", "-q", "same") }, false, ""},
}

const added = "one\ntwo\nthree\nhers\n"

// committing is a bench whose changes are committed, with branches to switch to.
func committing(t *testing.T) *bench {
	t.Helper()
	b := setUpBy(t, map[string]string{"a.txt": "zero\n", "b.txt": "b\n", ".gitignore": ".roundtable\n"}, repo.Options{Commit: true})
	b.join("reader", auth.Agent, "green", auth.Implementer)
	b.write("a.txt", files["a.txt"])
	b.git("commit", "-qam", "second")
	b.git("branch", "same")
	b.git("checkout", "-qb", "other")
	b.write("a.txt", "of the other branch\n")
	b.git("commit", "-qam", "other")
	b.git("checkout", "-q", "main")
	return b
}

// hers is all of a person's that must stay as it is: the files, what is staged
// and where every branch is.
func (b *bench) hers() string {
	b.t.Helper()
	said := b.git("status", "--porcelain") + b.git("ls-files", "--stage") + b.git("for-each-ref", "--format=%(objectname) %(refname)") + b.git("rev-parse", "--symbolic-full-name", "HEAD")
	names, err := filepath.Glob(filepath.Join(b.root, "*.txt"))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			b.t.Fatal(err)
		}
		said += fmt.Sprintf("%s %q\n", name, text)
	}
	return said
}

// TestPersonBesideCommits: whatever a person does with Git between the attach
// and the apply, where changes are committed, is found where somebody looks and
// is told once, claims on what changed are stale, and nothing of it is lost.
func TestPersonBesideCommits(t *testing.T) {
	for name, d := range deeds {
		for _, at := range []string{"claim", "validate", "apply", "doctor"} {
			quick := name == "commit" || at == "apply" && slices.Contains([]string{"switch", "reset", "edit", "amend the message"}, name)
			if !quick && os.Getenv("ROUNDTABLE_LONG") == "" {
				continue
			}
			t.Run(name+", "+at, func(t *testing.T) {
				t.Parallel()
				b := committing(t)
				b.must(b.as("reader"), commands.ClaimResource{Resource: "file:a.txt", Type: "read"})
				p := b.ready(first)
				tx := ""
				if at == "apply" {
					tx = b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"]
				}
				d.do(b)
				before := b.hers()
				if at == "apply" {
					b.appliesBeside(tx, d, before)
				} else {
					b.looks(at, p)
				}
				want, stale := []string(nil), 0
				if d.foreign {
					want, stale = []string{at + " a.txt"}, 2
				} else if at == "apply" && d.fails == "" {
					stale = 1 // the reader's, by the transaction
				}
				b.finds(want...)
				if n := b.count("claim.became_stale"); n != stale {
					t.Errorf("%d claims are stale, want %d", n, stale)
				}
				if at != "apply" && b.hers() != before {
					t.Errorf("it was\n%s\nand is\n%s", before, b.hers())
				}
				b.looks("doctor", p)
				b.finds(want...) // once
				if d.foreign {
					if g := b.gate(p, "claims"); g.Status != "failed" || !strings.Contains(g.Because[0], "a.txt") {
						t.Errorf("%+v", g)
					}
				}
			})
		}
	}
}

// looks has somebody look at the files.
func (b *bench) looks(at, proposal string) {
	b.t.Helper()
	switch at {
	case "claim":
		b.must(b.as("ada"), commands.ClaimResource{Resource: "file:a.txt", Type: "read"})
	case "validate":
		b.ask("patch.validate", "coder", fmt.Sprintf(`{"proposal_id":%q}`, proposal))
	case "doctor":
		b.must(b.as("ada"), commands.CheckRepository{})
	}
}

// appliesBeside applies what was asked for before the deed: it fails and leaves
// all as it is, or comes on top of it.
func (b *bench) appliesBeside(tx string, d deed, before string) {
	b.t.Helper()
	stop := b.run()
	defer stop()
	got := b.ended(tx)
	if got.Failure.Code != d.fails || (got.State == domain.TxApplied) != (d.fails == "") {
		b.t.Errorf("%s %+v, want %q", got.State, got.Failure, d.fails)
	}
	after := b.hers()
	if d.fails != "" {
		if after != before {
			b.t.Errorf("it was\n%s\nand is\n%s", before, after)
		}
		return
	}
	b.file("a.txt", "one\n2\nthree\n")
	if b.git("rev-parse", "HEAD^") != got.Parent+"\n" || b.git("diff", "--name-only", "HEAD^", "HEAD") != "a.txt\n" {
		b.t.Errorf("the commit is not on what was there: %s", b.git("log", "--format=%H %P %s", "--all"))
	}
	for line := range strings.SplitSeq(before, "\n") {
		if !strings.Contains(line, "a.txt") && !strings.Contains(line, got.Ref) && !slices.Contains(strings.Split(after, "\n"), line) {
			b.t.Errorf("%q was there and is not:\n%s", line, after)
		}
	}
}

// TestRecoveryOfDirty: of a transaction that failed since its paths had work
// that is not committed, the recovery says how a retry becomes possible, and
// then it is.
func TestRecoveryOfDirty(t *testing.T) {
	for name, clean := range map[string]func(b *bench){
		"stash":   func(b *bench) { b.git("stash", "-q") },
		"restore": func(b *bench) { b.git("restore", "--staged", "--worktree", "a.txt") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := committing(t)
			b.Show = func(context.Context, string, string, string, int64) (any, int64, error) {
				return nil, 0, errors.New(unshown)
			}
			tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]
			b.write("a.txt", added)
			b.git("add", "a.txt")
			defer b.run()()
			if got := b.ended(tx); got.Failure.Code != "state.dirty" || !slices.Equal(got.Failure.Paths, []string{"a.txt"}) {
				t.Fatalf("%+v", got.Failure)
			}
			r := b.says(tx, "diverged", "none", "apply_again cancel")
			why := r.Actions[slices.IndexFunc(r.Actions, func(a wire.Action) bool { return a.Action == "retry" })].Why
			for _, want := range []string{"not committed", "git stash", "git restore", "if they are committed, attach a revision"} {
				if !strings.Contains(why, want) {
					t.Errorf("it says %q and not %q", why, want)
				}
			}
			clean(b)
			b.call(b.says(tx, "before", "none", "retry apply_again cancel"), "retry")
			b.call(b.says(tx, "before", "none", "apply cancel"), "apply")
			if got := b.ended(tx); got.State != domain.TxApplied || got.Attempt != 2 {
				t.Errorf("%+v", got)
			}
			b.file("a.txt", "one\n2\nthree\n")
			if name == "stash" && b.git("show", "stash@{0}:a.txt") != added {
				t.Error("what was stashed is lost")
			}
		})
	}
}
