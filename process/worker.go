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
	slots := make(chan struct{}, max(w.Slots, 1))
	var wg sync.WaitGroup
	defer wg.Wait()
	if err := p.takeOver(ctx, w.Kind); err != nil {
		return ended(ctx, err)
	}
	for {
		// A job is taken only when it can begin: nobody extends the lease of
		// one that waits.
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return nil
		}
		queued := p.Store.Queued()
		j, ok, err := p.Store.Lease(ctx, w.Kind, p.Now(), p.Now().Add(Lease))
		if err != nil {
			return ended(ctx, err)
		}
		if ok {
			wg.Go(func() {
				defer func() { <-slots }()
				p.do(ctx, w, j)
			})
			continue
		}
		<-slots
		select {
		case <-queued:
		case <-time.After(time.Second): // a job given back comes due without a signal
		case <-ctx.Done():
			return nil
		}
	}
}

// horizon is further away than any lease or wait ends, also after a clock that
// was set back.
const horizon = 24 * time.Hour

// takeOver frees every job that was left by the process before this one, also
// if that died while it took over.
func (p Pool) takeOver(ctx context.Context, kind string) error {
	var left []eventlog.Job
	for at := p.Now().Add(horizon); ; {
		j, ok, err := p.Store.Lease(ctx, kind, at, at.Add(1)) // so that the next one is another
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		left = append(left, j)
	}
	for _, j := range left {
		if err := p.Store.Release(ctx, j, p.Now(), "left by a process that has ended"); err != nil {
			return err
		}
	}
	return nil
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
