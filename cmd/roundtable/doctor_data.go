package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"roundtable/domain"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/policy"
	"roundtable/internal/repo"
	"roundtable/internal/sqlite"
	"roundtable/internal/wire"
)

// An examination fills in a diagnosis.
type examination struct {
	*diagnosis
	t     terminal
	flags serveFlags
	named bool // the data folder was named
}

func (x *examination) add(f finding) { x.Checks = append(x.Checks, f) }

// all makes every check. Only that the look itself was stopped is an error.
func (x *examination) all(ctx context.Context) error {
	if err := ownData(ctx, x.Data); err != nil {
		x.add(examined("data_folder", "", err, "take it out of the repository, or move away what is named"))
		return x.machine(ctx)
	}
	config, flags, err := effective(x.Data, x.t.env)
	if err == nil {
		x.Config, x.flags, err = config, flags, flags.check()
	}
	if err == nil {
		_, err = policyOf(ctx, flags.ApplyMode, flags.ApplyBranch)
	}
	x.add(examined("configuration", "every setting is one", err, "correct what is named; flags win over the environment, that over config.yaml"))
	if err := x.machine(ctx); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(x.Data, "log.db")); errors.Is(err, os.ErrNotExist) && !x.named {
		x.add(finding{Check: "data_folder", Status: "skipped", Detail: "there is no data folder at " + x.Data, Next: "roundtable init makes one; --data names another"})
		return ctx.Err()
	} else if err != nil {
		x.add(examined("data_folder", "", wrongf("there is no history in %s: %v", x.Data, err), "roundtable init --data makes one"))
		return ctx.Err()
	}
	if err := x.folder(ctx); err != nil {
		return err
	}
	return ctx.Err()
}

// folder looks at the data folder, and at the workspaces that it knows.
func (x *examination) folder(ctx context.Context) error {
	x.add(examined("data_folder", "it is its owner's alone", private(x.Data), "chmod -R go-rwx the folder, as its owner"))
	free, err := space(x.Data)
	x.add(examined("disk", free, err, "free some space"))
	sound := true
	for _, name := range []string{"log.db", "views.db"} {
		f := x.database(ctx, name)
		sound = sound && (f.Status == "passed" || name == "views.db")
		x.add(f)
	}
	if !sound {
		return nil // nothing is read from what is broken, least of all written to it
	}
	r, err := reader(ctx, x.Data)
	if err != nil {
		x.add(examined("history", "", err, ""))
		return nil
	}
	known, err := x.history(ctx, r)
	if err = errors.Join(err, r.Close()); err != nil {
		x.add(examined("history", "", err, "roundtable log verify tells more"))
		return nil
	}
	return x.workspaces(ctx, known)
}

// database has SQLite look over one file.
func (x *examination) database(ctx context.Context, name string) finding {
	path := filepath.Join(x.Data, name)
	next := "put a backup in its place"
	if name == "views.db" {
		next = "stop the server and remove the file: it is made again from the history"
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return finding{Check: name, Status: "skipped", Detail: "it is not there, and is made from the history at the next start"}
		}
	}
	bad, err := sqlite.QuickCheck(ctx, path)
	if err == nil && bad != "" {
		err = wrongf("SQLite finds it damaged: %s", bad)
	} else if err != nil && ctx.Err() == nil {
		err = wrongf("SQLite cannot read it: %v", err)
	}
	return examined(name, "SQLite's quick check finds nothing", err, next)
}

// history verifies the newest events, compares the clock with them, and
// returns the workspaces.
func (x *examination) history(ctx context.Context, r *sqlitelog.Reader) (map[string]events.WorkspaceAdded, error) {
	v, err := eventlog.VerifyTail(ctx, r, verifyTail)
	if err != nil {
		return nil, err
	}
	if !v.OK {
		err = wrongf("the newest events do not verify: %s at position %d (%s)", v.Detail, v.FirstBad, v.Reason)
	} else if at, err2 := r.Reached(ctx); err2 != nil {
		return nil, err2
	} else if at > v.Head.Position {
		err = wrongf("it ends at position %d, and the record of commands in the same file stands at %d: it was cut", v.Head.Position, at)
	}
	x.add(examined("history", fmt.Sprintf("the newest %d of %d events verify", v.Events, v.Head.Position), err, "roundtable log verify tells more; put a backup in its place"))
	newest, err := r.Since(ctx, max(v.Head.Position-1, 0), 1)
	if err != nil {
		return nil, err
	}
	for _, e := range newest {
		x.add(examined("clock_and_history", "no event is later than now", clock(time.Now(), e.Time), "set the machine's clock"))
	}
	es, err := r.Stream(ctx, events.WorkspacesStream, 0)
	var all domain.Workspaces
	for _, e := range es {
		all = all.Evolve(e.Payload)
	}
	return all.ByID, err
}

// workspaces looks at each workspace. What was edited in it behind the
// service's back is asked of whoever has the data folder: a server, or this
// program if it is free.
func (x *examination) workspaces(ctx context.Context, known map[string]events.WorkspaceAdded) error {
	a, err := x.asServed(ctx, known)
	if held, ok := errors.AsType[*sqlite.HeldError](err); ok {
		x.Server, a, err = &held.PID, nil, nil
	}
	if err == nil && a != nil {
		err = a.whole(ctx)
	}
	if err != nil {
		x.add(examined("data_folder_opens", "", err, ""))
		a = unusable(a)
	}
	compare, stop := x.comparison(ctx, a)
	for _, id := range slices.Sorted(maps.Keys(known)) {
		w := known[id]
		p := patient{Workspace: id, Name: w.Name, Root: w.Root, Kind: w.Kind, Checks: []finding{}}
		if x.root(ctx, &p) && compare != nil {
			p.Checks = append(p.Checks, x.compared(ctx, a, id, compare))
		}
		x.Workspaces = append(x.Workspaces, p)
	}
	if a != nil {
		return errors.Join(stop(), a.Close())
	}
	return nil
}

// asServed opens the data folder in the mode in which the workspaces were
// served last: paths are compared with what is known of them in it.
func (x *examination) asServed(ctx context.Context, known map[string]events.WorkspaceAdded) (*app, error) {
	lg := slog.New(slog.NewTextHandler(x.t.err, &slog.HandlerOptions{Level: slog.LevelError}))
	a, err := open(ctx, x.Data, lg)
	for _, id := range slices.Sorted(maps.Keys(known)) {
		if err != nil {
			break
		}
		var m domain.Mode
		if m, _, err = a.handler.Modes(ctx, id); err == nil && m.Commit {
			if err = a.Close(); err != nil {
				break
			}
			pol := policy.Default()
			pol.Apply = policy.Apply{Mode: "commit", Branch: m.Branch}
			return openWith(ctx, x.Data, lg, pol, nil)
		}
	}
	return a, err
}

// compared compares one workspace, by a if there is no server. A workspace that
// was served in another mode than the others waits for its server.
func (x *examination) compared(ctx context.Context, a *app, id string, compare comparison) finding {
	if a != nil && x.Server == nil {
		known, looks, err := a.handler.Modes(ctx, id)
		if err != nil {
			return compared(wire.RepositoryCheck{}, err)
		}
		if known != looks {
			return finding{Check: "foreign_changes", Status: "skipped", Detail: "it was served in another apply mode than the other workspaces, and is compared by the next server"}
		}
	}
	return compared(compare(ctx, id))
}

// comparison returns how foreign changes are looked for; nil if they cannot be,
// which is a finding.
func (x *examination) comparison(ctx context.Context, a *app) (compare comparison, stop func() error) {
	stop = func() error { return nil }
	var err error
	switch {
	case a != nil:
		compare, stop, err = a.offline(ctx)
	case x.Server == nil: // why the data folder cannot be opened was said
		return nil, stop
	case x.t.env("ROUNDTABLE_TOKEN") == "":
		x.add(finding{Check: "foreign_changes", Status: "skipped", Detail: "a server has the data folder, and only it can compare the files with what it knows",
			Next: "set ROUNDTABLE_TOKEN to the token of an orchestrator or operator, and ROUNDTABLE_SERVER to the server's address"})
		return nil, stop
	default:
		compare, err = online(x.t)
	}
	if err != nil {
		x.add(examined("foreign_changes", "", err, ""))
		return nil, stop
	}
	return compare, stop
}

// unusable closes what could not be opened whole.
func unusable(a *app) *app {
	if a != nil {
		a.Close() // the reason why it is of no use is told already
	}
	return nil
}

// root looks at a workspace's folder and at what lies unfinished in it, and
// reports whether the folder is there.
func (x *examination) root(ctx context.Context, p *patient) bool {
	add := func(f finding) { p.Checks = append(p.Checks, f) }
	w, err := repo.Open(ctx, p.Root, repo.Options{UserEnv: os.Environ()})
	if err == nil && w.Git() != (p.Kind == "git") {
		err = errors.Join(wrongf("it was put under governance as a %s, and it is none any more", map[string]string{"git": "Git work tree", "folder": "plain folder"}[p.Kind]), w.Close())
	}
	add(examined("folder", "it is there", err, "put the folder back where it was, and let the service's user read and write it"))
	if err != nil {
		return false
	}
	free, err := space(p.Root)
	add(examined("disk", free, err, "free some space"))
	if a, err := w.Probe(ctx); err != nil {
		add(examined("abilities", "", err, ""))
	} else {
		p.Abilities = &a
	}
	if x.flags.ApplyMode == "commit" && w.Git() {
		add(examined("apply_branch", "there is a branch to commit to", branchTrouble(ctx, p.Root, x.flags.ApplyBranch), "until then every apply here fails; other settings stand under configuration"))
	}
	left, err := w.Unfinished(ctx)
	add(x.unfinished(left, err))
	if err := w.Close(); err != nil {
		add(examined("folder_closes", "", err, ""))
	}
	return true
}

// unfinished judges what transactions have left in a workspace. With a server
// one may be in work just now.
func (x *examination) unfinished(left []repo.Recovered, err error) finding {
	const check = "transactions"
	if err != nil {
		return examined(check, "", err, "")
	}
	var wait, open []string
	for _, r := range left {
		if r.Marker == repo.Attention || len(r.Stuck) > 0 {
			wait = append(wait, r.Tx)
		} else {
			open = append(open, r.Tx)
		}
	}
	switch {
	case len(wait) > 0:
		return examined(check, "", wrongf("paths of %s wait for a person: both versions are kept", strings.Join(wait, ", ")), "roundtable tx recovery ID says what lies there and what can be done")
	case len(open) > 0 && x.Server != nil:
		return examined(check, "the server works on "+strings.Join(open, ", "), nil, "")
	case len(open) > 0:
		return examined(check, "", wrongf("%s was left half done", strings.Join(open, ", ")), "start the service: it settles that before anything else")
	}
	return examined(check, "none is half done and none waits for a person", nil, "")
}
