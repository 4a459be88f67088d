// Package schema reads the JSON Schemas of the Agent Client Protocol, which
// lie in data, and holds messages against them.
//
// What always holds: a value that [Type.Validate] accepts is left alone by
// [Type.Clean]; what Clean returns validates, except that a required property
// whose value was malformed may be missing; and a property is dropped only
// where the schema marks it. Only the keywords that the four files use are
// known, and a test compares the verdicts with those of a full validator.
package schema

import (
	"embed"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

//go:embed data/LICENSE data/v1 data/v2
var data embed.FS

// A Method is a line of the method table.
type Method struct {
	Name         string
	Side         string // who receives it: agent, client or protocol
	Notification bool
	Params       *Type
	Result       *Type // nil for a notification
}

// A Set is one version of the protocol.
type Set struct {
	Version int
	defs    map[string]*Type
	methods map[string]Method // by side and name
	text    []byte
}

// Load reads the schema of version 1 or 2; next selects the newer copy.
func Load(version int, next bool) (*Set, error) {
	text, err := File(version, next)
	if err != nil {
		return nil, err
	}
	v, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("schema of version %d: %w", version, err)
	}
	file, _ := v.(map[string]any)
	defs, _ := file["$defs"].(map[string]any)
	if len(defs) == 0 {
		return nil, fmt.Errorf("schema of version %d has no definitions", version)
	}
	s := &Set{Version: version, defs: map[string]*Type{}, methods: map[string]Method{}, text: text}
	for name := range defs {
		s.defs[name] = &Type{}
	}
	for name, def := range defs {
		if err := s.compile(def, s.defs[name]); err != nil {
			return nil, fmt.Errorf("schema of version %d, %s: %w", version, name, err)
		}
		s.method(name, def)
	}
	return s, nil
}

// File is the text of a schema.
func File(version int, next bool) ([]byte, error) {
	name := fmt.Sprintf("data/v%d/schema.json", version)
	if next {
		name = fmt.Sprintf("data/v%d/schema.next.json", version)
	}
	return data.ReadFile(name)
}

// Def is the definition of a name, or nil.
func (s *Set) Def(name string) *Type { return s.defs[name] }

// Names are the names of all definitions with their schemas as JSON.
func (s *Set) Names() (map[string]json.RawMessage, error) {
	var file struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	err := json.Unmarshal(s.text, &file)
	return file.Defs, err
}

// Method finds what a side (agent or client) can be asked; what goes both ways
// is found for either.
func (s *Set) Method(side, name string) (Method, bool) {
	m, ok := s.methods[side+" "+name]
	if !ok {
		m, ok = s.methods["protocol "+name]
	}
	return m, ok
}

// Methods are the whole table, in no order.
func (s *Set) Methods() []Method {
	var all []Method
	for _, m := range s.methods {
		all = append(all, m)
	}
	return all
}

func (s *Set) method(name string, def any) {
	d, _ := def.(map[string]any)
	side, _ := d["x-side"].(string)
	method, _ := d["x-method"].(string)
	if method == "" {
		return
	}
	m := s.methods[side+" "+method]
	m.Name, m.Side = method, side
	switch {
	case strings.HasSuffix(name, "Response"):
		m.Result = s.defs[name]
	case strings.HasSuffix(name, "Notification"):
		m.Params, m.Notification = s.defs[name], true
	default:
		m.Params = s.defs[name]
	}
	s.methods[side+" "+method] = m
}

// A Type is a schema ready for use.
type Type struct {
	types                   []string
	constant                any
	hasConst                bool
	ref                     *Type
	properties              map[string]*Type
	required                []string
	items, not              *Type
	allOf, anyOf, oneOf     []*Type
	minimum, maximum        *float64
	minLength, minItems     int
	pattern                 *regexp.Regexp
	onError, onItem, onNull bool // the markers of leniency

	mismatch *Problem // of a value that is not the constant
	tags     []tag    // the properties that are constants
}

type tag struct {
	name     string
	of       *Type
	mismatch *Problem
}

// compile makes a type of a schema. What is of an unexpected shape is as if it
// were not there: the files are ours, and the tests compare every verdict.
func (s *Set) compile(schema any, t *Type) (err error) {
	src, ok := schema.(map[string]any)
	if !ok {
		return nil // true: anything
	}
	t.types, t.required = words(src["type"]), words(src["required"])
	t.minimum, t.maximum = number(src["minimum"]), number(src["maximum"])
	t.minLength, t.minItems = count(src["minLength"]), count(src["minItems"])
	if t.constant, t.hasConst = src["const"], src["const"] != nil; t.hasConst {
		t.mismatch = &Problem{Text: fmt.Sprintf("must be %v", t.constant), tag: true}
	}
	t.onError, _ = src["x-deserialize-default-on-error"].(bool)
	t.onItem, _ = src["x-deserialize-skip-invalid-items"].(bool)
	t.onNull, _ = src["x-deserialize-default-on-null"].(bool)
	if ref, ok := src["$ref"].(string); ok {
		if t.ref = s.defs[strings.TrimPrefix(ref, "#/$defs/")]; t.ref == nil {
			return fmt.Errorf("%s does not exist", ref)
		}
	}
	if pattern, ok := src["pattern"].(string); ok {
		if t.pattern, err = regexp.Compile(pattern); err != nil {
			return err
		}
	}
	return s.children(src, t)
}

func words(v any) (all []string) {
	switch v := v.(type) {
	case string:
		return []string{v}
	case []any:
		for _, e := range v {
			if w, ok := e.(string); ok {
				all = append(all, w)
			}
		}
	}
	return all
}

func number(v any) *float64 {
	n, ok := v.(json.Number)
	if !ok {
		return nil
	}
	f, err := n.Float64()
	if err != nil {
		return nil
	}
	return &f
}

func count(v any) int {
	if f := number(v); f != nil {
		return int(*f)
	}
	return 0
}

func (s *Set) children(src map[string]any, t *Type) (err error) {
	one := func(schema any) *Type {
		if schema == nil || err != nil {
			return nil
		}
		child := &Type{}
		err = s.compile(schema, child)
		return child
	}
	many := func(v any) (all []*Type) {
		list, _ := v.([]any)
		for _, schema := range list {
			all = append(all, one(schema))
		}
		return all
	}
	t.items, t.not = one(src["items"]), one(src["not"])
	t.allOf, t.anyOf, t.oneOf = many(src["allOf"]), many(src["anyOf"]), many(src["oneOf"])
	properties, _ := src["properties"].(map[string]any)
	t.properties = make(map[string]*Type, len(properties))
	for name, schema := range properties {
		p := one(schema)
		t.properties[name] = p
		if p != nil && p.hasConst {
			t.tags = append(t.tags, tag{name, p, p.mismatch.under(name)})
		}
	}
	return err
}

// Knows reports whether a property is named by the schema, by any variant of
// it.
func (t *Type) Knows(property string) bool {
	if t == nil {
		return false
	}
	if t.properties[property] != nil || t.ref.Knows(property) {
		return true
	}
	for _, parts := range [][]*Type{t.allOf, t.anyOf, t.oneOf} {
		for _, part := range parts {
			if part.Knows(property) {
				return true
			}
		}
	}
	return false
}
