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
	raw     map[string]json.RawMessage
}

// Load reads the schema of version 1 or 2; next selects the newer copy.
func Load(version int, next bool) (*Set, error) {
	raw, err := File(version, next)
	if err != nil {
		return nil, err
	}
	var file struct {
		Defs map[string]json.RawMessage `json:"$defs"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		return nil, fmt.Errorf("schema of version %d: %w", version, err)
	}
	s := &Set{Version: version, defs: map[string]*Type{}, methods: map[string]Method{}, raw: file.Defs}
	for name := range file.Defs {
		s.defs[name] = &Type{}
	}
	for name, raw := range file.Defs {
		if err := s.compile(raw, s.defs[name]); err != nil {
			return nil, fmt.Errorf("schema of version %d, %s: %w", version, name, err)
		}
		if err := s.method(name, raw); err != nil {
			return nil, fmt.Errorf("schema of version %d, %s: %w", version, name, err)
		}
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
func (s *Set) Names() map[string]json.RawMessage { return s.raw }

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

func (s *Set) method(name string, raw json.RawMessage) error {
	var x struct {
		Side   string `json:"x-side"`
		Method string `json:"x-method"`
	}
	if err := json.Unmarshal(raw, &x); err != nil || x.Method == "" {
		return err
	}
	m := s.methods[x.Side+" "+x.Method]
	m.Name, m.Side = x.Method, x.Side
	switch {
	case strings.HasSuffix(name, "Response"):
		m.Result = s.defs[name]
	case strings.HasSuffix(name, "Notification"):
		m.Params, m.Notification = s.defs[name], true
	default:
		m.Params = s.defs[name]
	}
	s.methods[x.Side+" "+x.Method] = m
	return nil
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
}

type source struct {
	Type       json.RawMessage            `json:"type"`
	Const      json.RawMessage            `json:"const"`
	Ref        string                     `json:"$ref"`
	Properties map[string]json.RawMessage `json:"properties"`
	Required   []string                   `json:"required"`
	Items      json.RawMessage            `json:"items"`
	Not        json.RawMessage            `json:"not"`
	AllOf      []json.RawMessage          `json:"allOf"`
	AnyOf      []json.RawMessage          `json:"anyOf"`
	OneOf      []json.RawMessage          `json:"oneOf"`
	Minimum    *float64                   `json:"minimum"`
	Maximum    *float64                   `json:"maximum"`
	MinLength  int                        `json:"minLength"`
	MinItems   int                        `json:"minItems"`
	Pattern    string                     `json:"pattern"`
	OnError    bool                       `json:"x-deserialize-default-on-error"`
	OnItem     bool                       `json:"x-deserialize-skip-invalid-items"`
	OnNull     bool                       `json:"x-deserialize-default-on-null"`
}

func (s *Set) compile(raw json.RawMessage, t *Type) error {
	if string(raw) == "true" {
		return nil
	}
	var src source
	if err := json.Unmarshal(raw, &src); err != nil {
		return err
	}
	*t = Type{
		required: src.Required, minimum: src.Minimum, maximum: src.Maximum,
		minLength: src.MinLength, minItems: src.MinItems,
		onError: src.OnError, onItem: src.OnItem, onNull: src.OnNull,
	}
	if name, ok := strings.CutPrefix(src.Ref, "#/$defs/"); ok {
		if t.ref = s.defs[name]; t.ref == nil {
			return fmt.Errorf("%s does not exist", src.Ref)
		}
	}
	if src.Type != nil {
		if err := json.Unmarshal(src.Type, &t.types); err != nil {
			t.types = make([]string, 1)
			if err := json.Unmarshal(src.Type, &t.types[0]); err != nil {
				return err
			}
		}
	}
	if src.Const != nil {
		t.hasConst = true
		v, err := parse(src.Const)
		if err != nil {
			return err
		}
		t.constant = v
	}
	if src.Pattern != "" {
		var err error
		if t.pattern, err = regexp.Compile(src.Pattern); err != nil {
			return err
		}
	}
	return s.children(src, t)
}

func (s *Set) children(src source, t *Type) (err error) {
	one := func(raw json.RawMessage) *Type {
		if raw == nil || err != nil {
			return nil
		}
		child := &Type{}
		err = s.compile(raw, child)
		return child
	}
	many := func(list []json.RawMessage) (all []*Type) {
		for _, raw := range list {
			all = append(all, one(raw))
		}
		return all
	}
	t.items, t.not = one(src.Items), one(src.Not)
	t.allOf, t.anyOf, t.oneOf = many(src.AllOf), many(src.AnyOf), many(src.OneOf)
	t.properties = make(map[string]*Type, len(src.Properties))
	for name, raw := range src.Properties {
		t.properties[name] = one(raw)
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
