package roundtable_test

import (
	"roundtable/internal/attest"
	"roundtable/internal/patch"
)

// meanings are those of classes, which say themselves what they mean.
func meanings() map[string]string {
	all := map[string]string{}
	for _, c := range patch.Classes() {
		all[string(c.Class)] = c.Meaning
	}
	for _, c := range attest.Classes() {
		all[string(c.Class)] = c.Meaning
	}
	return all
}
