package process_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/attest"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/sqlite"
	"roundtable/internal/wire"
	"roundtable/projections"
)

// A tree is files by path: "x" before the text of a program, "l" before the
// text of a link, "-" before that of any other file.
type tree map[string]string

// lay makes the tree of the bench's folder this one.
func (b *bench) lay(t tree) {
	b.t.Helper()
	names, err := os.ReadDir(b.root)
	for _, n := range names {
		if n.Name() != ".git" && n.Name() != ".roundtable" {
			err = errors.Join(err, os.RemoveAll(filepath.Join(b.root, n.Name())))
		}
	}
	for p, text := range t {
		full := filepath.Join(b.root, p)
		err = errors.Join(err, os.MkdirAll(filepath.Dir(full), 0o755))
		switch text[0] {
		case 'l':
			err = errors.Join(err, os.Symlink(text[1:], full))
		case 'x':
			err = errors.Join(err, os.WriteFile(full, []byte(text[1:]), 0o755))
		default:
			err = errors.Join(err, os.WriteFile(full, []byte(text[1:]), 0o644))
		}
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

// lies spells the tree of the bench's folder, with its folders.
func (b *bench) lies() string {
	b.t.Helper()
	var out []string
	err := filepath.WalkDir(b.root, func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(path, b.root+"/")
		if err != nil || path == b.root {
			return err
		}
		if rel == ".git" || rel == ".roundtable" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil || d.IsDir() {
			out = append(out, rel+"/")
			return err
		}
		if d.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			out = append(out, fmt.Sprintf("%s -> %q", rel, to))
			return err
		}
		data, err := os.ReadFile(path)
		out = append(out, fmt.Sprintf("%s %v %q", rel, info.Mode().Perm()&0o111 != 0, data))
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return strings.Join(out, "\n")
}

func (b *bench) git(args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@localhost", "-c", "core.autocrlf=false"}, args...)...)
	cmd.Dir = b.root
	out, err := cmd.Output()
	if err != nil {
		b.t.Fatal(args, err)
	}
	return string(out)
}

// change is git's patch from one tree to another; the first lies there then.
func (b *bench) change(from, to tree) string {
	b.t.Helper()
	b.lay(to)
	b.git("add", "-A")
	after := strings.TrimSpace(b.git("write-tree"))
	b.lay(from)
	b.git("add", "-A")
	before := strings.TrimSpace(b.git("write-tree"))
	return b.git("diff", "--binary", "--full-index", "-M", before, after)
}

// applied applies a patch, and lets go of the claim it needed.
func (b *bench) applied(patch string) (tx string) {
	b.t.Helper()
	tx = b.must(b.as("ada"), commands.ApplyPatch{Proposal: b.ready(patch)}).IDs["transaction"]
	if got := b.ended(tx); got.State != domain.TxApplied {
		b.t.Fatalf("%+v", got.Failure)
	}
	b.must(b.as("coder"), commands.ReleaseClaim{Claim: b.wide()})
	return tx
}

// takenBack takes a transaction back and applies that.
func (b *bench) takenBack(tx string) (back string, r events.ProposalRevisionAttached) {
	b.t.Helper()
	id := b.must(b.as("ada"), commands.Compensate{Transaction: tx}).IDs["proposal"]
	b.must(b.as("critic"), commands.CastVote{Proposal: id, Vote: "approve", Reason: "fine"})
	back = b.must(b.as("bob"), commands.ApplyPatch{Proposal: id}).IDs["transaction"]
	if got := b.ended(back); got.State != domain.TxApplied {
		b.t.Fatalf("%+v", got.Failure)
	}
	return back, b.attached(id)
}

// attached is the newest revision of a proposal.
func (b *bench) attached(proposal string) (last events.ProposalRevisionAttached) {
	b.t.Helper()
	for r, err := range eventlog.Records(b.t.Context(), b.store, 0, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if e, err := r.Event(); err == nil {
			if a, ok := e.Payload.(events.ProposalRevisionAttached); ok && a.Proposal == proposal {
				last = a
			}
		}
	}
	return last
}

// refusedBack takes a transaction back, which must be refused.
func (b *bench) refusedBack(tx, code string) *fault.Error {
	b.t.Helper()
	_, err := b.Do(b.t.Context(), b.as("ada"), commands.Compensate{Transaction: tx})
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || f.Code != code {
		b.t.Fatalf("%v, want %s", err, code)
	}
	return f
}

// canBeTakenBack is what the recovery endpoint says of it.
func (b *bench) canBeTakenBack(tx string) (can bool, why string) {
	b.t.Helper()
	ops := b.Ops()
	i := slices.IndexFunc(ops, func(o op.Op) bool { return o.Name == "transaction.recovery" })
	v, err := ops[i].Run(b.t.Context(), op.Call{Who: b.who["ada"], Workspace: b.ws}, []byte(`{"transaction_id":"`+tx+`"}`))
	if err != nil {
		b.t.Fatal(err)
	}
	for _, a := range v.(wire.Recovery).Actions {
		if a.Action == "compensate" {
			can, why = a.Possible, a.Why
		}
		if a.Possible != (a.Call != nil) {
			b.t.Errorf("%+v", a)
		}
	}
	return can, why
}

// told gives the bench's commands what views know.
func (b *bench) told() (stop func()) {
	b.t.Helper()
	db, err := sqlite.OpenViews(b.t.Context(), filepath.Join(b.dir, "views.db"))
	if err != nil {
		b.t.Fatal(err)
	}
	v := projections.New(b.store, db, nil)
	ctx, cancel := context.WithCancel(b.t.Context())
	done := make(chan error, 1)
	go func() { done <- v.Run(ctx) }()
	config, r := b.Config, projections.NewReader(v, time.Now, projections.Limits{Wait: 20 * time.Second})
	config.Later, config.Show, config.Signer = r.Later, r.Show, attest.NewRing(filepath.Join(b.dir, "keys"))
	b.Handler = commands.New(config)
	b.Handler.OpenProposals, b.Handler.ForeignChanges = r.OpenProposals, r.ForeignChanges
	return func() {
		cancel()
		if err := errors.Join(<-done, db.Close()); err != nil {
			b.t.Error(err)
		}
	}
}

// write changes one file by hand.
func (b *bench) write(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.root, name), []byte(text), 0o644); err != nil {
		b.t.Fatal(err)
	}
}
