package api

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
)

// Bounds of the feed that hold where its configuration says nothing.
const (
	MaxStreams    = 2000 // open streams in all
	MaxStreamsOne = 32   // open streams of one principal

	ringFrames = 4096
	ringBytes  = 16 << 20
	pageSize   = 256 // records read from the log at once
	burst      = 64  // frames written before the stream looks up again
)

// A Log is what the feed reads: an eventlog.Store.
type Log interface {
	Since(ctx context.Context, position int64, limit int) ([]events.Record, error)
	Head(ctx context.Context) (position int64, hash string, err error)
	Changed() <-chan struct{}
}

// A FeedConfig says what is streamed and within which bounds.
type FeedConfig struct {
	Log Log
	// Known returns a fault.NotFound for a workspace there is not.
	Known func(ctx context.Context, workspace string) error
	// Revoked returns a channel that is closed when next a principal, a role
	// or a token changes: then every stream checks its right again. Without it
	// they do so only every Recheck.
	Revoked func() <-chan struct{}
	Metrics *prometheus.Registry
	Logger  *slog.Logger
	Now     func() time.Time // the real time: deadlines of connections are made from it

	MaxStreams, MaxStreamsOne int // 0: the constants
	Ring                      int // how many events are kept rendered; 0: 4096
	// Heartbeat is how long a stream is silent at most, Coalesce how soon one
	// flush may follow another, WriteTime how long a client may refuse to
	// read, Recheck how long a right is believed. 0: 15 s, 20 ms, 15 s, 5 s.
	Heartbeat, Coalesce, WriteTime, Recheck time.Duration
}

// A Feed follows the log and renders each event once, for any number of
// streams. A stream is a loop with a position and nothing else; there is no
// list of them to send to, and so nothing that a slow one could hold up.
type Feed struct {
	FeedConfig

	mu     sync.RWMutex
	frames []frame       // consecutive positions, the oldest first
	base   int64         // position before the oldest; before Run has begun, that of nothing
	live   bool          // Run has begun
	bytes  int           // of all frames
	signal chan struct{} // closed and replaced when frames come

	openMu sync.Mutex
	open   map[string]int // streams by principal
	opened int
	gauge  prometheus.Gauge
}

// A frame is an event as it is sent, and what filters look at. It is never
// changed.
type frame struct {
	position                      int64
	workspace, typ, stream, actor string
	text                          []byte
}

// NewFeed returns a feed whose Run has not begun. It fails on metrics that are
// registered already.
func NewFeed(cfg FeedConfig) (*Feed, error) {
	if cfg.Log == nil || cfg.Known == nil || cfg.Metrics == nil || cfg.Logger == nil || cfg.Now == nil {
		return nil, errors.New("api: the configuration of the feed lacks a part")
	}
	for p, v := range map[*int]int{&cfg.MaxStreams: MaxStreams, &cfg.MaxStreamsOne: MaxStreamsOne, &cfg.Ring: ringFrames} {
		if *p == 0 {
			*p = v
		}
	}
	for p, v := range map[*time.Duration]time.Duration{
		&cfg.Heartbeat: 15 * time.Second, &cfg.Coalesce: 20 * time.Millisecond,
		&cfg.WriteTime: 15 * time.Second, &cfg.Recheck: 5 * time.Second,
	} {
		if *p == 0 {
			*p = v
		}
	}
	if cfg.Revoked == nil {
		cfg.Revoked = func() <-chan struct{} { return nil }
	}
	f := &Feed{FeedConfig: cfg, signal: make(chan struct{}), open: map[string]int{}, gauge: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "roundtable_stream_subscribers", Help: "Open event streams.",
	})}
	return f, cfg.Metrics.Register(f.gauge)
}

// Run follows the log until ctx ends or the log is closed, and then returns
// nil. A log that cannot be read is logged and tried again: streams wait
// meanwhile, and have missed nothing after.
func (f *Feed) Run(ctx context.Context) error {
	var retry time.Duration
	for {
		_, before := f.end()
		err := f.follow(ctx)
		if ctx.Err() != nil || errors.Is(err, eventlog.ErrClosed) {
			return nil
		}
		f.Logger.ErrorContext(ctx, "event feed cannot read the log", "error", err)
		if _, now := f.end(); now != before {
			retry = 0
		}
		retry = min(max(2*retry, 100*time.Millisecond), 5*time.Second)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(retry):
		}
	}
}

// follow puts what is appended into the ring until something fails.
func (f *Feed) follow(ctx context.Context) error {
	at, err := f.begin(ctx)
	for err == nil {
		changed := f.Log.Changed() // before reading: then no append is missed
		var recs []events.Record
		recs, err = f.Log.Since(ctx, at, pageSize)
		if err != nil {
			break
		}
		if len(recs) > 0 {
			at = recs[len(recs)-1].Position
			err = f.add(recs)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// begin returns the position to follow from: the end of the ring, or of the
// log if there is no ring yet.
func (f *Feed) begin(ctx context.Context) (int64, error) {
	if live, end := f.end(); live {
		return end, nil
	}
	head, _, err := f.Log.Head(ctx)
	if err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.live, f.base = true, head
	f.wake()
	return head, nil
}

// end returns the position of the newest frame, once there is a ring.
func (f *Feed) end() (live bool, position int64) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.live, f.base + int64(len(f.frames))
}

// add renders records and puts them into the ring.
func (f *Feed) add(recs []events.Record) error {
	frames := make([]frame, len(recs))
	for i, r := range recs {
		var err error
		if frames[i], err = render(r); err != nil {
			return err
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if end := f.base + int64(len(f.frames)); frames[0].position != end+1 {
		return fmt.Errorf("the log goes on at %d after %d", frames[0].position, end)
	}
	for _, fr := range frames {
		f.bytes += len(fr.text)
	}
	f.frames = append(f.frames, frames...)
	drop := 0
	for ; drop < len(f.frames)-1 && (len(f.frames)-drop > f.Ring || f.bytes > ringBytes); drop++ {
		f.bytes -= len(f.frames[drop].text)
		f.frames[drop] = frame{} // readers have copies
	}
	f.frames, f.base = f.frames[drop:], f.base+int64(drop)
	f.wake()
	return nil
}

// wake tells all who wait. f.mu is held.
func (f *Feed) wake() {
	close(f.signal)
	f.signal = make(chan struct{})
}

// take returns the frames after position that the ring has, at most a burst of
// them, copied into buf. behind: the ring begins later, read the log. With no
// frames, signal is closed when there are some.
func (f *Feed) take(position int64, buf []frame) (frames []frame, signal <-chan struct{}, behind bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	switch {
	case !f.live:
		return nil, f.signal, false
	case position < f.base:
		return nil, nil, true
	case position >= f.base+int64(len(f.frames)):
		return nil, f.signal, false
	}
	next := f.frames[position-f.base:]
	return append(buf, next[:min(len(next), burst)]...), f.signal, false
}

// render writes an event as a block of a stream.
func render(r events.Record) (frame, error) {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false) // stored data must come out as it was stored
	if err := enc.Encode(r); err != nil {
		return frame{}, fmt.Errorf("event %d: %w", r.Position, err)
	}
	text := make([]byte, 0, data.Len()+len(r.Type)+48)
	text = append(text, "id: "...)
	text = strconv.AppendInt(text, r.Position, 10)
	text = append(append(text, "\nevent: "...), r.Type...)
	text = append(append(text, "\ndata: "...), data.Bytes()...) // which ends with a newline and has no other
	text = append(text, '\n')
	return frame{position: r.Position, workspace: r.Workspace, typ: r.Type, stream: string(r.Stream), actor: r.Actor, text: text}, nil
}

// enter counts a stream of a principal in, within the bounds.
func (f *Feed) enter(who string) error {
	f.openMu.Lock()
	defer f.openMu.Unlock()
	switch {
	case f.open[who] >= f.MaxStreamsOne:
		return fault.Errorf(fault.Limit, "too_many_streams", "one principal may have %d streams open; close one", f.MaxStreamsOne).With("max_streams", f.MaxStreamsOne)
	case f.opened >= f.MaxStreams:
		return fault.Errorf(fault.Limit, "too_many_streams", "the service has all of its %d streams open; try again later", f.MaxStreams).With("max_streams", f.MaxStreams)
	}
	f.open[who]++
	f.opened++
	f.gauge.Inc()
	return nil
}

func (f *Feed) leave(who string) {
	f.openMu.Lock()
	defer f.openMu.Unlock()
	if f.open[who]--; f.open[who] == 0 {
		delete(f.open, who)
	}
	f.opened--
	f.gauge.Dec()
}
