// Package sample makes random values that fit a schema, for tests. What always
// holds: a value fits the definition it was made for, and the same choices make
// the same value.
package sample

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"roundtable/internal/acp/schema"
)

// A Maker makes values of one schema. Choose returns a number from 0 to n-1.
type Maker struct {
	defs   map[string]json.RawMessage
	choose func(n int) int
}

// New makes values of set.
func New(set *schema.Set, choose func(n int) int) (*Maker, error) {
	defs, err := set.Names()
	return &Maker{defs, choose}, err
}

// Value is a value of a definition.
func (m *Maker) Value(definition string) (any, error) {
	return m.raw(m.defs[definition], 0)
}

type object = map[string]any

func (m *Maker) raw(raw json.RawMessage, depth int) (any, error) {
	var s any
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, err
	}
	return m.make(s, depth)
}

func (m *Maker) make(schema any, depth int) (any, error) {
	s, ok := schema.(object)
	if !ok {
		return "anything", nil
	}
	if c, ok := s["const"]; ok {
		return c, nil
	}
	if ref, ok := s["$ref"].(string); ok {
		return m.raw(m.defs[strings.TrimPrefix(ref, "#/$defs/")], depth)
	}
	_, hasProperties := s["properties"]
	if !hasProperties {
		if all, ok := s["allOf"].([]any); ok && len(all) == 1 {
			return m.make(all[0], depth)
		}
		for _, key := range []string{"anyOf", "oneOf"} {
			if list, ok := s[key].([]any); ok {
				return m.make(list[m.choose(len(list))], depth)
			}
		}
	}
	switch kind := m.kind(s, depth); kind {
	case "object":
		return m.object(s, depth)
	case "array":
		var list = []any{}
		for range 1 + m.choose(2) {
			v, err := m.make(s["items"], depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	default:
		return m.scalar(s, kind), nil
	}
}

func (m *Maker) kind(s object, depth int) string {
	switch t := s["type"].(type) {
	case string:
		return t
	case []any:
		if i := slices.Index(t, any("null")); depth > 5 && i >= 0 {
			return "null"
		}
		return fmt.Sprint(t[m.choose(len(t))])
	}
	if _, ok := s["properties"]; ok {
		return "object"
	}
	return "any"
}

func (m *Maker) scalar(s object, kind string) any {
	switch kind {
	case "null":
		return nil
	case "boolean":
		return m.choose(2) == 0
	case "integer":
		return float64(1 + m.choose(1000))
	case "number":
		return float64(m.choose(5)) / 4 // no number has a smaller range than 0 to 1
	case "string":
		if s["pattern"] != nil {
			return "USD" // the only pattern there is
		}
		return []string{"a", "text", "/x/y", "ä<&>", "https://example.com/"}[m.choose(5)]
	}
	return []any{1.0, "x", nil}[m.choose(2)]
}

// object makes the properties of all parts: what is required, and a choice of
// the rest.
func (m *Maker) object(s object, depth int) (any, error) {
	out := object{}
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(object)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(required, any(name)) && (depth > 4 || m.choose(2) == 0) {
			continue
		}
		v, err := m.make(properties[name], depth+1)
		if err != nil {
			return nil, err
		}
		if not, err := json.Marshal(s["not"]); err != nil {
			return nil, err
		} else if strings.Contains(string(not), `"`+name+`":{`) {
			v = "_custom" // the tag of a variant nobody knows
		}
		out[name] = v
	}
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		if key != "allOf" && len(list) > 0 {
			list = []any{list[m.choose(len(list))]}
		}
		for _, part := range list {
			v, err := m.make(part, depth)
			if err != nil {
				return nil, err
			}
			more, _ := v.(object)
			for name, v := range more {
				if _, ok := out[name]; !ok {
					out[name] = v
				}
			}
		}
	}
	return out, nil
}
