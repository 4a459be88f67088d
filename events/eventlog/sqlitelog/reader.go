package sqlitelog

import (
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/sqlite"
)

// A Reader reads a log, beside whatever process may be writing it.
type Reader struct {
	read   *sql.DB
	closed atomic.Bool
}

// OpenReader opens the log at path for reading alone. It takes no lock.
func OpenReader(ctx context.Context, path string) (*Reader, error) {
	db, err := sqlite.OpenRead(ctx, path)
	if err != nil {
		return nil, err
	}
	return &Reader{read: db}, nil
}

// Close closes the reader.
func (r *Reader) Close() error {
	r.closed.Store(true)
	return r.read.Close()
}

const selectOutcome = `SELECT digest, position, answer FROM outcomes WHERE actor = ? AND command = ?`

// Outcome returns that of actor's command, if it has run.
func (r *Reader) Outcome(ctx context.Context, actor, key string) (o eventlog.Outcome, done bool, err error) {
	o.Repeated = true
	done, err = r.find(ctx, selectOutcome, []any{actor, key}, &o.Digest, &o.Position, &o.Answer)
	if !done {
		o = eventlog.Outcome{}
	}
	return o, done, err
}

// Head returns the newest position and its hash; 0 and "" of an empty log.
func (r *Reader) Head(ctx context.Context) (position int64, hash string, err error) {
	var h []byte
	_, err = r.find(ctx, `SELECT position, hash FROM events ORDER BY position DESC LIMIT 1`, nil, &position, &h)
	return position, hex.EncodeToString(h), err
}

// Reached returns the greatest position that an outcome or a checkpoint in the
// file names. It is never beyond the head of a log that has all its events.
func (r *Reader) Reached(ctx context.Context) (position int64, err error) {
	_, err = r.find(ctx, `SELECT max(
		coalesce((SELECT position FROM outcomes ORDER BY rowid DESC LIMIT 1), 0),
		coalesce((SELECT max(position) FROM checkpoints), 0))`, nil, &position)
	return position, err
}

const envelope = `position, events.id, workspace, version, type, schema, time, actor, session, command, cause, correlation, data`

const selectStream = `SELECT ` + envelope + ` FROM events WHERE stream = (SELECT id FROM streams WHERE name = ?) AND version > ? ORDER BY version`

// Stream returns the events of s after version, oldest first.
func (r *Reader) Stream(ctx context.Context, s events.Stream, version int64) ([]events.Event, error) {
	rows, err := r.query(ctx, selectStream, string(s), version)
	if err != nil {
		return nil, err
	}
	return scanEvents(rows, s)
}

func scanEvents(rows *sql.Rows, s events.Stream) (es []events.Event, err error) {
	defer func() { err = errors.Join(err, failed(rows.Close())) }()
	for rows.Next() {
		rec := events.Record{Stream: s}
		var nanos int64
		var data []byte
		if err := rows.Scan(&rec.Position, &rec.ID, &rec.Workspace, &rec.Version, &rec.Type, &rec.Schema, &nanos, &rec.Actor, &rec.Session,
			&rec.Command, &rec.Cause, &rec.Correlation, &data); err != nil {
			return nil, failed(err)
		}
		rec.Time, rec.Data = time.Unix(0, nanos).UTC(), data
		e, err := rec.Event()
		if err != nil {
			return nil, fmt.Errorf("event %d: %w", rec.Position, err)
		}
		es = append(es, e)
	}
	return es, failed(rows.Err())
}

// The row before the first asked for gives the hash that the first covers. The
// streams are joined from the left, so that a row whose stream was taken away
// is still seen, and found out by its hash.
const selectSince = `SELECT ` + envelope + `, hash, coalesce(name, '') FROM events LEFT JOIN streams ON streams.id = events.stream
	WHERE position >= ? ORDER BY position LIMIT ?`

// Since returns up to limit records after position, oldest first.
func (r *Reader) Since(ctx context.Context, position int64, limit int) (rs []events.Record, err error) {
	if limit <= 0 {
		return nil, nil
	}
	rows, err := r.query(ctx, selectSince, position, limit+1)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	var prev string
	for rows.Next() {
		var rec events.Record
		var nanos int64
		var data, hash []byte
		if err := rows.Scan(&rec.Position, &rec.ID, &rec.Workspace, &rec.Version, &rec.Type, &rec.Schema, &nanos, &rec.Actor, &rec.Session,
			&rec.Command, &rec.Cause, &rec.Correlation, &data, &hash, &rec.Stream); err != nil {
			return nil, failed(err)
		}
		rec.Time, rec.Data, rec.PrevHash, rec.Hash = time.Unix(0, nanos).UTC(), data, prev, hex.EncodeToString(hash)
		prev = rec.Hash
		if rec.Position > position && len(rs) < limit {
			rs = append(rs, rec)
		}
	}
	return rs, failed(rows.Err())
}

// Snapshot returns the kept state of a stream, if the same code kept one.
func (r *Reader) Snapshot(ctx context.Context, s events.Stream, code string) (version int64, state []byte, ok bool, err error) {
	ok, err = r.find(ctx, `SELECT version, state FROM snapshots WHERE stream = ? AND code = ?`, []any{string(s), code}, &version, &state)
	return version, state, ok, err
}

// Checkpoint returns the position up to which consumer has done its work.
func (r *Reader) Checkpoint(ctx context.Context, consumer string) (position int64, err error) {
	_, err = r.find(ctx, `SELECT position FROM checkpoints WHERE consumer = ?`, []any{consumer}, &position)
	return position, err
}

// Parked returns what is parked, by consumer and position.
func (r *Reader) Parked(ctx context.Context) (ps []eventlog.Parked, err error) {
	rows, err := r.query(ctx, `SELECT consumer, position, error, tries, time FROM parked ORDER BY consumer, position`)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var p eventlog.Parked
		var nanos int64
		if err := rows.Scan(&p.Consumer, &p.Position, &p.Error, &p.Tries, &nanos); err != nil {
			return nil, failed(err)
		}
		p.Time = time.Unix(0, nanos).UTC()
		ps = append(ps, p)
	}
	return ps, failed(rows.Err())
}

func (r *Reader) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	if r.closed.Load() {
		return nil, eventlog.ErrClosed
	}
	rows, err := r.read.QueryContext(ctx, text, args...)
	return rows, failed(err)
}

func (r *Reader) find(ctx context.Context, text string, args []any, dest ...any) (bool, error) {
	if r.closed.Load() {
		return false, eventlog.ErrClosed
	}
	err := r.read.QueryRowContext(ctx, text, args...).Scan(dest...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, failed(err)
}
