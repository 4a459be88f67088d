package domain

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"roundtable/events"
)

func at(path, sha string) events.PathState {
	return events.PathState{Path: path, Kind: "file", Mode: "100644", SHA256: sha, Size: 1}
}

// held folds grants: each is holder, type, resource and, of a file, what was
// seen there ("" for what is not known).
func held(t *testing.T, grants ...[4]string) Claims {
	t.Helper()
	c := Claims{}
	for i, g := range grants {
		w := ClaimWish{ID: "C-" + string(rune('1'+i)), Workspace: "w", Holder: g[0], Type: g[1], Resource: resource(t, g[2]), Base: events.BaseHash{State: "present", Hash: g[3]}}
		if g[3] != "" {
			seen := at(w.Resource.Path, g[3])
			w.Seen = &seen
		}
		es, err := c.Grant(w, noon)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			c = c.Clone().Evolve(e)
		}
	}
	return c
}

func TestOvertaken(t *testing.T) {
	c := held(t,
		[4]string{"ann", "write", "file:a", "1"},
		[4]string{"bob", "read", "file:a", "2"}, // has seen the new state
		[4]string{"bob", "write", "directory:d"},
		[4]string{"eve", "read", "directory:"},
		[4]string{"eve", "write", "file:b", "1"})
	foreign := events.ClaimBecameStale{Workspace: "w", Cause: "foreign_change"}
	for _, x := range []struct {
		what    string
		paths   []events.PathState
		knowing []string
		now     time.Time
		want    string
	}{
		{"a file, and the tree around it", []events.PathState{at("a", "2")}, nil, noon, "C-1:a C-4:a"},
		{"not of those who did it", []events.PathState{at("a", "2")}, []string{"eve"}, noon, "C-1:a"},
		{"several", []events.PathState{at("a", "2"), at("b", "2"), at("d/x", "1")}, nil, noon, "C-1:a C-3:d/x C-4:a,b,d/x C-5:b"},
		{"nobody's", []events.PathState{at("c", "2")}, []string{"eve"}, noon, ""},
		{"as it was seen", []events.PathState{at("b", "1")}, nil, noon, "C-4:b"},
		{"a file where the folder was", []events.PathState{at("d", "1")}, nil, noon, "C-3:d C-4:d"},
		{"of the dead", []events.PathState{at("a", "2")}, nil, noon.Add(DefaultTTL), ""},
	} {
		var got []string
		for _, e := range c.Overtaken(foreign, x.paths, x.knowing, x.now) {
			s := e.(events.ClaimBecameStale)
			var names []string
			for _, p := range s.Paths {
				names = append(names, p.Path)
			}
			got = append(got, s.Claim+":"+strings.Join(names, ","))
		}
		if s := strings.Join(got, " "); s != x.want {
			t.Errorf("%s: %q, want %q", x.what, s, x.want)
		}
	}
	// What was told once is no news.
	for _, e := range c.Overtaken(foreign, []events.PathState{at("a", "2")}, nil, noon) {
		c = c.Clone().Evolve(e)
	}
	if es := c.Overtaken(foreign, []events.PathState{at("a", "2")}, nil, noon); len(es) != 0 {
		t.Errorf("told again: %v", es)
	}
	if es := c.Overtaken(foreign, []events.PathState{at("a", "3")}, nil, noon); len(es) != 3 {
		t.Errorf("a further change: %v", es)
	}
}

// TestStaleBlocks: a stale claim backs no revision that was made before the
// change and touches it; claiming again or a revision made on it goes on.
func TestStaleBlocks(t *testing.T) {
	on := func(base ...events.PathState) Revision { return Revision{Base: events.Base{Paths: base}} }
	c := held(t, [4]string{"ann", "write", "directory:", ""})
	c = c.Clone().Evolve(events.ClaimBecameStale{Claim: "C-1", Workspace: "w", Cause: "foreign_change", Paths: []events.PathState{at("a", "2")}})
	backs := func(c Claims, id string, v Revision) bool {
		_, why, ok := c.Backing(resource(t, id), []string{"ann"}, v, noon)
		if !ok {
			t.Fatal("the claim is gone")
		}
		return why == ""
	}
	for _, x := range []struct {
		id   string
		v    Revision
		want bool
	}{
		{"file:a", on(at("a", "1")), false},
		{"file:a", on(at("a", "2")), true},
		{"file:b", on(at("b", "1")), true},
		{"directory:", on(at("b", "1")), false}, // it says that it is about all
	} {
		if got := backs(c, x.id, x.v); got != x.want {
			t.Errorf("%s on %v: %v", x.id, x.v.Base.Paths, got)
		}
	}
	more := c.Clone().Evolve(events.ClaimBecameStale{Claim: "C-1", Workspace: "w", Cause: "foreign_change", Paths: []events.PathState{at("b", "2")}, More: 7})
	if backs(more, "file:c", on(at("c", "1"))) {
		t.Error("paths that are not named may be any")
	}
	// A narrower claim, made since, is enough for what it covers.
	es, err := more.Grant(ClaimWish{ID: "C-2", Workspace: "w", Holder: "ann", Type: "write", Resource: resource(t, "file:a")}, noon)
	if err != nil {
		t.Fatal(err)
	}
	narrower := more.Clone().Evolve(es[0])
	if f, why, _ := narrower.Backing(resource(t, "file:a"), []string{"ann"}, on(at("a", "1")), noon); why != "" || f.ID != "C-2" {
		t.Errorf("%s %q", f.ID, why)
	}
	if narrower.Live["C-1"].Stale == nil {
		t.Error("the wider claim is not about one file")
	}
	// The same claim again renews the older one too.
	es, err = more.Grant(ClaimWish{ID: "C-2", Workspace: "w", Holder: "ann", Type: "write", Resource: resource(t, "directory:"), Base: events.BaseHash{State: "present", Hash: "new"}}, noon)
	if err != nil {
		t.Fatal(err)
	}
	again := more.Clone().Evolve(es[0])
	if o := again.Live["C-1"]; o.Stale != nil || o.Base.Hash != "new" || !backs(again, "file:a", on(at("a", "1"))) {
		t.Errorf("%+v", o)
	}
	if more.Live["C-1"].Stale == nil || cmp.Equal(more.Live["C-1"].Stale, c.Live["C-1"].Stale) {
		t.Error("a state that others hold was changed")
	}
	// Of one that has ended nothing is left to say.
	over := c.Clone().Evolve(events.ClaimReleased{Claim: "C-1"}).Evolve(events.ClaimBecameStale{Claim: "C-1"})
	if len(over.Live) != 0 {
		t.Errorf("%+v", over.Live)
	}
}

// TestStaleIsBounded: however much changes, a claim names so many paths and
// counts the others.
func TestStaleIsBounded(t *testing.T) {
	c := held(t, [4]string{"ann", "write", "directory:", ""})
	var paths []events.PathState
	for i := range 3 * maxStalePaths {
		paths = append(paths, at(strings.Repeat("x", i+1), "2"))
	}
	for _, part := range [][]events.PathState{paths[:maxStalePaths/2], paths[maxStalePaths/2:]} {
		for _, e := range c.Overtaken(events.ClaimBecameStale{Cause: "foreign_change"}, part, nil, noon) {
			c = c.Clone().Evolve(e)
		}
	}
	if s := c.Live["C-1"].Stale; len(s.Paths) != maxStalePaths || s.More != 2*maxStalePaths {
		t.Errorf("%d named, %d more", len(s.Paths), s.More)
	}
}

// TestStaleGate: the gate names the change and the call that goes on.
func TestStaleGate(t *testing.T) {
	c := held(t, [4]string{"ann", "write", "file:a", "1"})
	c = c.Evolve(events.ClaimBecameStale{Claim: "C-1", Cause: "transaction", Transaction: "TX-9", Paths: []events.PathState{at("a", "2")}})
	p := Proposal{ID: "P-1", Author: "ann", Revisions: []Revision{{Number: 1, Resources: []string{"file:a"}, Base: events.Base{Paths: []events.PathState{at("a", "1")}}}}}
	g := claimsGate(Facts{Proposal: p, Claims: c, Now: noon})
	if g.Status != "failed" || len(g.Because) != 1 || !strings.Contains(g.Because[0], "transaction TX-9 changed a") ||
		len(g.Next) != 1 || g.Next[0].Op != "resource.claim" || g.Next[0].Args["resource_id"] != "file:a" || g.Next[0].Who != "ann" {
		t.Errorf("%+v", g)
	}
	p.Revisions[0].Base.Paths[0] = at("a", "2")
	if g := claimsGate(Facts{Proposal: p, Claims: c, Now: noon}); g.Status != "passed" {
		t.Errorf("%+v", g)
	}
}
