package acp

import (
	"bytes"
	"encoding/json"
)

// Marshal is v as JSON without HTML escaping: on a wire, <, > and & are plain.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// A List is an array that the protocol requires: a nil one is written as [].
type List[T any] []T

// MarshalJSON writes an array, never null.
func (l List[T]) MarshalJSON() ([]byte, error) {
	if l == nil {
		return []byte("[]"), nil
	}
	return Marshal([]T(l))
}

// A Patch is a field of an update: absent keeps what was there, null clears
// it, a value replaces it. The zero Patch is absent. Its field is tagged
// omitzero.
type Patch[T any] struct {
	Set   bool
	Value *T
}

// To is the patch that replaces by v.
func To[T any](v T) Patch[T] { return Patch[T]{Set: true, Value: &v} }

// IsZero reports whether the field is absent.
func (p Patch[T]) IsZero() bool { return !p.Set }

// MarshalJSON writes the value or null.
func (p Patch[T]) MarshalJSON() ([]byte, error) { return Marshal(p.Value) }

// UnmarshalJSON is called for a field that is present only.
func (p *Patch[T]) UnmarshalJSON(raw []byte) error {
	p.Set, p.Value = true, nil
	return json.Unmarshal(raw, &p.Value)
}

// MarshalTagged is the object body with the property tag set to kind in front
// of the others. A nil body has no other properties.
func MarshalTagged(tag, kind string, body any) ([]byte, error) {
	head, err := Marshal(map[string]string{tag: kind})
	if err != nil || body == nil {
		return head, err
	}
	rest, err := Marshal(body)
	if err != nil || string(rest) == "{}" || string(rest) == "null" {
		return head, err
	}
	head[len(head)-1] = ','
	return append(head, rest[1:]...), nil
}

// Tag is the string property tag of an object, or "" if there is none.
func Tag(raw []byte, tag string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return ""
	}
	var s string
	if json.Unmarshal(fields[tag], &s) != nil {
		return ""
	}
	return s
}
