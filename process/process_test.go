package process_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/oklog/ulid/v2"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/auth"
	"roundtable/internal/blob"
	"roundtable/internal/policy"
	"roundtable/internal/repo"
	"roundtable/internal/runner"
	"roundtable/internal/sandbox"
	"roundtable/internal/wire"
	"roundtable/internal/world"
	"roundtable/process"
)

func TestMain(m *testing.M) {
	if status, handled := runner.Main(os.Args); handled {
		os.Exit(status)
	}
	os.Exit(m.Run())
}

// A bench is a whole service but for its transports, on a real repository.
type bench struct {
	*commands.Handler
	t       *testing.T
	dir     string
	root    string
	store   *sqlitelog.Store
	world   *world.World
	apply   process.Applier
	test    process.Tester
	pool    process.Pool
	ws      string
	options repo.Options
	disturb func(repo.Step) // what somebody else does before a step of the writer
	who     map[string]auth.Principal
	keys    int
}

func setUp(t *testing.T, files map[string]string) *bench {
	t.Helper()
	return setUpBy(t, files, repo.Options{})
}

// setUpBy is setUp with options for the workspaces.
func setUpBy(t *testing.T, files map[string]string, o repo.Options) *bench {
	t.Helper()
	b := &bench{t: t, dir: t.TempDir(), who: map[string]auth.Principal{}, options: o}
	b.root = filepath.Join(b.dir, "repo")
	for name, text := range files {
		path := filepath.Join(b.root, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@localhost", "commit", "-qm", "first"}} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = b.root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatal(err, string(out))
		}
	}
	b.open()
	b.ws = b.must(commands.System("", "ws"), commands.AddWorkspace{Root: b.root}).IDs["workspace"]
	b.join("coder", auth.Agent, "blue", auth.Implementer)
	b.join("critic", auth.Agent, "red", auth.Reviewer)
	b.join("ada", auth.Human, "", auth.Operator)
	return b
}

// open opens, or opens again, everything on the bench's folder.
func (b *bench) open() {
	b.t.Helper()
	ctx := b.t.Context()
	var err error
	if b.store, err = sqlitelog.Open(ctx, filepath.Join(b.dir, "log.db"), sqlitelog.Options{Now: time.Now}); err != nil {
		b.t.Fatal(err)
	}
	blobs, err := blob.Open(filepath.Join(b.dir, "blobs"), blob.Options{})
	if err != nil {
		b.t.Fatal(err)
	}
	steps := process.NewSteps()
	o := b.options
	o.Step = func(s repo.Step) {
		steps.Step(s)
		if b.disturb != nil {
			b.disturb(s)
		}
	}
	b.world = world.New(blobs, filepath.Join(b.dir, "data"), o)
	pol := policy.Default()
	if b.options.Commit {
		pol.Apply = policy.Apply{Mode: "commit", Branch: b.options.Branch}
	}
	b.Handler = commands.New(commands.Config{Log: b.store, World: b.world, Policy: pol, Now: time.Now,
		NewID: func() string { return ulid.MustNew(ulid.Timestamp(time.Now()), rand.Reader).String() }})
	b.world.Known = b.Kind
	lg := slog.New(slog.NewTextHandler(b.t.Output(), nil))
	runs := filepath.Join(b.dir, "runs")
	if err := os.MkdirAll(filepath.Join(runs, "home"), 0o700); err != nil {
		b.t.Fatal(err)
	}
	run, err := runner.New(runner.Options{Dir: filepath.Join(runs, "home"), Clock: time.Now, Report: func(ctx context.Context) (sandbox.Report, error) { return sandbox.Probe(ctx, runs) }})
	if err != nil {
		b.t.Fatal(err)
	}
	b.apply = process.Applier{Handler: b.Handler, World: b.world, Steps: steps, Log: lg, Now: time.Now}
	b.test = process.Tester{Handler: b.Handler, World: b.world, Runner: run, Dir: filepath.Join(runs, "trees"), Slots: 2, Log: lg, Now: time.Now}
	b.pool = process.Pool{Store: b.store, Log: lg, Now: time.Now}
	b.t.Cleanup(func() {
		if err := errors.Join(b.world.Close(), blobs.Close(), b.store.Close()); err != nil {
			b.t.Error(err)
		}
	})
}

// run runs managers and workers until the returned function is called.
func (b *bench) run() (stop func()) {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	if err := b.apply.Recover(ctx); err != nil {
		b.t.Fatal(err)
	}
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		b.t.Fatal(err)
	}
	process.AddTo(router, process.Managers, b.store, b.pool.Log, time.Now, func(consumer string, err error) { b.t.Error(consumer, err) })
	workers := append(b.apply.Workers(), b.test.Worker())
	ended := make(chan error, len(workers)+1)
	go func() { ended <- router.Run(ctx) }()
	<-router.Running()
	for _, w := range workers {
		go func() { ended <- b.pool.Run(ctx, w) }()
	}
	return func() {
		cancel()
		err := router.Close()
		for range len(workers) + 1 {
			err = errors.Join(err, <-ended)
		}
		if err != nil {
			b.t.Error(err)
		}
	}
}

func (b *bench) join(name string, kind auth.Kind, owner string, role auth.Role) {
	b.t.Helper()
	id := b.must(commands.System("", "principal "+name), commands.CreatePrincipal{Label: name, Kind: string(kind), Owner: owner, Roles: []wire.Role{{Workspace: b.ws, Role: string(role)}}}).IDs["principal"]
	b.who[name] = auth.Principal{ID: id, Name: name, Kind: kind, Owner: owner, Grants: []auth.Grant{{Workspace: b.ws, Role: role}}}
}

func (b *bench) as(name string) commands.Caller {
	b.keys++
	return commands.Caller{Who: b.who[name], Workspace: b.ws, Key: fmt.Sprint(b.keys), Request: "r"}
}

func (b *bench) must(by commands.Caller, c commands.Command) commands.Result {
	b.t.Helper()
	r, err := b.Do(b.t.Context(), by, c)
	if err != nil {
		b.t.Fatalf("%s: %v", c.Name(), err)
	}
	return r
}

// ready makes a proposal that can be applied, but for its tests.
func (b *bench) ready(patch string, tests ...string) (proposal string) {
	b.t.Helper()
	b.must(b.as("coder"), commands.ClaimResource{Resource: "directory:", Type: "write"})
	proposal = b.must(b.as("coder"), commands.CreateProposal{Title: "t", Summary: "s", ExpectedTests: tests, PatchInput: commands.PatchInput{Patch: patch}}).IDs["proposal"]
	b.must(b.as("critic"), commands.CastVote{Proposal: proposal, Vote: "approve", Reason: "fine"})
	return proposal
}

// await waits until look has seen what it wants, at every change of the log.
func (b *bench) await(what string, look func() bool) {
	b.t.Helper()
	timeout := time.After(time.Minute)
	for {
		changed := b.store.Changed()
		if look() {
			return
		}
		select {
		case <-changed:
		case <-timeout:
			b.t.Fatal("waited too long for ", what)
		}
	}
}

func (b *bench) ended(tx string) domain.Transaction {
	b.t.Helper()
	var t domain.Transaction
	b.await("the end of "+tx, func() bool {
		var err error
		if t, err = b.Transaction(b.t.Context(), tx); err != nil {
			b.t.Fatal(err)
		}
		return t.Done()
	})
	return t
}

func (b *bench) tested(run string) domain.TestRun {
	b.t.Helper()
	var r domain.TestRun
	b.await("the end of "+run, func() bool {
		var err error
		if r, err = b.TestRun(b.t.Context(), run); err != nil {
			b.t.Fatal(err)
		}
		return r.Done()
	})
	return r
}

func (b *bench) file(name, want string) {
	b.t.Helper()
	if got, err := os.ReadFile(filepath.Join(b.root, name)); string(got) != want {
		b.t.Errorf("%s holds %q (%v), want %q", name, got, err, want)
	}
}

// types returns the types of the events of a stream.
func (b *bench) types(s events.Stream) (names []string) {
	b.t.Helper()
	for r, err := range eventlog.Records(b.t.Context(), b.store, 0, 0) {
		if err != nil {
			b.t.Fatal(err)
		}
		if r.Stream == s {
			names = append(names, r.Type)
		}
	}
	return names
}
