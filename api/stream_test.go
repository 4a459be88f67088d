package api_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"roundtable/api"
	"roundtable/events"
	"roundtable/internal/auth"
)

const (
	stream = "/api/v1/workspaces/WS-1/events/stream"
	every  = "/api/v1/events/stream"
)

// A block is what a stream sends at once.
type block struct {
	id, event, data, comment string
}

// A listener reads a stream.
type listener struct {
	t    *testing.T
	body io.ReadCloser
	in   *bufio.Scanner
}

// listen opens a stream; the test's end closes it.
func (r *rig) listen(path, token string, headers ...string) *listener {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	req, err := http.NewRequestWithContext(ctx, "GET", r.url+path, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { cancel(); resp.Body.Close() })
	if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || resp.Header.Get("X-Accel-Buffering") != "no" {
		b, _ := io.ReadAll(resp.Body)
		r.t.Fatalf("stream: %d %v %s", resp.StatusCode, resp.Header, b)
	}
	l := &listener{r.t, resp.Body, bufio.NewScanner(resp.Body)}
	l.in.Buffer(nil, 1<<20)
	if b, ok := l.next(); !ok || b != (block{}) {
		r.t.Fatalf("the stream does not begin with its retry: %+v", b)
	}
	return l
}

// next returns the next block, or false at the end of the stream.
func (l *listener) next() (b block, ok bool) {
	for l.in.Scan() {
		line := l.in.Text()
		key, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "":
			return b, true
		case key == "id":
			b.id = value
		case key == "event":
			b.event = value
		case key == "data":
			b.data = value
		case key == "":
			b.comment = line
		case line == "retry: 2000":
		default:
			l.t.Errorf("odd line %q", line)
		}
	}
	return b, false
}

// want reads the events from position from to position to.
func (l *listener) want(from, to int) {
	l.t.Helper()
	for at := from; at <= to; {
		b, ok := l.next()
		if !ok {
			l.t.Fatalf("the stream ended before %d: %v", at, l.in.Err())
		}
		if b.data == "" {
			continue
		}
		if b.id != strconv.Itoa(at) || b.event != "task.created" || !strings.Contains(b.data, fmt.Sprintf(`"data":{"title":"<%d>"}`, at)) {
			l.t.Fatalf("got %+v at %d", b, at)
		}
		at++
	}
}

// ends reads until the stream ends.
func (l *listener) ends() {
	for ok := true; ok; {
		_, ok = l.next()
	}
	if errors.Is(l.in.Err(), context.DeadlineExceeded) {
		l.t.Fatal("the stream did not end")
	}
}

func TestStream(t *testing.T) {
	// No beat pushes out what a missing flush would leave behind.
	r := newRig(t, func(_ *api.Config, f *api.FeedConfig) { f.Heartbeat = time.Hour })
	r.log.add(300, nil)
	all := r.listen(stream, "agent")
	from := r.listen(stream+"?after=290", "agent")
	over := r.listen(stream+"?after=7", "agent", "Last-Event-ID", "295")
	server := r.listen(every+"?after=299", "auditor")
	all.want(1, 300)
	r.log.add(1, nil)
	r.log.add(5000, nil)
	all.want(301, 5301)
	from.want(291, 5301)
	over.want(296, 5301)
	server.want(300, 5301)
	r.log.add(1, nil)
	all.want(5302, 5302)
}

// TestStreamRefusals: what is wrong is said before a stream starts.
func TestStreamRefusals(t *testing.T) {
	r := newRig(t, func(_ *api.Config, f *api.FeedConfig) { f.MaxStreamsOne, f.MaxStreams = 2, 3 })
	r.log.add(3, nil)
	for name, c := range map[string]struct {
		path, token, last string
		status            int
		code              string
	}{
		"bad id":            {stream, "agent", "x7", 400, "invalid_field"},
		"id below 0":        {stream, "agent", "-1", 400, "invalid_field"},
		"id beyond":         {stream, "agent", "4", 400, "invalid_position"},
		"after beyond":      {stream + "?after=4", "agent", "", 400, "invalid_position"},
		"bad after":         {stream + "?after=a", "agent", "", 400, "invalid_field"},
		"unknown query":     {stream + "?kind=a", "agent", "", 400, "unknown_field"},
		"no token":          {stream, "", "", 401, "authentication_required"},
		"other workspace":   {strings.Replace(stream, "WS-1", "WS-2", 1), "agent", "", 404, "workspace_not_found"},
		"unknown workspace": {strings.Replace(stream, "WS-1", "WS-7", 1), "auditor", "", 404, "workspace_not_found"},
		"all for an agent":  {every, "agent", "", 403, "forbidden"},
	} {
		a := r.do("GET", c.path, c.token, nil, "Last-Event-ID", c.last)
		if a.status != c.status || a.code() != c.code {
			t.Errorf("%s: got %d %s", name, a.status, a.raw)
		}
	}
	r.listen(stream, "agent").want(1, 3)
	r.listen(stream, "agent").want(1, 3)
	if a := r.do("GET", stream, "agent", nil); a.status != 429 || a.code() != "too_many_streams" || a.header.Get("Retry-After") == "" {
		t.Errorf("a third stream of one: %d %s", a.status, a.raw)
	}
	third := r.listen(stream, "person")
	if a := r.do("GET", every, "auditor", nil); a.status != 429 {
		t.Errorf("a fourth stream: %d %s", a.status, a.raw)
	}
	third.body.Close()
	r.subscribers(2)
	r.listen(every, "auditor").want(1, 3)
}

// subscribers waits until so many streams are open.
func (r *rig) subscribers(n int) {
	r.t.Helper()
	want := fmt.Sprintf("\nroundtable_stream_subscribers %d\n", n)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if strings.Contains(r.do("GET", "/metrics", "", nil).raw, want) {
			return
		}
	}
	r.t.Fatalf("there are not %d subscribers", n)
}

// TestStreamResume: whoever loses the connection again and again, fast or
// slow, sees each event once and in order, whether from the ring or the log.
func TestStreamResume(t *testing.T) {
	clients, total := 8, 1500
	if os.Getenv("ROUNDTABLE_LONG") != "" {
		clients, total = 100, 3000
	}
	r := newRig(t, func(_ *api.Config, f *api.FeedConfig) {
		f.Ring, f.MaxStreamsOne, f.Coalesce = 64, 1000, time.Millisecond
	})
	var wg sync.WaitGroup
	for i := range clients {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		wg.Go(func() {
			for at, conns := 0, 0; at < total; conns++ {
				l := r.listen(stream, "agent", "Last-Event-ID", strconv.Itoa(at))
				for left := 1 + rnd.IntN(200); left > 0 && at < total; left-- {
					l.want(at+1, at+1)
					at++
				}
				l.body.Close()
			}
		})
	}
	wg.Go(func() {
		rnd := rand.New(rand.NewPCG(2, 2))
		for n := 0; n < total; {
			k := min(1+rnd.IntN(20), total-n)
			r.log.add(k, nil)
			n += k
		}
	})
	wg.Wait()
	r.log.mu.Lock()
	defer r.log.mu.Unlock()
	if r.log.reads < 50 {
		t.Errorf("the log was read %d times: the ring was never too short", r.log.reads)
	}
}

// TestStreamStalled: a client that does not read holds up neither the others
// nor the log, and is let go after a while.
func TestStreamStalled(t *testing.T) {
	r := newRig(t, func(_ *api.Config, f *api.FeedConfig) { f.WriteTime = 500 * time.Millisecond })
	conn, err := net.Dial("tcp", strings.TrimPrefix(r.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer agent\r\n\r\n", stream)
	r.subscribers(1)
	live := r.listen(stream, "person")
	r.subscribers(2)
	big := func(e *events.Record) { e.Session = strings.Repeat("s", 8192) }
	from := time.Now()
	for at := 1; at <= 2000; at += 10 { // 16 MB, more than the buffers between take
		r.log.add(10, big)
		live.want(at, at+9)
	}
	t.Logf("2000 events beside a stalled reader took %v", time.Since(from))
	r.subscribers(1)
}

// TestStreamFilter: only what matches is sent, and of what does not the client
// is told how far the stream has come.
func TestStreamFilter(t *testing.T) {
	r := newRig(t, func(_ *api.Config, f *api.FeedConfig) { f.Heartbeat = 50 * time.Millisecond })
	r.log.add(1100, func(e *events.Record) { e.Workspace = "WS-2" })
	r.log.add(1, func(e *events.Record) { e.Type, e.Actor = "vote.cast", "PR-7" })
	r.log.add(1, nil)
	l := r.listen(stream+"?type=vote.cast,vote.other&actor=PR-7", "agent")
	var found, marked string
	for beats := 0; beats < 2; {
		switch b, ok := l.next(); {
		case !ok:
			t.Fatal("the stream ended")
		case b.data != "":
			found += b.id + " after " + marked
		case b.id != "":
			marked = b.id
		case marked == "1102":
			beats++
		}
	}
	// The mark before is sent when some 1000 were held back; the one after
	// comes with a beat.
	if !strings.HasPrefix(found, "1101 after 1") {
		t.Errorf("got %q, and was told %s", found, marked)
	}
}

// TestStreamRevoked: a stream ends with the right to it, told or found out.
func TestStreamRevoked(t *testing.T) {
	r := newRig(t, nil)
	r.log.add(2, nil)
	l := r.listen(stream, "agent")
	l.want(1, 2)
	r.users.revoke("agent")
	l.ends()
	r = newRig(t, func(_ *api.Config, f *api.FeedConfig) { f.Revoked, f.Recheck = nil, 20*time.Millisecond })
	r.log.add(2, nil)
	l = r.listen(stream, "agent")
	l.want(1, 2)
	r.users.mu.Lock()
	r.users.by["agent"] = auth.Principal{ID: "PR-1", Kind: auth.Agent} // no role any more
	r.users.mu.Unlock()
	l.ends()
}

// TestStreamEnds: the end of the service ends the streams, and a log that
// cannot be read for a while costs nobody an event.
func TestStreamEnds(t *testing.T) {
	r := newRig(t, nil)
	r.log.add(2, nil)
	l := r.listen(stream, "agent")
	l.want(1, 2)
	failed := r.log.breakDown(errors.New("the disk is away"))
	r.log.add(3, nil)
	<-failed
	r.log.breakDown(nil)
	l.want(3, 5)
	r.stop()
	l.ends()
}

func TestEventList(t *testing.T) {
	r := newRig(t, nil)
	r.log.add(500, func(e *events.Record) {
		e.Time = time.Unix(e.Position, 0).UTC()
		if e.Position%2 == 0 {
			e.Workspace = "WS-2"
		}
		if e.Position%100 == 1 {
			e.Type = "vote.cast"
		}
	})
	page := func(path, token string) (ids []string, next any) {
		t.Helper()
		a := r.do("GET", path, token, nil)
		if a.status != 200 || a.body["position"] != 500.0 {
			t.Fatalf("%s: %d %.300s", path, a.status, a.raw)
		}
		for _, e := range a.body["events"].([]any) {
			ids = append(ids, fmt.Sprint(e.(map[string]any)["position"]))
		}
		return ids, a.body["next_cursor"]
	}
	const path = "/api/v1/workspaces/WS-1/events"
	if ids, next := page(path, "agent"); len(ids) != 50 || ids[49] != "99" || next != "99" {
		t.Errorf("first page: %v %v", ids, next)
	}
	if ids, next := page(path+"?after=99&limit=200", "agent"); len(ids) != 200 || ids[0] != "101" || next != "499" {
		t.Errorf("second page: %v %v", ids, next)
	}
	if ids, next := page(path+"?after=499", "agent"); len(ids) != 0 || next != nil {
		t.Errorf("last page: %v %v", ids, next)
	}
	if ids, next := page(path+"?type=vote.cast", "agent"); strings.Join(ids, " ") != "1 101 201 301 401" || next != nil {
		t.Errorf("by type: %v %v", ids, next)
	}
	if ids, _ := page("/api/v1/events?limit=3&actor=PR-1&stream=task/T-1", "auditor"); strings.Join(ids, " ") != "1 2 3" {
		t.Errorf("of the server: %v", ids)
	}
	if ids, _ := page("/api/v1/events?since=1970-01-01T00:00:07Z&until=1970-01-01T00:00:10Z", "auditor"); strings.Join(ids, " ") != "7 8 9" {
		t.Errorf("by time: %v", ids)
	}
	if a := r.do("GET", path+"?after=501", "agent", nil); a.code() != "invalid_position" {
		t.Errorf("beyond the end: %d %s", a.status, a.raw)
	}
	if a := r.do("GET", "/api/v1/events", "agent", nil); a.status != 403 {
		t.Errorf("an agent reads all: %d", a.status)
	}
}
