package commands_test

import (
	"context"
	"sync/atomic"
	"testing"

	"roundtable/commands"
	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/internal/fault"
)

// A meddled store lets something happen right after a stream was read.
type meddled struct {
	eventlog.Store
	stream events.Stream
	reads  atomic.Int64
	then   func(read int64)
}

func (m *meddled) Stream(ctx context.Context, s events.Stream, version int64) ([]events.Event, error) {
	es, err := m.Store.Stream(ctx, s, version)
	if s == m.stream {
		m.then(m.reads.Add(1))
	}
	return es, err
}

// TestTornRefusal: a refusal that rests on what has moved since it was read is
// decided again, and no more than some times.
func TestTornRefusal(t *testing.T) {
	x := cast(t)
	p := x.must(x.as("coder"), propose(change)).IDs["proposal"]
	revision := 1
	attach := func() {
		x.must(x.as("coder"), commands.AttachPatch{Proposal: p, Expected: revision, PatchInput: commands.PatchInput{Patch: change}})
		revision++
	}
	late := func(then func(int64)) (*meddled, *commands.Handler) {
		c := x.Config
		m := &meddled{Store: x.store, stream: events.ProposalStream(p), then: then}
		c.Log = m
		return m, commands.New(c)
	}
	// It reads revision 1, which is not the one it replaces; then there is 2.
	_, h := late(func(read int64) {
		if read == 1 {
			attach()
		}
	})
	on2 := commands.AttachPatch{Proposal: p, Expected: 2, PatchInput: commands.PatchInput{Patch: change}}
	if r, err := h.Do(t.Context(), x.as("coder"), on2); err != nil || r.IDs["proposal"] != p {
		t.Fatalf("%v, %v", r, err)
	}
	revision++

	// What is refused on one state costs one look more at what it has read.
	before := x.head()
	m, h := late(func(int64) {})
	if _, err := h.Do(t.Context(), x.as("coder"), on2); fault.CodeOf(err) != "stale_revision" || m.reads.Load() != 2 {
		t.Errorf("%v after %d reads", err, m.reads.Load())
	}
	if x.head() != before {
		t.Error("a refusal appended something")
	}

	// One that moves for ever is refused all the same.
	m, h = late(func(int64) { attach() })
	never := commands.AttachPatch{Proposal: p, Expected: 4000, PatchInput: commands.PatchInput{Patch: change}}
	if _, err := h.Do(t.Context(), x.as("coder"), never); fault.CodeOf(err) != "stale_revision" || m.reads.Load() > 40 {
		t.Errorf("%v after %d reads", err, m.reads.Load())
	}
}

// TestBadResources: every resource that is none is named where it stands.
func TestBadResources(t *testing.T) {
	x := cast(t)
	c := propose(change)
	c.Resources = []string{"file:a.txt", "file:../x", "a.txt", "directory:", "symbol:y"}
	f := x.refused(x.as("coder"), c, "invalid_resource")
	want := []string{"/affected_resources/1", "/affected_resources/2", "/affected_resources/4"}
	if len(f.Fields) != len(want) {
		t.Fatalf("%+v", f.Fields)
	}
	for i, at := range want {
		if f.Fields[i].Pointer != at || f.Fields[i].Message == "" {
			t.Errorf("%+v, want %s", f.Fields[i], at)
		}
	}
}
