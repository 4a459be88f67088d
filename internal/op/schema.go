package op

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/fault"
)

// SchemaOf returns the JSON Schema of the Go type T: objects take no other
// field than those named, lists are never null. It panics on a type that has
// none, which any test that lists the ops meets.
func SchemaOf[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("op: no schema: %v", err))
	}
	return plain(s)
}

// plain takes null out of the types of lists and objects: we never send it,
// and some clients refuse a type that is a list.
func plain(s *jsonschema.Schema) *jsonschema.Schema {
	if s == nil {
		return nil
	}
	if len(s.Types) == 2 && s.Types[0] == "null" {
		s.Type, s.Types = s.Types[1], nil
	}
	for _, p := range s.Properties {
		plain(p)
	}
	plain(s.Items)
	plain(s.AdditionalProperties)
	return s
}

// Decode reads strict JSON of schema into v; nothing at all stands for {}.
func Decode(in []byte, schema *jsonschema.Schema, v any) error {
	if len(bytes.TrimSpace(in)) == 0 {
		in = []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(in))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fault.Errorf(fault.Invalid, "invalid_input", "input: %v", err)
	}
	return nil
}
