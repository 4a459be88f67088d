package process

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"roundtable/events/eventlog"
)

// A Worker does the jobs of one kind. Do must be safe to run again after a
// crash at any point of an earlier run. An error means that the outcome is not
// known or could not be reported: the job stays, and is tried again later.
type Worker struct {
	Kind  string
	Slots int // jobs done at once
	Do    func(ctx context.Context, j eventlog.Job) error
}

// Lease is for how long a job is taken at a time; a running worker extends it.
const Lease = 30 * time.Second

// Pool runs workers over the jobs of a store.
type Pool struct {
	Store eventlog.Store
	Log   *slog.Logger
	Now   func() time.Time
}

// Run does jobs as they come, until ctx ends, and returns when what ran has
// ended. It begins with those that a process before it had taken: the lock on
// the data folder says that it is gone.
func (p Pool) Run(ctx context.Context, w Worker) error {
	jobs := make(chan eventlog.Job)
	var wg sync.WaitGroup
	for range max(w.Slots, 1) {
		wg.Go(func() {
			for j := range jobs {
				p.do(ctx, w, j)
			}
		})
	}
	defer wg.Wait()
	defer close(jobs)
	orphans, err := p.orphans(ctx, w.Kind)
	if err != nil {
		return ended(ctx, err)
	}
	for _, j := range orphans {
		select {
		case jobs <- j:
		case <-ctx.Done():
			return nil
		}
	}
	for {
		queued := p.Store.Queued()
		j, ok, err := p.Store.Lease(ctx, w.Kind, p.Now(), p.Now().Add(Lease))
		if err != nil {
			return ended(ctx, err)
		}
		if ok {
			select {
			case jobs <- j:
				continue
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-queued:
		case <-time.After(time.Second): // a job given back comes due without a signal
		case <-ctx.Done():
			return nil
		}
	}
}

// orphans takes over every job whose lease was made before this process.
func (p Pool) orphans(ctx context.Context, kind string) (out []eventlog.Job, err error) {
	seen := map[string]bool{}
	for {
		j, ok, err := p.Store.Lease(ctx, kind, p.Now().Add(Lease), p.Now().Add(2*Lease))
		if err != nil || !ok || seen[j.ID] {
			return out, err
		}
		seen[j.ID] = true
		out = append(out, j)
	}
}

// do does one job under a lease that is extended meanwhile.
func (p Pool) do(ctx context.Context, w Worker, j eventlog.Job) {
	work, stop := context.WithCancel(ctx)
	var beat sync.WaitGroup
	beat.Go(func() { p.extend(work, stop, j) })
	err := w.Do(work, j)
	stop()
	beat.Wait()
	after := context.WithoutCancel(ctx) // the work is done: say so also at shutdown
	if err == nil {
		if err = p.Store.Finish(after, j); err == nil || errors.Is(err, eventlog.ErrLeaseLost) {
			return
		}
	}
	if ctx.Err() == nil {
		p.Log.ErrorContext(ctx, "job failed and will be tried again", "kind", j.Kind, "job", j.ID, "attempt", j.Attempt, "err", err)
	}
	if err := p.Store.Release(after, j, p.Now().Add(backoff(j.Attempt)), err.Error()); err != nil && ctx.Err() == nil {
		p.Log.ErrorContext(ctx, "job could not be given back; it is free when its lease ends", "job", j.ID, "err", err)
	}
}

func backoff(attempt int) time.Duration {
	return min(time.Second<<min(max(attempt-1, 0), 6), time.Minute)
}

func (p Pool) extend(ctx context.Context, lost context.CancelFunc, j eventlog.Job) {
	t := time.NewTicker(Lease / 3)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			err := p.Store.Extend(ctx, j, p.Now().Add(Lease))
			if errors.Is(err, eventlog.ErrLeaseLost) {
				p.Log.ErrorContext(ctx, "lease lost", "job", j.ID)
				lost()
				return
			}
		case <-ctx.Done():
			return
		}
	}
}

func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}
