package events

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const docs = "../docs/events.md"

// TestDocs: docs/events.md says of every event what it means and holds.
func TestDocs(t *testing.T) {
	want := document(t)
	if *update {
		if err := os.WriteFile(docs, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(docs); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not current (%v): go test ./events -update writes it", docs, err)
	}
}

func document(t *testing.T) []byte {
	structs := structs(t)
	var b bytes.Buffer
	b.WriteString(`# Events

Made by ` + "`go test ./events -update`" + ` from the source; do not edit.

Every change of state is one of these. Each stands in an envelope:
position, id, workspace_id, stream, version, type, schema, time, actor,
session, command_id, causation_id, correlation_id, data, prev_hash, hash.
Positions are 1, 2, 3, … over the whole server, versions 1, 2, 3, … in
each stream. Times are RFC 3339 UTC with nanoseconds, hashes and digests
lowercase hex SHA-256. A field that is marked optional is left out when it is
empty.

`)
	shapes := map[string]bool{}
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range types.byName {
			if !yield(n) {
				return
			}
		}
	}) {
		typ := types.byName[name]
		kind, _, _ := strings.Cut(string(typ.zero.Stream()), "/")
		s := structs[typ.goType.Name()]
		_, means, _ := strings.Cut(s.doc, "means: ")
		fmt.Fprintf(&b, "## %s\n\nSchema %d, stream `%s/…`. %s\n\n", name, typ.schema(), kind, sentence(means))
		fields(&b, s, shapes)
	}
	b.WriteString("# Shapes\n\n")
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for n := range shapes {
			if !yield(n) {
				return
			}
		}
	}) {
		s := structs[name]
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", name, sentence(s.doc))
		fields(&b, s, nil)
	}
	return b.Bytes()
}

func sentence(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

type structDoc struct {
	doc    string
	fields []fieldDoc
}

type fieldDoc struct{ name, kind, note string }

func fields(b *bytes.Buffer, s structDoc, shapes map[string]bool) {
	b.WriteString("| field | kind | note |\n|---|---|---|\n")
	for _, f := range s.fields {
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.name, f.kind, f.note)
		if base := strings.TrimPrefix(f.kind, "list of "); shapes != nil && regexp.MustCompile(`^[A-Z]`).MatchString(base) {
			shapes[base] = true
		}
	}
	b.WriteString("\n")
}

// structs reads every struct of the package with its comments.
func structs(t *testing.T) map[string]structDoc {
	out := map[string]structDoc{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.TYPE {
				continue
			}
			for _, spec := range g.Specs {
				ts := spec.(*ast.TypeSpec)
				if st, ok := ts.Type.(*ast.StructType); ok {
					out[ts.Name.Name] = structDoc{g.Doc.Text(), members(st)}
				}
			}
		}
	}
	return out
}

func members(st *ast.StructType) (out []fieldDoc) {
	for _, f := range st.Fields.List {
		if f.Tag == nil {
			continue
		}
		tag := reflect.StructTag(strings.Trim(f.Tag.Value, "`"))
		name, options, _ := strings.Cut(tag.Get("json"), ",")
		note := strings.TrimSpace(f.Comment.Text())
		if strings.Contains(options, "omitempty") {
			note = strings.TrimSuffix("optional; "+note, "; ")
		}
		out = append(out, fieldDoc{name, kind(f.Type), strings.ReplaceAll(note, "|", "\\|")})
	}
	return out
}

func kind(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.ArrayType:
		return "list of " + kind(e.Elt)
	case *ast.StarExpr:
		return kind(e.X)
	case *ast.MapType:
		return "object"
	case *ast.SelectorExpr:
		return "time"
	case *ast.Ident:
		if name, ok := map[string]string{"int": "integer", "int64": "integer", "float64": "number", "bool": "boolean"}[e.Name]; ok {
			return name
		}
		return e.Name
	}
	return "value"
}
