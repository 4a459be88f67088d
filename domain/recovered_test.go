package domain

import (
	"strings"
	"testing"

	"roundtable/events"
)

// TestRecovered: a finding is said once, and each new one is.
func TestRecovered(t *testing.T) {
	found := func(what, folder string, stuck ...string) events.TransactionRecovered {
		e := events.TransactionRecovered{Transaction: "TX", Attempt: 1, Found: what, Folder: folder}
		for _, s := range stuck {
			e.Stuck = append(e.Stuck, events.StuckPath{Path: s, Reason: "edited"})
		}
		return e
	}
	later := found(FoundRolledBack, "1")
	later.Attempt = 2
	for name, c := range map[string]struct {
		state string
		first events.TransactionRecovered
		then  events.TransactionRecovered
		said  bool
	}{
		"first":                        {"applying", events.TransactionRecovered{}, found(FoundRolledBack, "1"), true},
		"the same folder":              {"applying", found(FoundRolledBack, "1"), found(FoundRolledBack, "1"), false},
		"what is left of it":           {"applying", found(FoundRolledBack, "1"), found(FoundNothing, "1"), false},
		"another try":                  {"applying", found(FoundRolledBack, "1"), found(FoundRolledBack, "2"), true},
		"committed again":              {"applying", found(FoundCommitted, "1"), found(FoundCommitted, "2"), false},
		"committed and told":           {"applied", events.TransactionRecovered{}, found(FoundCommitted, "1"), false},
		"attention again":              {"stuck", found(FoundAttention, "1", "a"), found(FoundAttention, "1", "a"), false},
		"attention at another path":    {"stuck", found(FoundAttention, "1", "a", "b"), found(FoundAttention, "1", "a"), true},
		"attention, then it went back": {"stuck", found(FoundAttention, "1", "a"), found(FoundRolledBack, "1"), true},
		"an attempt nobody knows":      {"applying", events.TransactionRecovered{}, later, false},
	} {
		x, _, _ := txStates()[c.state]()
		x.Attempt = 1
		if c.first.Transaction != "" {
			x = x.Evolve(c.first)
		}
		state := x.State
		es := x.RecordRecovered(c.then)
		if (len(es) == 1) != c.said {
			t.Errorf("%s: %v", name, es)
		}
		for _, e := range es {
			if x = x.Evolve(e); x.State != state {
				t.Errorf("%s: %s became %s", name, state, x.State)
			}
		}
	}
	many := found(FoundAttention, "1", strings.Split(strings.Repeat("a ", 150), " ")...)
	many.Stuck[0].Reason = strings.Repeat("\u00e9", maxWhy)
	x, _, _ := txStates()["applying"]()
	e := x.RecordRecovered(many)[0].(events.TransactionRecovered)
	if len(e.Stuck) != maxRecovered || e.More != 51 || len(e.Stuck[0].Reason) != maxWhy || len(many.Stuck[0].Reason) != 2*maxWhy {
		t.Errorf("%d, %d more, a reason of %d", len(e.Stuck), e.More, len(e.Stuck[0].Reason))
	}
}
