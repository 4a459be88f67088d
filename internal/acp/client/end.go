package client

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"roundtable/internal/acp"
	"roundtable/internal/acp/proc"
)

// Reason is why a connection or a turn ended otherwise than it should.
type Reason string

// The reasons.
const (
	NotStarted     Reason = "not_started"     // there is no process
	Crashed        Reason = "crashed"         // the process ended, or closed its output
	Hung           Reason = "hung"            // a limit passed without an answer
	BrokenProtocol Reason = "protocol_error"  // it could not be followed any longer
	RefusedVersion Reason = "refused_version" // no version in common
	Refused        Reason = "refused"         // the agent answered initialize with an error
)

// An EndError says why the agent cannot go on.
type EndError struct {
	Reason Reason
	Exit   *proc.Exit // nil if the process has not ended
	Stderr string     // the end of its standard error, if it has ended
	Err    error      // more; may be nil
}

// Error is the reason with all that is known, on one line but for standard
// error.
func (e *EndError) Error() string {
	text := string(e.Reason)
	if e.Exit != nil {
		text += ": the agent ended with " + e.Exit.String()
	}
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	if tail := strings.TrimSpace(e.Stderr); tail != "" {
		lines := strings.Split(tail, "\n")
		text += "; it said: " + lines[len(lines)-1]
	}
	return text
}

// Unwrap is the cause.
func (e *EndError) Unwrap() error { return e.Err }

// explain says more about a connection that is over.
func (c *Client) explain(err error) error {
	if _, known := errors.AsType[*EndError](err); known || !errors.Is(err, acp.ErrClosed) {
		return err
	}
	timer := time.NewTimer(500 * time.Millisecond) // output ends a moment before the process does
	defer timer.Stop()
	end := &EndError{Reason: Crashed}
	select {
	case <-c.proc.Done():
		end.Exit, end.Stderr = new(c.proc.Exit()), c.proc.Tail()
	case <-timer.C:
		end.Err = fmt.Errorf("the agent closed its output: %w", err)
	}
	return end
}
