package projections

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"roundtable/events"
)

// notShown lists the events that no projector shows, each with the reason.
var notShown = map[string]string{
	"workspace.transaction_unqueued":    "the transaction's own event says why it no longer waits",
	"workspace.apply_begun":             "the transaction is shown as applying",
	"workspace.apply_mode_set":          "what was found of the paths is shown, and it is nobody's finding",
	"workspace.apply_ended":             "the transaction is shown with its outcome",
	"proposal.transaction_cancelled":    "the transaction's own event says so",
	"transaction.resolve_requested":     "how it ended is shown",
	"transaction.resolve_failed":        "whoever asked is told; the transaction is as it was",
	"proposal.test_requested":           "the test run itself is shown",
	"approval.filed":                    "it says in which stream the request stands, which approval.requested has told already",
	"decision.recorded":                 "decisions are read in the history; there is no list of them yet",
	"proposal.transaction_failed":       "transaction.failed of the same append says it",
	"proposal.transaction_opened":       "transaction.opened of the same append says it",
	"test_run.cancel_requested":         "the run's end says that it was cancelled, or came first",
	"transaction.compensation_proposed": "the proposal names the transaction it takes back",
}

// TestListed finds projectors that All forgot, and events that no projector
// shows and nobody has said why.
func TestListed(t *testing.T) {
	var names, tables []string
	for _, p := range All() {
		names, tables = append(names, p.Name), append(tables, p.Tables...)
	}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if l, ok := n.(*ast.CompositeLit); ok {
				if name := projectorName(l); name != "" {
					found++
					if !slices.Contains(names, name) {
						t.Errorf("projector %s is not in All", name)
					}
				}
			}
			return true
		})
	}
	if found != len(names) {
		t.Errorf("found %d projectors, All has %d", found, len(names))
	}
	known := map[string]bool{}
	for _, z := range events.Zeros() {
		name, _, _, err := events.Encode(z)
		if err != nil {
			t.Fatal(err)
		}
		known[name] = true
		why, excused := notShown[name]
		shown := slices.ContainsFunc(All(), func(p Projector) bool { return p.on[reflect.TypeOf(z)] != nil })
		switch {
		case !shown && why == "":
			t.Errorf("no projector shows %s", name)
		case shown && excused:
			t.Errorf("%s is shown and in notShown", name)
		}
	}
	for name := range notShown {
		if !known[name] {
			t.Errorf("notShown has %s, which is no event", name)
		}
	}
	slices.Sort(tables)
	if d := slices.Compact(slices.Clone(tables)); len(d) != len(tables) {
		t.Errorf("two projectors share a table: %v", tables)
	}
	v, _ := newViews(t)
	rs, err := v.db.Read.QueryContext(t.Context(), `SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'checkpoints' AND name NOT LIKE 'sqlite_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Close()
	for rs.Next() {
		var name string
		if err := rs.Scan(&name); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(tables, name) {
			t.Errorf("no projector lists table %s: a rebuild would leave it", name)
		}
	}
	if err := rs.Err(); err != nil {
		t.Fatal(err)
	}
}

// projectorName returns the name in a Projector literal, or "".
func projectorName(l *ast.CompositeLit) string {
	if id, ok := l.Type.(*ast.Ident); !ok || id.Name != "Projector" {
		return ""
	}
	for _, e := range l.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok && kv.Key.(*ast.Ident).Name == "Name" {
			name, err := strconv.Unquote(kv.Value.(*ast.BasicLit).Value)
			if err == nil {
				return name
			}
		}
	}
	return ""
}
