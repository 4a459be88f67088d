package projections

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// TestPages walks every list in pages of any size while more happens: what
// was there at the start is met exactly once, nothing is met twice, and the
// order holds.
func TestPages(t *testing.T) {
	file, _ := newViews(t)
	manyTimes(t, func(rt *rapid.T) {
		ctx := t.Context()
		log, w := &memLog{}, newWorld(rt)
		v := empty(rt, ctx, file, log)
		log.add(epoch, w.history(rapid.IntRange(4, 60).Draw(rt, "events"))...)
		v.catchUp(ctx, rt, 50)
		r := NewReader(v, func() time.Time { return epoch }, Limits{})
		call := op.Call{Who: auth.Principal{ID: "PR-0002", Kind: auth.Human, Grants: []auth.Grant{{Workspace: "*", Role: auth.Admin}}}, Workspace: w.workspaces[0]}
		o := rapid.SampledFrom(slices.DeleteFunc(r.Ops(), func(o op.Op) bool {
			return o.Out.Properties["next_cursor"] == nil || slices.ContainsFunc(o.Params(), func(p string) bool { return p != "workspace_id" })
		})).Draw(rt, "list")
		in := obj{"order": rapid.SampledFrom([]string{"newest", "oldest"}).Draw(rt, "order"), "limit": 200}
		walk := func(change func()) (all []string) {
			delete(in, "cursor")
			for {
				m, err := ask(ctx, rt, r, o.Name, call, in)
				if err != nil {
					rt.Fatal(err)
				}
				for name, list := range m {
					if name != "position" && name != "next_cursor" {
						all = append(all, values(rt, list, strings.TrimSuffix(name, "s")+"_id")...)
					}
				}
				var next *string
				if err := json.Unmarshal(m["next_cursor"], &next); err != nil {
					rt.Fatal(err)
				}
				if next == nil {
					return all
				}
				in["cursor"] = *next
				change()
			}
		}
		before := walk(func() { rt.Fatal("more than a page") })
		in["limit"] = rapid.IntRange(1, 4).Draw(rt, "limit")
		met := walk(func() {
			if len(log.records) < 150 { // else a list oldest first need not end
				log.add(epoch, w.step()...)
				v.catchUp(ctx, rt, 50)
			}
		})
		if got := slices.DeleteFunc(slices.Clone(met), func(id string) bool { return !slices.Contains(before, id) }); !slices.Equal(got, before) {
			rt.Fatalf("%s: met %v of %v", o.Name, got, before)
		}
		if slices.Sort(met); len(slices.Compact(slices.Clone(met))) != len(met) {
			rt.Fatalf("%s: met twice: %v", o.Name, met)
		}
	})
}

// TestCursor: a cursor serves the list and filters it was made for, alone.
func TestCursor(t *testing.T) {
	s := newScene(t)
	s.upToDate()
	page := func(in obj) string {
		var next string
		if err := json.Unmarshal(s.ask("proposal.list", "ann", "WS-1", in)["next_cursor"], &next); err != nil {
			t.Fatal(err)
		}
		return next
	}
	cursor := page(obj{"limit": 1})
	if got := values(t, s.ask("proposal.list", "ann", "WS-1", obj{"limit": 7, "order": "newest", "cursor": cursor})["proposals"], "proposal_id"); !slices.Equal(got, []string{"P-1"}) {
		t.Fatalf("another limit: %v", got)
	}
	for _, in := range []obj{{"author": "ann"}, {"order": "oldest"}, {"created_after": "2020-01-01T00:00:00Z"}} {
		in["cursor"] = cursor
		if got := s.refused("proposal.list", "ann", "WS-1", in); got != "invalid_cursor" {
			t.Errorf("%v: %s", in, got)
		}
	}
	for _, c := range []struct{ op, ws string }{{"proposal.list", "WS-2"}, {"task.list", "WS-1"}} {
		if got := s.refused(c.op, "ann", c.ws, obj{"cursor": cursor}); got != "invalid_cursor" {
			t.Errorf("%v: %s", c, got)
		}
	}
	for i := range cursor {
		altered := cursor[:i] + string("AB"[cursor[i]&1]) + cursor[i+1:]
		if altered != cursor {
			if got := s.refused("proposal.list", "ann", "WS-1", obj{"cursor": altered}); got != "invalid_cursor" {
				t.Errorf("%s: %s", altered, got)
			}
		}
	}
}

// TestLimits: a page has the default size if none is given, and the greatest
// is as configured.
func TestLimits(t *testing.T) {
	s := newScene(t)
	for i := range 60 {
		s.add(events.TaskCreated{Task: fmt.Sprint("T-9", i), Workspace: "WS-1", Risk: "low"})
	}
	s.upToDate()
	if got := len(values(t, s.ask("task.list", "ann", "WS-1", obj{})["tasks"], "task_id")); got != 50 {
		t.Errorf("%d on a page", got)
	}
	s.r = NewReader(s.v, s.r.now, Limits{PageMax: 3})
	if got := len(values(t, s.ask("task.list", "ann", "WS-1", obj{})["tasks"], "task_id")); got != 3 {
		t.Errorf("%d on a page", got)
	}
	if got := s.refused("task.list", "ann", "WS-1", obj{"limit": 4}); got != "invalid_field" {
		t.Error(got)
	}
}

// TestAwait: reads see what they wait for, wait no longer than they may, and
// do not wait for what will not come.
func TestAwait(t *testing.T) {
	s := newScene(t)
	s.r = NewReader(s.v, s.r.now, Limits{Wait: time.Millisecond})
	ctx, head := t.Context(), int64(len(s.log.records))
	if err := s.r.Await(ctx, "tasks", head); fault.CodeOf(err) != "view_behind" || fault.KindOf(err) != fault.Unavailable {
		t.Error(err)
	}
	if err := s.r.Await(ctx, "tasks", head+1); fault.CodeOf(err) != "invalid_position" || fault.KindOf(err) != fault.Invalid {
		t.Error(err)
	}
	if err := s.r.Await(ctx, "tasks", -1); fault.CodeOf(err) != "invalid_position" {
		t.Error(err)
	}
	s.r = NewReader(s.v, s.r.now, Limits{Wait: time.Hour})
	done := make(chan error)
	go func() {
		_, at, err := s.r.Show(ctx, "task", "WS-1", "T-1", head)
		if err == nil && at != head {
			err = fmt.Errorf("shown at %d", at)
		}
		done <- err
	}()
	for i := range head {
		if err := s.v.take(ctx, tasks, decodeAll(t, s.log.records[i:i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	s.v.stop("claims", errOvertaken)
	if err := s.r.Await(ctx, "claims", head); fault.CodeOf(err) != "view_stopped" {
		t.Error(err)
	}
	if err := s.r.Await(ctx, "claims", 0); err != nil {
		t.Error("a stopped view still has what it has:", err)
	}
}
