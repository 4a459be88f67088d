package bench

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/sqlite"
)

func datasync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }

// newTx does our rows the plain way: one transaction per command, which reads
// the head and the version and writes outcome and event.
func newTx(ctx context.Context, s Settings, path string) (contender, error) {
	db, err := sqlite.OpenLog(ctx, path)
	if err != nil {
		return contender{}, err
	}
	ws := newWriters(s.Now)
	return contender{"tx", func(ctx context.Context, w int) (int, error) {
		now := s.Now()
		key, n, version, err := ws.get(w).next(now)
		if err != nil {
			return 0, err
		}
		task := fmt.Sprintf("T-%026d", w*streamsEach+n)
		return 1, db.InTx(ctx, func(tx *sql.Tx) error { return plain(ctx, tx, now, w, key, task, version) })
	}, db.Close}, nil
}

func plain(ctx context.Context, tx *sql.Tx, now time.Time, w int, key, task string, version int64) error {
	stream := events.TaskStream(task)
	var number, at, position int64
	var prev []byte
	err := tx.QueryRowContext(ctx, `SELECT id, coalesce((SELECT max(version) FROM events WHERE stream = streams.id), 0) FROM streams WHERE name = ?`, stream).Scan(&number, &at)
	if errors.Is(err, sql.ErrNoRows) {
		var res sql.Result
		if res, err = tx.ExecContext(ctx, `INSERT INTO streams (name) VALUES (?)`, stream); err == nil {
			number, err = res.LastInsertId()
		}
	}
	if err == nil && at != version {
		err = eventlog.ErrMoved
	}
	if err != nil {
		return err
	}
	if err := tx.QueryRowContext(ctx, `SELECT position, hash FROM events ORDER BY position DESC LIMIT 1`).Scan(&position, &prev); err != nil && !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	typ, schema, data, err := events.Encode(payload(task, key))
	if err != nil {
		return err
	}
	m := meta(w, key)
	hash := eventlog.Hash(prev, &events.Record{Position: position + 1, ID: key, Workspace: m.Workspace, Stream: stream, Version: version + 1, Type: typ,
		Schema: schema, Time: now, Actor: m.Actor, Session: m.Session, Command: m.Command, Correlation: m.Correlation, Data: data})
	digest := sha256.Sum256([]byte(key))
	if _, err := tx.ExecContext(ctx, `INSERT INTO outcomes (actor, command, digest, position, answer, time) VALUES (?,?,?,?,?,?)`,
		m.Actor, m.Command, digest[:], position+1, answer, now.UnixNano()); err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, `INSERT INTO events (position, id, workspace, stream, version, type, schema, time, actor, session, command, cause, correlation, data, hash)
		VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
		position+1, key, m.Workspace, number, version+1, typ, schema, now.UnixNano(), m.Actor, m.Session, m.Command, m.Cause, m.Correlation, data, hash[:])
	return err
}

// newHotRaw has all writers on one stream: each reads the version, inserts the
// next one, and tries again if another was first.
func newHotRaw(ctx context.Context, s Settings, path string) (contender, error) {
	r, err := openRaw(ctx, path)
	if err != nil {
		return contender{}, err
	}
	ws := newWriters(s.Now)
	return contender{"raw, retries", func(ctx context.Context, w int) (tries int, err error) {
		now := s.Now()
		key, _, _, err := ws.get(w).next(now)
		if err != nil {
			return 0, err
		}
		for {
			tries++
			var version int64
			if err := r.version.QueryRowContext(ctx, 1).Scan(&version); err != nil {
				return tries, err
			}
			err := r.row(ctx, now, w, key, 1, version+1)
			if err == nil {
				return tries, nil
			}
			// Only a lost race lets another row be there.
			var newest int64
			if qerr := r.version.QueryRowContext(ctx, 1).Scan(&newest); qerr != nil || newest == version {
				return tries, errors.Join(err, qerr)
			}
		}
	}, r.close}, nil
}

// newHotGroup has all writers on one stream of the log; who has lost is
// decided again inside the group.
func newHotGroup(ctx context.Context, s Settings, path string) (contender, error) {
	log, err := sqlitelog.Open(ctx, path, sqlitelog.Options{Now: s.Now})
	if err != nil {
		return contender{}, err
	}
	const task = "T-HOT"
	stream := events.TaskStream(task)
	ws := newWriters(s.Now)
	var newest atomic.Int64 // what a reader would have seen before deciding
	return contender{"group", func(ctx context.Context, w int) (int, error) {
		key, _, _, err := ws.get(w).next(s.Now())
		if err != nil {
			return 0, err
		}
		seen := newest.Load()
		out, err := log.Append(ctx, batch(w, key, task, seen), func(ctx context.Context, v eventlog.View) (eventlog.Batch, error) {
			version, ok := v.Memo()[stream].(int64)
			if !ok {
				version = seen
			}
			es, err := v.Stream(ctx, stream, version)
			if err != nil {
				return eventlog.Batch{}, err
			}
			version += int64(len(es))
			v.Memo()[stream] = version
			return batch(w, key, task, version), nil
		})
		if err != nil {
			return 1, err
		}
		for at := newest.Load(); at < out.Position && !newest.CompareAndSwap(at, out.Position); at = newest.Load() {
		}
		return 1, nil
	}, log.Close}, nil
}
