package process_test

import (
	"context"
	"errors"
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

var files = map[string]string{"a.txt": "one\ntwo\nthree\n", "b.txt": "b\n"}

const first = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
const second = "diff --git a/a.txt b/a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n 2\n-three\n+3\n"

func TestApply(t *testing.T) {
	b := setUp(t, files)
	p := b.ready(first)
	stop := b.run()
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"]
	if got := b.ended(tx); got.State != domain.TxApplied {
		t.Fatalf("%+v", got.Failure)
	}
	b.file("a.txt", "one\n2\nthree\n")
	want := []string{"transaction.opened", "transaction.staged", "transaction.phase_completed", "transaction.apply_requested"}
	for range 5 {
		want = append(want, "transaction.phase_completed")
	}
	want = append(want, "transaction.applied")
	if got := b.types(events.TransactionStream(tx)); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	stop()
	if left, err := filepath.Glob(filepath.Join(b.root, ".roundtable/tx/*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestSecondOnFirst: a proposal on top of one that is applied and not
// committed is tested and applied with it in place.
func TestSecondOnFirst(t *testing.T) {
	b := setUp(t, files)
	stop := b.run()
	defer stop()
	p1 := b.ready(first)
	b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: p1}).IDs["transaction"])
	p2 := b.ready(second, "git hash-object a.txt")
	b.must(b.as("coder"), commands.RequestReview{Proposal: p2})
	var run string
	b.await("the test", func() bool {
		for r, err := range eventlog.Records(t.Context(), b.store, 0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if r.Type == "test_run.finished" {
				run = strings.TrimPrefix(string(r.Stream), "test_run/")
			}
		}
		return run != ""
	})
	if r := b.tested(run); r.State != domain.Passed {
		t.Fatalf("%+v", r)
	}
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p2}).IDs["transaction"]
	got := b.ended(tx)
	if got.State != domain.TxApplied || len(got.Request.Tested) != 1 {
		t.Fatalf("%+v", got)
	}
	b.file("a.txt", "one\n2\n3\n")
}

// TestStale: what changes between the gates and the worker fails the
// transaction and loses nothing.
func TestStale(t *testing.T) {
	b := setUp(t, files)
	p := b.ready(first)
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"]
	if err := os.WriteFile(filepath.Join(b.root, "a.txt"), []byte("one\ntwo\nthree\nfour\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	stop := b.run()
	defer stop()
	got := b.ended(tx)
	if got.State != domain.TxFailed || got.Failure.Code != "state.stale" {
		t.Fatalf("%+v", got)
	}
	b.file("a.txt", "one\ntwo\nthree\nfour\n")
	if _, err := b.Do(t.Context(), b.as("ada"), commands.ApplyPatch{Proposal: p}); err == nil {
		t.Error("the base has moved and it may be applied")
	}
}

// TestDiesBeforeReport: a worker that dies after it changed the files and
// before it reported is run again by the next process; the log has one
// outcome, and the files are changed once.
func TestDiesBeforeReport(t *testing.T) {
	b := setUp(t, files)
	p := b.ready(first)
	died := make(chan struct{})
	w := b.apply.Worker()
	w.Do = func(ctx context.Context, j eventlog.Job) error {
		config := b.Config
		config.Log = mute{b.store}
		dying := b.apply
		dying.Handler = commands.New(config)
		err := dying.Worker().Do(ctx, j)
		if err == nil {
			t.Error("the report should fail")
		}
		close(died)
		<-ctx.Done()
		return err
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	b.must(b.as("ada"), commands.ApplyPatch{Proposal: p})
	enqueue(t, b)
	go func() { ended <- b.pool.Run(ctx, w) }()
	<-died
	b.file("a.txt", "one\n2\nthree\n")
	cancel()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	tx := openTransaction(t, b)
	if got, err := b.Transaction(t.Context(), tx); err != nil || got.State != domain.TxApplying {
		t.Fatalf("%+v, %v", got, err)
	}
	stop := b.run()
	defer stop()
	if got := b.ended(tx); got.State != domain.TxApplied {
		t.Fatalf("%+v", got.Failure)
	}
	if n := len(b.types(events.TransactionStream(tx))); n != 4+1+1+1 { // that it was recovered, and finish, which is all that it then goes through
		t.Errorf("%d events: %v", n, b.types(events.TransactionStream(tx)))
	}
	b.file("a.txt", "one\n2\nthree\n")
}

// mute is a log that takes nothing any more.
type mute struct{ eventlog.Store }

func (mute) Append(context.Context, eventlog.Batch, eventlog.Decide) (eventlog.Outcome, error) {
	return eventlog.Outcome{}, errors.New("the process is dying")
}

// enqueue writes the jobs of applies, as the manager would, and returns the
// newest.
func enqueue(t *testing.T, b *bench) (j eventlog.Job) {
	t.Helper()
	for r, err := range eventlog.Records(t.Context(), b.store, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Type != "transaction.apply_requested" {
			continue
		}
		e, err := r.Event()
		if err != nil {
			t.Fatal(err)
		}
		j = eventlog.Job{ID: r.ID + ".apply.0", Kind: "apply", Event: r.ID, Stream: r.Stream, Data: r.Data, Meta: e.Meta}
		if err := b.store.Enqueue(t.Context(), "process.apply", r.Position, []eventlog.Job{j}); err != nil {
			t.Fatal(err)
		}
	}
	return j
}

func openTransaction(t *testing.T, b *bench) (id string) {
	t.Helper()
	for r, err := range eventlog.Records(t.Context(), b.store, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Type == "transaction.opened" {
			id = strings.TrimPrefix(string(r.Stream), "transaction/")
		}
	}
	return id
}

// TestCompensate: taking back gives the bytes that were there, and is refused
// once somebody has worked on the same file.
func TestCompensate(t *testing.T) {
	b := setUp(t, files)
	stop := b.run()
	defer stop()
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]
	b.ended(tx)
	if err := os.WriteFile(filepath.Join(b.root, "a.txt"), []byte("mine\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Do(t.Context(), b.as("ada"), commands.Compensate{Transaction: tx}); err == nil || !strings.Contains(err.Error(), "a.txt") {
		t.Errorf("later work: %v", err)
	}
	if err := os.WriteFile(filepath.Join(b.root, "a.txt"), []byte("one\n2\nthree\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	b.must(b.as("coder"), commands.ReleaseClaim{Claim: b.wide()})
	r := b.must(b.as("ada"), commands.Compensate{Transaction: tx})
	if again := b.must(b.as("ada"), commands.Compensate{Transaction: tx}); again.IDs["proposal"] != r.IDs["proposal"] {
		t.Error("a repeat made another proposal")
	}
	b.must(b.as("critic"), commands.CastVote{Proposal: r.IDs["proposal"], Vote: "approve", Reason: "fine"})
	b.join("bob", "human", "", "operator")
	back := b.must(b.as("bob"), commands.ApplyPatch{Proposal: r.IDs["proposal"]}).IDs["transaction"]
	if got := b.ended(back); got.State != domain.TxApplied {
		t.Fatalf("%+v", got.Failure)
	}
	b.file("a.txt", files["a.txt"])
	if got, err := b.Transaction(t.Context(), tx); err != nil || got.CompensatedBy != back {
		t.Errorf("%+v, %v", got, err)
	}
}

// wide returns the id of the claim that ready took.
func (b *bench) wide() (id string) {
	for r, err := range eventlog.Records(b.t.Context(), b.store, 0, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if e, err := r.Event(); err == nil {
			if g, ok := e.Payload.(events.ClaimGranted); ok && g.Resource == "directory:" {
				id = g.Claim
			}
		}
	}
	return id
}

func TestTestRuns(t *testing.T) {
	b := setUp(t, map[string]string{"a.txt": "a\n", "Makefile": "ok:\n\t@echo all well\nbad:\n\t@echo broken; false\nlong:\n\t@echo begun; sleep 600\n"})
	b.join("tess", "human", "", "tester")
	stop := b.run()
	defer stop()
	start := func(command string) string {
		return b.must(b.as("tess"), commands.RunTest{Command: command, Timeout: 120}).IDs["test_run"]
	}
	if r := b.tested(start("make ok")); r.State != "passed" || r.Tree == "" {
		t.Errorf("%+v", r)
	}
	if r := b.tested(start("make bad")); r.State != "failed" {
		t.Errorf("%+v", r)
	}
	long := start("make long")
	b.await("its beginning", func() bool {
		r, err := b.TestRun(t.Context(), long)
		return err == nil && r.State == domain.Running
	})
	b.must(b.as("tess"), commands.CancelTest{TestRun: long})
	if r := b.tested(long); r.State != domain.Cancelled {
		t.Errorf("%+v", r)
	}
}

// TestInterrupted: a run that a process had begun when it stopped is not begun
// again.
func TestInterrupted(t *testing.T) {
	b := setUp(t, map[string]string{"Makefile": "long:\n\t@sleep 600\n"})
	b.join("tess", "human", "", "tester")
	stop := b.run()
	long := b.must(b.as("tess"), commands.RunTest{Command: "make long"}).IDs["test_run"]
	b.await("its beginning", func() bool {
		r, err := b.TestRun(t.Context(), long)
		return err == nil && r.State == domain.Running
	})
	began := time.Now()
	stop()
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("stopping took %v", took)
	}
	if r := b.tested(long); r.State != domain.Interrupted {
		t.Errorf("%+v", r)
	}
}

// TestFolderAway: while the folder cannot be looked at, nobody knows how an
// apply ended, and nothing is said; when it is back the apply goes on.
func TestFolderAway(t *testing.T) {
	b := setUp(t, files)
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]
	away := b.root + ".away"
	if err := errors.Join(os.Rename(b.root, away), b.world.Close()); err != nil {
		t.Fatal(err)
	}
	refused := make(chan error, 1)
	w := b.apply.Worker()
	w.Do = func(ctx context.Context, j eventlog.Job) error {
		err := b.apply.Worker().Do(ctx, j)
		if err != nil {
			refused <- err
		}
		return err
	}
	enqueue(t, b)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- b.pool.Run(ctx, w) }()
	if err := <-refused; fault.CodeOf(err) != "workspace_unavailable" {
		t.Errorf("%v", err)
	}
	if got, err := b.Transaction(t.Context(), tx); err != nil || got.State != domain.TxApplying {
		t.Errorf("%+v, %v", got, err)
	}
	if err := os.Rename(away, b.root); err != nil {
		t.Fatal(err)
	}
	if got := b.ended(tx); got.State != domain.TxApplied {
		t.Errorf("%+v", got.Failure)
	}
	b.file("a.txt", "one\n2\nthree\n")
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestStaleFence: an apply that was asked for under a claim does nothing once
// the claim has lapsed and somebody else holds the file.
func TestStaleFence(t *testing.T) {
	b := setUp(t, files)
	b.join("rival", "agent", "green", "implementer")
	b.must(b.as("coder"), commands.ClaimResource{Resource: "file:a.txt", Type: "write", TTL: 1})
	p := b.must(b.as("coder"), commands.CreateProposal{Title: "t", Summary: "s", PatchInput: commands.PatchInput{Patch: first}}).IDs["proposal"]
	b.must(b.as("critic"), commands.CastVote{Proposal: p, Vote: "approve", Reason: "fine"})
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: p}).IDs["transaction"]
	for end := time.Now().Add(time.Minute); ; {
		_, err := b.Do(t.Context(), b.as("rival"), commands.ClaimResource{Resource: "file:a.txt", Type: "write"})
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	stop := b.run()
	defer stop()
	if got := b.ended(tx); got.State != domain.TxFailed || got.Failure.Code != "stale_fence" {
		t.Errorf("%+v", got)
	}
	b.file("a.txt", files["a.txt"])
}

// TestPlannedTree: the tree that is reported is the one that was planned, also
// where it is not the one that Git would see afterwards.
func TestPlannedTree(t *testing.T) {
	b := setUp(t, files)
	stop := b.run()
	defer stop()
	if err := os.WriteFile(filepath.Join(b.root, "loose.txt"), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	patch := "diff --git a/.gitignore b/.gitignore\nnew file mode 100644\n--- /dev/null\n+++ b/.gitignore\n@@ -0,0 +1 @@\n+loose.txt\n"
	want, err := b.apply.World.Tree(t.Context(), b.root, []byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	tx := b.ended(b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(patch)}).IDs["transaction"])
	if tx.State != domain.TxApplied {
		t.Fatalf("%+v", tx.Failure)
	}
	for r, err := range eventlog.Records(t.Context(), b.store, 0, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if r.Type == "transaction.applied" && !strings.Contains(string(r.Data), `"after_tree":"`+want+`"`) {
			t.Errorf("%s, want %s", r.Data, want)
		}
	}
}
