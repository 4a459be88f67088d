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
	"time"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
)

// many are n files of one line, and for each a patch that changes it.
func many(n int) (files map[string]string, patches []string) {
	files = map[string]string{}
	for i := range n {
		name := fmt.Sprintf("f%d.txt", i)
		files[name] = "old\n"
		patches = append(patches, fmt.Sprintf("diff --git a/%[1]s b/%[1]s\n--- a/%[1]s\n+++ b/%[1]s\n@@ -1 +1 @@\n-old\n+new\n", name))
	}
	return files, patches
}

// happened returns the events of types in the order of the log, as "type id".
func (b *bench) happened(types ...string) (all []string) {
	b.t.Helper()
	for r, err := range eventlog.Records(b.t.Context(), b.store, 0, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if slices.Contains(types, r.Type) {
			all = append(all, strings.TrimPrefix(string(r.Stream), "transaction/"))
		}
	}
	return all
}

// TestLine: while one transaction applies the others wait, and each is applied
// in the order in which it was asked for.
func TestLine(t *testing.T) {
	files, patches := many(8)
	b := setUp(t, files)
	var proposals, asked []string
	for _, p := range patches {
		proposals = append(proposals, b.ready(p))
	}
	for i, p := range proposals {
		tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p, Reason: fmt.Sprint("wish ", i)}).IDs["transaction"]
		asked = append(asked, tx)
		got, err := b.Transaction(t.Context(), tx)
		if want := map[bool]string{true: domain.TxApplying, false: domain.TxPending}[i == 0]; err != nil || got.State != want {
			t.Fatalf("%d is %s, %v", i, got.State, err)
		}
	}
	tree, err := b.Tree(t.Context(), b.ws)
	if err != nil || !slices.Equal(tree.Applying, asked[:1]) || !slices.Equal(tree.Waiting, asked[1:]) {
		t.Fatalf("%+v, %v", tree, err)
	}
	stop := b.run()
	defer stop()
	for i, tx := range asked {
		got := b.ended(tx)
		if got.State != domain.TxApplied || got.Request.By != b.who["ada"].ID || got.Request.Reason != fmt.Sprint("wish ", i) || got.Request.Request != "r" || len(got.Request.Votes) != 1 {
			t.Errorf("%d: %+v", i, got)
		}
		b.file(fmt.Sprintf("f%d.txt", i), "new\n")
	}
	if got := b.happened("transaction.apply_requested"); !slices.Equal(got, asked) {
		t.Errorf("begun in the order %v, asked %v", got, asked)
	}
	if got := b.happened("transaction.applied"); !slices.Equal(got, asked) {
		t.Errorf("applied in the order %v, asked %v", got, asked)
	}
	if tree, err = b.Tree(t.Context(), b.ws); err != nil || len(tree.Waiting)+len(tree.Applying) > 0 || tree.Left["f3.txt"].Transaction != asked[3] {
		t.Errorf("%+v, %v", tree, err)
	}
}

// TestTurnJudged: gates are judged when the turn comes, and what they refuse
// lets the next in. One that nobody asked to apply is staged.
func TestTurnJudged(t *testing.T) {
	files, patches := many(4)
	b := setUp(t, files)
	var p, tx []string
	for _, patch := range patches {
		p = append(p, b.ready(patch))
	}
	apply := func(i int) {
		tx = append(tx, b.must(b.as("ada"), commands.ApplyPatch{Proposal: p[i]}).IDs["transaction"])
	}
	apply(0)
	apply(1)
	tx = append(tx, b.must(b.as("ada"), commands.OpenTransaction{Proposal: p[2]}).IDs["transaction"])
	apply(3)
	b.must(b.as("critic"), commands.CastVote{Proposal: p[1], Vote: "revise", Reason: "no"})
	stop := b.run()
	defer stop()
	if got := b.ended(tx[1]); got.State != domain.TxFailed || got.Failure.Code != "gates_not_met" || !strings.Contains(got.Failure.Detail, "votes") {
		t.Errorf("%+v", got)
	}
	if got := b.ended(tx[3]); got.State != domain.TxApplied {
		t.Errorf("%+v", got)
	}
	if got, err := b.Transaction(t.Context(), tx[2]); err != nil || got.State != domain.TxStaged {
		t.Errorf("%+v, %v", got, err)
	}
	b.file("f1.txt", "old\n")
	if r, err := b.Do(t.Context(), b.as("ada"), commands.ApplyPatch{Proposal: p[1]}); err == nil {
		t.Errorf("%+v: the objection stands", r)
	}
}

// TestTurnCorrelated: whatever becomes of a transaction whose turn comes, and
// of those behind it, belongs to the request that asked for it.
func TestTurnCorrelated(t *testing.T) {
	files, patches := many(5)
	b := setUp(t, files)
	var p, tx []string
	for _, patch := range patches {
		p = append(p, b.ready(patch))
	}
	for i, proposal := range p {
		by := b.as("ada")
		by.Request = fmt.Sprint("request ", i)
		if i == 2 { // nobody asks for it to be applied
			tx = append(tx, b.must(by, commands.OpenTransaction{Proposal: proposal}).IDs["transaction"])
			continue
		}
		tx = append(tx, b.must(by, commands.ApplyPatch{Proposal: proposal}).IDs["transaction"])
	}
	b.must(b.as("critic"), commands.CastVote{Proposal: p[1], Vote: "revise", Reason: "no"})
	stop := b.run()
	defer stop()
	for i, want := range []string{0: domain.TxApplied, 1: domain.TxFailed, 3: domain.TxApplied, 4: domain.TxApplied} {
		if want == "" {
			continue
		}
		if got := b.ended(tx[i]); got.State != want {
			t.Errorf("%d: %+v", i, got)
		}
		es, err := b.store.Stream(t.Context(), events.TransactionStream(tx[i]), 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			if e.Correlation != fmt.Sprint("request ", i) {
				t.Errorf("%d: %T belongs to %q", i, e.Payload, e.Correlation)
			}
		}
	}
	if got, err := b.Transaction(t.Context(), tx[2]); err != nil || got.State != domain.TxStaged {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestLineFull: where as many wait as may, whatever would wait too is refused
// before anything is written; what waits keeps its place, and once there is
// room the same call is taken.
func TestLineFull(t *testing.T) {
	files, patches := many(6)
	b := setUp(t, files)
	b.Handler.MaxWaiting = 2
	var p []string
	for _, patch := range patches {
		p = append(p, b.ready(patch))
	}
	staged := b.must(b.as("ada"), commands.OpenTransaction{Proposal: p[4]}).IDs["transaction"]
	cancelled := b.must(b.as("ada"), commands.OpenTransaction{Proposal: p[5]}).IDs["transaction"]
	b.must(b.as("ada"), commands.CancelTransaction{Transaction: cancelled})
	applying := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p[0]}).IDs["transaction"]
	var waiting []string
	for _, proposal := range p[1:3] {
		waiting = append(waiting, b.must(b.as("ada"), commands.ApplyPatch{Proposal: proposal}).IDs["transaction"])
	}
	by := b.as("ada")
	full := map[string]func() error{
		"open": func() error {
			_, err := b.Do(t.Context(), b.as("ada"), commands.OpenTransaction{Proposal: p[3]})
			return err
		},
		"patch": func() error { _, err := b.Do(t.Context(), by, commands.ApplyPatch{Proposal: p[3]}); return err },
		"apply": func() error {
			_, err := b.Do(t.Context(), b.as("ada"), commands.ApplyTransaction{Transaction: staged})
			return err
		},
	}
	head, _, err := b.store.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range full {
		f, ok := errors.AsType[*fault.Error](call())
		if !ok || f.Code != "queue_full" || f.Kind != fault.Limit || f.Context["max_waiting"] != 2 || len(f.Next) == 0 {
			t.Errorf("%s: %+v", name, f)
		}
	}
	if now, _, err := b.store.Head(t.Context()); err != nil || now != head {
		t.Errorf("%d events were written, %v", now-head, err)
	}
	b.must(b.as("ada"), commands.ApplyPatch{Proposal: p[1]}) // it waits already
	if tree, err := b.Tree(t.Context(), b.ws); err != nil || !slices.Equal(tree.Waiting, waiting) {
		t.Errorf("%+v, %v", tree, err)
	}
	stop := b.run()
	defer stop()
	for _, tx := range append(waiting, applying) {
		if got := b.ended(tx); got.State != domain.TxApplied {
			t.Errorf("%+v", got)
		}
	}
	if got := b.ended(b.must(by, commands.ApplyPatch{Proposal: p[3]}).IDs["transaction"]); got.State != domain.TxApplied {
		t.Errorf("%+v", got)
	}
}

// TestStaleWhileWaiting: a revision that is attached while its transaction waits ends it.
func TestStaleWhileWaiting(t *testing.T) {
	files, patches := many(2)
	b := setUp(t, files)
	p0, p1 := b.ready(patches[0]), b.ready(patches[1])
	first := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p0}).IDs["transaction"]
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p1}).IDs["transaction"]
	b.must(b.as("coder"), commands.AttachPatch{Proposal: p1, Expected: 1, PatchInput: commands.PatchInput{Patch: strings.ReplaceAll(patches[1], "new", "newer")}})
	if got, err := b.Transaction(t.Context(), tx); err != nil || got.State != domain.TxFailed || got.Failure.Code != "stale_revision" {
		t.Errorf("%+v, %v", got, err)
	}
	if tree, err := b.Tree(t.Context(), b.ws); err != nil || len(tree.Waiting) > 0 {
		t.Errorf("%+v, %v", tree, err)
	}
	stop := b.run()
	defer stop()
	b.ended(first)
	if _, err := b.Do(t.Context(), b.as("ada"), commands.ApplyPatch{Proposal: p1}); err == nil {
		t.Error("the new revision has no vote")
	}
}

// TestWorkspacesApart: a workspace whose folder is away keeps its own line, and
// no other's.
func TestWorkspacesApart(t *testing.T) {
	files, patches := many(2)
	b := setUp(t, files)
	stuck := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(patches[0])}).IDs["transaction"]
	behind := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(patches[1])}).IDs["transaction"]
	home, here := b.ws, b.root
	other := filepath.Join(b.dir, "other")
	if err := errors.Join(os.Mkdir(other, 0o755), os.WriteFile(filepath.Join(other, "f0.txt"), []byte("old\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	b.ws, b.root = b.must(commands.System("", "ws2"), commands.AddWorkspace{Root: other}).IDs["workspace"], other
	b.join("coder2", "agent", "blue", "implementer")
	b.join("critic2", "agent", "red", "reviewer")
	b.join("ada2", "human", "", "operator")
	for _, who := range []string{"coder", "critic", "ada"} {
		b.who[who] = b.who[who+"2"]
	}
	p := b.ready(patches[0])
	if err := errors.Join(os.Rename(here, here+".away"), b.world.Close()); err != nil {
		t.Fatal(err)
	}
	b.apply.Slots = 2
	stop := b.run()
	defer stop()
	if got := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"]); got.State != domain.TxApplied {
		t.Errorf("%+v", got)
	}
	if got, err := b.Transaction(t.Context(), stuck); err != nil || got.State != domain.TxApplying {
		t.Errorf("%+v, %v", got, err)
	}
	b.ws, b.root = home, here
	if err := os.Rename(here+".away", here); err != nil {
		t.Fatal(err)
	}
	for _, tx := range []string{stuck, behind} {
		if got := b.ended(tx); got.State != domain.TxApplied {
			t.Errorf("%+v", got)
		}
	}
}

// old writes what the version before turns were kept wrote of a transaction
// that is applying.
func (b *bench) old(tx, proposal string) {
	b.t.Helper()
	ctx := b.t.Context()
	es, err := b.store.Stream(ctx, events.ProposalStream(proposal), 0)
	if err != nil {
		b.t.Fatal(err)
	}
	var p domain.Proposal
	for _, e := range es {
		p = p.Evolve(e.Payload)
	}
	r := p.Current()
	happened := []events.Payload{
		events.TransactionOpened{Transaction: tx, Workspace: b.ws, Proposal: proposal, Revision: 1, PatchDigest: r.PatchDigest, PathsDigest: r.Base.PathsDigest, By: b.who["ada"].ID},
		events.ProposalTransactionOpened{Proposal: proposal, Transaction: tx, Revision: 1},
		events.TransactionStaged{Transaction: tx, By: b.who["ada"].ID},
		events.TransactionApplyRequested{Transaction: tx, Workspace: b.ws, Proposal: proposal, Revision: 1, Attempt: 1, PatchDigest: r.PatchDigest, PathsDigest: r.Base.PathsDigest, By: b.who["ada"].ID},
	}
	_, err = b.store.Append(ctx, eventlog.Batch{Meta: events.Meta{Workspace: b.ws, Actor: b.who["ada"].ID, Command: "old " + tx}, Digest: []byte("d"), Answer: []byte("{}"), Happened: happened,
		Expect: map[events.Stream]int64{events.TransactionStream(tx): 0, events.ProposalStream(proposal): es[len(es)-1].Version}}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestUpgrade: transactions that were applying when the program was replaced
// by one that keeps turns come to their end, one after the other, before those
// that were asked for since; one that was staged can be applied.
func TestUpgrade(t *testing.T) {
	files, patches := many(3)
	b := setUp(t, files)
	b.old("TX-OLD1", b.ready(patches[0]))
	b.old("TX-OLD2", b.ready(patches[1]))
	p := b.ready(patches[2])
	stop := b.run()
	defer stop()
	for _, tx := range []string{"TX-OLD1", "TX-OLD2"} {
		if got := b.ended(tx); got.State != domain.TxApplied {
			t.Errorf("%+v", got)
		}
	}
	if got := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"]); got.State != domain.TxApplied {
		t.Errorf("%+v", got)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if tree, err := b.Tree(ctx, b.ws); err != nil || len(tree.Applying)+len(tree.Waiting) > 0 {
		t.Errorf("%+v, %v", tree, err)
	}
}

// TestLineAtOnce: of many applies at once one gets the turn.
func TestLineAtOnce(t *testing.T) {
	files, patches := many(8)
	b := setUp(t, files)
	calls := make(chan error)
	for _, patch := range patches {
		by, p := b.as("ada"), b.ready(patch)
		go func() {
			_, err := b.Do(t.Context(), by, commands.ApplyPatch{Proposal: p})
			calls <- err
		}()
	}
	for range patches {
		if err := <-calls; err != nil {
			t.Error(err)
		}
	}
	tree, err := b.Tree(t.Context(), b.ws)
	if err != nil || len(tree.Applying) != 1 || len(tree.Waiting) != 7 {
		t.Fatalf("%+v, %v", tree, err)
	}
	stop := b.run()
	defer stop()
	want := append(tree.Applying, tree.Waiting...)
	for _, tx := range want {
		b.ended(tx)
	}
	if got := b.happened("transaction.applied"); !slices.Equal(got, want) {
		t.Errorf("applied in the order %v, the line was %v", got, want)
	}
}
