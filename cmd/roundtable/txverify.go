package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"roundtable/internal/attest"
	"roundtable/internal/cli"
	"roundtable/internal/fault"
	"roundtable/internal/patch"
)

// txCmd is what can be asked about a transaction without a server.
type txCmd struct {
	Verify txVerifyCmd `cmd:"" help:"Check a signed receipt with a public key that you trust, without a server."`
}

type txVerifyCmd struct {
	File string   `arg:"" help:"The receipt, as roundtable tx receipt writes it; - is standard input." type:"path"`
	Key  []string `help:"A file with public keys in PEM that you trust; may be given more than once." type:"path" sep:"none"`
	Data string   `help:"A data folder whose public keys you trust." type:"path"`
	Log  string   `help:"An export of the history (roundtable log export) that must say the same." type:"path"`
	Repo string   `help:"A repository or folder to compare with the receipt; reported, and not required." type:"path"`
	JSON bool     `name:"json" help:"Print JSON."`
}

// A txVerdict is what the check of a receipt came to. What the receipt says is
// shown only once its signature holds.
type txVerdict struct {
	Outcome    string           `json:"outcome"` // verified or not_verified
	Class      string           `json:"class,omitempty"`
	Message    string           `json:"message,omitempty"`
	Key        string           `json:"key_id,omitempty"`
	Checks     []txCheck        `json:"checks"`
	Receipt    *attest.Receipt  `json:"receipt,omitempty"`
	Repository *txRepository    `json:"repository,omitempty"`
	Subjects   []attest.Subject `json:"subjects,omitempty"`
}

// A txCheck is one step of checking a receipt.
type txCheck struct {
	Check  string `json:"check"`  // signature, statement or log
	Status string `json:"status"` // passed, failed or skipped
	Detail string `json:"detail"`
}

// Run checks, and fails unless the receipt is verified.
func (c *txVerifyCmd) Run(ctx context.Context, t terminal) error {
	file, err := readBounded(t, c.File, attest.MaxEnvelope)
	if err != nil {
		return fault.Errorf(fault.Invalid, "invalid_flag", "the receipt cannot be read: %v", err)
	}
	trusted, err := c.trusted(t)
	if err != nil {
		return err
	}
	v, err := c.verify(ctx, file, trusted)
	if err != nil {
		return err
	}
	return v.print(t, c.JSON)
}

// readBounded reads a file, "-" for standard input, up to a byte more than it
// may have: what looks at it refuses it then.
func readBounded(t terminal, name string, most int64) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(io.LimitReader(t.in, most+1))
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	return data, errors.Join(err, f.Close())
}

// trusted reads the keys that the caller trusts.
func (c *txVerifyCmd) trusted(t terminal) (keys []attest.PublicKey, err error) {
	for _, name := range c.Key {
		data, err := readBounded(t, name, attest.MaxKeyFile)
		if err != nil {
			return nil, fault.Errorf(fault.Invalid, "invalid_flag", "--key: %v", err)
		}
		more, err := attest.ParsePublic(data)
		if err != nil {
			return nil, fault.Errorf(fault.Invalid, "invalid_flag", "--key %s: %v", name, err)
		}
		keys = append(keys, more...)
	}
	if c.Data != "" {
		more, err := attest.PublicFiles(keysFolder(c.Data))
		if err != nil {
			return nil, fault.Errorf(fault.Invalid, "invalid_flag", "--data: %v", err)
		}
		keys = append(keys, more...)
	}
	return keys, nil
}

// verify checks step by step, and stops at the first that fails.
func (c *txVerifyCmd) verify(ctx context.Context, file []byte, trusted []attest.PublicKey) (v txVerdict, err error) {
	v = txVerdict{Outcome: "not_verified", Checks: []txCheck{}}
	got, err := attest.Verify(file, trusted)
	if refused, ok := errors.AsType[*attest.Refusal](err); ok {
		step := "signature"
		if got.Key != "" {
			v.Key, step = got.Key, "statement"
			v.passed("signature", "by "+got.Key)
		}
		v.failed(step, refused)
		return v, nil
	}
	if err != nil {
		return v, err
	}
	v.Key, v.Receipt, v.Subjects = got.Key, &got.Statement.Predicate, got.Statement.Subject
	v.passed("signature", "by "+got.Key)
	v.passed("statement", fmt.Sprintf("%d files, and their digests before and after", len(v.Receipt.Files)))
	if c.Log == "" {
		v.Checks = append(v.Checks, txCheck{"log", "skipped", "no export of the history was given (--log)"})
	} else if err := againstLog(ctx, c.Log, *v.Receipt); err != nil {
		refused, ok := errors.AsType[*attest.Refusal](err)
		if !ok {
			return v, err
		}
		v.failed("log", refused)
		return v, nil
	} else {
		v.passed("log", fmt.Sprintf("position %d has this hash, and the history gives this receipt", v.Receipt.Log.Position))
	}
	if c.Repo != "" {
		v.Repository = beside(ctx, c.Repo, *v.Receipt)
	}
	v.Outcome = "verified"
	return v, nil
}

func (v *txVerdict) passed(check, detail string) {
	v.Checks = append(v.Checks, txCheck{check, "passed", detail})
}

func (v *txVerdict) failed(check string, r *attest.Refusal) {
	v.Class, v.Message = string(r.Class), r.Detail
	v.Checks = append(v.Checks, txCheck{check, "failed", r.Detail})
}

// print writes the verdict and says how the program ends.
func (v txVerdict) print(t terminal, asJSON bool) error {
	var err error
	if asJSON {
		err = json.NewEncoder(t.out).Encode(v)
	} else {
		_, err = io.WriteString(t.out, v.text())
	}
	switch {
	case err != nil:
		return fmt.Errorf("the answer cannot be written: %w", err)
	case v.Outcome != "verified":
		return exitError{Code: cli.Failed}
	}
	return nil
}

// text tells it to a person. Names are spelled so that none steers a terminal.
func (v txVerdict) text() string {
	var b strings.Builder
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("outcome", "%s", strings.ReplaceAll(v.Outcome, "_", " "))
	if v.Class != "" {
		row("class", "%s", v.Class)
	}
	for _, c := range v.Checks {
		detail, _ := patch.ShowLine([]byte(c.Detail))
		row(c.Check, "%s: %s", c.Status, detail)
	}
	r := v.Receipt
	if r == nil {
		return b.String()
	}
	row("transaction", "%s, attempt %d, of %s revision %d", r.Transaction, r.Attempt, r.Proposal, r.Revision)
	row("workspace", "%s (%s)", r.Workspace, r.WorkspaceKind)
	row("patch", "%s", r.PatchDigest)
	row("tree", "%s -> %s", r.Before.Tree, r.After.Tree)
	if r.Commit != nil {
		row("commit", "%s on %s", r.Commit.ID, patch.Show(r.Commit.Ref))
	}
	row("applied", "%s, asked for by %s", r.AppliedAt.Format("2006-01-02T15:04:05.999999999Z07:00"), r.RequestedBy)
	row("in the log", "position %d, event %s, hash %s", r.Log.Position, r.Log.Event, r.Log.Hash)
	for _, g := range r.Gates {
		row("gate", "%s: %s", g.Gate, g.Status)
	}
	for _, f := range r.Files {
		row("file", "%s: %s -> %s", patch.Show(f.Path), spellState(f.Before), spellState(f.After))
	}
	if v.Repository != nil {
		v.Repository.rows(row)
	}
	return b.String()
}

func spellState(s attest.State) string {
	if s.SHA256 == "" {
		return s.Kind
	}
	return s.Mode + " " + s.SHA256
}
