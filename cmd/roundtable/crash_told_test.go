package main

import (
	"slices"
	"strings"
	"testing"
)

// TestKilledWhileTelling: a process that settles what a dead one left dies
// before it has told of it, after it, and while it removes what it has told.
// What was found stands in the history once, and the apply comes to its end.
func TestKilledWhileTelling(t *testing.T) {
	for _, c := range []struct {
		mode, apply, found string
		deaths             []string
		long               bool // quick runs leave it out
	}{
		{"worktree", "sync", "rolled_back", []string{"tell", "tell", "told", "remove", "rmdir"}, false},
		{"commit", "sync", "rolled_back", []string{"tell", "told", "rmdir"}, false},
		{"commit", "ref_sync", "committed", []string{"tell", "told"}, false},
		{"worktree", "sync", "rolled_back", []string{"told"}, true},
		{"worktree", "journal_sync", "rolled_back", []string{"tell", "told", "remove:2"}, true},
		{"worktree", "images", "nothing_begun", []string{"tell", "told", "remove", "rmdir"}, true},
		{"commit", "images", "nothing_begun", []string{"told", "remove"}, true},
	} {
		if c.long && !long() {
			continue
		}
		t.Run(strings.Join(slices.Concat([]string{c.mode, c.apply}, c.deaths), " "), func(t *testing.T) {
			t.Parallel()
			a := newApplyBy(t, c.mode, "apply:"+c.apply)
			if !a.die(t) {
				t.Fatal("not killed")
			}
			for _, point := range c.deaths {
				s := start(t, a.data, failpointVar+"=recover:"+point)
				if s.at != "" {
					t.Fatalf("a recovery does not come to %s", point)
				}
				s.dead(t)
				if is := a.tree(t); is == "mixed" {
					t.Errorf("%s: settled, and half applied", point)
				}
			}
			a.taken = c.found == "rolled_back"
			a.ends(t)
			var found []string
			for _, r := range a.rows(t, "log.db", "SELECT CAST(data AS TEXT) AS data FROM events WHERE type = 'transaction.recovered'") {
				found = append(found, text(r, "data"))
			}
			if len(found) != 1 || !strings.Contains(found[0], `"found":"`+c.found+`"`) {
				t.Errorf("the history tells %v, and %s was found", found, c.found)
			}
			if c.mode == "commit" {
				if changed := gitIn(t, a.root, "status", "--porcelain", "--untracked-files=no"); changed != "" {
					t.Errorf("git says %s", changed)
				}
			}
		})
	}
}
