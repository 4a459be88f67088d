package fault_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"roundtable/internal/fault"
)

// Every kind comes back from its problem as it was, so that a client of a
// client acts on it like the first.
func TestProblemSurvives(t *testing.T) {
	seen := map[int]fault.Kind{}
	for _, k := range fault.Kinds {
		if k.Status() == 0 {
			t.Errorf("kind %s has no status", k)
		}
		if other, ok := seen[k.Status()]; ok {
			t.Errorf("%s and %s share status %d", k, other, k.Status())
		}
		seen[k.Status()] = k
		if k == fault.Internal {
			continue
		}
		e := fault.Errorf(k, "some_code", "what is wrong").With("holder", "PR-1").
			Then("claim.get", map[string]any{"claim_id": "C-1"}, "admin", "because").At("/title", "required")
		b, err := json.Marshal(fault.ProblemOf(fmt.Errorf("wrapped: %w", e), "id"))
		if err != nil {
			t.Fatal(err)
		}
		var p fault.Problem
		if err := json.Unmarshal(b, &p); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(e, p.Fault()); d != "" {
			t.Errorf("%s: %s", k, d)
		}
	}
}

func TestProblemHidesInternal(t *testing.T) {
	for _, err := range []error{errors.New("secret path"), fault.Errorf(fault.Internal, "broken", "secret path")} {
		b, merr := json.Marshal(fault.ProblemOf(err, "01ID"))
		if merr != nil {
			t.Fatal(merr)
		}
		if s := string(b); strings.Contains(s, "secret") || !strings.Contains(s, "01ID") || !strings.Contains(s, `"next":[]`) {
			t.Errorf("%s", s)
		}
	}
}
