package op

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/fault"
)

// Decode reads strict JSON of schema into v; nothing at all stands for {}.
// What encoding/json would let pass is refused before it: a key that stands
// twice or in another case, text that is no Unicode, a field the schema does
// not have, more than one value. All wrong fields are named, up to a bound.
//
// The codes are malformed_json, unknown_field, missing_field and invalid_field;
// where several apply, the first of these.
func Decode(in []byte, schema *jsonschema.Schema, v any) error {
	if len(bytes.TrimSpace(in)) == 0 {
		in = []byte("{}")
	}
	if err := check(in, schema); err != nil {
		return err
	}
	if err := json.Unmarshal(in, v); err != nil {
		f := fault.Errorf(fault.Invalid, "invalid_field", "the input does not fit: %v", err)
		if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return f.At(pointer(strings.Split(t.Field, ".")), "cannot be a "+t.Value)
		}
		return f
	}
	return nil
}

// check returns a fault that names all that is wrong with in, or nil.
func check(in []byte, schema *jsonschema.Schema) error {
	if !utf8.Valid(in) {
		return notText(in, schema)
	}
	if !json.Valid(in) {
		err := json.Unmarshal(in, new(json.RawMessage))
		if s, ok := errors.AsType[*json.SyntaxError](err); ok {
			return malformed("the input is not JSON at byte %d: %v", s.Offset, s)
		}
		return malformed("the input is not JSON: %v", err)
	}
	c := checker{in: in, top: schema, bad: -1}
	c.space()
	c.value(schema, 0)
	return c.result()
}

// notText says where in is not UTF-8, with the field that it is in.
func notText(in []byte, schema *jsonschema.Schema) error {
	mended, bad := bytes.Clone(in), -1
	for at := 0; at < len(in); {
		r, n := utf8.DecodeRune(in[at:])
		if r == utf8.RuneError && n == 1 {
			mended[at] = '?'
			if bad < 0 {
				bad = at
			}
		}
		at += n
	}
	if json.Valid(mended) {
		c := checker{in: mended, top: schema, bad: bad}
		c.space()
		if c.value(schema, 0); c.broken != nil {
			return c.broken
		}
	}
	return malformed("the input is not UTF-8 at byte %d", bad)
}

func malformed(format string, args ...any) *fault.Error {
	return fault.Errorf(fault.Invalid, "malformed_json", format, args...)
}

// maxFields bounds how many wrong fields one answer names.
const maxFields = 32

// The classes of what can be wrong with a field, the first to be named first.
const (
	unknown = iota
	missing
	invalid
)

// result makes one fault of all that was found.
func (c *checker) result() error {
	if c.broken != nil {
		return c.broken
	}
	if len(c.fields) == 0 {
		return nil
	}
	code := "invalid_field"
	switch {
	case c.found[unknown]:
		code = "unknown_field"
	case c.found[missing]:
		code = "missing_field"
	}
	var say []string
	for _, f := range c.fields[:min(3, len(c.fields))] {
		at := f.Pointer
		if at == "" {
			at = "the input"
		}
		say = append(say, at+" "+f.Message)
	}
	detail := strings.Join(say, "; ")
	if more := len(c.fields) + c.left - len(say); more > 0 {
		detail += fmt.Sprintf("; and %d more", more)
	}
	return &fault.Error{Kind: fault.Invalid, Code: code, Detail: detail, Fields: c.fields}
}

// pointer writes a path as a JSON pointer (RFC 6901).
func pointer(path []string) string {
	var b strings.Builder
	for _, seg := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(seg))
	}
	return b.String()
}
