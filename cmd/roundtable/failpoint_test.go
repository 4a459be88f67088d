package main

import (
	"testing"

	"roundtable/internal/fault"
)

// TestFailpoint: a failpoint that is misspelt would never strike, so it is
// refused; without the variable there is none.
func TestFailpoint(t *testing.T) {
	for _, good := range []string{"apply:intent", "apply:step:12", "recover:swap", "recover:off", "recover:tell", "recover:told:2", "apply:ref_sync", "apply:journal_sync:1", "resolve:report", "resolve:step:2"} {
		if f, err := newFailpoint(good); err != nil || f == nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"apply", "apply:", "apply:nowhere", "recover:intent", "apply:step:0", "apply:step:x", "apply:step:1:2", "off", "apply:tell", "resolve:told", "apply:off", "resolve:off", "resolve:nowhere"} {
		if _, err := newFailpoint(bad); fault.CodeOf(err) != "invalid_failpoint" {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if f, err := newFailpoint(""); f != nil || err != nil {
		t.Errorf("%v, %v", f, err)
	}
}
