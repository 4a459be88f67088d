package patch

import (
	"strings"
	"testing"
)

// TestSearchSteps: the search for a hunk compares lines in proportion to what
// is searched, also where every line equals every other: 40,000 lines among
// 100,000.
func TestSearchSteps(t *testing.T) {
	const hunk, file = 40_000, 100_000
	for name, same := range map[string]func(a, b int) bool{
		"all equal":        func(a, b int) bool { return true },
		"last differs":     func(a, b int) bool { return a != hunk-1 && b != hunk-1 || a == b },
		"middle differs":   func(a, b int) bool { return (a == hunk/2) == (b == hunk/2) },
		"every ninth":      func(a, b int) bool { return (a%9 == 0) == (b%9 == 0) },
		"nothing is alike": func(a, b int) bool { return a == b },
	} {
		steps := 0
		prefixTable(hunk, func(a, b int) bool { steps++; return same(a, b) })
		if steps > 3*hunk {
			t.Errorf("%s: %d comparisons for %d lines", name, steps, hunk)
		}
	}
	p, err := Parse([]byte("--- a/k\n+++ b/k\n@@ -7,40001 +7,40000 @@\n"+strings.Repeat(" x\n", hunk)+"-y\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	budget := searchBudget
	_, n := newText([]byte(strings.Repeat("x\n", file))).find(0, &p.sections[0].hunks[0], forward, &budget)
	if used := searchBudget - budget; n != 0 || used > 2*(hunk+file) {
		t.Errorf("%d places, %d steps", n, used)
	}
}
