package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
	"roundtable/internal/repo"
	"roundtable/process"
)

// failpointVar names the environment variable that tests of crashes set. Its
// value says where this process kills itself: apply:NAME[:N] before the N-th
// time that an apply comes to NAME, recover:NAME[:N] the same of a
// recovery, resolve:NAME[:N] the same of keeping what a person decided to
// keep; or recover:off, and what a dead process left is not settled.
// process/DESIGN.md lists the names.
const failpointVar = "ROUNDTABLE_FAILPOINT"

// jobPoints are the names around the log; the others are the steps of the
// writer, and "step" is any of them.
var jobPoints = []string{"intent", "queued", "leased", "report", "reported", "close", "closed"}

// tellPoints are around the telling of what a recovery found.
var tellPoints = []string{"tell", "told"}

var writerSteps = []string{"step", "plan", "stage", "images", "stage_sync", "write", "name", "name_sync", "journal_sync", "mkdir", "create", "replace",
	"replace_linked", "delete", "displaced", "rmdir", "sync", "verify", "ref_sync", "marked", "look", "remove", "take", "put", "swap", "place"}

// A failpoint is where the process is to die; nil is nowhere.
type failpoint struct {
	of, name string       // of is apply, recover or resolve
	torn     bool         // settle nothing
	taken    atomic.Bool  // a job of that kind, or one was
	working  atomic.Bool  // a job of any kind was taken: recovery at the start is over
	to, was  atomic.Int64 // dies when it has come there so often
}

// The kinds of jobs that can die; recovering is no job.
const (
	applying   = "apply"
	resolving  = "resolve"
	recovering = "recover"
)

// newFailpoint reads the variable; an empty one is no failpoint.
func newFailpoint(text string) (*failpoint, error) {
	if text == "" {
		return nil, nil
	}
	bad := fault.Errorf(fault.Invalid, "invalid_failpoint", "%s=%s: write apply:NAME[:N], resolve:NAME[:N], recover:NAME[:N] or recover:off; NAME is one of %s",
		failpointVar, text, strings.Join(slices.Concat(jobPoints, tellPoints, writerSteps), ", "))
	part := strings.Split(text, ":")
	if text == "recover:off" {
		return &failpoint{torn: true}, nil
	}
	if len(part) < 2 || len(part) > 3 || !slices.Contains([]string{applying, resolving, recovering}, part[0]) {
		return nil, bad
	}
	f := &failpoint{of: part[0], name: part[1]}
	around := jobPoints
	if f.of == recovering {
		around = tellPoints
	}
	if !slices.Contains(writerSteps, f.name) && !slices.Contains(around, f.name) {
		return nil, bad
	}
	f.to.Store(1)
	if len(part) == 3 {
		n, err := strconv.ParseInt(part[2], 10, 64)
		if err != nil || n < 1 {
			return nil, bad
		}
		f.to.Store(n)
	}
	return f, nil
}

// at is told where the process is, and may not return.
func (f *failpoint) at(name string) {
	if f.torn || f.name != name || f.was.Add(1) != f.to.Load() {
		return
	}
	err := syscall.Kill(os.Getpid(), syscall.SIGKILL)
	panic(fmt.Sprint("still alive: ", err))
}

// steps hears the writer's steps before then does.
func (f *failpoint) steps(then func(repo.Step)) func(repo.Step) {
	if f == nil {
		return then
	}
	return func(s repo.Step) {
		then(s)
		back := s.Phase == repo.Back
		if f.of == recovering && s.Phase == repo.Finish {
			back = !f.working.Load() // what a recovery has told goes
		}
		if (f.of == recovering) != back || f.of == resolving && !f.taken.Load() {
			return
		}
		f.at(s.Name)
		f.at("step")
	}
}

// around returns the store with the failpoint around what an apply does there.
func (f *failpoint) around(s process.Store) process.Store {
	if f == nil {
		return s
	}
	return dying{s, f}
}

// settles says whether what a dead process left is settled.
func (f *failpoint) settles() bool { return f == nil || !f.torn }

// dying is a store whose process may die around what a job does with it.
type dying struct {
	process.Store
	f *failpoint
}

// Enqueue may die before and after the job is written.
func (d dying) Enqueue(ctx context.Context, consumer string, position int64, jobs []eventlog.Job) error {
	mine := slices.ContainsFunc(jobs, func(j eventlog.Job) bool { return j.Kind == d.f.of })
	return d.between(mine, "intent", "queued", func() error { return d.Store.Enqueue(ctx, consumer, position, jobs) })
}

// Lease may die once the job is taken.
func (d dying) Lease(ctx context.Context, kind string, now, until time.Time) (j eventlog.Job, ok bool, err error) {
	j, ok, err = d.Store.Lease(ctx, kind, now, until)
	if ok {
		d.f.working.Store(true)
	}
	if ok && kind == d.f.of {
		d.f.taken.Store(true)
		d.f.at("leased")
	}
	return j, ok, err
}

// Append may die before and after the job's outcome is written.
func (d dying) Append(ctx context.Context, b eventlog.Batch, again eventlog.Decide) (o eventlog.Outcome, err error) {
	mine := slices.ContainsFunc(b.Happened, func(p events.Payload) bool {
		switch p.(type) {
		case events.TransactionApplied, events.TransactionFailed:
			return d.f.of == applying
		case events.TransactionResolved, events.TransactionResolveFailed:
			return d.f.of == resolving
		case events.TransactionRecovered:
			return d.f.of == recovering
		}
		return false
	})
	before, after := "report", "reported"
	if d.f.of == recovering {
		before, after = tellPoints[0], tellPoints[1]
	}
	err = d.between(mine, before, after, func() (err error) {
		o, err = d.Store.Append(ctx, b, again)
		return err
	})
	return o, err
}

// Finish may die before and after the job is closed.
func (d dying) Finish(ctx context.Context, j eventlog.Job) error {
	return d.between(j.Kind == d.f.of, "close", "closed", func() error { return d.Store.Finish(ctx, j) })
}

func (d dying) between(mine bool, before, after string, do func() error) error {
	if mine {
		d.f.at(before)
	}
	err := do()
	if mine && err == nil {
		d.f.at(after)
	}
	return err
}
