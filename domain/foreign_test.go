package domain

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"roundtable/events"
)

// spelled writes down what was found: path was→is, and the claims it makes
// stale.
func spelled(es []events.Payload) string {
	var words []string
	for _, e := range es {
		switch e := e.(type) {
		case events.WorkspaceForeignChange:
			for _, p := range e.Paths {
				s := p.Path + " " + brief(p.Was) + "→" + brief(p.Is)
				if p.Held != nil {
					s += " held " + brief(*p.Held)
				}
				words = append(words, s)
			}
		case events.ClaimBecameStale:
			words = append(words, e.Claim)
		}
	}
	return strings.Join(words, ", ")
}

func brief(s events.PathState) string {
	if s.Kind != "file" {
		return s.Kind
	}
	return s.SHA256
}

func gone(path string) events.PathState { return events.PathState{Path: path, Kind: "absent"} }

func TestForeign(t *testing.T) {
	folder := events.PathState{Path: "gone", Kind: "dir"}
	tree := Tree{}
	for _, e := range []events.Payload{
		events.WorkspaceApplyBegun{Workspace: "w", Transaction: "TX-1"},
		events.WorkspaceApplyEnded{Workspace: "w", Transaction: "TX-1", Outcome: "applied", Left: []events.PathState{at("a", "2"), gone("gone")}},
		events.WorkspaceForeignChange{Workspace: "w", Paths: []events.ForeignPath{{Path: "b", Was: at("b", "1"), Is: at("b", "2")}}},
	} {
		tree = tree.Clone().Evolve(e)
	}
	busy := tree.Clone().Evolve(events.WorkspaceApplyBegun{Workspace: "w", Transaction: "TX-2"})
	c := held(t, [4]string{"ann", "read", "file:a", "1"}, [4]string{"ann", "write", "file:c", "1"}, [4]string{"bob", "read", "directory:", ""})
	for _, x := range []struct {
		what string
		tree Tree
		s    Sight
		now  time.Time
		want string
	}{
		{"what a transaction left", tree, Sight{Now: []events.PathState{at("a", "2")}}, noon, ""},
		{"and what not", tree, Sight{Now: []events.PathState{at("a", "1")}}, noon, "a 2→1, C-3"}, // ann has seen it so
		{"an edit", tree, Sight{Now: []events.PathState{at("a", "9")}}, noon, "a 2→9, C-1, C-3"},
		{"what an earlier look found", tree, Sight{Now: []events.PathState{at("b", "2")}}, noon, ""},
		{"put back", tree, Sight{Now: []events.PathState{at("b", "1")}}, noon, "b 2→1, C-3"},
		{"what a claim saw", tree, Sight{Now: []events.PathState{at("c", "1")}}, noon, ""},
		{"and what not", tree, Sight{Now: []events.PathState{at("c", "2")}}, noon, "c 1→2, C-2, C-3"},
		{"a dead claim saw nothing", tree, Sight{Now: []events.PathState{at("c", "2")}}, noon.Add(DefaultTTL), ""},
		{"removed", tree, Sight{Now: []events.PathState{gone("c")}}, noon, "c 1→absent, C-2, C-3"},
		{"a mode", tree, Sight{Now: []events.PathState{{Path: "c", Kind: "file", Mode: "100755", SHA256: "1", Size: 1}}}, noon, "c 1→1, C-2, C-3"},
		{"a folder is no file", tree, Sight{Now: []events.PathState{folder}}, noon, ""},
		{"a file in its place", tree, Sight{Now: []events.PathState{at("gone", "1")}}, noon, "gone absent→1, C-3"},
		{"what nobody knows", tree, Sight{Now: []events.PathState{at("new", "1")}}, noon, ""},
		{"but a revision", tree, Sight{Now: []events.PathState{at("new", "2")}, Bases: map[string]events.PathState{"new": at("new", "1")}}, noon, "new 1→2, C-3"},
		{"which knows less than a transaction", tree, Sight{Now: []events.PathState{at("a", "2")}, Bases: map[string]events.PathState{"a": at("a", "1")}}, noon, ""},
		{"while another applies", busy, Sight{Now: []events.PathState{at("a", "9")}}, noon, ""},
		{"while this one applies", busy, Sight{Transaction: "TX-2", Now: []events.PathState{at("a", "9")}}, noon, "a 2→9, C-1, C-3"},
		{"a version aside", busy, Sight{Now: []events.PathState{at("a", "9")}, Held: map[string]events.PathState{"a": at("a", "8")}}, noon, "a 2→2 held 8"},
		{"and an edit", tree, Sight{Now: []events.PathState{at("a", "9")}, Held: map[string]events.PathState{"a": at("a", "8")}}, noon, "a 2→9 held 8, C-1, C-3"},
	} {
		es := x.tree.Foreign("w", x.s, c, x.now)
		if got := spelled(es); got != x.want {
			t.Errorf("%s: %q, want %q", x.what, got, x.want)
		}
	}
}

// TestForeignOnce: whatever is found is known afterwards, so that the same look
// finds nothing again, and no claim is told twice.
func TestForeignOnce(t *testing.T) {
	names := []string{"a", "b", "d/x", "d/y"}
	rapid.Check(t, func(t *rapid.T) {
		tree, c, n := Tree{}, Claims{}, 0
		state := func(p string) events.PathState {
			if s := rapid.SampledFrom([]string{"", "1", "2", "3"}).Draw(t, "state"); s != "" {
				return at(p, s)
			}
			return gone(p)
		}
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			p := rapid.SampledFrom(names).Draw(t, "path")
			switch rapid.SampledFrom([]string{"applied", "claim", "look", "look"}).Draw(t, "what") {
			case "applied":
				tree = tree.Clone().Evolve(events.WorkspaceApplyEnded{Transaction: "TX", Left: []events.PathState{state(p)}})
			case "claim":
				n++
				seen := state(p)
				es, err := c.Grant(ClaimWish{ID: string(rune('A' + n)), Holder: rapid.SampledFrom([]string{"ann", "bob"}).Draw(t, "who"), Type: "read",
					Resource: rapid.SampledFrom([]Resource{FileResource(p), {"directory", "d"}}).Draw(t, "what"), Seen: &seen}, noon)
				if err != nil {
					t.Fatal(err)
				}
				c = c.Clone().Evolve(es[len(es)-1])
			case "look":
				s := Sight{Bases: map[string]events.PathState{}}
				for _, name := range names {
					s.Now = append(s.Now, state(name))
					s.Bases[name] = state(name)
				}
				for _, e := range tree.Foreign("w", s, c, noon) {
					if e.Stream() == events.TreeStream("w") {
						tree = tree.Clone().Evolve(e)
					} else {
						c = c.Clone().Evolve(e)
					}
				}
				if es := tree.Foreign("w", s, c, noon); len(es) != 0 {
					t.Fatalf("found again: %s", spelled(es))
				}
			}
		}
	})
}

// TestForeignParts: many paths are told by several events, each bounded.
func TestForeignParts(t *testing.T) {
	var s Sight
	s.Bases = map[string]events.PathState{}
	for i := range 2*maxForeignPaths + 1 {
		p := strings.Repeat("x", i+1)
		s.Now, s.Bases[p] = append(s.Now, at(p, "2")), at(p, "1")
	}
	es := Tree{}.Foreign("w", s, Claims{}, noon)
	if len(es) != 3 || len(es[2].(events.WorkspaceForeignChange).Paths) != 1 {
		t.Errorf("%d events", len(es))
	}
}
