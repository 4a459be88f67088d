package roundtable_test

import (
	"encoding/json"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// layers says, for each package of the project, which others of the project
// it may import and which outside modules. A package that is not listed fails
// the test: where a new one belongs is a decision.
var layers = map[string]struct{ may, outside []string }{
	"api":                        {[]string{"events", "events/eventlog", "internal/auth", "internal/fault", "internal/op"}, []string{"github.com/go-chi/chi/v5", "github.com/google/jsonschema-go", "github.com/oklog/ulid/v2", "github.com/prometheus/client_golang"}},
	"cmd/roundtable":             {[]string{"*"}, []string{"*"}},
	"cmd/testy":                  {[]string{"internal/testy"}, nil},
	"commands":                   {[]string{"domain", "events", "events/eventlog", "internal/attest", "internal/auth", "internal/fault", "internal/op", "internal/policy", "internal/redact", "internal/wire"}, []string{"github.com/google/jsonschema-go"}},
	"domain":                     {[]string{"events", "internal/auth", "internal/fault", "internal/patch", "internal/policy"}, []string{"golang.org/x/text"}},
	"events":                     {nil, []string{"github.com/oklog/ulid/v2"}},
	"events/eventlog":            {[]string{"events"}, []string{"github.com/ThreeDotsLabs/watermill", "github.com/oklog/ulid/v2", "golang.org/x/mod"}},
	"events/eventlog/logtest":    {[]string{"events", "events/eventlog"}, []string{"github.com/anishathalye/porcupine", "github.com/google/go-cmp", "github.com/oklog/ulid/v2"}},
	"events/eventlog/sqlitelog":  {[]string{"events", "events/eventlog", "internal/signal", "internal/sqlite"}, []string{"github.com/oklog/ulid/v2"}},
	"internal/acp":               {nil, nil},
	"internal/acp/check":         {[]string{"internal/acp", "internal/acp/proc", "internal/acp/rules", "internal/acp/schema"}, nil},
	"internal/acp/client":        {[]string{"internal/acp", "internal/acp/proc", "internal/acp/rules", "internal/acp/schema", "internal/acp/v1", "internal/acp/v2"}, []string{"golang.org/x/sys"}},
	"internal/acp/gen":           {[]string{"internal/acp", "internal/acp/schema"}, nil},
	"internal/acp/peers":         {nil, nil},
	"internal/acp/proc":          {nil, []string{"golang.org/x/sys"}},
	"internal/acp/rules":         {[]string{"internal/acp", "internal/acp/schema"}, nil},
	"internal/acp/schema":        {nil, nil},
	"internal/acp/schema/sample": {[]string{"internal/acp/schema"}, nil},
	"internal/acp/v1":            {[]string{"internal/acp"}, nil},
	"internal/acp/v2":            {[]string{"internal/acp"}, nil},
	"internal/attest":            {[]string{"events"}, []string{"github.com/secure-systems-lab/go-securesystemslib"}},
	"internal/auth":              {nil, nil},
	"internal/bench":             {[]string{"events", "events/eventlog", "events/eventlog/sqlitelog", "internal/blob", "internal/patch", "internal/repo", "internal/sqlite", "internal/world"}, []string{"github.com/oklog/ulid/v2"}},
	"internal/blob":              {[]string{"internal/calls", "internal/fault", "internal/kernel"}, []string{"golang.org/x/sys"}},
	"internal/calls":             {nil, []string{"golang.org/x/sys"}},
	"internal/cli":               {[]string{"internal/fault", "internal/op"}, []string{"github.com/google/jsonschema-go"}},
	"internal/fault":             {nil, nil},
	"internal/kernel":            {nil, []string{"golang.org/x/sys"}},
	"internal/op":                {[]string{"internal/auth", "internal/fault"}, []string{"github.com/google/jsonschema-go"}},
	"internal/patch":             {nil, []string{"golang.org/x/text"}},
	"internal/patch/patchtest":   {[]string{"internal/patch"}, nil},
	"internal/policy":            {nil, []string{"github.com/bmatcuk/doublestar"}},
	"internal/redact":            {nil, nil},
	"internal/remote":            {[]string{"internal/auth", "internal/fault", "internal/op"}, nil},
	"internal/repo":              {[]string{"internal/calls", "internal/fault", "internal/kernel", "internal/patch"}, []string{"golang.org/x/sys"}},
	"internal/runner":            {[]string{"internal/fault", "internal/sandbox"}, []string{"golang.org/x/sys"}},
	"internal/sandbox":           {nil, []string{"github.com/landlock-lsm/go-landlock", "golang.org/x/sys"}},
	"internal/signal":            {nil, nil},
	"internal/sqlite":            {[]string{"migrations"}, []string{"github.com/mattn/go-sqlite3"}},
	"internal/symbol":            {nil, []string{"github.com/tree-sitter/go-tree-sitter", "github.com/tree-sitter/tree-sitter-java", "github.com/tree-sitter/tree-sitter-javascript", "github.com/tree-sitter/tree-sitter-python", "github.com/tree-sitter/tree-sitter-rust", "github.com/tree-sitter/tree-sitter-typescript"}},
	"internal/testy":             {[]string{"internal/acp", "internal/acp/schema", "internal/acp/v1", "internal/acp/v2"}, []string{"github.com/mark3labs/mcp-go"}},
	"internal/wire":              {[]string{"internal/fault"}, nil},
	"internal/world":             {[]string{"commands", "domain", "events", "internal/blob", "internal/fault", "internal/patch", "internal/policy", "internal/redact", "internal/repo", "internal/runner", "internal/symbol", "internal/wire"}, nil},
	"mcp":                        {[]string{"internal/auth", "internal/fault", "internal/op"}, []string{"github.com/mark3labs/mcp-go", "github.com/google/jsonschema-go", "github.com/oklog/ulid/v2"}},
	"migrations":                 {nil, nil},
	"process":                    {[]string{"commands", "domain", "events", "events/eventlog", "internal/fault", "internal/patch", "internal/redact", "internal/repo", "internal/runner", "internal/world"}, []string{"github.com/ThreeDotsLabs/watermill", "github.com/sony/gobreaker"}},
	"projections":                {[]string{"events", "events/eventlog", "internal/auth", "internal/fault", "internal/op", "internal/signal", "internal/sqlite", "internal/wire"}, []string{"github.com/ThreeDotsLabs/watermill", "golang.org/x/sync"}},
}

// pure packages may not import these. Only their own imports count; tests are
// not counted at all.
var pure = map[string][]string{
	"events":         {"context", "database/sql", "net/http", "os", "os/exec"},
	"domain":         {"context", "database/sql", "net/http", "os", "os/exec"},
	"internal/patch": {"context", "database/sql", "net/http", "os", "os/exec"},
}

func TestLayers(t *testing.T) {
	const module = "roundtable"
	out, err := exec.Command("go", "list", "-json=ImportPath,Imports", "./...").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath string
			Imports    []string
		}
		if err := d.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(strings.TrimPrefix(p.ImportPath, module), "/")
		if name == "" {
			continue // the package of this test
		}
		seen[name] = true
		rule, ok := layers[name]
		if !ok {
			t.Errorf("package %s has no rule in layers", name)
			continue
		}
		for _, imp := range p.Imports {
			own, isOwn := strings.CutPrefix(imp, module+"/")
			switch {
			case isOwn && !allows(rule.may, own):
				t.Errorf("%s must not import %s", name, own)
			case !isOwn && strings.Contains(strings.Split(imp, "/")[0], ".") && !allows(rule.outside, imp):
				t.Errorf("%s must not import %s", name, imp)
			}
		}
		for _, bad := range pure[name] {
			if slices.Contains(p.Imports, bad) {
				t.Errorf("%s must stay pure but imports %s", name, bad)
			}
		}
	}
	for name := range layers {
		if !seen[name] {
			t.Errorf("layers has a rule for %s, which is no package", name)
		}
	}
}

func allows(list []string, imp string) bool {
	return slices.ContainsFunc(list, func(a string) bool {
		return a == "*" || imp == a || strings.Contains(a, ".") && strings.HasPrefix(imp, a+"/")
	})
}
