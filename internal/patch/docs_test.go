package patch_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"roundtable/internal/patch"
)

var update = flag.Bool("update", false, "write the generated tables into docs/patches.md")

// TestDocs: the tables in docs/patches.md are those of the code.
func TestDocs(t *testing.T) {
	const path = "../../docs/patches.md"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var classes, hints strings.Builder
	classes.WriteString("| class | check | when |\n|---|---|---|\n")
	for _, c := range patch.Classes() {
		fmt.Fprintf(&classes, "| `%s` | `%s` | %s |\n", c.Class, c.Stage, c.Meaning)
	}
	hints.WriteString("| hint | what to do |\n|---|---|\n")
	for _, h := range patch.Hints() {
		fmt.Fprintf(&hints, "| `%s` | %s |\n", h.Hint, h.Advice)
	}
	now := fill(fill(string(old), "classes", classes.String()), "hints", hints.String())
	if *update {
		if err := os.WriteFile(path, []byte(now), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if now != string(old) {
		t.Errorf("%s is not current: go test ./internal/patch -run TestDocs -update", path)
	}
}

// fill puts a table between the marks of its name.
func fill(text, name, table string) string {
	between := regexp.MustCompile(`(?s)(<!-- ` + name + `: [^\n]* -->\n).*?(<!-- end -->)`)
	return between.ReplaceAllString(text, "${1}"+strings.ReplaceAll(table, "$", "$$")+"${2}")
}
