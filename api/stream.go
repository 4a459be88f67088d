package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

type streamIn struct {
	After int64 `json:"after,omitempty" jsonschema:"only events after this position" min:"0"`
	filter
}

// skipMark is how many events may go by that a filter holds back until the
// client is told where the stream is, so that coming back does not mean
// looking through them again.
const skipMark = 1000

// A reader is one open stream. Its position is all that it has to remember.
type reader struct {
	feed      *Feed
	w         http.ResponseWriter
	ctl       *http.ResponseController
	again     func(context.Context) error
	filter    filter
	workspace string

	at        int64 // position of the newest event that was looked at
	told      int64 // position that the client knows of
	unflushed bool
	ripe      <-chan time.Time // when a flush may follow the last one; nil: now
}

// serve answers with a stream. All that can be wrong is said before it starts.
func (f *Feed) serve(w http.ResponseWriter, r *http.Request, q Request) error {
	var in streamIn
	if err := op.Decode(q.In, op.SchemaOf[streamIn](), &in); err != nil {
		return err
	}
	ctx := r.Context()
	if err := f.known(ctx, q.Call); err != nil {
		return err
	}
	at, err := start(r, in.After)
	if err != nil {
		return err
	}
	head, _, err := f.Log.Head(ctx)
	if err != nil {
		return err
	}
	if at > head {
		return beyond(at, head)
	}
	if err := f.enter(q.Who.ID); err != nil {
		return err
	}
	defer f.leave(q.Who.ID)
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	s := &reader{feed: f, w: w, ctl: http.NewResponseController(w), again: q.Again,
		filter: in.filter, workspace: q.Workspace, at: at, told: at}
	w.WriteHeader(http.StatusOK)
	if !s.write([]byte("retry: 2000\n\n")) || !s.flush() {
		return nil
	}
	return s.loop(ctx)
}

// loop sends until the client, its right or the service ends. Each of these is
// an ordinary end; an error is one of the log.
func (s *reader) loop(ctx context.Context) error {
	beat, recheck := time.NewTimer(s.feed.Heartbeat), time.NewTicker(s.feed.Recheck)
	defer beat.Stop()
	defer recheck.Stop()
	revoked := s.feed.Revoked()
	buf := make([]frame, 0, burst)
	for {
		frames, signal, behind := s.feed.take(s.at, buf[:0])
		if behind {
			var err error
			if frames, err = s.page(ctx); err != nil {
				return s.ended(ctx, err)
			}
		}
		if len(frames) > 0 || behind {
			if !s.send(frames) || ctx.Err() != nil {
				return nil
			}
			if !s.due(recheck.C, &revoked, ctx) {
				return nil
			}
			continue
		}
		// Before every wait what was written goes out, or is about to.
		var ripe <-chan time.Time
		if s.unflushed {
			if s.ripe == nil {
				if !s.flush() {
					return nil
				}
				beat.Reset(s.feed.Heartbeat)
				continue
			}
			ripe = s.ripe
		}
		select {
		case <-signal:
		case <-ripe:
			s.ripe = nil
		case <-beat.C:
			if !s.beat() {
				return nil
			}
			beat.Reset(s.feed.Heartbeat)
		case <-recheck.C:
			if s.again(ctx) != nil {
				return nil
			}
		case <-revoked:
			revoked = s.feed.Revoked()
			if s.again(ctx) != nil {
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// due checks the caller's right in the midst of sending, if it is time to, and
// reports whether it still holds.
func (s *reader) due(recheck <-chan time.Time, revoked *<-chan struct{}, ctx context.Context) bool {
	select {
	case <-recheck:
	case <-*revoked:
		*revoked = s.feed.Revoked()
	default:
		return true
	}
	return s.again(ctx) == nil
}

// ended returns err unless it comes from the end of the request.
func (s *reader) ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// page reads what comes after the position from the log: for a client that
// comes back, one that is slow and one that is new alike.
func (s *reader) page(ctx context.Context) ([]frame, error) {
	recs, err := s.feed.Log.Since(ctx, s.at, pageSize)
	if err != nil {
		return nil, err
	}
	if len(recs) == 0 {
		return nil, fault.Errorf(fault.Internal, "internal", "the log has nothing after %d, and the ring had", s.at)
	}
	frames := make([]frame, 0, len(recs))
	for _, r := range recs {
		fr, err := render(r)
		if err != nil {
			return nil, err
		}
		frames = append(frames, fr)
	}
	return frames, nil
}

// send writes the frames that match and goes on to the position of the last.
func (s *reader) send(frames []frame) bool {
	for i := range frames {
		fr := &frames[i]
		s.at = fr.position
		if s.filter.matches(fr, s.workspace) {
			if !s.write(fr.text) {
				return false
			}
			s.told = s.at
		}
	}
	if s.at-s.told >= skipMark && !s.mark() {
		return false
	}
	return true
}

// mark tells the client where the stream is by a block that is no event.
func (s *reader) mark() bool {
	s.told = s.at
	return s.write([]byte("id: " + strconv.FormatInt(s.at, 10) + "\n\n"))
}

// beat shows the client, and whatever stands between, that the stream lives.
func (s *reader) beat() bool {
	if s.told < s.at {
		return s.mark() && s.flush()
	}
	return s.write([]byte(": \n\n")) && s.flush()
}

// write sends b, and reports whether the client still takes it.
func (s *reader) write(b []byte) bool {
	if err := s.ctl.SetWriteDeadline(s.feed.Now().Add(s.feed.WriteTime)); err != nil {
		return false
	}
	s.unflushed = true
	_, err := s.w.Write(b)
	return err == nil
}

func (s *reader) flush() bool {
	s.unflushed = false
	s.ripe = time.After(s.feed.Coalesce)
	return s.ctl.Flush() == nil
}
