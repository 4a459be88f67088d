package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// A follower reads one live stream, event by event.
type follower struct {
	lines *bufio.Reader
	end   context.CancelFunc
	id    string // of the event that was read last
}

// following opens a stream. Last-Event-ID is sent unless last is empty.
func (s *venue) following(t *testing.T, path, token, last string) *follower {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	r := s.request(t, request{method: "GET", path: path, token: token}).WithContext(ctx)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("%s: %s, %s", path, res.Status, res.Header.Get("Content-Type"))
	}
	t.Cleanup(func() { end(); res.Body.Close() })
	return &follower{lines: bufio.NewReader(res.Body), end: end}
}

// next reads an event; io.EOF when the server has ended the stream.
func (f *follower) next() (event map[string]any, err error) {
	var data, id string
	for {
		line, err := f.lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		name, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case name == "id":
			id = value
		case name == "data":
			data += value
		case name == "" && value == "" && data != "":
			f.id = id
			if err := json.Unmarshal([]byte(data), &event); err != nil {
				return nil, err
			}
			if got := text(event, "position"); got != id {
				return nil, fmt.Errorf("the event at %s has the id %s", got, id)
			}
			return event, nil
		}
	}
}

// upTo reads events until the one at a position.
func (f *follower) upTo(t *testing.T, position string) (events []map[string]any) {
	t.Helper()
	for f.id != position {
		e, err := f.next()
		if err != nil {
			t.Fatalf("after %s: %v", f.id, err)
		}
		events = append(events, e)
	}
	return events
}

// TestOneHistory: the live stream, the list and the export are one history,
// byte for byte of what an event holds.
func TestOneHistory(t *testing.T) {
	t.Parallel()
	s := served(t)
	coder := s.join(t, "coder", "agent", "implementer")
	for i := range 60 {
		s.post(t, "", "~/tasks", args{"title": fmt.Sprint("Task <", i, "> & ünï"), "body_md": "<x> & \u2028"}, 201)
	}
	s.post(t, coder, "~/proposals", args{"title": "x", "summary_md": "y", "patch": diffA}, 201)
	head := s.head(t)
	streamed := s.following(t, "/events/stream", "", "").upTo(t, head)
	var listed []map[string]any
	for after, more := "0", true; more; {
		a := s.get(t, "", "/events?limit=50&after="+after)
		listed = append(listed, list(a.body, "events")...)
		after, more = a.body["next_cursor"].(string)
	}
	var out, errs output
	if code := run(t.Context(), []string{"log", "export", "--data", s.data}, terminal{out: &out, err: &errs, env: environment(nil)}); code != 0 {
		t.Fatalf("export: %d %s", code, &errs)
	}
	var exported []map[string]any
	for line := range strings.Lines(out.String()) {
		var e map[string]any
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		exported = append(exported, e)
	}
	if strconv.Itoa(len(exported)) != head {
		t.Errorf("%d events are exported, the head is %s", len(exported), head)
	}
	if a, b := asJSON(t, streamed), asJSON(t, exported); a != b {
		t.Errorf("streamed and exported differ:\n%.3000s\n%.3000s", a, b)
	}
	if a, b := asJSON(t, listed), asJSON(t, exported); a != b {
		t.Errorf("listed and exported differ:\n%.3000s\n%.3000s", a, b)
	}
	for _, secret := range []string{s.admin, coder} {
		if strings.Contains(out.String(), secret) {
			t.Error("the history has a token in it")
		}
	}
	one := s.following(t, "~/events/stream?type=proposal.created&after=0", coder, "")
	if e, err := one.next(); err != nil || text(e, "type") != "proposal.created" {
		t.Errorf("filtered: %v, %v", e, err)
	}
}

// TestStreamComesBack: a client that is cut off again and again, while others
// write, reads each event once and in order.
func TestStreamComesBack(t *testing.T) {
	t.Parallel()
	s := served(t)
	written := make(chan error, 1)
	go func() { // ends when all is written; waited for below
		for i := range 120 {
			body := fmt.Sprintf(`{"title":"%d","body_md":""}`, i)
			res, err := http.DefaultClient.Do(s.request(t, request{path: "~/tasks", body: body}))
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if err == nil && res.StatusCode != 201 {
					err = fmt.Errorf("task %d: %s", i, res.Status)
				}
			}
			if err != nil {
				written <- err
				return
			}
		}
		written <- nil
	}()
	last, tasks := "", 0
	for at := 1; tasks < 120; {
		f := s.following(t, "/events/stream", "", last)
		for range 7 {
			e, err := f.next()
			if err != nil {
				t.Fatalf("after %s: %v", last, err)
			}
			if f.id != strconv.Itoa(at) {
				t.Fatalf("the event after %d is %s", at-1, f.id)
			}
			if text(e, "type") == "task.created" {
				tasks++
			}
			last = f.id
			if at++; tasks == 120 {
				break
			}
		}
		f.end()
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
}

// TestStreamEnds: a token that is revoked reads no further, at once; who
// follows with another goes on.
func TestStreamEnds(t *testing.T) {
	t.Parallel()
	s := served(t)
	who, other := s.joinAs(t, "reader", "human", "", s.workspace, "viewer")
	token := s.post(t, "", "/tokens", args{"principal_id": who}, 201)
	mine, theirs := s.following(t, "~/events/stream", token.at("token"), ""), s.following(t, "~/events/stream", other, "")
	a := s.post(t, "", "~/tasks", args{"title": "before", "body_md": ""}, 201)
	mine.upTo(t, a.at("position"))
	if a := s.send(t, request{method: "DELETE", path: "/tokens/" + token.at("token_id")}); a.status != 200 {
		t.Fatal(a)
	}
	if e, err := mine.next(); err != io.EOF {
		t.Errorf("after the token was revoked: %v, %v", e, err)
	}
	b := s.post(t, "", "~/tasks", args{"title": "after", "body_md": ""}, 201)
	theirs.upTo(t, b.at("position"))
	s.refused(t, request{method: "GET", path: "~/events/stream", token: token.at("token")}, 401, "invalid_token")
}
