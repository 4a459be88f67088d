package symbol

import (
	"sync"
	"unsafe"

	sitter "github.com/tree-sitter/go-tree-sitter"
	java "github.com/tree-sitter/tree-sitter-java/bindings/go"
	javascript "github.com/tree-sitter/tree-sitter-javascript/bindings/go"
	python "github.com/tree-sitter/tree-sitter-python/bindings/go"
	rust "github.com/tree-sitter/tree-sitter-rust/bindings/go"
	typescript "github.com/tree-sitter/tree-sitter-typescript/bindings/go"
)

// A grammar says how a file is parsed and which nodes of its tree matter.
type grammar struct {
	language func() *sitter.Language
	nodes    map[string]node
}

// A node says what a kind of tree node means. One that no table has is not
// looked into: what is local to a function is no symbol.
type node struct {
	kind Kind   // "": no symbol itself
	name string // the field that names it
	into bool   // symbols are looked for in it, as its own if it has a name
	lead bool   // it belongs to the symbol after it
	far  bool   // … whatever is between them
	wrap bool   // the only symbol in it spans all of it
}

var (
	pass    = node{into: true}
	wrapper = node{into: true, wrap: true}
	comment = node{lead: true}
	attach  = node{lead: true, far: true}
)

func leaf(k Kind) node  { return node{kind: k, name: "name"} }
func outer(k Kind) node { return node{kind: k, name: "name", into: true} }

// once loads a language when it is first needed. It is never freed: it is a
// table of the program.
func once(load func() unsafe.Pointer) func() *sitter.Language {
	return sync.OnceValue(func() *sitter.Language { return sitter.NewLanguage(load()) })
}

// grammars are the languages, by the end of a file's name.
var grammars = func() map[string]grammar {
	js := grammar{once(javascript.Language), scripts}
	ts := grammar{once(typescript.LanguageTypescript), scripts}
	py := grammar{once(python.Language), pythons}
	return map[string]grammar{
		".js": js, ".jsx": js, ".mjs": js, ".cjs": js,
		".ts": ts, ".mts": ts, ".cts": ts, ".tsx": {once(typescript.LanguageTSX), scripts},
		".py": py, ".pyi": py, ".rs": {once(rust.Language), rusts}, ".java": {once(java.Language), javas},
	}
}()

var scripts = map[string]node{
	"comment": comment, "decorator": attach, "class_body": pass, "interface_body": pass, "statement_block": pass,
	"export_statement": wrapper, "ambient_declaration": wrapper, "expression_statement": wrapper,
	"lexical_declaration": wrapper, "variable_declaration": wrapper,
	"function_declaration": leaf(Function), "generator_function_declaration": leaf(Function), "function_signature": leaf(Function),
	"class_declaration": outer(Class), "abstract_class_declaration": outer(Class), "interface_declaration": outer(Interface),
	"enum_declaration": leaf(Enum), "type_alias_declaration": leaf(Type), "internal_module": outer(Module), "module": outer(Module),
	"method_definition": leaf(Method), "method_signature": leaf(Method), "abstract_method_signature": leaf(Method),
	"field_definition": {kind: Field, name: "property"}, "public_field_definition": leaf(Field), "property_signature": leaf(Field),
	"variable_declarator":   leaf(Variable),                   // a function or class by its value
	"assignment_expression": {kind: Variable, name: "left"},   // such as exports.f = function () {}
	"arrow_function":        {kind: Function, name: "parent"}, // the next four: of export default
	"function_expression":   {kind: Function, name: "parent"},
	"generator_function":    {kind: Function, name: "parent"},
	"class":                 {kind: Class, name: "parent", into: true},
}

var pythons = map[string]node{
	"comment": comment, "block": pass, "decorated_definition": wrapper, "expression_statement": wrapper,
	"if_statement": pass, "elif_clause": pass, "else_clause": pass, "with_statement": pass,
	"try_statement": pass, "except_clause": pass, "except_group_clause": pass, "finally_clause": pass,
	"function_definition": leaf(Function), "class_definition": outer(Class), "assignment": {kind: Variable, name: "left"},
	"type_alias_statement": {kind: Type, name: "left"},
}

var rusts = map[string]node{
	"line_comment": comment, "block_comment": comment, "attribute_item": attach, "declaration_list": pass, "foreign_mod_item": pass,
	"function_item": leaf(Function), "function_signature_item": leaf(Function), "macro_definition": leaf(Macro),
	"struct_item": leaf(Type), "union_item": leaf(Type), "type_item": leaf(Type), "associated_type": leaf(Type), "enum_item": leaf(Enum),
	"trait_item": outer(Trait), "mod_item": outer(Module), "const_item": leaf(Constant), "static_item": leaf(Variable),
	"impl_item": {name: "type", into: true},
}

var javas = map[string]node{
	"line_comment": comment, "block_comment": comment,
	"class_body": pass, "interface_body": pass, "enum_body": pass, "enum_body_declarations": pass, "annotation_type_body": pass,
	"field_declaration": wrapper, "constant_declaration": wrapper, "variable_declarator": leaf(Field), "enum_constant": leaf(Constant),
	"class_declaration": outer(Class), "record_declaration": outer(Class), "interface_declaration": outer(Interface),
	"enum_declaration": outer(Enum), "annotation_type_declaration": outer(Interface), "module_declaration": leaf(Module),
	"method_declaration": leaf(Method), "constructor_declaration": leaf(Method), "compact_constructor_declaration": leaf(Method),
	"annotation_type_element_declaration": leaf(Method),
}
