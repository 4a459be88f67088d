package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/attest"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

// againstLog holds a receipt against an export of the history: the whole of it
// must be one unbroken chain, the event must stand where the receipt has it with
// the same hash, and the history must give the same receipt. What does not hold
// is an *attest.Refusal.
func againstLog(ctx context.Context, name string, r attest.Receipt) error {
	f, err := os.Open(name)
	if err != nil {
		return fault.Errorf(fault.Invalid, "invalid_flag", "--log: %v", err)
	}
	defer f.Close()
	var past attest.History
	report, err := eventlog.Verify(ctx, func(yield func(events.Record, error) bool) {
		for rec, err := range eventlog.Import(f) {
			if err == nil {
				err = concerned(&past, rec, r)
			}
			if !yield(rec, err) {
				return
			}
		}
	}, eventlog.Point{})
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return &attest.Refusal{Class: attest.LogBroken, Detail: err.Error()}
	case !report.OK:
		return &attest.Refusal{Class: attest.LogBroken, Detail: fmt.Sprintf("position %d of the export is wrong (%s): %s", report.FirstBad, report.Reason, report.Detail)}
	case report.Head.Position < r.Log.Position:
		return &attest.Refusal{Class: attest.LogBroken, Detail: fmt.Sprintf("the export ends at position %d, and the receipt is about position %d", report.Head.Position, r.Log.Position)}
	case past.Applied.Hash != r.Log.Hash:
		return &attest.Refusal{Class: attest.LogDiffers, Detail: fmt.Sprintf("position %d of the export has the hash %s, and the receipt has %s", r.Log.Position, past.Applied.Hash, r.Log.Hash)}
	}
	told, err := attest.Of(past)
	if err != nil {
		return &attest.Refusal{Class: attest.LogDiffers, Detail: err.Error()}
	}
	if d := attest.Differences(told, r); len(d) > 0 {
		return &attest.Refusal{Class: attest.LogDiffers, Detail: fmt.Sprintf("the history says something else of %v", d)}
	}
	return nil
}

// concerned keeps a row that the receipt is made from.
func concerned(past *attest.History, rec events.Record, r attest.Receipt) error {
	if rec.Position == r.Log.Position {
		past.Applied = rec
	}
	transaction, proposal := events.TransactionStream(r.Transaction), events.ProposalStream(r.Proposal)
	if rec.Stream != transaction && rec.Stream != proposal && rec.Stream != events.WorkspacesStream {
		return nil
	}
	e, err := rec.Event()
	if err != nil {
		return fmt.Errorf("position %d: %w", rec.Position, err)
	}
	switch rec.Stream {
	case transaction:
		past.Transaction = append(past.Transaction, e)
	case proposal:
		past.Proposal = append(past.Proposal, e)
	}
	if w, ok := e.Payload.(events.WorkspaceAdded); ok && w.Workspace == r.Workspace {
		past.Workspace = w
	}
	return nil
}

// A txRepository is what lies in a folder beside what a receipt says. Later
// work changes it: nothing here makes a receipt true or false.
type txRepository struct {
	TreeObject string   `json:"tree_object"`        // there or not_there; not_applicable outside Git
	Commit     string   `json:"commit"`             // there or not_there; not_applicable where the receipt has none
	TreeNow    string   `json:"tree_now,omitempty"` // of the folder as it lies
	Tree       string   `json:"tree"`               // as_after, as_before or other
	Changed    []string `json:"changed_paths"`      // that are not as the receipt says they became
	Problem    string   `json:"problem,omitempty"`  // why it could not be looked at
}

// beside looks at a folder, and changes nothing in it.
func beside(ctx context.Context, dir string, r attest.Receipt) *txRepository {
	out := &txRepository{Changed: []string{}}
	if err := out.look(ctx, dir, r); err != nil {
		return &txRepository{TreeObject: "not_applicable", Commit: "not_applicable", Tree: "other", Changed: []string{}, Problem: err.Error()}
	}
	return out
}

func (o *txRepository) look(ctx context.Context, dir string, r attest.Receipt) (err error) {
	scratch, err := os.MkdirTemp("", "roundtable-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	space, err := repo.Open(ctx, dir, repo.Options{UserEnv: os.Environ(), Scratch: scratch})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, space.Close()) }()
	states := map[string]patch.State{}
	for _, f := range r.Files {
		states[f.Path] = patch.State{Kind: patch.Kind(f.After.Kind), Mode: f.After.Mode, SHA256: f.After.SHA256, Size: f.After.Size}
	}
	differs := space.Changed
	if r.Commit != nil {
		differs = space.ChangedFromKept
	}
	changed, err := differs(ctx, states)
	if err != nil {
		return err
	}
	o.Changed = append(o.Changed, changed...)
	now, err := space.Candidate(ctx, nil)
	if err != nil {
		return err
	}
	switch o.TreeNow = now.ID; o.TreeNow {
	case r.After.Tree:
		o.Tree = "as_after"
	case r.Before.Tree:
		o.Tree = "as_before"
	default:
		o.Tree = "other"
	}
	return o.objects(ctx, space, r)
}

// objects asks whether Git has what the receipt names.
func (o *txRepository) objects(ctx context.Context, space *repo.Workspace, r attest.Receipt) error {
	o.TreeObject, o.Commit = "not_applicable", "not_applicable"
	if !space.Git() {
		return nil
	}
	is := map[bool]string{true: "there", false: "not_there"}
	there, err := space.HasTree(ctx, r.After.Tree)
	if err != nil {
		return err
	}
	o.TreeObject = is[there]
	if r.Commit == nil {
		return nil
	}
	_, err = space.ResolveCommit(ctx, r.Commit.ID)
	unknown := fault.CodeOf(err) == "unknown_base"
	if o.Commit = is[!unknown]; unknown {
		return nil
	}
	return err
}

// rows tells it to a person.
func (o *txRepository) rows(row func(name, format string, args ...any)) {
	if o.Problem != "" {
		row("repository", "could not be looked at: %s", patch.Show(o.Problem))
		return
	}
	row("repository", "tree now %s (%s), tree object of the receipt %s", o.TreeNow, o.Tree, o.TreeObject)
	if o.Commit != "not_applicable" {
		row("repository", "the commit of the receipt is %s", o.Commit)
	}
	row("repository", "%s of its paths are not as the receipt left them", strconv.Itoa(len(o.Changed)))
	for _, p := range o.Changed {
		row("", "%s", patch.Show(p))
	}
}
