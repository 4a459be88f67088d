package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// An Object is a JSON object whose members keep their order.
type Object[T any] []Member[T]

// A Member is one property of an Object.
type Member[T any] struct {
	Name  string
	Value T
}

// MarshalJSON writes the members in their order.
func (o Object[T]) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, m := range o {
		if i > 0 {
			out = append(out, ',')
		}
		name, err := Marshal(m.Name)
		if err != nil {
			return nil, err
		}
		value, err := Marshal(m.Value)
		if err != nil {
			return nil, err
		}
		out = append(append(append(out, name...), ':'), value...)
	}
	return append(out, '}'), nil
}

// UnmarshalJSON reads the members in their order; null is no members.
func (o *Object[T]) UnmarshalJSON(raw []byte) error {
	*o = nil
	d := json.NewDecoder(bytes.NewReader(raw))
	t, err := d.Token()
	if err != nil || t == nil {
		return err
	}
	if t != json.Delim('{') {
		return fmt.Errorf("%v is no object", t)
	}
	*o = Object[T]{}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return err
		}
		m := Member[T]{Name: fmt.Sprint(name)}
		if err := d.Decode(&m.Value); err != nil {
			return err
		}
		*o = append(*o, m)
	}
	return nil
}

// MarshalUnknown is a variant of a union that has no type here, as it came.
func MarshalUnknown(union, kind string, raw json.RawMessage) ([]byte, error) {
	if raw == nil {
		return nil, fmt.Errorf("%s has no variant %q", union, kind)
	}
	return raw, nil
}
