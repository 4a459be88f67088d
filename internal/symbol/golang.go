package symbol

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
)

func (f File) without(s Status, format string, args ...any) File {
	f.Status, f.Reason, f.Symbols = s, fmt.Sprintf(format, args...), nil
	return f
}

// readGo reads Go as its own compiler does.
func (f File) readGo(data []byte, limits Limits) File {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", data, parser.ParseComments|parser.SkipObjectResolution)
	broken, fault := 0, ""
	if errs, ok := errors.AsType[scanner.ErrorList](err); ok && len(errs) > 0 {
		errs.Sort()
		broken, fault = errs[0].Pos.Line, fmt.Sprintf("line %d does not parse: %s", errs[0].Pos.Line, errs[0].Msg)
	} else if err != nil {
		return f.without(Unparsed, "it does not parse: %v", err)
	}
	g := goFile{set: set, list: &list{limits: limits}}
	if file != nil {
		for _, d := range file.Decls {
			g.decl(d)
		}
	}
	return f.give(g.list, broken, fault)
}

type goFile struct {
	set *token.FileSet
	*list
}

// put adds a symbol from its documentation, if it has one, to its end. Lines
// are those of the file, whatever a //line comment says.
func (g goFile) put(kind Kind, name string, doc *ast.CommentGroup, n ast.Node) {
	from := n.Pos()
	if doc != nil {
		from = doc.Pos()
	}
	line := func(p token.Pos) int { return g.set.PositionFor(p, false).Line }
	if name != "_" {
		g.add(Symbol{Name: name, Kind: kind, First: line(from), Last: max(line(n.Pos()), line(n.End()-1))})
	}
}

func (g goFile) decl(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil || len(d.Recv.List) == 0 {
			g.put(Function, d.Name.Name, d.Doc, d)
			return
		}
		g.put(Method, qualified(receiver(d.Recv.List[0].Type), d.Name.Name), d.Doc, d)
	case *ast.GenDecl:
		for _, s := range d.Specs {
			g.spec(d, s)
		}
	}
}

// spec adds what one specification names. The only one of a declaration spans
// all of it.
func (g goFile) spec(d *ast.GenDecl, s ast.Spec) {
	kind := map[token.Token]Kind{token.CONST: Constant, token.VAR: Variable}[d.Tok]
	switch s := s.(type) {
	case *ast.TypeSpec:
		var n ast.Node = s
		doc := s.Doc
		if len(d.Specs) == 1 {
			n, doc = d, d.Doc
		}
		in, isInterface := s.Type.(*ast.InterfaceType)
		kind = Type
		if isInterface {
			kind = Interface
		}
		g.put(kind, s.Name.Name, doc, n)
		if isInterface && in.Methods != nil {
			for _, m := range in.Methods.List {
				for _, name := range m.Names {
					g.put(Method, qualified(s.Name.Name, name.Name), m.Doc, m)
				}
			}
		}
	case *ast.ValueSpec:
		var n ast.Node = s
		doc := s.Doc
		if len(d.Specs) == 1 {
			n, doc = d, d.Doc
		}
		for _, name := range s.Names {
			g.put(kind, name.Name, doc, n)
		}
	}
}

// receiver is the name of a receiver's type, without pointer and parameters.
func receiver(t ast.Expr) string {
	for {
		switch x := t.(type) {
		case *ast.StarExpr:
			t = x.X
		case *ast.ParenExpr:
			t = x.X
		case *ast.IndexExpr:
			t = x.X
		case *ast.IndexListExpr:
			t = x.X
		case *ast.Ident:
			return x.Name
		default:
			return ""
		}
	}
}
