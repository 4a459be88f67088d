package commands

import (
	"encoding/json"
	"strings"

	"roundtable/domain"
	"roundtable/internal/fault"
)

// notApplied is the shortfall of an apply: it failed, or nobody can say yet
// whether it will.
func notApplied(answer []byte) *fault.Error {
	var a struct {
		Transaction struct {
			ID      string `json:"transaction_id"`
			State   string `json:"state"`
			Applied string `json:"applied"`
			Failure struct {
				Code   string `json:"code"`
				Detail string `json:"detail"`
			} `json:"failure"`
		} `json:"transaction"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return fault.Errorf(fault.Unavailable, "unknown_outcome", "the answer cannot be read: %v", err)
	}
	t := a.Transaction
	which, why := map[string]any{"transaction_id": t.ID}, ""
	if t.Failure.Code != "" {
		why = ": " + t.Failure.Code + ": " + t.Failure.Detail
	}
	ended := t.State == domain.TxFailed || t.State == domain.TxCancelled
	switch {
	case t.State == domain.TxApplied && t.Applied == "yes":
		return nil
	case ended && t.Applied == "no":
		return fault.Errorf(fault.Conflict, "not_applied", "%s is %s and nothing has changed%s", t.ID, t.State, why).
			Then("transaction.recovery", which, "you", "see what can be done")
	case ended:
		return fault.Errorf(fault.Unavailable, "unknown_outcome", "%s is %s, and whether it has changed anything is not known%s", t.ID, t.State, why).
			Then("transaction.recovery", which, "you", "see what lies in the repository and what can be done")
	}
	return fault.Errorf(fault.Unavailable, "unknown_outcome", "%s is %s: it has not ended in the time that was waited", t.ID, t.State).
		Then("transaction.get", which, "you", "see how far it is")
}

// notValid is the shortfall of a validation: checks that it ran have failed.
func notValid(answer []byte) *fault.Error {
	var a struct {
		Valid  bool `json:"valid"`
		Checks []struct {
			Check  string       `json:"check"`
			Status string       `json:"status"`
			Next   []fault.Step `json:"next"`
		} `json:"checks"`
	}
	if err := json.Unmarshal(answer, &a); err != nil {
		return fault.Errorf(fault.Unavailable, "unknown_outcome", "the answer cannot be read: %v", err)
	}
	if a.Valid {
		return nil
	}
	f := fault.Errorf(fault.Conflict, "not_valid", "")
	var failed []string
	for _, c := range a.Checks {
		if c.Status == "failed" || c.Status == "error" {
			failed = append(failed, c.Check+" "+c.Status)
			f.Next = fault.Steps(f.Next, c.Next)
		}
	}
	f.Detail = "it is not valid: " + strings.Join(failed, ", ")
	return f
}
