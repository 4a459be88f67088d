package projections

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
	"roundtable/internal/sqlite"
)

// Rebuild makes the tables of the named projectors again from the whole log,
// of all if none is named, and returns the position they then stand for.
// Readers see the old rows until the new ones replace them, in one tx with
// the checkpoints. It may run while Run runs; a projector that had stopped
// goes on from there. Two at once are done one after the other.
func (v *Views) Rebuild(ctx context.Context, names ...string) (position int64, err error) {
	ps, err := v.named(names)
	if err != nil {
		return 0, err
	}
	v.rebuilding.Lock()
	defer v.rebuilding.Unlock()
	shadow, err := v.shadowPath(ctx)
	if err != nil {
		return 0, err
	}
	if err := removeDB(shadow); err != nil { // of a rebuild that was cut short
		return 0, err
	}
	defer func() { err = errors.Join(err, removeDB(shadow)) }()
	at, err := v.build(ctx, shadow, ps)
	if err != nil {
		return 0, err
	}
	if position, err = v.swap(ctx, shadow, ps, at); err != nil {
		return 0, err
	}
	v.goesOn(ps...)
	v.moved.Send()
	v.rebuilt.Send()
	return position, nil
}

func (v *Views) named(names []string) ([]Projector, error) {
	if len(names) == 0 {
		return v.ps, nil
	}
	var ps []Projector
	for _, name := range names {
		i := slices.IndexFunc(v.ps, func(p Projector) bool { return p.Name == name })
		if i < 0 {
			return nil, fault.Errorf(fault.Invalid, "unknown_view", "there is no view %q", name)
		}
		ps = append(ps, v.ps[i])
	}
	return ps, nil
}

// shadowPath is that of the database in which tables are built again.
func (v *Views) shadowPath(ctx context.Context) (string, error) {
	var path string
	err := v.db.Read.QueryRowContext(ctx, `SELECT file FROM pragma_database_list WHERE name = 'main'`).Scan(&path)
	return path + ".rebuild", err
}

func removeDB(path string) error {
	for _, suffix := range []string{"", "-journal"} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// build fills a new database at path with what ps show of the log.
func (v *Views) build(ctx context.Context, path string, ps []Projector) (position int64, err error) {
	db, err := sqlite.OpenScratch(ctx, path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	head, _, err := v.log.Head(ctx)
	if err != nil {
		return 0, err
	}
	return head, fill(ctx, v.log, db, ps, head)
}

// fill applies the log up to until, from its start, to empty tables.
func fill(ctx context.Context, log eventlog.Source, db *sql.DB, ps []Projector, until int64) error {
	return sqlite.InTxOf(ctx, db, func(tx *sql.Tx) error { return applyAll(ctx, log, tx, ps, 0, until) })
}

// applyAll applies the events of the log after one position up to another.
func applyAll(ctx context.Context, log eventlog.Source, tx *sql.Tx, ps []Projector, after, until int64) error {
	if after >= until {
		return nil
	}
	r := newRows(tx)
	// The driver watches a context that can end by a goroutine per statement:
	// Replay looks at ctx between pages, and ctx ends tx.
	quick := context.WithoutCancel(ctx)
	return eventlog.Replay(ctx, log, after, until, runtime.GOMAXPROCS(0), func(es []events.Event) error {
		for _, e := range es {
			if err := apply(quick, r, ps, e); err != nil {
				return err
			}
		}
		return nil
	})
}

// swap replaces the rows of ps by those in the database at path, which stand
// for a position, and what the log says after it up to where ps have got. It
// returns the position the rows then stand for: none goes back, unless the log
// has lost what it stood for.
func (v *Views) swap(ctx context.Context, path string, ps []Projector, at int64) (position int64, err error) {
	conn, err := v.db.Write.Conn(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	if _, err := conn.ExecContext(ctx, `ATTACH ? AS shadow`, path); err != nil {
		return 0, err
	}
	defer func() {
		_, detach := conn.ExecContext(context.WithoutCancel(ctx), `DETACH shadow`)
		err = errors.Join(err, detach)
	}()
	err = sqlite.InTxOf(ctx, conn, func(tx *sql.Tx) (err error) {
		position, err = v.replace(ctx, tx, ps, at)
		return err
	})
	return position, err
}

// replace is swap in a tx that sees both databases.
func (v *Views) replace(ctx context.Context, tx *sql.Tx, ps []Projector, at int64) (position int64, err error) {
	position = at
	was := make([]int64, len(ps))
	for i, p := range ps {
		if was[i], err = checkpoint(ctx, tx, p.Name); err != nil {
			return 0, err
		}
		position = max(position, was[i])
		for _, t := range p.Tables {
			if _, err := tx.ExecContext(ctx, `DELETE FROM main.`+t); err != nil {
				return 0, err
			}
			if _, err := tx.ExecContext(ctx, `INSERT INTO main.`+t+` SELECT * FROM shadow.`+t); err != nil {
				return 0, err
			}
		}
	}
	head, _, err := v.log.Head(ctx) // after the checkpoints, which are beyond it only if the log was cut
	if err != nil {
		return 0, err
	}
	position = min(position, head)
	if err := applyAll(ctx, v.log, tx, ps, at, position); err != nil {
		return 0, err
	}
	for i, p := range ps {
		if err := moveCheckpoint(ctx, tx, p.Name, was[i], position); err != nil {
			return 0, fmt.Errorf("projector %s: %w", p.Name, err)
		}
	}
	return position, nil
}
