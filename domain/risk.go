package domain

import "slices"

// The risks, lowest first.
var risks = []string{"low", "normal", "high", "critical"}

// HigherRisk returns the higher of two risks.
func HigherRisk(a, b string) string {
	if slices.Index(risks, b) > slices.Index(risks, a) {
		return b
	}
	return a
}

// NeedsHuman reports whether changes of this risk need a person's approval.
func NeedsHuman(risk string) bool { return slices.Index(risks, risk) >= slices.Index(risks, "high") }
