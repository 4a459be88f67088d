package domain

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/internal/fault"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func resource(t interface{ Fatal(...any) }, id string) Resource {
	r, err := ParseResource(id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestParseResource(t *testing.T) {
	for id, want := range map[string]string{
		"file:a/b.go": "", "directory:": "", "directory:src": "", "file:a b/é": "",
		"a.go":                "invalid_resource",
		"file:":               "invalid_resource",
		"file:/etc/passwd":    "invalid_resource",
		"file:../x":           "invalid_resource",
		"file:a/../../x":      "invalid_resource",
		"file:a//b":           "invalid_resource",
		"file:./a":            "invalid_resource",
		"directory:src/":      "invalid_resource",
		"directory:.":         "invalid_resource",
		"file:.git/config":    "invalid_resource",
		"file:x/.GIT/config":  "invalid_resource",
		"file:.roundtable/db": "invalid_resource",
		"file:e\u0301":        "invalid_resource",
		"symbol:a.go#F":       "symbol_unsupported",
		"table:x":             "invalid_resource",
		"file:a\x00b":         "invalid_resource",
	} {
		r, err := ParseResource(id)
		if got := fault.CodeOf(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%q: %v, want %q", id, err, want)
		}
		if err == nil && r.ID() != id {
			t.Errorf("%q came back as %q", id, r.ID())
		}
	}
}

func TestGrant(t *testing.T) {
	grant := func(c Claims, holder, id, mode string, at time.Time) (Claims, error) {
		es, err := c.Grant(ClaimWish{ID: fmt.Sprint("C-", c.Fence+1), Workspace: "w", Holder: holder, Resource: resource(t, id), Type: mode}, at)
		c = c.Clone()
		for _, e := range es {
			c = c.Evolve(e)
		}
		return c, err
	}
	for _, x := range []struct {
		held, heldAs, wanted, wantedAs string
		conflict                       bool
	}{
		{"file:a", "write", "file:a", "write", true},
		{"file:a", "write", "file:b", "write", false},
		{"file:a", "write", "file:a", "read", false},
		{"file:a", "write", "file:a", "review", false},
		{"file:a", "read", "file:a", "exclusive", true},
		{"file:a", "exclusive", "file:a", "read", true},
		{"directory:d", "write", "file:d/x", "write", true},
		{"file:d/x", "write", "directory:d", "write", true},
		{"directory:d", "write", "file:dx", "write", false},
		{"directory:", "write", "file:anything", "write", true},
		{"directory:d", "exclusive", "directory:d/e", "review", true},
		{"directory:d", "write", "directory:e", "write", false},
	} {
		c, err := grant(Claims{}, "ann", x.held, x.heldAs, noon)
		if err != nil {
			t.Fatal(err)
		}
		_, err = grant(c, "bob", x.wanted, x.wantedAs, noon)
		if (fault.CodeOf(err) == "claim_conflict") != x.conflict {
			t.Errorf("%s %s, then %s %s: %v", x.held, x.heldAs, x.wanted, x.wantedAs, err)
		}
		if _, err := grant(c, "ann", x.wanted, x.wantedAs, noon); err != nil {
			t.Errorf("own claims conflict: %v", err)
		}
		if _, err := grant(c, "bob", x.wanted, x.wantedAs, noon.Add(DefaultTTL)); err != nil {
			t.Errorf("an expired claim blocks: %v", err)
		}
	}
}

func TestGrantSaysWho(t *testing.T) {
	es, _ := Claims{}.Grant(ClaimWish{ID: "C-1", Holder: "ann", Resource: resource(t, "file:a"), Type: "write", TTL: time.Minute}, noon)
	_, err := Claims{}.Evolve(es[0]).Grant(ClaimWish{ID: "C-2", Holder: "bob", Resource: resource(t, "file:a"), Type: "write"}, noon)
	f, ok := err.(*fault.Error)
	if !ok || f.Context["holder"] != "ann" || f.Context["expires_at"] != noon.Add(time.Minute) || len(f.Next) == 0 {
		t.Fatalf("%+v", err)
	}
}

// TestClaimsHold: whatever is asked for, no two live claims of different
// holders conflict, fences grow, and a claim authorizes its holder alone.
func TestClaimsHold(t *testing.T) {
	ids := []string{"file:a", "file:d/x", "file:d/e/y", "directory:d", "directory:d/e", "directory:"}
	rapid.Check(t, func(t *rapid.T) {
		c, now, n, fence := Claims{}, noon, 0, int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 300).Draw(t, "pause")) * time.Second)
			holder := rapid.SampledFrom([]string{"ann", "bob", "eve"}).Draw(t, "holder")
			n++
			var es []events.Payload
			if rapid.Bool().Draw(t, "release") && len(c.Live) > 0 {
				es, _ = c.Release("w", rapid.SampledFrom(slices.Sorted(maps.Keys(c.Live))).Draw(t, "claim"), holder, now)
			} else {
				es, _ = c.Grant(ClaimWish{ID: fmt.Sprint("C-", n), Workspace: "w", Holder: holder, Resource: resource(t, rapid.SampledFrom(ids).Draw(t, "id")),
					Type: rapid.SampledFrom([]string{"read", "review", "write", "exclusive"}).Draw(t, "mode"), TTL: time.Duration(rapid.IntRange(1, 900).Draw(t, "ttl")) * time.Second}, now)
			}
			before := c.Clone()
			for _, e := range es {
				c = c.Clone().Evolve(e)
			}
			if len(es) == 0 && !cmp.Equal(before, c) {
				t.Fatal("a refusal changed the table")
			}
			if c.Fence < fence {
				t.Fatal("the fence went back")
			}
			fence = c.Fence
			all := slices.Collect(maps.Values(c.Live))
			for i, a := range all {
				for _, b := range all[i+1:] {
					if a.Holder != b.Holder && a.Expires.After(now) && b.Expires.After(now) && conflicts[[2]string{a.Type, b.Type}] && a.Resource.Overlaps(b.Resource) {
						t.Fatalf("%+v beside %+v", a, b)
					}
				}
				if got, _, ok := c.Backing(a.Resource, []string{"nobody"}, Revision{}, now); ok {
					t.Fatalf("%+v authorizes nobody", got)
				}
			}
		}
	})
}
