package op

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// An Answer is the shape that every op answers in, over every transport: a
// write {"position": N, "<entity>": {…}}, a read of one the same, a list
// {"<entities>": […], "next_cursor": "…"|null, "position": N}.
type Answer struct {
	Name     string // "proposal" or "proposals"
	Value    any
	Position int64
	List     bool
	Next     string         // of a list: cursor of the next page, "" at the end
	Later    bool           // what was begun goes on after this
	More     map[string]any // further members, such as the log of a test run
}

// A File is the answer of the few ops that answer no JSON: the bytes as they are.
type File []byte

// MarshalJSON writes the shape.
func (a Answer) MarshalJSON() ([]byte, error) {
	m := map[string]any{"position": a.Position, a.Name: a.Value}
	if a.List {
		m["next_cursor"] = nil
		if a.Next != "" {
			m["next_cursor"] = a.Next
		}
	}
	for k, v := range a.More {
		m[k] = v
	}
	return json.Marshal(m)
}

// OneOf is the schema of an answer about one E. More names further members.
func OneOf[E any](name string, more map[string]*jsonschema.Schema) *jsonschema.Schema {
	return answer(name, SchemaOf[E](), more)
}

// ListOf is the schema of a list of E.
func ListOf[E any](name string) *jsonschema.Schema {
	return answer(name, &jsonschema.Schema{Type: "array", Items: SchemaOf[E]()}, map[string]*jsonschema.Schema{
		"next_cursor": {AnyOf: []*jsonschema.Schema{{Type: "string"}, {Type: "null"}}},
	})
}

func answer(name string, s *jsonschema.Schema, more map[string]*jsonschema.Schema) *jsonschema.Schema {
	out := &jsonschema.Schema{
		Type:       "object",
		Properties: map[string]*jsonschema.Schema{"position": {Type: "integer"}, name: s},
		Required:   []string{"position", name},
	}
	for _, k := range slices.Sorted(maps.Keys(more)) {
		out.Properties[k] = more[k]
		out.Required = append(out.Required, k)
	}
	return out
}
