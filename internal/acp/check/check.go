// Package check tests whether an agent conforms to the Agent Client Protocol.
// Each row starts the agent afresh, so that one that crashes spoils one row.
// The ids of the rows are those of the public registry of acp-tck.
//
// What always holds: a row that could not be tested is never counted as passed;
// an agent is conformant only if every mandatory row passed and no row of a
// capability that it advertises failed; and every agent that was started has
// ended when [Run] returns.
package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"sync"
	"time"

	"roundtable/internal/acp/proc"
	"roundtable/internal/acp/rules"
)

// Tier is what a row counts for.
type Tier string

// The tiers.
const (
	Mandatory  Tier = "mandatory"  // failed or not tested: not conformant
	Capability Tier = "capability" // failed: not conformant; applies only if advertised
	Advisory   Tier = "advisory"   // reported only
)

// Status is the outcome of a row.
type Status string

// The outcomes.
const (
	Pass      Status = "pass"
	Fail      Status = "fail"
	Skip      Status = "skip"       // does not apply, or there was nothing to judge
	NotTested Status = "not tested" // the agent did not get that far
)

// Options are what to check and how.
type Options struct {
	Command      proc.Command
	Version      int           // 1 or 2
	Next         bool          // which draft of version 2
	CancelPrompt string        // keeps the agent busy until it is cancelled
	Prompt       string        // any other prompt; default "hello"
	AuthMethod   string        // to authenticate with
	Limit        time.Duration // for an answer; default 30 s
	Quiet        time.Duration // how long nothing more may come; default 200 ms
	Parallel     int           // rows at a time; default 1
	Filter       *regexp.Regexp
	NoBatches    bool      // leave the batch rows out
	Dir          string    // absolute working directory of sessions
	Stderr       io.Writer // gets what the agents write to standard error; may be nil
	Progress     func(Row) // called for each row, in order; may be nil
}

// A Row is one requirement and its outcome.
type Row struct {
	ID     string        `json:"id"`
	Tier   Tier          `json:"tier"`
	Title  string        `json:"title"`
	Status Status        `json:"status"`
	Detail string        `json:"detail,omitempty"`
	Took   time.Duration `json:"took_ns"`
}

// A Report is the outcome of all rows.
type Report struct {
	Agent      string `json:"agent"` // its name and version, as it says
	Version    int    `json:"protocol_version"`
	Conformant bool   `json:"conformant"`
	Reason     string `json:"reason,omitempty"` // why not, beside the rows
	Rows       []Row  `json:"rows"`
}

// skip is the error of a row that does not apply.
type skip string

// Error is the reason.
func (s skip) Error() string { return string(s) }

// row is a requirement as it is tested.
type row struct {
	id    string
	tier  Tier
	title string
	run   func(ctx context.Context, e *env) error
	// applies says why the row does not apply; "" if it does. Nil means that it
	// always does.
	applies func(e *env) string
}

// Run checks an agent. The clock times the rows. The error is about the
// options; what the agent does wrong is in the report.
func Run(ctx context.Context, o Options, clock func() time.Duration) (Report, error) {
	if o.Version != 1 && o.Version != 2 {
		return Report{}, fmt.Errorf("there is no check for protocol version %d", o.Version)
	}
	if o.Limit == 0 {
		o.Limit = 30 * time.Second
	}
	if o.Quiet == 0 {
		o.Quiet = 200 * time.Millisecond
	}
	if o.Prompt == "" {
		o.Prompt = "hello"
	}
	schemas, err := rules.Schemas(o.Next)
	if err != nil {
		return Report{}, err
	}
	e := &env{o: o, schemas: schemas, set: schemas[o.Version], broken: &broken{rules: map[string]string{}}}
	r := Report{Version: o.Version}
	if err := e.probe(ctx); err != nil {
		r.Reason = "the agent does not initialize: " + err.Error()
	} else {
		r.Agent = e.name
		if e.version != o.Version {
			r.Reason = fmt.Sprintf("VERSION-MISMATCH: the agent speaks version %d", e.version)
		}
	}
	rows := v1Rows()
	if o.Version == 2 {
		rows = v2Rows()
	}
	for _, rows := range [][]row{rows, aggregated(o.Version)} { // the latter look at all that went before
		done, err := e.all(ctx, rows, r.Reason, clock)
		r.Rows = append(r.Rows, done...)
		if err != nil {
			return r, err
		}
	}
	r.Conformant = r.Reason == "" && conforms(r.Rows)
	return r, nil
}

// all runs rows, some at a time, and reports them in order.
func (e *env) all(ctx context.Context, rows []row, blocked string, clock func() time.Duration) ([]Row, error) {
	rows = slices.DeleteFunc(rows, func(r row) bool { return e.o.Filter != nil && !e.o.Filter.MatchString(r.id) })
	out := make([]chan Row, len(rows))
	slots := make(chan struct{}, max(1, e.o.Parallel))
	var work sync.WaitGroup
	defer work.Wait()
	for i, r := range rows {
		out[i] = make(chan Row, 1)
		work.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			if ctx.Err() != nil {
				out[i] <- Row{ID: r.id, Tier: r.tier, Title: r.title, Status: NotTested, Detail: ctx.Err().Error()}
				return
			}
			begin := clock()
			row := e.test(ctx, r, blocked)
			row.Took = clock() - begin
			out[i] <- row
		})
	}
	var done []Row
	for _, c := range out {
		row := <-c
		done = append(done, row)
		if e.o.Progress != nil {
			e.o.Progress(row)
		}
	}
	return done, ctx.Err()
}

func conforms(rows []Row) bool {
	for _, row := range rows {
		switch {
		case row.Tier == Mandatory && (row.Status == Fail || row.Status == NotTested):
			return false
		case row.Tier == Capability && row.Status == Fail:
			return false
		}
	}
	return len(rows) > 0
}

// test runs one row with agents of its own.
func (e *env) test(ctx context.Context, r row, blocked string) Row {
	shared := e
	e = shared.own()
	out := Row{ID: r.id, Tier: r.tier, Title: r.title, Status: Pass}
	if blocked != "" && e.caps == nil {
		out.Status, out.Detail = NotTested, blocked
		return out
	}
	if r.applies != nil {
		if why := r.applies(e); why != "" {
			out.Status, out.Detail = Skip, why
			return out
		}
	}
	err := r.run(ctx, e)
	shared.keep(e.closeAll())
	if reason, ok := errors.AsType[skip](err); ok {
		out.Status, out.Detail = Skip, string(reason)
	} else if err != nil {
		out.Status, out.Detail = Fail, err.Error()
	}
	return out
}

// Count is how many rows of a tier have a status; "" is any tier.
func (r Report) Count(t Tier, s Status) (n int) {
	for _, row := range r.Rows {
		if (t == "" || row.Tier == t) && row.Status == s {
			n++
		}
	}
	return n
}
