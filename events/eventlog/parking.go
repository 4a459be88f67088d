package eventlog

import (
	"context"
	"time"
)

// A Parked event is one that a process manager could not react to and that no
// later try would change: its jobs are missing until it is put back.
type Parked struct {
	Consumer string
	Position int64
	Error    string
	Tries    int
	Time     time.Time
}

// Parking keeps parked events beside the log. Every Store is one.
type Parking interface {
	// Park keeps p, in place of what was kept of the same consumer and
	// position.
	Park(ctx context.Context, p Parked) error
	// Parked returns what is parked, by consumer and position.
	Parked(ctx context.Context) ([]Parked, error)
	// Unpark forgets one; false if there was none.
	Unpark(ctx context.Context, consumer string, position int64) (bool, error)
}
