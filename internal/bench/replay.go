package bench

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/sqlite"
)

// A Reading is one way of going through the whole log.
type Reading struct {
	Name      string  `json:"name"`
	Events    int64   `json:"events"`
	PerSecond float64 `json:"per_second"`
	Ratio     float64 `json:"ratio"`   // to the bare scan
	CPU       float64 `json:"cpu_us"`  // processor time of the process per event, in microseconds: less swayed by other load
	PeakMB    float64 `json:"peak_mb"` // resident memory of the process at its highest while this ran; 0 if the system does not say
}

// replayStreams is how many streams the log of Replay has; each has as many
// events as the next one, and one row in the view.
const replayStreams = 20_000

// Replay fills a log of n events in dir, or takes the one that an earlier run
// has left there, and measures ways of going through it.
func Replay(ctx context.Context, dir string, n int64, now func() time.Time, out io.Writer) ([]Reading, error) {
	log, err := sqlitelog.Open(ctx, filepath.Join(dir, fmt.Sprintf("replay-%d.db", n)), sqlitelog.Options{Now: now})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	if err := fill(ctx, log, n); err != nil {
		return nil, err
	}
	raw, err := sqlite.OpenRead(ctx, filepath.Join(dir, fmt.Sprintf("replay-%d.db", n)))
	if err != nil {
		return nil, err
	}
	defer raw.Close()
	views, err := sqlite.OpenViews(ctx, filepath.Join(dir, fmt.Sprintf("replay-views-%d.db", now().UnixNano())))
	if err != nil {
		return nil, err
	}
	defer views.Close()

	var rs []Reading
	for _, r := range []struct {
		name string
		run  func() (int64, error)
	}{
		{"bare scan", func() (int64, error) { return bareScan(ctx, raw) }},
		{"records", func() (int64, error) { return count(eventlog.Records(ctx, log, 0, 0)) }},
		{"decode, 1 worker", func() (int64, error) { return decodeAll(ctx, log, 1) }},
		{"decode, 2 workers", func() (int64, error) { return decodeAll(ctx, log, 2) }},
		{"verify", func() (int64, error) { return verify(ctx, log) }},
		{"rebuild: an upsert per event", func() (int64, error) { return upsertEach(ctx, log, views) }},
		{"rebuild: fold, 1 worker", func() (int64, error) { return fold(ctx, log, views, 1) }},
		{"rebuild: fold, 2 workers", func() (int64, error) { return fold(ctx, log, views, 2) }},
	} {
		tracked := forgetPeak() == nil
		start := now()
		before, err := cpuTime()
		if err != nil {
			return nil, err
		}
		read, err := r.run()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", r.name, err)
		}
		reading := Reading{Name: r.name, Events: read, PerSecond: float64(read) / now().Sub(start).Seconds()}
		after, err := cpuTime()
		if err != nil {
			return nil, err
		}
		reading.CPU = float64((after - before).Nanoseconds()) / 1000 / float64(max(read, 1))
		if tracked {
			if reading.PeakMB, err = peakMB(); err != nil {
				return nil, err
			}
		}
		rs = append(rs, reading)
		rs[len(rs)-1].Ratio = reading.PerSecond / rs[0].PerSecond
	}
	return rs, printReadings(out, rs)
}

func printReadings(w io.Writer, rs []Reading) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(t, "\tevents\tevents/s\t÷ bare scan\tCPU µs\tpeak MB\t\n")
	for _, r := range rs {
		fmt.Fprintf(t, "%s\t%d\t%.0f\t%.2f\t%.1f\t%.0f\t\n", r.Name, r.Events, r.PerSecond, r.Ratio, r.CPU, r.PeakMB)
	}
	return t.Flush()
}

// fill appends until log has n events, in commands of up to 200.
func fill(ctx context.Context, log *sqlitelog.Store, n int64) error {
	at, _, err := log.Head(ctx)
	if err != nil {
		return err
	}
	for at < n {
		b := eventlog.Batch{Meta: meta(0, fmt.Sprintf("fill-%012d", at)), Answer: answer, Expect: map[events.Stream]int64{}}
		digest := sha256.Sum256([]byte(b.Meta.Command))
		b.Digest = digest[:]
		for i := at; i < min(at+200, n); i++ {
			p := payload(fmt.Sprintf("T-%026d", i%replayStreams), b.Meta.Command)
			b.Expect[p.Stream()] = i / replayStreams
			b.Happened = append(b.Happened, p)
		}
		if _, err := log.Append(ctx, b, nil); err != nil {
			return fmt.Errorf("fill the log at %d: %w", at, err)
		}
		at += int64(len(b.Happened))
	}
	if at != n {
		return fmt.Errorf("the log has %d events, not %d: give another folder", at, n)
	}
	return nil
}

// bareScan reads the same columns as a replay and makes nothing of them.
func bareScan(ctx context.Context, db *sql.DB) (n int64, err error) {
	rows, err := db.QueryContext(ctx, `SELECT position, id, workspace, stream, version, type, schema, time, actor, session, command, cause, correlation, data, hash
		FROM events ORDER BY position`)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	columns := make([]sql.RawBytes, 15)
	dest := make([]any, len(columns))
	for i := range columns {
		dest[i] = &columns[i]
	}
	for rows.Next() {
		if err := rows.Scan(dest...); err != nil {
			return n, err
		}
		n++
	}
	return n, rows.Err()
}

func count(records func(func(events.Record, error) bool)) (n int64, err error) {
	for _, err := range records {
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func decodeAll(ctx context.Context, log eventlog.Source, workers int) (n int64, err error) {
	err = eventlog.Replay(ctx, log, 0, 0, workers, func(es []events.Event) error {
		n += int64(len(es))
		return nil
	})
	return n, err
}

func verify(ctx context.Context, log eventlog.Source) (int64, error) {
	rep, err := eventlog.Verify(ctx, eventlog.Records(ctx, log, 0, 0), eventlog.Point{})
	if err == nil && !rep.OK {
		err = fmt.Errorf("position %d: %s", rep.FirstBad, rep.Reason)
	}
	return rep.Events, err
}
