package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"unicode/utf8"
)

// A Problem says where a value does not fit and why.
type Problem struct {
	Path string // as in update.content.type; "" is the value itself
	Text string
	tag  bool // a constant differs: another variant of a union may be meant
}

// Error is the text with the path in front.
func (p *Problem) Error() string {
	if p.Path == "" {
		return p.Text
	}
	return p.Path + ": " + p.Text
}

// under puts a step in front of the path.
func (p *Problem) under(step string) *Problem {
	q := *p
	q.Path = step
	if p.Path != "" {
		q.Path += "." + p.Path
	}
	return &q
}

func parse(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// Validate reports how a JSON text breaks the schema, as a *Problem.
func (t *Type) Validate(raw []byte) error {
	v, err := parse(raw)
	if err != nil {
		return err
	}
	if p := t.check(v); p != nil {
		return p
	}
	return nil
}

// check takes the tags of unions first, so that a variant that is not meant
// costs little.
func (t *Type) check(v any) *Problem {
	if t.hasConst && !equal(t.constant, v) {
		return t.mismatch
	}
	if len(t.types) > 0 && !t.hasType(v) {
		return &Problem{Text: fmt.Sprintf("must be %s", join(t.types))}
	}
	if p := t.checkScalar(v); p != nil {
		return p
	}
	if o, ok := v.(map[string]any); ok {
		if p := t.checkObject(o); p != nil {
			return p
		}
	}
	if list, ok := v.([]any); ok {
		if len(list) < t.minItems {
			return &Problem{Text: fmt.Sprintf("must have at least %d item(s)", t.minItems)}
		}
		for i, item := range list {
			if t.items == nil {
				break
			}
			if p := t.items.check(item); p != nil {
				return p.under(fmt.Sprint(i))
			}
		}
	}
	return t.checkParts(v)
}

func (t *Type) checkParts(v any) *Problem {
	if t.ref != nil {
		if p := t.ref.check(v); p != nil {
			return p
		}
	}
	for _, part := range t.allOf {
		if p := part.check(v); p != nil {
			return p
		}
	}
	if t.not != nil && t.not.check(v) == nil {
		return &Problem{Text: "is a known variant with malformed properties", tag: true}
	}
	if len(t.anyOf) > 0 {
		if _, p := choose(t.anyOf, (*Type).check, v); p != nil {
			return p
		}
	}
	if len(t.oneOf) > 0 {
		first, p := choose(t.oneOf, (*Type).check, v)
		if p != nil {
			return p
		}
		if _, p := choose(t.oneOf[first+1:], (*Type).check, v); p == nil {
			return &Problem{Text: "fits more than one variant"}
		}
	}
	return nil
}

// choose finds the first variant that v fits. If there is none, the problem is
// that of the variant whose tag is right.
func choose(variants []*Type, check func(*Type, any) *Problem, v any) (int, *Problem) {
	var best *Problem
	for i, variant := range variants {
		p := check(variant, v)
		if p == nil {
			return i, nil
		}
		if best == nil || best.tag && !p.tag {
			best = p
		}
	}
	if best == nil {
		best = &Problem{Text: "fits no variant"}
	}
	if best.tag && len(variants) > 1 {
		best = &Problem{Path: best.Path, Text: "is no known variant", tag: true}
	}
	return -1, best
}

func (t *Type) checkObject(o map[string]any) *Problem {
	for _, tag := range t.tags {
		if v, ok := o[tag.name]; ok && !equal(tag.of.constant, v) {
			return tag.mismatch
		}
	}
	for _, name := range t.required {
		if _, ok := o[name]; !ok {
			p := t.properties[name]
			return &Problem{Text: fmt.Sprintf("missing field `%s`", name), tag: p != nil && p.hasConst}
		}
	}
	for name, v := range o {
		if p := t.properties[name]; p != nil {
			if problem := p.check(v); problem != nil {
				return problem.under(name)
			}
		}
	}
	return nil
}

func (t *Type) checkScalar(v any) *Problem {
	switch v := v.(type) {
	case string:
		if utf8.RuneCountInString(v) < t.minLength {
			return &Problem{Text: fmt.Sprintf("must have at least %d character(s)", t.minLength)}
		}
		if t.pattern != nil && !t.pattern.MatchString(v) {
			return &Problem{Text: fmt.Sprintf("must match %s", t.pattern)}
		}
	case json.Number:
		if t.minimum == nil && t.maximum == nil {
			break
		}
		f, err := v.Float64()
		if err != nil || t.minimum != nil && f < *t.minimum || t.maximum != nil && f > *t.maximum {
			return &Problem{Text: fmt.Sprintf("%s is out of range", v)}
		}
	}
	return nil
}

func (t *Type) hasType(v any) bool {
	for _, name := range t.types {
		if is(name, v) {
			return true
		}
	}
	return false
}

func is(name string, v any) bool {
	switch v := v.(type) {
	case nil:
		return name == "null"
	case bool:
		return name == "boolean"
	case string:
		return name == "string"
	case []any:
		return name == "array"
	case map[string]any:
		return name == "object"
	case json.Number:
		return name == "number" || name == "integer" && isInteger(v)
	}
	return false
}

// isInteger takes 1.0 and 1e2 for integers, as JSON Schema does.
func isInteger(n json.Number) bool {
	if _, err := n.Int64(); err == nil {
		return true
	}
	if len(n) > 400 {
		return false
	}
	f, _, err := big.ParseFloat(n.String(), 10, 200, big.ToNearestEven)
	return err == nil && f.IsInt()
}

func equal(a, b any) bool {
	x, ok := a.(json.Number)
	if !ok {
		if _, ok := b.(map[string]any); ok {
			return false
		}
		if _, ok := b.([]any); ok {
			return false
		}
		return a == b
	}
	y, ok := b.(json.Number)
	if !ok {
		return false
	}
	f, err1 := x.Float64()
	g, err2 := y.Float64()
	return err1 == nil && err2 == nil && f == g
}

func join(types []string) string {
	var b bytes.Buffer
	for i, t := range types {
		if i > 0 {
			b.WriteString(" or ")
		}
		b.WriteString(t)
	}
	return b.String()
}
