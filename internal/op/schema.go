package op

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// Bounds of what no tag bounds.
const (
	MaxText    = 64 << 10 // characters of a string
	MaxItems   = 10_000   // items of a list
	MaxMembers = 10_000   // members of an object
	MaxDepth   = 64       // nested objects and lists
)

// SchemaOf returns the JSON Schema of the Go type T: objects take no other
// field than those named, lists are never null. A field is required unless its
// json tag says omitempty or omitzero. Further tags of a field:
//
//	jsonschema:"text"         its description
//	enum:"a,b"                the strings it may be
//	min:"1" max:"9"           bounds of a number, both included
//	minlen:"1" maxlen:"80"    bounds of a string, in characters
//	minitems:"1" maxitems:"9" bounds of a list
//
// On a list the tags for strings and numbers are about its items. SchemaOf
// panics on a type that has no schema and on a tag that cannot be read, which
// any test that lists the ops meets.
func SchemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](&jsonschema.ForOptions{TypeSchemas: map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[time.Time]():       {Type: "string", Format: "date-time"},
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	}})
	if err != nil {
		panic(fmt.Sprintf("op: no schema: %v", err))
	}
	plain(s)
	if err := tagged(reflect.TypeFor[T](), s); err != nil {
		panic(fmt.Sprintf("op: schema of %s: %v", reflect.TypeFor[T](), err))
	}
	return s
}

// plain takes null out of the types of lists and objects: we never send it,
// and some clients refuse a type that is a list.
func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		plain(p)
	}
	plain(s.Items)
	plain(s.AdditionalProperties)
}

// tagged puts the tags of t's fields into s, which is t's schema.
func tagged(t reflect.Type, s *jsonschema.Schema) error {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	switch {
	case s == nil:
		return nil
	case t.Kind() == reflect.Slice || t.Kind() == reflect.Array:
		return tagged(t.Elem(), s.Items)
	case t.Kind() == reflect.Map:
		return tagged(t.Elem(), s.AdditionalProperties)
	case t.Kind() != reflect.Struct || s.Properties == nil:
		return nil
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		p := s.Properties[name]
		if p == nil {
			continue
		}
		if err := bound(f.Tag, p); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
		if err := tagged(f.Type, p); err != nil {
			return err
		}
	}
	return nil
}

// bound puts the bounds of one field's tag into its schema.
func bound(tag reflect.StructTag, p *jsonschema.Schema) error {
	one := p
	if p.Items != nil {
		one = p.Items
	}
	if list, ok := tag.Lookup("enum"); ok {
		one.Enum = nil
		for v := range strings.SplitSeq(list, ",") {
			one.Enum = append(one.Enum, v)
		}
	}
	for key, to := range map[string]**float64{"min": &one.Minimum, "max": &one.Maximum} {
		if text, ok := tag.Lookup(key); ok {
			n, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return err
			}
			*to = &n
		}
	}
	for key, to := range map[string]**int{
		"minlen": &one.MinLength, "maxlen": &one.MaxLength, "minitems": &p.MinItems, "maxitems": &p.MaxItems,
	} {
		if text, ok := tag.Lookup(key); ok {
			n, err := strconv.Atoi(text)
			if err != nil {
				return err
			}
			*to = &n
		}
	}
	return nil
}
