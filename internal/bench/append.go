package bench

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/sqlite"
)

// Append measures durable commands per second and writes a table to out:
//
//   - raw: one prepared INSERT of the event's row per transaction, with UNIQUE
//     (stream, version) as the only check: what the disk gives to a single row;
//   - tx: event, outcome, guard and hash chain in one transaction per command;
//   - group: the log as the program uses it;
//
// on streams of the writers' own, and all on one stream, where raw reads the
// version and tries again, and the log decides again inside the group. Beside
// them stands one fdatasync of 4 KiB, and what the settings add.
func Append(ctx context.Context, s Settings, out io.Writer) ([]Result, error) {
	if len(s.Writers) == 0 || s.Rounds < 1 || s.Slice <= 0 {
		return nil, errors.New("bench: writers, rounds and a slice are required")
	}
	own, err := compare(ctx, s, "streams of their own", func(writers int) ([]contender, error) {
		return openAll(ctx, s, fmt.Sprintf("own-%d", writers), append([]opener{newRaw, newTx, newGroup, newSync}, openers(s.Own)...)...)
	})
	if err != nil {
		return nil, err
	}
	hot, err := compare(ctx, s, "one hot stream", func(writers int) ([]contender, error) {
		return openAll(ctx, s, fmt.Sprintf("hot-%d", writers), append([]opener{newHotRaw, newHotGroup}, openers(s.Hot)...)...)
	})
	if err != nil {
		return nil, err
	}
	results := append(own, hot...)
	return results, Print(out, results)
}

type opener func(ctx context.Context, s Settings, path string) (contender, error)

func openAll(ctx context.Context, s Settings, name string, open ...opener) (cs []contender, err error) {
	for i, o := range open {
		c, err := o(ctx, s, filepath.Join(s.Dir, fmt.Sprintf("%s-%d.db", name, i)))
		if err != nil {
			for _, c := range cs {
				err = errors.Join(err, c.close())
			}
			return nil, err
		}
		cs = append(cs, c)
	}
	return cs, nil
}

// streamsEach is how many streams a writer goes round.
const streamsEach = 50

// A writer makes the next command of one of the writers.
type writer struct {
	n        int
	entropy  *ulid.MonotonicEntropy
	versions [streamsEach]int64
}

// writers makes them as they are asked for.
type writers struct {
	now func() time.Time
	mu  sync.Mutex
	all map[int]*writer
}

func newWriters(now func() time.Time) *writers { return &writers{now: now, all: map[int]*writer{}} }

func (ws *writers) get(w int) *writer {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.all[w] == nil {
		ws.all[w] = &writer{entropy: ulid.Monotonic(rand.Reader, 0)}
	}
	return ws.all[w]
}

// next returns a key in time order, and the stream whose turn it is with the
// version it is at.
func (w *writer) next(now time.Time) (key string, s int, version int64, err error) {
	id, err := ulid.New(ulid.Timestamp(now), w.entropy)
	if err != nil {
		return "", 0, 0, err
	}
	s = w.n % streamsEach
	w.n++
	w.versions[s]++
	return id.String(), s, w.versions[s] - 1, nil
}

// payload is an event of about 330 bytes of JSON.
func payload(task, key string) events.TaskCreated {
	return events.TaskCreated{Task: task, Title: "Make the parser refuse a hunk that overlaps the one before it", Priority: 3, Risk: "medium",
		Body: "A patch whose hunks overlap is applied as if they did not. " + strings.Repeat("x", 90) + key}
}

var answer = []byte(`{"ids":{"task":"T-01JDXKZ0000000000000000000"},"note":"` + strings.Repeat("a", 140) + `"}`)

func meta(w int, key string) events.Meta {
	return events.Meta{Workspace: "WS-01JDXKZ0000000000000000000", Actor: fmt.Sprintf("PR-%026d", w), Session: "S-01JDXKZ0000000000000000000",
		Command: key, Correlation: key}
}

const rawTable = `CREATE TABLE raw (position INTEGER PRIMARY KEY, id TEXT NOT NULL, workspace TEXT NOT NULL, stream INTEGER NOT NULL,
	version INTEGER NOT NULL, type TEXT NOT NULL, schema INTEGER NOT NULL, time INTEGER NOT NULL, actor TEXT NOT NULL, session TEXT NOT NULL,
	command TEXT NOT NULL, cause TEXT NOT NULL, correlation TEXT NOT NULL, data BLOB NOT NULL, hash BLOB NOT NULL, UNIQUE (stream, version)) STRICT`

const rawInsert = `INSERT INTO raw (id, workspace, stream, version, type, schema, time, actor, session, command, cause, correlation, data, hash)
	VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)`

// A raw database has one table with the columns of events.
type raw struct {
	db      *sqlite.DB
	insert  *sql.Stmt
	version *sql.Stmt
}

func openRaw(ctx context.Context, path string) (*raw, error) {
	db, err := sqlite.OpenPlain(ctx, path)
	if err != nil {
		return nil, err
	}
	r := &raw{db: db}
	_, err = db.Write.ExecContext(ctx, rawTable)
	if err == nil {
		r.insert, err = db.Write.PrepareContext(ctx, rawInsert)
	}
	if err == nil {
		r.version, err = db.Write.PrepareContext(ctx, `SELECT coalesce(max(version), 0) FROM raw WHERE stream = ?`)
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return r, nil
}

func (r *raw) close() error { return errors.Join(r.insert.Close(), r.version.Close(), r.db.Close()) }

func (r *raw) row(ctx context.Context, now time.Time, w int, key string, stream, version int64) error {
	typ, schema, data, err := events.Encode(payload("T-01JDXKZ0000000000000000000", key))
	if err != nil {
		return err
	}
	m := meta(w, key)
	hash := sha256.Sum256(data)
	_, err = r.insert.ExecContext(ctx, key, m.Workspace, stream, version, typ, schema, now.UnixNano(), m.Actor, m.Session, m.Command, m.Cause,
		m.Correlation, data, hash[:])
	return err
}

func newRaw(ctx context.Context, s Settings, path string) (contender, error) {
	r, err := openRaw(ctx, path)
	if err != nil {
		return contender{}, err
	}
	ws := newWriters(s.Now)
	return contender{"raw", func(ctx context.Context, w int) (int, error) {
		now := s.Now()
		key, stream, version, err := ws.get(w).next(now)
		if err != nil {
			return 0, err
		}
		return 1, r.row(ctx, now, w, key, int64(w*streamsEach+stream), version+1)
	}, r.close}, nil
}

func newGroup(ctx context.Context, s Settings, path string) (contender, error) {
	log, err := sqlitelog.Open(ctx, path, sqlitelog.Options{Now: s.Now})
	if err != nil {
		return contender{}, err
	}
	ws := newWriters(s.Now)
	return contender{"group", func(ctx context.Context, w int) (int, error) {
		key, n, version, err := ws.get(w).next(s.Now())
		if err != nil {
			return 0, err
		}
		_, err = log.Append(ctx, batch(w, key, fmt.Sprintf("T-%026d", w*streamsEach+n), version), nil)
		return 1, err
	}, log.Close}, nil
}

// batch is a command that makes one event of a task at version.
func batch(w int, key, task string, version int64) eventlog.Batch {
	digest := sha256.Sum256([]byte(key))
	return eventlog.Batch{Meta: meta(w, key), Digest: digest[:], Answer: answer, Expect: map[events.Stream]int64{events.TaskStream(task): version},
		Happened: []events.Payload{payload(task, key)}}
}

// newSync is the floor: each writer appends 4 KiB to a file of its own and
// waits for the disk.
func newSync(_ context.Context, _ Settings, path string) (contender, error) {
	var mu sync.Mutex
	files := map[int]*os.File{}
	page := make([]byte, 4096)
	get := func(w int) (*os.File, error) {
		mu.Lock()
		defer mu.Unlock()
		if files[w] == nil {
			f, err := os.Create(fmt.Sprintf("%s.%d", path, w))
			if err != nil {
				return nil, err
			}
			files[w] = f
		}
		return files[w], nil
	}
	return contender{"fdatasync", func(_ context.Context, w int) (int, error) {
		f, err := get(w)
		if err != nil {
			return 0, err
		}
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		return 1, datasync(f)
	}, func() error {
		var errs []error
		for _, f := range files {
			errs = append(errs, f.Close())
		}
		return errors.Join(errs...)
	}}, nil
}
