package symbol

import (
	"strings"

	sitter "github.com/tree-sitter/go-tree-sitter"
)

// A walk goes over those nodes of a tree that a grammar names.
type walk struct {
	*list
	nodes  map[string]node
	data   []byte
	cursor *sitter.TreeCursor
	class  bool // functions in types are methods
}

// A lead is what stands before a symbol and belongs to it.
type lead struct {
	first, last int // lines; first is 0 if there is none
	far         bool
}

// children adds the symbols among the children of the cursor's node and in
// them, and returns the indexes of those that are in nothing else there. in is
// the name of what they are in; typed says that it is a type.
func (w *walk) children(in string, depth int, typed bool) (direct []int) {
	if depth > 3*w.limits.Depth { // between two symbols there are at most two other nodes
		w.deep = true
		return nil
	}
	if !w.cursor.GotoFirstChild() {
		return nil
	}
	var before lead
	end := 0 // last line of what came before
	for ok := true; ok && !w.full; ok = w.cursor.GotoNextSibling() {
		n := w.cursor.Node()
		if !n.IsNamed() {
			end = lastLine(n)
			continue
		}
		what, known := w.nodes[n.Kind()]
		first, last := int(n.StartPosition().Row)+1, lastLine(n)
		if what.lead {
			before = before.with(first, last, end, what.far)
			end = last
			continue
		}
		if before.first > 0 && (before.far || before.last+1 >= first) {
			first = before.first
		}
		before, end = lead{}, last
		if known && !n.IsError() {
			direct = append(direct, w.one(n, what, in, depth, typed, first, last)...)
		}
	}
	w.cursor.GotoParent()
	return direct
}

// with adds what stands on these lines. A comment behind something on one line
// belongs to that.
func (l lead) with(first, last, end int, far bool) lead {
	if l.first > 0 && (l.far || l.last+1 >= first) {
		return lead{l.first, last, l.far || far}
	}
	if first == end && !far {
		return lead{}
	}
	return lead{first, last, far}
}

// one adds the symbols of one node, which spans these lines.
func (w *walk) one(n *sitter.Node, what node, in string, depth int, typed bool, first, last int) (direct []int) {
	name, kind := w.named(n, what)
	if what.kind == "" && what.name == "" {
		direct = w.children(in, depth+1, typed)
		if what.wrap && len(direct) == 1 {
			s := &w.all[direct[0]]
			s.First, s.Last = min(s.First, first), max(s.Last, last)
		}
		return direct
	}
	if name == "" {
		return nil
	}
	if kind == Function && typed && w.class {
		kind = Method
	}
	if kind == Variable && typed {
		kind = Field
	}
	if what.kind != "" && !n.HasError() {
		if i := w.add(Symbol{qualified(in, name), kind, first, last}); i >= 0 {
			direct = append(direct, i)
		}
	}
	if what.into {
		w.children(qualified(in, name), depth+1, kind != Module)
	}
	return direct
}

// lastLine is the last line of a node. Some end with the line end, and so at
// the beginning of the next line.
func lastLine(n *sitter.Node) int {
	end := n.EndPosition()
	if end.Column == 0 && end.Row > n.StartPosition().Row {
		return int(end.Row)
	}
	return int(end.Row) + 1
}

// named gives the name and the kind of a node, "" if it has no name.
func (w *walk) named(n *sitter.Node, what node) (string, Kind) {
	switch {
	case what.name == "":
		return "", what.kind
	case what.name == "parent":
		if w.cursor.FieldName() != "value" {
			return "", "" // an expression
		}
		if own := n.ChildByFieldName("name"); own != nil {
			return w.text(own), what.kind
		}
		return "default", what.kind
	}
	field := n.ChildByFieldName(what.name)
	if field == nil {
		return "", ""
	}
	switch n.Kind() {
	case "impl_item":
		return w.typeName(field), ""
	case "variable_declarator":
		return w.declared(n, field, what.kind)
	case "assignment_expression":
		if field.Kind() != "member_expression" {
			return "", ""
		}
		name, kind := w.declared(n, field, "")
		if kind == "" {
			return "", ""
		}
		return name, kind
	case "assignment":
		if field.Kind() != "identifier" {
			return "", ""
		}
	}
	return w.text(field), what.kind
}

// declared is the name and kind of what is given a value: a function or a
// class, if that is the value.
func (w *walk) declared(n, name *sitter.Node, kind Kind) (string, Kind) {
	switch name.Kind() {
	case "object_pattern", "array_pattern":
		return "", ""
	}
	value := n.ChildByFieldName("value")
	if value == nil {
		value = n.ChildByFieldName("right")
	}
	if value != nil {
		switch value.Kind() {
		case "arrow_function", "function_expression", "generator_function":
			kind = Function
		case "class":
			kind = Class
		}
	}
	return w.text(name), kind
}

// typeName is the name of a type without its parameters and path.
func (w *walk) typeName(n *sitter.Node) string {
	for range 10 {
		field := map[string]string{"generic_type": "type", "scoped_type_identifier": "name", "reference_type": "type", "pointer_type": "type"}[n.Kind()]
		inner := (*sitter.Node)(nil)
		if field != "" {
			inner = n.ChildByFieldName(field)
		}
		if inner == nil {
			break
		}
		n = inner
	}
	return w.text(n)
}

// text is what a node that names something says, "" if that is no name.
func (w *walk) text(n *sitter.Node) string {
	from, to := n.ByteRange()
	if to-from > maxName {
		return ""
	}
	text := string(w.data[from:to])
	if n.Kind() == "string" {
		return strings.Trim(text, `"'`)
	}
	if strings.ContainsAny(text, "\"'`") { // blanks in it count
		return text
	}
	return compact(text)
}
