package op

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// unknownField says why the object of schema s has no field name, and which
// one was likely meant.
func unknownField(name string, s *jsonschema.Schema) string {
	known := slices.Sorted(maps.Keys(s.Properties))
	if near := nearest(name, known); near != "" {
		return fmt.Sprintf("is no field here; did you mean %q?", near)
	}
	switch fold(name) {
	case "actor", "author", "voter", "role", "principal", "principalid", "agentid", "agent", "user", "userid", "by":
		return "is no field here: who asks is known from the credential alone"
	}
	if len(known) == 0 {
		return "is no field here: no fields are taken"
	}
	return "is no field here; the fields are " + strings.Join(known[:min(30, len(known))], ", ")
}

// Nearest returns the known name that was likely meant by name, or "" if none
// is close.
func Nearest(name string, known []string) string { return nearest(name, known) }

// nearest returns the known name that is closest to name, or "" if none is
// close: a typing error in every four letters is.
func nearest(name string, known []string) string {
	if len(name) > 64 {
		return ""
	}
	best, least := "", len(name)/4+2
	for _, k := range known {
		if fold(k) == fold(name) {
			return k
		}
		if d := distance(fold(name), fold(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// fold takes out what people write differently: case, underscores, hyphens.
func fold(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// distance is how many bytes have to be added, removed, changed or swapped
// with the next to make b of a.
func distance(a, b string) int {
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}

func quoted(list []any) string {
	var say []string
	for _, v := range list {
		say = append(say, fmt.Sprintf("%q", v))
	}
	return strings.Join(say, ", ")
}
