package roundtable_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what is missing in generated documents")

const errorsDoc = "docs/errors.md"

// TestErrorsDoc: docs/errors.md has a row for every code that the program can
// answer, with its kinds and a meaning, and no other. With -update missing rows
// are added and dead ones dropped; a meaning is written by hand.
func TestErrorsDoc(t *testing.T) {
	codes := codesOf(t, ".")
	if len(codes) < 10 {
		t.Fatalf("only %d codes were found in the source", len(codes))
	}
	rows, err := readCodes(errorsDoc)
	if err != nil && !(os.IsNotExist(err) && *update) {
		t.Fatal(err)
	}
	if *update {
		for code := range rows {
			if codes[code] == nil {
				delete(rows, code)
			}
		}
		for code, kinds := range codes {
			rows[code] = [2]string{kindList(kinds), rows[code][1]}
		}
		for code, meaning := range meanings() {
			if row, ok := rows[code]; ok && row[1] == "" {
				rows[code] = [2]string{row[0], sentence(meaning)}
			}
		}
		if err := writeCodes(errorsDoc, rows); err != nil {
			t.Fatal(err)
		}
	}
	for code, kinds := range codes {
		row, ok := rows[code]
		switch {
		case !ok:
			t.Errorf("%s has no row for %s (%s); go test . -run ErrorsDoc -update adds it", errorsDoc, code, kindList(kinds))
		case row[0] != kindList(kinds):
			t.Errorf("%s says that %s is %s, and the program answers it as %s", errorsDoc, code, row[0], kindList(kinds))
		case row[1] == "":
			t.Errorf("%s has no meaning for %s", errorsDoc, code)
		}
	}
	for code := range rows {
		if codes[code] == nil {
			t.Errorf("%s has a row for %s, which nothing answers", errorsDoc, code)
		}
	}
}

// codesOf returns the codes of all faults made outside tests, each with the
// names of its kinds.
func codesOf(t *testing.T, root string) map[string]map[string]bool {
	codes := map[string]map[string]bool{}
	perDir := map[string][]*ast.File{}
	set := token.NewFileSet()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root {
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == "testdata" {
				return fs.SkipDir
			}
		}
		if filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(set, path, nil, 0)
		perDir[filepath.Dir(path)] = append(perDir[filepath.Dir(path)], f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, files := range perDir {
		s := source{codes: codes, texts: constants(files), makers: makers(files)}
		for _, f := range files {
			ast.Inspect(f, s.visit)
			for _, d := range f.Decls {
				s.assigned(d)
				s.classes(d)
			}
		}
		for _, at := range s.unread {
			t.Errorf("%s: the code of this fault is neither a literal nor a constant nor the parameter code", set.Position(at))
		}
	}
	return codes
}

// A source is one package as it is looked through.
type source struct {
	codes  map[string]map[string]bool
	texts  map[string]string
	makers map[string]maker
	unread []token.Pos
}

// A maker is a function that makes faults of a code it is given: the place of
// that parameter, and the kind of the faults.
type maker struct {
	code int
	kind string
}

func (s *source) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.CallExpr:
		name := called(n)
		if name == "fault.Errorf" && len(n.Args) >= 3 {
			s.add(n.Args[1], kindName(n.Args[0]))
		} else if m, ok := s.makers[name]; ok && m.code < len(n.Args) {
			s.add(n.Args[m.code], m.kind)
		}
	case *ast.CompositeLit:
		if sel, ok := n.Type.(*ast.SelectorExpr); ok && called(&ast.CallExpr{Fun: sel}) == "fault.Error" {
			kind, code := field(n, "Kind"), field(n, "Code")
			if code != nil {
				s.add(code, kindName(kind))
			}
		}
	}
	return true
}

// assigned notes the texts assigned to a variable called code in a function
// that makes a fault of it.
func (s *source) assigned(d ast.Decl) {
	var texts []ast.Expr
	kind := ""
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				if id, ok := to.(*ast.Ident); ok && id.Name == "code" && len(n.Rhs) == len(n.Lhs) {
					if lit, ok := n.Rhs[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						texts = append(texts, lit)
					}
				}
			}
		case *ast.CallExpr:
			if called(n) == "fault.Errorf" && isCode(n.Args[1]) {
				kind = kindName(n.Args[0])
			}
		case *ast.CompositeLit:
			if isCode(field(n, "Code")) {
				kind = kindName(field(n, "Kind"))
			}
		}
		return true
	})
	for _, e := range texts {
		if kind != "" {
			s.add(e, kind)
		}
	}
}

// classes notes the classes of refusals of patches: the codes that faults
// about a patch have.
func (s *source) classes(d ast.Decl) {
	decl, ok := d.(*ast.GenDecl)
	if !ok {
		return
	}
	for _, spec := range decl.Specs {
		v, ok := spec.(*ast.ValueSpec)
		if !ok {
			continue
		}
		if typ, ok := v.Type.(*ast.Ident); ok && typ.Name == "Class" {
			for _, e := range v.Values {
				s.add(e, "refused")
			}
		}
	}
}

// isCode reports whether e is a variable called code, an error's own Code, or
// the Class of a refusal.
func isCode(e ast.Expr) bool {
	if c, ok := e.(*ast.CallExpr); ok && called(c) == "string" && len(c.Args) == 1 {
		sel, ok := c.Args[0].(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "Class"
	}
	if sel, ok := e.(*ast.SelectorExpr); ok {
		return sel.Sel.Name == "Code"
	}
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "code"
}

// add notes a code that stands in the source as a text or a constant. Of a
// variable called code its makers and assignments tell.
func (s *source) add(e ast.Expr, kind string) {
	if isCode(e) {
		return
	}
	var code string
	switch e := e.(type) {
	case *ast.BasicLit:
		code, _ = strconv.Unquote(e.Value)
	case *ast.Ident:
		code = s.texts[e.Name]
	}
	if code == "" {
		s.unread = append(s.unread, e.Pos())
		return
	}
	if s.codes[code] == nil {
		s.codes[code] = map[string]bool{}
	}
	s.codes[code][kind] = true
}

// makers finds the functions with a parameter called code.
func makers(files []*ast.File) map[string]maker {
	found := map[string]maker{}
	look := func(name string, typ *ast.FuncType, body *ast.BlockStmt) {
		place, at := -1, 0
		for _, p := range typ.Params.List {
			for _, n := range p.Names {
				if n.Name == "code" {
					place = at
				}
				at++
			}
		}
		if place < 0 || body == nil {
			return
		}
		ast.Inspect(body, func(n ast.Node) bool {
			if c, ok := n.(*ast.CallExpr); ok && called(c) == "fault.Errorf" && isCode(c.Args[1]) {
				found[name] = maker{place, kindName(c.Args[0])}
			}
			return true
		})
	}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				look(n.Name.Name, n.Type, n.Body)
			case *ast.AssignStmt:
				if lit, ok := n.Rhs[0].(*ast.FuncLit); ok {
					if id, ok := n.Lhs[0].(*ast.Ident); ok {
						look(id.Name, lit.Type, lit.Body)
					}
				}
			}
			return true
		})
	}
	return found
}

// constants returns the constants of a package that are texts.
func constants(files []*ast.File) map[string]string {
	texts := map[string]string{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				for i, name := range v.Names {
					if i < len(v.Values) {
						if lit, ok := v.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
							texts[name.Name], _ = strconv.Unquote(lit.Value)
						}
					}
				}
			}
			return true
		})
	}
	return texts
}

// called returns the name of what is called, with its package or receiver if
// that is a plain name that is no method's.
func called(c *ast.CallExpr) string {
	switch f := c.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if x, ok := f.X.(*ast.Ident); ok && x.Name == "fault" {
			return "fault." + f.Sel.Name
		}
		return f.Sel.Name
	}
	return ""
}

func field(c *ast.CompositeLit, name string) ast.Expr {
	for _, e := range c.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if id, ok := kv.Key.(*ast.Ident); ok && id.Name == name {
				return kv.Value
			}
		}
	}
	return nil
}

// kindName returns the word for a kind: fault.NotFound is not_found.
func kindName(e ast.Expr) string {
	sel, ok := e.(*ast.SelectorExpr)
	if !ok {
		return "several"
	}
	var b strings.Builder
	for i, r := range sel.Sel.Name {
		if i > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteString(strings.ToLower(string(r)))
	}
	return b.String()
}

func kindList(kinds map[string]bool) string {
	return strings.Join(slices.Sorted(maps.Keys(kinds)), ", ")
}

// readCodes reads the table: code to its kinds and its meaning.
func readCodes(path string) (map[string][2]string, error) {
	rows := map[string][2]string{}
	b, err := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		cells := strings.SplitN(strings.Trim(strings.TrimSpace(line), "|"), "|", 3)
		if len(cells) != 3 || !strings.HasPrefix(strings.TrimSpace(cells[0]), "`") {
			continue
		}
		code := strings.Trim(strings.TrimSpace(cells[0]), "`")
		rows[code] = [2]string{strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])}
	}
	return rows, err
}

// sentence makes one of a phrase, in a cell of a table.
func sentence(s string) string {
	return strings.ToUpper(s[:1]) + strings.ReplaceAll(s[1:], "|", "\\|") + "."
}

func writeCodes(path string, rows map[string][2]string) error {
	var b strings.Builder
	b.WriteString(`# Errors

Every refusal and failure has a code. Over HTTP it stands in a problem (RFC 9457) whose status follows from the
kind; over MCP in the object after the sentence of a result with isError, and in its _meta; the command line prints it
and exits by the kind, or with 4 after ` + "`unknown_outcome`" + `: then the call may have been done, and is done once if it is sent
again under its key. A command line that answers what it was asked and still falls short of it (an apply that failed) prints the
answer, and then such a problem by which it exits. Programs should act on the code, and on the kind where they do not know the code.

| kind | HTTP | exit code | same call again |
|---|---|---|---|
| invalid | 400 (405, 415) | 2 | never right |
| unauthenticated | 401 | 3 | with a valid token |
| forbidden | 403 | 3 | with another right |
| not_found | 404 | 1 | when there is such a thing |
| conflict | 409 | 1 | when the state has changed |
| too_large | 413 | 1 | never right |
| refused | 422 | 1 | with another content |
| limit | 429 | 1 | after Retry-After |
| unavailable | 503 | 3 | under the same key, at once or a little later |
| internal | 500 | 1 | under the same key; the log has the reason under request_id |

The table is checked against the source.

| code | kind | meaning |
|---|---|---|
`)
	for _, code := range slices.Sorted(maps.Keys(rows)) {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", code, rows[code][0], rows[code][1])
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(b.String()), 0o644)
}
