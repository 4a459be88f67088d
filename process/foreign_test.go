package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/auth"
	"roundtable/internal/op"
	"roundtable/internal/repo"
	"roundtable/internal/wire"
)

// found lists the foreign changes of the history, each as "found_at path,path".
func (b *bench) found() (all []string) {
	b.t.Helper()
	for r, err := range eventlog.Records(b.t.Context(), b.store, 0, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		e, err := r.Event()
		if err != nil {
			b.t.Fatal(err)
		}
		if f, ok := e.Payload.(events.WorkspaceForeignChange); ok {
			var names []string
			for _, p := range f.Paths {
				names = append(names, p.Path)
			}
			all = append(all, f.FoundAt+" "+strings.Join(names, ","))
		}
	}
	return all
}

func (b *bench) finds(want ...string) {
	b.t.Helper()
	if got := b.found(); !slices.Equal(got, want) {
		b.t.Errorf("found %q, want %q", got, want)
	}
}

// ask asks an op.
func (b *bench) ask(name string, who string, in string) any {
	b.t.Helper()
	for _, o := range b.Ops() {
		if o.Name == name {
			v, err := o.Run(b.t.Context(), op.Call{Who: b.who[who], Workspace: b.ws}, []byte(in))
			if err != nil {
				b.t.Fatalf("%s: %v", name, err)
			}
			return v
		}
	}
	b.t.Fatalf("there is no %s", name)
	return nil
}

// gate returns one gate of a proposal.
func (b *bench) gate(proposal, name string) wire.Gate {
	b.t.Helper()
	g, ok := b.ask("proposal.explain", "ada", fmt.Sprintf(`{"proposal_id":%q}`, proposal)).(wire.Gates)
	if !ok {
		b.t.Fatal("no gates")
	}
	return g.Gates[slices.IndexFunc(g.Gates, func(g wire.Gate) bool { return g.Gate == name })]
}

const other = "diff --git a/b.txt b/b.txt\n--- a/b.txt\n+++ b/b.txt\n@@ -1 +1 @@\n-b\n+bb\n"

func propose(patch string) commands.CreateProposal {
	return commands.CreateProposal{Title: "t", Summary: "s", PatchInput: commands.PatchInput{Patch: patch}}
}

// TestEditBeforeValidate: an edit between a claim and a validation is recorded
// once, makes the claims on it stale, and blocks what touches it alone.
func TestEditBeforeValidate(t *testing.T) {
	b := setUp(t, files)
	claim := func(resource string) {
		b.must(b.as("coder"), commands.ClaimResource{Resource: resource, Type: "write"})
	}
	claim("file:a.txt")
	claim("file:b.txt")
	p := b.must(b.as("coder"), propose(first)).IDs["proposal"]
	q := b.must(b.as("coder"), propose(other)).IDs["proposal"]
	if g := b.gate(p, "claims"); g.Status != "passed" {
		t.Fatalf("%+v", g)
	}
	b.finds()
	b.write("a.txt", "one\ntwo\nthree\nfour\n")
	for range 3 {
		g := b.gate(p, "claims")
		if g.Status != "failed" || !strings.Contains(g.Because[0], "a.txt") || len(g.Next) != 1 || g.Next[0].Op != "resource.claim" {
			t.Fatalf("%+v", g)
		}
		b.ask("patch.validate", "coder", fmt.Sprintf(`{"proposal_id":%q}`, p))
	}
	b.finds("validate a.txt")
	if g := b.gate(q, "claims"); g.Status != "passed" {
		t.Errorf("another file's claim: %+v", g)
	}
	// The way out: claim again. The base has moved all the same.
	claim("file:a.txt")
	if g := b.gate(p, "claims"); g.Status != "passed" {
		t.Errorf("claimed again: %+v", g)
	}
	if g := b.gate(p, "base"); g.Status != "failed" {
		t.Errorf("%+v", g)
	}
	// The other: a revision that was made on the edit.
	b.write("a.txt", "one\ntwo\nthree\nfive\n")
	if g := b.gate(p, "claims"); g.Status != "failed" {
		t.Errorf("edited again: %+v", g)
	}
	b.must(b.as("coder"), commands.AttachPatch{Proposal: p, Expected: 1, PatchInput: commands.PatchInput{Patch: strings.Replace(first, "-1,3 +1,3", "-1,4 +1,4", 1) + " five\n"}})
	for _, name := range []string{"patch", "base", "claims"} {
		if g := b.gate(p, name); g.Status != "passed" {
			t.Errorf("%+v", g)
		}
	}
	b.finds("validate a.txt", "validate a.txt")
}

// TestEditBeforeClaim: whoever claims what was edited meanwhile finds it; those
// who had claimed it before are told.
func TestEditBeforeClaim(t *testing.T) {
	b := setUp(t, files)
	b.join("reader", auth.Agent, "green", auth.Implementer)
	stop := b.run()
	defer stop()
	if tx := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]); tx.State != domain.TxApplied {
		t.Fatalf("%+v", tx.Failure)
	}
	b.must(b.as("coder"), commands.ReleaseClaim{Claim: b.wide()})
	b.must(b.as("reader"), commands.ClaimResource{Resource: "directory:", Type: "read"})
	b.finds()
	b.write("a.txt", "edited\n")
	b.write("b.txt", "of nobody\n")
	b.must(b.as("coder"), commands.ClaimResource{Resource: "file:a.txt", Type: "write"})
	b.must(b.as("coder"), commands.ClaimResource{Resource: "file:a.txt", Type: "write"})
	b.must(b.as("coder"), commands.ClaimResource{Resource: "directory:", Type: "write"})
	b.finds("claim a.txt")
	if n := b.count("claim.became_stale"); n != 1 {
		t.Errorf("%d claims are stale", n)
	}
	if err := os.Remove(filepath.Join(b.root, "a.txt")); err != nil {
		t.Fatal(err)
	}
	b.must(b.as("coder"), commands.ClaimResource{Resource: "directory:", Type: "write"})
	b.finds("claim a.txt", "claim a.txt")
}

// count returns how many events of a type there are.
func (b *bench) count(name string) (n int) {
	b.t.Helper()
	for r, err := range eventlog.Records(b.t.Context(), b.store, 0, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if r.Type == name {
			n++
		}
	}
	return n
}

// TestOthersTransaction: what a transaction changes makes the claims of others
// on it stale, and not those of its authors.
func TestOthersTransaction(t *testing.T) {
	b := setUp(t, files)
	b.join("reader", auth.Agent, "green", auth.Implementer)
	stop := b.run()
	defer stop()
	b.must(b.as("reader"), commands.ClaimResource{Resource: "file:a.txt", Type: "read"})
	b.must(b.as("reader"), commands.ClaimResource{Resource: "file:b.txt", Type: "read"})
	if tx := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]); tx.State != domain.TxApplied {
		t.Fatalf("%+v", tx.Failure)
	}
	if n := b.count("claim.became_stale"); n != 1 {
		t.Errorf("%d claims are stale", n)
	}
	b.finds()
}

// TestEditBeforeApply: what changes between the gates and the worker fails the
// transaction, and is recorded with the failure.
func TestEditBeforeApply(t *testing.T) {
	b := setUp(t, files)
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]
	b.write("a.txt", "one\ntwo\nthree\nfour\n")
	stop := b.run()
	defer stop()
	if got := b.ended(tx); got.Failure.Code != "state.stale" || !slices.Equal(got.Failure.Paths, []string{"a.txt"}) {
		t.Errorf("%+v", got.Failure)
	}
	b.finds("apply a.txt")
	if n := b.count("claim.became_stale"); n != 1 {
		t.Errorf("%d claims are stale", n)
	}
	b.must(b.as("ada"), commands.CheckRepository{})
	b.finds("apply a.txt")
}

// TestEditDuringApply: an edit in the midst of an apply is kept and recorded.
func TestEditDuringApply(t *testing.T) {
	b := setUp(t, files)
	p := b.ready(first)
	var once sync.Once
	b.disturb = func(s repo.Step) {
		if s.Phase == repo.Moving && s.Path == "a.txt" {
			once.Do(func() { b.write("a.txt", "theirs\n") })
		}
	}
	stop := b.run()
	defer stop()
	tx := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"])
	if tx.Failure.Code != "state.third_party_edit" {
		t.Errorf("%+v", tx.Failure)
	}
	b.file("a.txt", "theirs\n")
	b.finds("apply_conflict a.txt")
	if g := b.gate(p, "claims"); g.Status != "failed" || !strings.Contains(g.Because[0], "a.txt") {
		t.Errorf("%+v", g)
	}
	b.finds("apply_conflict a.txt")
}

// TestLateWriter: what somebody who had the file open writes into the version
// that an apply has replaced is kept, and told with the path that it was of.
func TestLateWriter(t *testing.T) {
	b := setUp(t, files)
	p := b.ready(first)
	open, err := os.OpenFile(filepath.Join(b.root, "a.txt"), os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer open.Close()
	b.disturb = func(s repo.Step) {
		if s.Phase == repo.Finish && s.Name == "look" {
			if _, err := open.WriteString("theirs"); err != nil {
				t.Error(err)
			}
		}
	}
	stop := b.run()
	defer stop()
	if tx := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"]); tx.State != domain.TxApplied {
		t.Errorf("%+v", tx.Failure)
	}
	b.await("the finding", func() bool { return len(b.found()) > 0 })
	b.file("a.txt", "one\n2\nthree\n")
	b.finds("apply_conflict a.txt")
	b.must(b.as("ada"), commands.CheckRepository{})
	b.finds("apply_conflict a.txt")
}

// TestCheckRepository: a check finds what was edited of all that is known: what
// a transaction left, what a claim saw, and what an open proposal was made on.
func TestCheckRepository(t *testing.T) {
	b := setUp(t, map[string]string{"a.txt": files["a.txt"], "b.txt": "b\n", "c.txt": "c\n", "d.txt": "d\n", ".gitignore": "*.log\n"})
	stop := b.run()
	defer stop()
	if tx := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]); tx.State != domain.TxApplied {
		t.Fatalf("%+v", tx.Failure)
	}
	b.must(b.as("coder"), commands.ClaimResource{Resource: "file:c.txt", Type: "read"})
	b.must(b.as("coder"), commands.ClaimResource{Resource: "file:new.log", Type: "read"})
	p := b.must(b.as("coder"), propose(other)).IDs["proposal"]
	b.Handler.OpenProposals = func(context.Context, string) ([]string, error) { return []string{p}, nil }
	checked := func(n, changed string) {
		t.Helper()
		r := b.must(b.as("ada"), commands.CheckRepository{})
		if r.IDs["checked"] != n || r.IDs["found"] != changed {
			t.Errorf("%v, want %s of %s", r.IDs, changed, n)
		}
	}
	checked("4", "0")
	b.write("d.txt", "of nobody\n")
	b.write("new.log", "ignored\n")
	checked("4", "0")
	for _, name := range []string{"a.txt", "b.txt", "c.txt"} {
		b.write(name, "edited\n")
	}
	checked("4", "3")
	checked("4", "0")
	b.finds("doctor a.txt,b.txt,c.txt")
	// A commit of what lies there, and another branch of the same bytes, change nothing.
	b.git("add", ".")
	b.git("-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "second")
	b.git("checkout", "-qb", "other")
	checked("4", "0")
	b.git("checkout", "-q", "HEAD^") // other bytes: these of before the apply
	checked("4", "3")
	b.finds("doctor a.txt,b.txt,c.txt", "doctor a.txt,b.txt,c.txt")
}

// TestOwnApplyIsNotForeign: however applies, claims, validations and checks
// meet, what the service does itself is never taken for somebody else's.
func TestOwnApplyIsNotForeign(t *testing.T) {
	b := setUp(t, files)
	b.join("reader", auth.Agent, "green", auth.Implementer)
	stop := b.run()
	defer stop()
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	seen := b.must(b.as("coder"), propose(first)).IDs["proposal"]
	callers := map[string]func(commands.Caller) error{
		"check": func(by commands.Caller) error { _, err := b.Do(ctx, by, commands.CheckRepository{}); return err },
		"claim": func(by commands.Caller) error {
			r, err := b.Do(ctx, by, commands.ClaimResource{Resource: "file:a.txt", Type: "read"})
			if err == nil {
				by.Key += ".release"
				_, err = b.Do(ctx, by, commands.ReleaseClaim{Claim: r.IDs["claim"]})
			}
			return err
		},
		"validate": func(by commands.Caller) error {
			for _, o := range b.Ops() {
				if o.Name == "patch.validate" {
					_, err := o.Run(ctx, op.Call{Who: by.Who, Workspace: b.ws}, fmt.Appendf(nil, `{"proposal_id":%q}`, seen))
					return err
				}
			}
			return errors.New("no patch.validate")
		},
	}
	b.Handler.OpenProposals = func(context.Context, string) ([]string, error) { return []string{seen}, nil }
	for name, call := range callers {
		who := b.who["reader"]
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				by := commands.Caller{Who: who, Workspace: b.ws, Key: fmt.Sprint(name, n), Request: "r"}
				if err := call(by); err != nil && ctx.Err() == nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	rounds := 8
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		rounds = 200
	}
	old := "two"
	for n := range rounds {
		now := fmt.Sprint("two", n)
		patch := strings.NewReplacer("-two", "-"+old, "+2", "+"+now).Replace(first)
		if tx := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(patch)}).IDs["transaction"]); tx.State != domain.TxApplied {
			t.Fatalf("%+v", tx.Failure)
		}
		old = now
	}
	cancel()
	wg.Wait()
	b.finds()
}
