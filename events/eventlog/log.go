// Package eventlog is the one history: append, read, follow, verify. It knows
// no event by name.
//
// What always holds, for every Store:
//   - Positions are 1, 2, 3, … in commit order: a reader that has seen
//     position n will never meet a new event at or below n.
//   - Versions of one stream are 1, 2, 3, …
//   - A batch is written whole or not at all, and only if every stream its
//     decision rests on is still at the version that was read.
//   - A command has one outcome, written with what it did.
//   - Nobody is answered before what they are told is durable.
//   - A row is never changed; each row's hash covers the row before it.
package eventlog

import (
	"context"
	"errors"
	"time"

	"roundtable/events"
)

// Errors a Store returns for what its callers must tell apart.
var (
	// ErrMoved: something the batch rests on has moved and the decision could
	// not be made again inside the group. Load again and decide again.
	ErrMoved = errors.New("the log has moved on")
	// ErrFull: too many appends are waiting. Later is fine.
	ErrFull = errors.New("too many commands are waiting")
	// ErrClosed: the store is closed or closing.
	ErrClosed = errors.New("the log is closed")
	// ErrUnknown: the outcome of a commit could not be learned. Repeating the
	// command under its key tells.
	ErrUnknown = errors.New("the outcome of the commit is not known")
	// ErrLeaseLost: another worker has the job now.
	ErrLeaseLost = errors.New("the lease was lost")
)

// A Batch is what one command did.
type Batch struct {
	Meta     events.Meta
	Digest   []byte                  // of the command's input
	Expect   map[events.Stream]int64 // the version of every stream the decision rests on
	Happened []events.Payload        // of streams in Expect; none if the command changed nothing
	Answer   []byte                  // what a repeat of the command is told besides the position; at most MaxAnswer
}

// MaxAnswer bounds Batch.Answer, in bytes.
const MaxAnswer = 4096

// An Outcome is what a command came to.
type Outcome struct {
	Digest   []byte // of its input
	Position int64  // of its newest event; of the newest event of the log if it changed nothing
	Answer   []byte
	Repeated bool // the command had run before; its Digest may differ from the batch's
}

// A View is the log as one decision sees it.
type View interface {
	// Stream returns the events of s after version, oldest first.
	Stream(ctx context.Context, s events.Stream, version int64) ([]events.Event, error)
	// Memo holds folded states for the decisions of one group and is dropped
	// with it; nil outside a group. An entry is used only if the caller has
	// checked its version by Stream.
	Memo() map[events.Stream]any
}

// Decide makes a decision again, on what the group has made so far. It must be
// quick and touch nothing but the view: no files, no clock, no waiting. It may
// return ErrMoved if it needs something that has to be gathered outside. Any
// error is the answer of this one request and writes nothing.
type Decide func(ctx context.Context, v View) (Batch, error)

// A Store keeps one log. What each method promises is in logtest.Suite, which
// every store passes.
type Store interface {
	// Append writes a batch with its outcome, or none of it. If a guard has
	// moved, again is called inside the group; nil means: return ErrMoved. If
	// the command's key is known, the stored outcome is returned and nothing
	// is written.
	Append(ctx context.Context, b Batch, again Decide) (Outcome, error)
	// Outcome returns that of actor's command, if it has run.
	Outcome(ctx context.Context, actor, key string) (Outcome, bool, error)
	// Stream returns the events of s after version, oldest first.
	Stream(ctx context.Context, s events.Stream, version int64) ([]events.Event, error)
	// Since returns up to limit records after position, oldest first.
	Since(ctx context.Context, position int64, limit int) ([]events.Record, error)
	// Head returns the newest position and its hash; 0 and "" of an empty log.
	Head(ctx context.Context) (position int64, hash string, err error)
	// Changed returns a channel that is closed at the next append, from any
	// node. Take it before reading: then no append is missed.
	Changed() <-chan struct{}

	// Snapshot returns the kept state of a stream that has no end, if one was
	// kept by the same code. It is disposable.
	Snapshot(ctx context.Context, s events.Stream, code string) (version int64, state []byte, ok bool, err error)
	// KeepSnapshot replaces it.
	KeepSnapshot(ctx context.Context, s events.Stream, code string, version int64, state []byte) error

	// Checkpoint returns the position up to which consumer has done its work.
	Checkpoint(ctx context.Context, consumer string) (int64, error)
	// Enqueue writes jobs and moves consumer's checkpoint to position,
	// together. A job whose id is known is left as it is. A checkpoint never
	// goes back.
	Enqueue(ctx context.Context, consumer string, position int64, jobs []Job) error
	// Lease takes the oldest job of kind that is free or whose lease has ended
	// at now, until until, under a fence one higher than the last.
	Lease(ctx context.Context, kind string, now, until time.Time) (Job, bool, error)
	// Extend moves the end of a lease that is still held.
	Extend(ctx context.Context, j Job, until time.Time) error
	// Release gives a job back that could not be done now; it is free again at until.
	Release(ctx context.Context, j Job, until time.Time, why string) error
	// Finish ends a job; ErrLeaseLost if another has it.
	Finish(ctx context.Context, j Job) error
	// Queued returns a channel that is closed when next a job is written,
	// released or finished.
	Queued() <-chan struct{}

	// Close refuses new work, waits for what runs and closes the files.
	Close() error
}

// A Job is work asked for by one event.
type Job struct {
	ID      string // made from its event's id, so that an event read twice makes no second job
	Kind    string
	Event   string // id of the event
	Stream  events.Stream
	Data    []byte      // JSON
	Meta    events.Meta // of the event: what the report's meta is made from
	Attempt int         // leases so far
	Fence   int64       // of this lease
}
