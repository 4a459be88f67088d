package cli_test

import (
	"encoding/json"
	"strings"
	"testing"

	"roundtable/internal/cli"
	"roundtable/internal/fault"
)

// The exit code follows what the answer says of an apply, not that there is
// one; the answer is printed all the same.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		state, applied, failure string
		code                    int
		says                    string
	}{
		{"applied", "yes", "", cli.Done, ""},
		{"failed", "no", "state.dirty", cli.Failed, "state.dirty: a.txt is dirty"},
		{"cancelled", "no", "", cli.Failed, "is cancelled"},
		{"failed", "unknown", "state.needs_attention", cli.UnknownOutcome, "is not known"},
		{"applying", "unknown", "", cli.UnknownOutcome, "has not ended"},
		{"pending", "no", "", cli.UnknownOutcome, "has not ended"},
		{"staged", "no", "", cli.UnknownOutcome, "has not ended"},
	} {
		tx := map[string]any{"transaction_id": "TX-1", "state": c.state, "applied": c.applied}
		if c.failure != "" {
			tx["failure"] = map[string]any{"code": c.failure, "detail": "a.txt is dirty"}
		}
		d := &desk{real: true, answer: map[string]any{"transaction": tx, "position": 7}}
		for _, args := range []string{"apply P-1", "apply P-1 --json", "tx apply TX-1", "tx apply TX-1 --json"} {
			code := d.run(strings.Fields(args)...)
			if code != c.code || !strings.Contains(d.err.String(), c.says) || (d.err.Len() > 0) != (c.says != "") || !strings.Contains(d.out.String(), c.state) {
				t.Errorf("%s, %s %s: %d\n%s%s", args, c.state, c.applied, code, d.out.String(), d.err.String())
			}
			if strings.HasSuffix(args, "--json") && c.says != "" {
				var p map[string]any
				if err := json.Unmarshal([]byte(d.err.String()), &p); err != nil || p["kind"] == nil || p["next"] == nil {
					t.Errorf("%s: %v %s", args, err, d.err.String())
				}
			}
		}
		for _, args := range []string{"tx get TX-1", "tx cancel TX-1", "tx retry TX-1"} { // what they were asked for, they have done
			if code := d.run(strings.Fields(args)...); code != cli.Done {
				t.Errorf("%s, %s: %d %s", args, c.state, code, d.err.String())
			}
		}
	}
	for valid, want := range map[bool]int{true: cli.Done, false: cli.Failed} {
		d := &desk{real: true, answer: map[string]any{"valid": valid, "checks": []map[string]any{{"check": "base", "status": "failed"}}}}
		for _, args := range []string{"proposal validate P-1", "tx validate TX-1"} {
			if code := d.run(strings.Fields(args)...); code != want || !valid && !strings.Contains(d.err.String(), "base failed") {
				t.Errorf("%s, %v: %d %s", args, valid, code, d.err.String())
			}
		}
	}
}

// A step that two causes name is printed once.
func TestStepsOnce(t *testing.T) {
	attach := map[string]any{"proposal_id": "P-1"}
	d := &desk{fail: fault.Errorf(fault.Conflict, "gates_not_met", "Not yet.").
		Then("proposal.get", attach, "you", "one cause").Then("patch.apply", attach, "", "").Then("proposal.get", attach, "you", "another")}
	d.run("apply", "P-1")
	if got := strings.Count(d.err.String(), "try:"); got != 2 || !strings.Contains(d.err.String(), "one cause") {
		t.Errorf("%s", d.err.String())
	}
}
