package process_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
)

// recovery asks what lies there and what can be done.
func (b *bench) recovery(tx string) (r wire.Recovery) {
	b.t.Helper()
	for _, o := range b.Ops() {
		if o.Name != "transaction.recovery" {
			continue
		}
		v, err := o.Run(b.t.Context(), op.Call{Who: b.who["ada"], Workspace: b.ws}, []byte(`{"transaction_id":"`+tx+`"}`))
		if err != nil {
			b.t.Fatal(err)
		}
		return v.(wire.Recovery)
	}
	b.t.Fatal("no op")
	return r
}

// says checks a recovery: the state of the repository, the journal, and the
// actions that are possible. Each of those has its call, the others a reason.
func (b *bench) says(tx, repository, journal, possible string) wire.Recovery {
	b.t.Helper()
	r := b.recovery(tx)
	var can []string
	for _, a := range r.Actions {
		if a.Why == "" || a.Possible != (a.Call != nil) || a.Call != nil && len(a.Call.Args) == 0 {
			b.t.Errorf("%+v", a)
		}
		if a.Possible {
			can = append(can, a.Action)
		}
	}
	if got := strings.Join(can, " "); r.Repository != repository || r.Journal != journal || got != possible || len(r.Actions) != 7 {
		j, _ := json.Marshal(r)
		b.t.Errorf("%s\nwant %s, %s, possible: %s", j, repository, journal, possible)
	}
	return r
}

// call does what an action's call says, as a person who may.
func (b *bench) call(r wire.Recovery, action string) {
	b.t.Helper()
	for _, a := range r.Actions {
		if a.Action != action || a.Call == nil {
			continue
		}
		for _, o := range b.Ops() {
			if o.Name != a.Call.Op {
				continue
			}
			args := map[string]any{}
			if strings.HasPrefix(action, "apply") {
				args["wait_seconds"] = 0
			}
			for k, v := range a.Call.Args {
				args[k] = v
			}
			in, err := json.Marshal(args)
			if err != nil {
				b.t.Fatal(err)
			}
			by := b.as("ada")
			if _, err = o.Run(b.t.Context(), op.Call{Who: by.Who, Workspace: b.ws, Key: by.Key, Request: "r"}, in); err != nil && err.Error() != unshown {
				b.t.Fatalf("%s: %v", action, err)
			}
			return
		}
	}
	b.t.Fatalf("%s has no call", action)
}

const unshown = "this bench has no views"

// broken makes the journal of a fails-to-be transaction unreadable: the worker
// dies at a step and what it left is damaged.
func (b *bench) broken(tx string) {
	b.t.Helper()
	dir := filepath.Join(b.root, ".roundtable", "tx", tx+".1")
	err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, "journal"), []byte("cut"), 0o600),
		os.WriteFile(filepath.Join(dir, "000000"), []byte("of somebody else\n"), 0o644))
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestRecoveryStates: what is said of a transaction in each state, with the
// files in each; and that what is said to be possible is.
func TestRecoveryStates(t *testing.T) {
	b := setUp(t, files)
	b.Show = func(context.Context, string, string, string, int64) (any, int64, error) {
		return nil, 0, errors.New(unshown)
	}
	p := b.ready(first)
	tx := b.must(b.as("ada"), commands.OpenTransaction{Proposal: p}).IDs["transaction"]
	b.says(tx, "before", "none", "apply cancel")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(b.root, "a.txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("elsewhere\n")
	b.says(tx, "diverged", "none", "apply cancel")
	write(files["a.txt"])
	b.call(b.says(tx, "before", "none", "apply cancel"), "cancel")
	b.call(b.says(tx, "before", "none", "apply_again"), "apply_again")
	got, err := b.Transaction(t.Context(), openTransaction(t, b))
	if err != nil || got.State != domain.TxApplying {
		t.Fatalf("%+v, %v", got, err)
	}
	b.says(got.ID, "before", "none", "")
	b.broken(got.ID) // as if the process had died in it
	stop := b.run()
	defer stop()
	if got = b.ended(got.ID); got.Failure.Code != domain.NeedsAttention {
		t.Fatalf("%+v", got)
	}
	r := b.says(got.ID, "before", "attention", "resolve")
	if _, err := b.Do(t.Context(), b.as("ada"), commands.RetryTransaction{Transaction: got.ID}); fault.CodeOf(err) != domain.NeedsAttention {
		t.Errorf("retry: %v", err)
	}
	b.call(r, "resolve")
	b.await("the resolving", func() bool {
		got, err = b.Transaction(t.Context(), got.ID)
		return err == nil && got.Resolved.Transaction != ""
	})
	if k := got.Resolved.Kept; len(k) != 1 || got.Resolved.Repository != "before" {
		t.Errorf("%+v", got.Resolved)
	} else if kept, err := b.world.Kept(t.Context(), k[0].SHA256); err != nil || string(kept) != "of somebody else\n" {
		t.Errorf("%q, %v", kept, err)
	}
	b.call(b.says(got.ID, "before", "none", "retry apply_again cancel"), "retry")
	b.call(b.says(got.ID, "before", "none", "apply cancel"), "apply")
	if got = b.ended(got.ID); got.State != domain.TxApplied || got.Attempt != 2 {
		t.Fatalf("%+v", got)
	}
	b.tidied(got.ID)
	b.says(got.ID, "after", "none", "compensate")
	write("elsewhere\n")
	b.says(got.ID, "diverged", "none", "")
	write(files["a.txt"])
	b.says(got.ID, "before", "none", "")
}

// TestRecoveryWithoutFolder: of what cannot be looked at nothing is said.
func TestRecoveryWithoutFolder(t *testing.T) {
	b := setUp(t, files)
	tx := b.must(b.as("ada"), commands.OpenTransaction{Proposal: b.ready(first)}).IDs["transaction"]
	away := b.root + ".away"
	if err := errors.Join(os.Rename(b.root, away), b.world.Close()); err != nil {
		t.Fatal(err)
	}
	if r := b.says(tx, "unknown", "unknown", "apply cancel"); r.Why == "" || len(r.Paths) > 0 {
		t.Errorf("%+v", r)
	}
	if err := os.Rename(away, b.root); err != nil {
		t.Fatal(err)
	}
	b.says(tx, "before", "none", "apply cancel")
}

// TestCommittedUnreported: of an attempt that is in the repository and not yet
// in the log, the journal says so.
func TestCommittedUnreported(t *testing.T) {
	b := setUp(t, files)
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]
	config := b.Config
	config.Log = mute{b.store}
	dying := b.apply
	dying.Handler = commands.New(config)
	got, err := b.Transaction(t.Context(), tx)
	if err != nil {
		t.Fatal(err)
	}
	if err := dying.Worker().Do(t.Context(), b.jobOf(got.Request)); err == nil {
		t.Fatal("the report should fail")
	}
	b.says(tx, "after", "committed", "")
	stop := b.run()
	defer stop()
	if got = b.ended(tx); got.State != domain.TxApplied {
		t.Errorf("%+v", got)
	}
	b.tidied(tx)
	b.says(tx, "after", "none", "compensate")
}

// TestRoomMade: where somebody makes room and the rest goes back by itself, the
// person's word is only that.
func TestRoomMade(t *testing.T) {
	b := setUp(t, files)
	tx := b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(first)}).IDs["transaction"]
	b.broken(tx)
	stop := b.run()
	defer stop()
	if got := b.ended(tx); got.Failure.Code != domain.NeedsAttention {
		t.Fatalf("%+v", got)
	}
	if err := os.RemoveAll(filepath.Join(b.root, ".roundtable", "tx", tx+".1")); err != nil {
		t.Fatal(err)
	}
	b.says(tx, "before", "none", "resolve")
	b.must(b.as("ada"), commands.ResolveTransaction{Transaction: tx, Reason: "it went back"})
	if got, err := b.Transaction(t.Context(), tx); err != nil || got.Resolved.Repository != "before" || got.Resolving.Transaction != "" {
		t.Errorf("%+v, %v", got, err)
	}
	b.says(tx, "before", "none", "retry apply_again cancel")
}

// tidied waits until the job of an apply has removed what it had kept.
func (b *bench) tidied(tx string) {
	b.t.Helper()
	timeout := time.After(time.Minute)
	for {
		queued := b.store.Queued()
		if b.recovery(tx).Journal == "none" {
			return
		}
		select {
		case <-queued:
		case <-timeout:
			b.t.Fatal("waited too long for the end of the job of ", tx)
		}
	}
}

// jobOf makes the job of an apply as the manager would.
func (b *bench) jobOf(r events.TransactionApplyRequested) (j eventlog.Job) {
	b.t.Helper()
	data, err := json.Marshal(r)
	if err != nil {
		b.t.Fatal(err)
	}
	j.ID, j.Kind, j.Data, j.Attempt = "JOB.apply.0", "apply", data, 1
	j.Meta = events.Meta{Workspace: b.ws, Actor: r.By, Correlation: "r"}
	return j
}

// TestRecoveryTriesCompensation: taking back is offered only where it would
// not be refused, though every path is as the transaction left it.
func TestRecoveryTriesCompensation(t *testing.T) {
	b := setUp(t, files)
	stop := b.run()
	defer stop()
	tx := b.applied(first)
	b.says(tx, "after", "none", "compensate")
	if err := os.WriteFile(filepath.Join(b.root, ".gitattributes"), []byte("a.txt filter=x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r := b.says(tx, "after", "none", "")
	for _, a := range r.Actions {
		if a.Action == "compensate" && !strings.HasPrefix(a.Why, "apply.attr_filter: ") {
			t.Errorf("%+v", a)
		}
	}
	if _, err := b.Do(t.Context(), b.as("ada"), commands.Compensate{Transaction: tx}); fault.CodeOf(err) != "apply.attr_filter" {
		t.Error(err)
	}
}
