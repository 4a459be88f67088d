package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/oklog/ulid/v2"
	"golang.org/x/sync/errgroup"

	"roundtable/commands"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/attest"
	"roundtable/internal/auth"
	"roundtable/internal/blob"
	"roundtable/internal/op"
	"roundtable/internal/policy"
	"roundtable/internal/repo"
	"roundtable/internal/runner"
	"roundtable/internal/sandbox"
	"roundtable/internal/sqlite"
	"roundtable/internal/world"
	"roundtable/process"
	"roundtable/projections"
)

// An app is the program's parts on one data folder.
type app struct {
	data    string
	log     *slog.Logger
	store   *sqlitelog.Store
	through process.Store // store, as commands, managers and workers reach it
	die     *failpoint    // nil but in tests of crashes
	views   *projections.Views
	reader  *projections.Reader
	world   *world.World
	steps   *process.Steps
	handler *commands.Handler
	ring    *attest.Ring
	watch   watch
	commits bool           // changes are committed,
	branch  string         // to this branch; empty: to the one that is checked out
	close   []func() error // in order of opening
}

// ids makes ULIDs that grow, from many goroutines.
func ids() func() string {
	var mu sync.Mutex
	entropy := ulid.Monotonic(rand.Reader, 0)
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		return ulid.MustNew(ulid.Timestamp(time.Now()), entropy).String()
	}
}

// open opens the data folder at data, which one process at a time may have.
func open(ctx context.Context, data string, lg *slog.Logger) (*app, error) {
	return openWith(ctx, data, lg, policy.Default(), nil)
}

// openWith opens with a policy and a failpoint.
func openWith(ctx context.Context, data string, lg *slog.Logger, pol policy.Policy, die *failpoint) (a *app, err error) {
	a = &app{data: data, log: lg, steps: process.NewSteps(), die: die, commits: pol.Apply.Commits(), branch: pol.Apply.Branch}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.Close())
		}
	}()
	if err := ownData(ctx, data); err != nil {
		return a, err
	}
	unlock, err := sqlite.LockDir(data)
	if err != nil {
		return a, err
	}
	a.closes(unlock)
	if a.store, err = sqlitelog.Open(ctx, filepath.Join(data, "log.db"), sqlitelog.Options{Now: time.Now}); err != nil {
		return a, err
	}
	a.closes(a.store.Close)
	a.through = die.around(a.store)
	db, err := sqlite.OpenViews(ctx, filepath.Join(data, "views.db"))
	if err != nil {
		return a, err
	}
	a.closes(db.Close)
	blobs, err := blob.Open(filepath.Join(data, "blobs"), blob.Options{})
	if err != nil {
		return a, err
	}
	a.closes(blobs.Close)
	a.world = world.New(blobs, data, repo.Options{UserEnv: os.Environ(), Owner: data, Step: die.steps(a.steps.Step), Commit: pol.Apply.Commits(), Branch: pol.Apply.Branch})
	a.closes(a.world.Close)
	a.ring = attest.NewRing(keysFolder(data))
	a.views = projections.New(a.store, db, lg)
	a.reader = projections.NewReader(a.views, time.Now, projections.Limits{})
	a.handler = commands.New(commands.Config{Log: a.through, World: a.world, Policy: pol, Now: time.Now, NewID: ids(), Show: a.reader.Show, Later: a.reader.Later, Operations: opNames, Signer: a.ring})
	a.handler.OpenProposals, a.handler.ForeignChanges = a.reader.OpenProposals, a.reader.ForeignChanges
	a.world.Known = a.handler.Kind
	a.handler.Trouble = func(ctx context.Context, what string, err error) { lg.WarnContext(ctx, what, "err", err) }
	return a, nil
}

func (a *app) closes(f func() error) { a.close = append(a.close, f) }

// Close closes the parts, last opened first.
func (a *app) Close() (err error) {
	for i := len(a.close) - 1; i >= 0; i-- {
		err = errors.Join(err, a.close[i]())
	}
	a.close = nil
	return err
}

// ops lists every operation on the parts of a.
func (a *app) ops() []op.Op { return operations(a.handler, a.reader, a.store) }

// follow runs what follows the log, until ctx ends: views and managers. ready
// is closed once both follow.
func (a *app) follow(ctx context.Context, ready chan<- struct{}) error {
	g, ctx := errgroup.WithContext(ctx)
	router, err := message.NewRouter(message.RouterConfig{CloseTimeout: 10 * time.Second}, watermill.NewSlogLogger(quiet(a.log)))
	if err != nil {
		return err
	}
	failed := make(chan error, len(process.Managers))
	process.AddTo(router, process.Managers, a.through, a.log, time.Now, func(consumer string, err error) { failed <- fmt.Errorf("%s cannot go on: %w", consumer, err) })
	g.Go(func() error { return a.views.Run(ctx) })
	g.Go(func() error { return router.Run(ctx) })
	g.Go(func() error {
		select {
		case err := <-failed:
			return err
		case <-ctx.Done():
			return router.Close()
		}
	})
	g.Go(func() error {
		select {
		case <-router.Running():
			close(ready)
		case <-ctx.Done():
		}
		return nil
	})
	return g.Wait()
}

// quiet keeps the router's own narration out of the log.
func quiet(lg *slog.Logger) *slog.Logger {
	return slog.New(atLeast{lg.Handler(), slog.LevelWarn})
}

type atLeast struct {
	slog.Handler
	level slog.Level
}

func (h atLeast) WithAttrs(as []slog.Attr) slog.Handler {
	return atLeast{h.Handler.WithAttrs(as), h.level}
}

func (h atLeast) WithGroup(name string) slog.Handler {
	return atLeast{h.Handler.WithGroup(name), h.level}
}

func (h atLeast) Enabled(_ context.Context, l slog.Level) bool { return l >= h.level }

// settle ends what a process before this one left half done in the governed
// folders. Before that nobody may look at them. Of a history that was cut
// nothing is settled: see whole.
func (a *app) settle(ctx context.Context) error {
	if err := a.whole(ctx); err != nil {
		return err
	}
	return a.applier().Recover(ctx)
}

// working says how jobs are done.
type working struct {
	unsandboxed bool // run tests also where nothing isolates them
	tests       int  // that run at once
	applies     int  // workspaces in which something is applied at once
}

func (a *app) applier() process.Applier {
	return process.Applier{Handler: a.handler, World: a.world, Steps: a.steps, Log: a.log, Now: time.Now, Torn: !a.die.settles()}
}

// work does jobs until ctx ends. Call settle before.
func (a *app) work(ctx context.Context, t working) error {
	pool := process.Pool{Store: a.through, Log: a.log, Now: time.Now}
	g, ctx := errgroup.WithContext(ctx)
	apply := a.applier()
	apply.Slots = t.applies
	for _, w := range apply.Workers() {
		g.Go(func() error { return pool.Run(ctx, w) })
	}
	g.Go(func() error { // what earlier runs left is removed first, and no apply waits for it
		test, err := a.tester(t)
		if err != nil {
			return err
		}
		return pool.Run(ctx, test.Worker())
	})
	return g.Wait()
}

func (a *app) tester(t working) (process.Tester, error) {
	dir := filepath.Join(a.data, "runs")
	home := filepath.Join(dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return process.Tester{}, err
	}
	least := sandbox.Namespace
	if t.unsandboxed {
		least = sandbox.Process
	}
	run, err := runner.New(runner.Options{Dir: home, Clock: time.Now, Report: func(ctx context.Context) (sandbox.Report, error) { return sandbox.Probe(ctx, dir) }, MinLevel: least, Path: searchPath(), Go: goCaches()})
	if err != nil {
		return process.Tester{}, err
	}
	if err := run.Clean(); err != nil {
		return process.Tester{}, err
	}
	return process.Tester{Handler: a.handler, World: a.world, Runner: run, Dir: filepath.Join(dir, "trees"), Slots: t.tests, Log: a.log, Now: time.Now}, nil
}

// system is the admin behind what is done offline on the data folder.
func system(key string) commands.Caller { return commands.System("", key) }

// workspaces returns the ids of the workspaces that who can see.
func (a *app) workspaces(ctx context.Context, who auth.Principal) ([]string, error) {
	roots, err := a.handler.Roots(ctx)
	var ids []string
	for id := range roots {
		if who.Reads(id) {
			ids = append(ids, id)
		}
	}
	return ids, err
}
