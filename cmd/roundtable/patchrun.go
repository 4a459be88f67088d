package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"roundtable/internal/cli"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
	"roundtable/internal/repo"
)

type patchCheckCmd struct {
	Dir  string `help:"Git work tree or folder to judge the patch by." required:"" type:"existingdir"`
	File string `arg:"" help:"The patch; - is standard input." type:"existingfile"`
	Out  string `help:"Write the whole tree that the patch gives into this folder, which is empty or not there." type:"path"`
	engineFlags
}

// Run judges the patch.
func (c *patchCheckCmd) Run(ctx context.Context, t terminal) error {
	return verdictless(c.run(ctx, t))
}

func (c *patchCheckCmd) run(ctx context.Context, t terminal) (err error) {
	data, err := readPatch(ctx, t, c.File)
	if err != nil {
		return err
	}
	unsettled(t, c.Dir)
	x, err := c.look(ctx, c.Dir, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	v := newVerdict(x, data)
	if x.result != nil {
		if err := c.tree(ctx, x, &v); err != nil && !v.fail(err, false) {
			return err
		}
	}
	return v.print(t, c.JSON)
}

// tree names the whole tree, and writes it where that is asked for.
func (c *patchCheckCmd) tree(ctx context.Context, x fitting, v *verdict) error {
	var tree repo.CandidateTree
	var err error
	if c.Out != "" {
		tree, err = x.space.Materialise(ctx, x.result.Changes, c.Out)
	} else {
		tree, err = x.space.Candidate(ctx, x.result.Changes)
	}
	v.Tree, v.TreeKind = tree.ID, tree.Kind
	return err
}

// verdictless turns an error by which nothing is known about the patch into one
// that ends the program so: as a wrong command line, or with an unknown
// outcome.
func verdictless(err error) error {
	if _, told := errors.AsType[exitError](err); err == nil || told {
		return err
	}
	switch f, ok := errors.AsType[*fault.Error](err); {
	case ok && (f.Kind == fault.Invalid || f.Kind == fault.NotFound):
		return &fault.Error{Kind: fault.Invalid, Code: f.Code, Detail: f.Detail}
	case ok:
		return fault.Errorf(fault.Unavailable, "unknown_outcome", "%s", f.Detail)
	}
	return fault.Errorf(fault.Unavailable, "unknown_outcome", "no verdict on the patch: %v", err)
}

type patchApplyCmd struct {
	Dir  string `help:"Git work tree or folder to change." required:"" type:"existingdir"`
	File string `arg:"" help:"The patch; - is standard input." type:"existingfile"`
	Data string `help:"Data folder in whose blobs the files before and after are kept; default: .roundtable in DIR." type:"path"`
	engineFlags
}

// Run changes the folder.
func (c *patchApplyCmd) Run(ctx context.Context, t terminal) error {
	return verdictless(c.run(ctx, t))
}

func (c *patchApplyCmd) run(ctx context.Context, t terminal) (err error) {
	data, err := readPatch(ctx, t, c.File)
	if err != nil {
		return err
	}
	if err := c.settle(ctx, t); err != nil {
		v := newVerdict(fitting{}, data)
		if v.fail(err, true) {
			return v.print(t, c.JSON)
		}
		return err
	}
	x, err := c.look(ctx, c.Dir, data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.close()) }()
	v := newVerdict(x, data)
	if x.result == nil {
		return v.print(t, c.JSON)
	}
	tree, err := x.space.Candidate(ctx, x.result.Changes)
	if err == nil {
		v.Tree, v.TreeKind = tree.ID, tree.Kind
		err = c.write(ctx, t, x.result.Changes, &v)
	}
	if err != nil && !v.fail(err, true) {
		return err
	}
	return v.print(t, c.JSON)
}

// settle ends what an earlier apply left, so that the patch is judged by a
// tree that is whole.
func (c *patchApplyCmd) settle(ctx context.Context, t terminal) (err error) {
	left, err := os.ReadDir(filepath.Join(c.Dir, ".roundtable", "tx"))
	if len(left) == 0 {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return err
	}
	space, done, err := openToChange(ctx, c.Dir, c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	all, err := settled(ctx, space)
	for _, s := range all {
		fmt.Fprintf(t.err, "roundtable: an interrupted apply was settled: %s\n", s)
	}
	return err
}

// toolTx begins the ids of the tool's own transactions. Those of a service in
// the same folder are the service's to report and to finish.
const toolTx = "patch-"

// write applies the changes and clears what the writer kept for recovery: the
// answer is the report that it waits for.
func (c *patchApplyCmd) write(ctx context.Context, t terminal, changes []patch.Change, v *verdict) (err error) {
	space, done, err := openToChange(ctx, c.Dir, c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if err := hideState(space); err != nil {
		return err
	}
	v.Transaction = toolTx + ids()()
	receipt, err := space.Apply(ctx, v.Transaction, 1, repo.Plan{Changes: changes})
	if err != nil {
		m, asked := space.Outcome(v.Transaction, 1)
		if asked != nil || m == repo.Committed {
			return fault.Errorf(fault.Unavailable, "state.unknown", "whether the patch is applied is known after `roundtable patch recover`: %v", errors.Join(err, asked))
		}
		return err
	}
	for _, n := range receipt.Notes {
		v.note(patch.NoteKind(n.Note), n.Path, "")
	}
	switch err := space.Finish(context.WithoutCancel(ctx), v.Transaction, 1); {
	case fault.CodeOf(err) == "state.needs_attention":
		v.note("state.needs_attention", "", err.Error())
	case err != nil:
		fmt.Fprintf(t.err, "roundtable: the patch is applied; what was kept to take it back could not be removed (%v): roundtable patch recover --dir %s\n", err, c.Dir)
	}
	return nil
}

// note adds what is not known yet.
func (v *verdict) note(kind patch.NoteKind, path, detail string) {
	for _, n := range v.Notes {
		if n.Kind == kind && n.Path == patch.Show(path) {
			return
		}
	}
	v.Notes = append(v.Notes, patch.Note{Kind: kind, Path: patch.Show(path), Detail: detail})
}

// hideState has git ignore the state folder from within it, so that nothing of
// the repository's own is changed.
func hideState(space *repo.Workspace) error {
	if !space.Git() {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(space.Root(), ".roundtable", ".gitignore"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.WriteString("*\n")
	return errors.Join(err, f.Close())
}

type patchRecoverCmd struct {
	Dir     string `help:"Folder in which an apply was interrupted." required:"" type:"existingdir"`
	Data    string `help:"Data folder in whose blobs files are kept; default: .roundtable in DIR." type:"path"`
	Resolve string `help:"End this transaction, which needs attention, by keeping what now lies at its paths."`
	JSON    bool   `help:"Print JSON." name:"json"`
}

// recovery is what recover answers.
type recovery struct {
	Outcome      string       `json:"outcome"` // clean: nothing was left; recovered; needs_attention
	Transactions []settlement `json:"transactions"`
}

// A settlement is the end of one interrupted apply.
type settlement struct {
	Transaction string       `json:"transaction_id"`
	Attempt     int          `json:"attempt"`
	Applied     string       `json:"applied"` // yes, no; unknown while paths wait for a person
	Stuck       []repo.Stuck `json:"stuck"`
	Kept        []repo.Kept  `json:"kept"`
}

// String tells it to a person.
func (s settlement) String() string {
	what := map[string]string{"yes": "applied", "no": "taken back: what it had changed is as it was before", "unknown": "needs attention"}[s.Applied]
	out := s.Transaction + " " + what
	for _, p := range s.Stuck {
		out += fmt.Sprintf("; %s: %s", patch.Show(p.Path), p.Reason)
	}
	for _, k := range s.Kept {
		out += fmt.Sprintf("; a version of %s is kept as blob %s", patch.Show(k.Path), k.State.SHA256)
	}
	return out
}

// Run settles what was left.
func (c *patchRecoverCmd) Run(ctx context.Context, t terminal) error {
	return verdictless(c.run(ctx, t))
}

func (c *patchRecoverCmd) run(ctx context.Context, t terminal) (err error) {
	r := recovery{Outcome: "clean", Transactions: []settlement{}}
	if _, err := os.Lstat(filepath.Join(c.Dir, ".roundtable", "tx")); errors.Is(err, fs.ErrNotExist) {
		return r.print(t, c.JSON) // nothing was ever applied here
	}
	space, done, err := openToChange(ctx, c.Dir, c.Data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	all, err := settled(ctx, space)
	if err != nil {
		return err
	}
	if c.Resolve != "" {
		if all, err = resolved(ctx, space, c.Resolve, all); err != nil {
			return err
		}
	}
	r.Transactions = append(r.Transactions, all...)
	if len(r.Transactions) > 0 {
		r.Outcome = "recovered"
	}
	for _, s := range r.Transactions {
		if len(s.Stuck) > 0 {
			r.Outcome = "needs_attention"
		}
	}
	return r.print(t, c.JSON)
}

// resolved ends every attempt of a transaction that waits for a person, and
// returns all with that.
func resolved(ctx context.Context, space *repo.Workspace, id string, all []settlement) ([]settlement, error) {
	ended, newest := false, 1
	for i, s := range all {
		if s.Transaction != id {
			continue
		}
		newest = max(newest, s.Attempt)
		if s.Applied != "unknown" && len(s.Stuck) == 0 {
			continue
		}
		kept, err := space.Resolve(ctx, id, s.Attempt)
		if err != nil {
			return all, err
		}
		ended = true
		all[i].Stuck, all[i].Kept = []repo.Stuck{}, append([]repo.Kept{}, kept...)
	}
	if ended {
		return all, nil
	}
	_, err := space.Resolve(ctx, id, newest) // which says why there is nothing to decide
	return all, err
}

// settled recovers a folder, and finishes the tool's own transactions that
// were applied.
func settled(ctx context.Context, space *repo.Workspace) (all []settlement, err error) {
	found, err := space.Recover(ctx)
	for _, f := range found {
		s := settlement{Transaction: f.Tx, Attempt: f.Attempt, Applied: "no", Stuck: append([]repo.Stuck{}, f.Stuck...), Kept: append([]repo.Kept{}, f.Kept...)}
		switch f.Marker {
		case repo.Attention:
			s.Applied = "unknown"
		case repo.Committed:
			s.Applied = "yes"
			if strings.HasPrefix(f.Tx, toolTx) {
				if err2 := space.Finish(ctx, f.Tx, f.Attempt); fault.CodeOf(err2) != "state.needs_attention" {
					err = errors.Join(err, err2)
				}
			}
		}
		all = append(all, s)
	}
	return all, err
}

func (r recovery) print(t terminal, asJSON bool) error {
	var err error
	if asJSON {
		err = json.NewEncoder(t.out).Encode(r)
	} else {
		_, err = fmt.Fprintf(t.out, "outcome    %s\n", r.Outcome)
		for _, s := range r.Transactions {
			if err == nil {
				_, err = fmt.Fprintf(t.out, "settled    %s\n", s)
			}
		}
	}
	if err == nil && r.Outcome == "needs_attention" {
		return exitError{Code: cli.Failed}
	}
	return err
}
