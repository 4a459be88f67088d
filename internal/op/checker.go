package op

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/fault"
)

// A checker walks over valid JSON once, beside its schema. It keeps nothing of
// what it has passed but the names of the members of the open objects.
type checker struct {
	in     []byte
	top    *jsonschema.Schema // of all of in
	bad    int                // the first byte that was not UTF-8 before it was mended; -1 if there is none
	at     int
	path   []string
	fields []fault.Field
	found  [3]bool
	left   int          // wrong fields that were not listed
	broken *fault.Error // ends the walk
}

// wrong notes what is wrong at the present path.
func (c *checker) wrong(class int, format string, args ...any) {
	c.found[class] = true
	if len(c.fields) == maxFields {
		c.left++
		return
	}
	c.fields = append(c.fields, fault.Field{Pointer: pointer(c.path), Message: fmt.Sprintf(format, args...)})
}

func (c *checker) space() {
	for c.at < len(c.in) && strings.IndexByte(" \t\r\n", c.in[c.at]) >= 0 {
		c.at++
	}
}

// value walks over one value, the first byte of which is next, and the space
// after it. A nil schema takes anything.
func (c *checker) value(s *jsonschema.Schema, depth int) {
	if s == nil {
		s = &jsonschema.Schema{}
	}
	if depth == MaxDepth && (c.in[c.at] == '{' || c.in[c.at] == '[') {
		c.broken = malformed("the input is nested deeper than %d at byte %d", MaxDepth, c.at)
		return
	}
	switch c.in[c.at] {
	case '{':
		c.object(c.fits(s, "object"), depth)
	case '[':
		c.list(c.fits(s, "array"), depth)
	case '"':
		raw, length := c.text()
		if c.broken == nil {
			c.checkText(c.fits(s, "string"), raw, length)
		}
	case 't', 'f':
		c.fits(s, "boolean")
		c.literal()
	case 'n':
		c.fits(s, "null")
		c.literal()
	default:
		c.checkNumber(s, c.literal())
	}
	c.space()
}

// fits returns s if it takes a value of the type, else it notes that it does
// not and returns a schema that takes anything.
func (c *checker) fits(s *jsonschema.Schema, typ string) *jsonschema.Schema {
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
	if len(types) == 0 || slices.Contains(types, typ) {
		return s
	}
	if typ == "null" {
		c.wrong(invalid, "must be %s, not null: leave the field out instead", article(types))
	} else {
		c.wrong(invalid, "must be %s, not %s", article(types), article([]string{typ}))
	}
	return &jsonschema.Schema{}
}

// article lists names of types as a reader would say them.
func article(types []string) string {
	var say []string
	for _, t := range types {
		switch t {
		case "null":
			say = append(say, t)
		case "integer", "object", "array":
			say = append(say, "an "+t)
		default:
			say = append(say, "a "+t)
		}
	}
	return strings.Join(say, " or ")
}

// literal passes true, false, null or a number and returns it.
func (c *checker) literal() string {
	from := c.at
	for c.at < len(c.in) && strings.IndexByte(" \t\r\n,]}:", c.in[c.at]) < 0 {
		c.at++
	}
	return string(c.in[from:c.at])
}

func (c *checker) object(s *jsonschema.Schema, depth int) {
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
	names := map[string]bool{}
	c.at++ // {
	c.space()
	for c.in[c.at] != '}' {
		raw, _ := c.text()
		if c.broken != nil {
			return
		}
		name := unquote(raw)
		if names[name] {
			c.broken = malformed("the key %.100q stands twice in one object", name).At(pointer(append(c.path, name)), "stands twice")
			return
		}
		names[name] = true
		if len(names) > MaxMembers {
			c.broken = malformed("an object has more than %d members at byte %d", MaxMembers, c.at)
			return
		}
		c.space()
		c.at++ // :
		c.space()
		c.path = append(c.path, name)
		sub, known := s.Properties[name]
		switch {
		case !known && closed:
			c.wrong(unknown, "%s", unknownField(name, s))
		case !known:
			sub = s.AdditionalProperties
		}
		c.value(sub, depth+1)
		if c.broken != nil {
			return
		}
		c.path = c.path[:len(c.path)-1]
		c.comma()
	}
	c.at++ // }
	for _, name := range s.Required {
		if !names[name] {
			c.path = append(c.path, name)
			c.wrong(missing, "is required")
			c.path = c.path[:len(c.path)-1]
		}
	}
}

// comma passes one, if it is next, and the space after it.
func (c *checker) comma() {
	if c.in[c.at] == ',' {
		c.at++
		c.space()
	}
}

func (c *checker) list(s *jsonschema.Schema, depth int) {
	n := 0
	c.at++ // [
	c.space()
	for ; c.in[c.at] != ']'; n++ {
		c.path = append(c.path, strconv.Itoa(n))
		c.value(s.Items, depth+1)
		if c.broken != nil {
			return
		}
		c.path = c.path[:len(c.path)-1]
		c.comma()
	}
	c.at++ // ]
	most := MaxItems
	if s.MaxItems != nil {
		most = *s.MaxItems
	}
	switch {
	case n > most:
		c.wrong(invalid, "may have at most %d items, not %d", most, n)
	case s.MinItems != nil && n < *s.MinItems:
		c.wrong(invalid, "must have at least %d items, not %d", *s.MinItems, n)
	}
}

// text passes a string and returns it as it stands, and its length in
// characters. A lone surrogate breaks off: it stands for no character.
func (c *checker) text() (raw []byte, length int) {
	from := c.at
	c.at++
	for c.in[c.at] != '"' {
		switch b := c.in[c.at]; {
		case c.at == c.bad:
			c.noText("the input is not UTF-8 at byte %d", c.at)
			return nil, 0
		case b == '\\' && c.in[c.at+1] == 'u':
			n := surrogates(c.in[c.at:])
			if n == 0 {
				c.noText("half a surrogate pair at byte %d: it stands for no character", c.at)
				return nil, 0
			}
			c.at += n
			length++
		case b == '\\':
			c.at += 2
			length++
		default:
			if b&0xC0 != 0x80 { // not inside a character
				length++
			}
			c.at++
		}
	}
	c.at++
	return c.in[from:c.at], length
}

// noText breaks off at bytes that are no text, and says how else they can be
// sent, if they can.
func (c *checker) noText(format string, args ...any) {
	c.broken = malformed(format, args...)
	if len(c.path) == 0 {
		return
	}
	say, twin := "is no Unicode text", c.path[0]+"_base64"
	if len(c.path) == 1 && c.top.Properties[twin] != nil {
		say += "; send the bytes as " + twin + ", which takes any"
		c.broken.Detail += "; the field " + twin + " takes any bytes, in base64"
	}
	c.broken = c.broken.At(pointer(c.path), say)
}

// surrogates returns the length of the \uXXXX, or pair of them, that in starts
// with; 0 if it is one half of a pair without the other.
func surrogates(in []byte) int {
	half := func(in []byte, lo, hi uint64) bool {
		if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
			return false
		}
		n, err := strconv.ParseUint(string(in[2:6]), 16, 16)
		return err == nil && lo <= n && n <= hi
	}
	switch {
	case half(in, 0xD800, 0xDBFF) && half(in[6:], 0xDC00, 0xDFFF):
		return 12
	case half(in, 0xD800, 0xDFFF):
		return 0
	}
	return 6
}

// unquote returns the text of a string whose surrogates are paired.
func unquote(raw []byte) string {
	var s string
	if err := json.Unmarshal(raw, &s); err != nil {
		panic("op: a checked string cannot be read: " + err.Error())
	}
	return s
}

func (c *checker) checkText(s *jsonschema.Schema, raw []byte, length int) {
	most := MaxText
	if s.MaxLength != nil {
		most = *s.MaxLength
	}
	switch {
	case length > most:
		c.wrong(invalid, "may have at most %d characters, not %d", most, length)
	case s.MinLength != nil && length < *s.MinLength:
		c.wrong(invalid, "must have at least %d characters, not %d", *s.MinLength, length)
	case s.Enum != nil:
		if text := unquote(raw); !slices.Contains(s.Enum, any(text)) {
			c.wrong(invalid, "must be one of %s, not %.40q", quoted(s.Enum), text)
		}
	case s.Format == "date-time":
		if text := unquote(raw); !isTime(text) {
			c.wrong(invalid, "must be a time such as 2026-01-31T12:00:00Z (RFC 3339), not %.40q", text)
		}
	}
}

func isTime(text string) bool {
	return new(time.Time).UnmarshalText([]byte(text)) == nil
}

func (c *checker) checkNumber(s *jsonschema.Schema, text string) {
	want := s.Type
	if want != "integer" {
		s = c.fits(s, "number")
	}
	if want == "integer" {
		if _, err := strconv.ParseInt(text, 10, 64); err != nil {
			c.wrong(invalid, "must be an integer of 64 bits without fraction or exponent, not %.40s", text)
			return
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	switch {
	case err != nil:
		c.wrong(invalid, "is too large for a number: %.40s", text)
	case s.Minimum != nil && n < *s.Minimum:
		c.wrong(invalid, "must be at least %v, not %.40s", *s.Minimum, text)
	case s.Maximum != nil && n > *s.Maximum:
		c.wrong(invalid, "may be at most %v, not %.40s", *s.Maximum, text)
	}
}
