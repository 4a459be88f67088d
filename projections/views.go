package projections

import (
	"context"
	"database/sql"
	"errors"
	"log/slog"
	"sync"

	"roundtable/events/eventlog"
	"roundtable/internal/signal"
	"roundtable/internal/sqlite"
)

// Views is the file of tables with what keeps it up with the log. It is safe
// for use by several goroutines.
type Views struct {
	log   eventlog.Store
	db    *sqlite.DB
	slog  *slog.Logger
	ps    []Projector
	moved signal.Signal // sent when a checkpoint moves or a projector stops

	rebuilding sync.Mutex    // one rebuild at a time
	rebuilt    signal.Signal // sent after one: what has stopped may try again

	mu      sync.Mutex
	stopped map[string]error // why a projector has stopped, by name
}

// loud hides what the machinery of watermill says of its own doings.
type loud struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h loud) Enabled(ctx context.Context, l slog.Level) bool {
	return l >= slog.LevelWarn && h.Handler.Enabled(ctx, l)
}

// WithAttrs implements slog.Handler.
func (h loud) WithAttrs(as []slog.Attr) slog.Handler { return loud{h.Handler.WithAttrs(as)} }

// WithGroup implements slog.Handler.
func (h loud) WithGroup(name string) slog.Handler { return loud{h.Handler.WithGroup(name)} }

// New returns the views of log in db, as they lie there. They follow the log
// while Run runs.
func New(log eventlog.Store, db *sqlite.DB, logger *slog.Logger) *Views {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Views{log: log, db: db, slog: logger, ps: All(), stopped: map[string]error{}}
}

// A Status is how a projector stands.
type Status struct {
	Name     string `json:"name"`
	Position int64  `json:"position"`        // it has shown all up to here
	Lag      int64  `json:"lag"`             // events of the log behind that
	Error    string `json:"error,omitempty"` // why it has stopped; "" if it has not
}

// Status returns how each projector stands, in the order of All.
func (v *Views) Status(ctx context.Context) ([]Status, error) {
	var all []Status
	for _, p := range v.ps {
		at, stopped, err := v.progress(ctx, p.Name)
		if err != nil {
			return nil, err
		}
		s := Status{Name: p.Name, Position: at}
		if stopped != nil {
			s.Error = stopped.Error()
		}
		all = append(all, s)
	}
	head, _, err := v.log.Head(ctx) // after the positions, so that no lag is below 0
	if err != nil {
		return nil, err
	}
	for i := range all {
		all[i].Lag = head - all[i].Position
	}
	return all, nil
}

// progress returns how far a projector has got, and why it has stopped if it has.
func (v *Views) progress(ctx context.Context, name string) (at int64, stopped, err error) {
	v.mu.Lock()
	stopped = v.stopped[name]
	v.mu.Unlock()
	at, err = checkpoint(ctx, v.db.Read, name)
	return at, stopped, err
}

type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

// checkpoint returns how far a projector has got.
func checkpoint(ctx context.Context, q querier, name string) (at int64, err error) {
	err = q.QueryRowContext(ctx, `SELECT position FROM checkpoints WHERE consumer = ?`, name).Scan(&at)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return at, err
}

// errOvertaken means that a checkpoint is not where this tx found it: someone
// else writes the same file.
var errOvertaken = errors.New("another writer has moved the checkpoint")

// moveCheckpoint moves name's checkpoint, by compare-and-set.
func moveCheckpoint(ctx context.Context, tx *sql.Tx, name string, from, to int64) error {
	if _, err := tx.ExecContext(ctx, `INSERT INTO checkpoints (consumer, position) VALUES (?, 0) ON CONFLICT DO NOTHING`, name); err != nil {
		return err
	}
	res, err := tx.ExecContext(ctx, `UPDATE checkpoints SET position = ? WHERE consumer = ? AND position = ?`, to, name, from)
	if err != nil {
		return err
	}
	if n, err := res.RowsAffected(); err != nil || n == 1 {
		return err
	}
	return errOvertaken
}

// stop notes why a projector has stopped.
func (v *Views) stop(name string, why error) {
	v.mu.Lock()
	v.stopped[name] = why
	v.mu.Unlock()
	v.moved.Send() // whoever waits for it need not
}

// goesOn forgets why projectors had stopped.
func (v *Views) goesOn(ps ...Projector) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range ps {
		delete(v.stopped, p.Name)
	}
}
