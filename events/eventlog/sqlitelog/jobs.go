package sqlitelog

import (
	"context"
	"fmt"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
)

// KeepSnapshot replaces the kept state of a stream, unless what is kept is newer.
func (s *Store) KeepSnapshot(ctx context.Context, stream events.Stream, code string, version int64, state []byte) error {
	return s.submit(ctx, newRequest(len(state), func(ctx context.Context, g *group) error {
		if err := g.write(ctx); err != nil {
			return err
		}
		_, err := g.exec(ctx, `INSERT INTO snapshots (stream, code, version, state) VALUES (?,?,?,?)
			ON CONFLICT DO UPDATE SET version = excluded.version, state = excluded.state WHERE version <= excluded.version`,
			string(stream), code, version, notNil(state))
		return err
	}))
}

// Enqueue writes jobs and moves consumer's checkpoint to position, together.
func (s *Store) Enqueue(ctx context.Context, consumer string, position int64, jobs []eventlog.Job) error {
	size := 0
	for _, j := range jobs {
		size += len(j.Data)
	}
	return s.submit(ctx, newRequest(size, func(ctx context.Context, g *group) error {
		if position > g.head.position {
			return fmt.Errorf("log: the checkpoint of %s cannot be %d, past the head %d", consumer, position, g.head.position)
		}
		if err := g.write(ctx); err != nil {
			return err
		}
		for i := range jobs {
			if err := g.enqueue(ctx, &jobs[i]); err != nil {
				return err
			}
		}
		_, err := g.exec(ctx, `INSERT INTO checkpoints (consumer, position) VALUES (?,?)
			ON CONFLICT DO UPDATE SET position = excluded.position WHERE position < excluded.position`, consumer, position)
		return err
	}))
}

func (g *group) enqueue(ctx context.Context, j *eventlog.Job) error {
	added, err := g.changed(ctx, `INSERT INTO jobs (id, kind, event, stream, data, workspace, actor, session, command, cause, correlation)
		VALUES (?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT DO NOTHING`,
		j.ID, j.Kind, j.Event, string(j.Stream), notNil(j.Data), j.Meta.Workspace, j.Meta.Actor, j.Meta.Session, j.Meta.Command, j.Meta.Cause, j.Meta.Correlation)
	g.jobs = g.jobs || added
	return err
}

const freeJob = `SELECT seq FROM jobs WHERE kind = ?1 AND state <> 'done' AND until <= ?2 ORDER BY seq LIMIT 1`

// Lease takes the oldest job of kind that is free or whose lease has ended.
func (s *Store) Lease(ctx context.Context, kind string, now, until time.Time) (j eventlog.Job, ok bool, err error) {
	// Idle workers ask often; only one that has seen a job takes a turn at writing.
	var seq int64
	if seen, err := s.find(ctx, freeJob, []any{kind, now.UnixNano()}, &seq); err != nil || !seen {
		return j, false, err
	}
	err = s.submit(ctx, newRequest(0, func(ctx context.Context, g *group) (err error) {
		if err := g.write(ctx); err != nil {
			return err
		}
		j = eventlog.Job{Kind: kind}
		var stream string
		ok, err = g.find(ctx, `UPDATE jobs SET state = 'leased', attempt = attempt + 1, until = ?3 WHERE seq = (`+freeJob+`)
			RETURNING id, event, stream, data, workspace, actor, session, command, cause, correlation, attempt`,
			[]any{kind, now.UnixNano(), until.UnixNano()},
			&j.ID, &j.Event, &stream, &j.Data, &j.Meta.Workspace, &j.Meta.Actor, &j.Meta.Session, &j.Meta.Command, &j.Meta.Cause, &j.Meta.Correlation, &j.Attempt)
		j.Stream, j.Fence = events.Stream(stream), int64(j.Attempt)
		return err
	}))
	if err != nil || !ok {
		return eventlog.Job{}, false, err
	}
	return j, true, nil
}

// Extend moves the end of a lease that is still held.
func (s *Store) Extend(ctx context.Context, j eventlog.Job, until time.Time) error {
	return s.held(ctx, j, false, `UPDATE jobs SET until = ?3 WHERE id = ?1 AND attempt = ?2 AND state = 'leased'`, until.UnixNano())
}

// Release gives a job back that could not be done now; it is free again at until.
func (s *Store) Release(ctx context.Context, j eventlog.Job, until time.Time, why string) error {
	return s.held(ctx, j, true, `UPDATE jobs SET state = 'free', until = ?3, why = ?4 WHERE id = ?1 AND attempt = ?2 AND state = 'leased'`, until.UnixNano(), why)
}

// Finish ends a job. To finish one again that the same lease has finished is
// no error, so that a worker may repeat it.
func (s *Store) Finish(ctx context.Context, j eventlog.Job) error {
	return s.held(ctx, j, true, `UPDATE jobs SET state = 'done' WHERE id = ?1 AND attempt = ?2 AND state <> 'free'`)
}

// held runs a statement about the job that j's lease is of; it changes no row
// if the lease is over.
func (s *Store) held(ctx context.Context, j eventlog.Job, wakes bool, text string, args ...any) error {
	return s.submit(ctx, newRequest(0, func(ctx context.Context, g *group) error {
		if err := g.write(ctx); err != nil {
			return err
		}
		changed, err := g.changed(ctx, text, append([]any{j.ID, j.Fence}, args...)...)
		if err == nil && !changed {
			return fmt.Errorf("job %s, fence %d: %w", j.ID, j.Fence, eventlog.ErrLeaseLost)
		}
		g.jobs = g.jobs || wakes && changed
		return err
	}))
}

// Park keeps an event that a consumer could not react to.
func (s *Store) Park(ctx context.Context, p eventlog.Parked) error {
	return s.submit(ctx, newRequest(len(p.Error), func(ctx context.Context, g *group) error {
		if err := g.write(ctx); err != nil {
			return err
		}
		_, err := g.exec(ctx, `INSERT INTO parked (consumer, position, error, tries, time) VALUES (?,?,?,?,?)
			ON CONFLICT DO UPDATE SET error = excluded.error, tries = excluded.tries, time = excluded.time`,
			p.Consumer, p.Position, p.Error, p.Tries, p.Time.UnixNano())
		return err
	}))
}

// Unpark forgets a parked event; false if there was none.
func (s *Store) Unpark(ctx context.Context, consumer string, position int64) (was bool, err error) {
	err = s.submit(ctx, newRequest(0, func(ctx context.Context, g *group) (err error) {
		if err := g.write(ctx); err != nil {
			return err
		}
		was, err = g.changed(ctx, `DELETE FROM parked WHERE consumer = ? AND position = ?`, consumer, position)
		return err
	}))
	return was && err == nil, err
}
