package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
)

// Clean follows the markers of leniency: a malformed value counts as absent, a
// bad item is dropped, null is the default, each where the schema says so. It
// returns the text as it came if there was nothing to do, and a *Problem if
// what is left is still not valid.
func (t *Type) Clean(raw []byte) ([]byte, error) {
	v, err := parse(raw)
	if err != nil {
		return nil, err
	}
	if t.check(v) == nil {
		return raw, nil
	}
	v, p := t.clean(v)
	if p != nil {
		return nil, p
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSpace(b.Bytes()), nil
}

// clean never changes v itself: a variant that does not fit leaves no trace.
func (t *Type) clean(v any) (_ any, p *Problem) {
	own := Type{
		types: t.types, constant: t.constant, hasConst: t.hasConst, mismatch: t.mismatch, minimum: t.minimum, maximum: t.maximum,
		minLength: t.minLength, pattern: t.pattern, not: t.not,
	}
	if p = own.check(v); p != nil {
		return nil, p
	}
	switch x := v.(type) {
	case map[string]any:
		v, p = t.cleanObject(x)
	case []any:
		v, p = t.cleanArray(x)
	}
	if p == nil && t.ref != nil {
		v, p = t.ref.clean(v)
	}
	for _, part := range t.allOf {
		if p == nil {
			v, p = part.clean(v)
		}
	}
	for _, variants := range [][]*Type{t.anyOf, t.oneOf} {
		if p == nil && len(variants) > 0 {
			v, p = cleanUnion(variants, v)
		}
	}
	return v, p
}

func cleanUnion(variants []*Type, v any) (any, *Problem) {
	for _, variant := range variants {
		if variant.check(v) == nil {
			return v, nil
		}
	}
	var fit any
	_, p := choose(variants, func(t *Type, v any) (p *Problem) {
		fit, p = t.clean(v)
		return p
	}, v)
	return fit, p
}

func (t *Type) cleanObject(o map[string]any) (any, *Problem) {
	shape := Type{required: t.required, tags: t.tags, properties: tagsOf(t)}
	if p := shape.checkObject(o); p != nil {
		return nil, p
	}
	out := maps.Clone(o)
	for name, v := range o {
		t := t.properties[name]
		if t == nil {
			continue
		}
		fit, p := t.clean(v)
		switch {
		case p == nil && !(v == nil && t.onNull):
			out[name] = fit
		case t.onError || v == nil && t.onNull:
			delete(out, name)
		default:
			return nil, p.under(name)
		}
	}
	return out, nil
}

func tagsOf(t *Type) map[string]*Type {
	tags := make(map[string]*Type, len(t.tags))
	for _, tag := range t.tags {
		tags[tag.name] = tag.of
	}
	return tags
}

func (t *Type) cleanArray(list []any) (any, *Problem) {
	if t.items == nil {
		return list, nil
	}
	out := make([]any, 0, len(list))
	for i, item := range list {
		fit, p := t.items.clean(item)
		switch {
		case p == nil:
			out = append(out, fit)
		case !t.onItem:
			return nil, p.under(fmt.Sprint(i))
		}
	}
	if len(out) < t.minItems {
		return nil, &Problem{Text: fmt.Sprintf("must have at least %d item(s)", t.minItems)}
	}
	return out, nil
}
