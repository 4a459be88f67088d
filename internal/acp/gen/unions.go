package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// variant is one shape of a tagged union; the kind "" has no tag.
type variant struct{ kind, body string }

// tagged takes a definition apart that is nothing but a union told apart by
// one property.
func (g *generator) tagged(name string) (tag string, list []variant) {
	for _, n := range []*node{g.byName[name], g.next[name]} {
		if n == nil {
			continue
		}
		t, more, ok := g.split(n)
		if !ok {
			if n == g.byName[name] {
				return "", nil
			}
			continue
		}
		tag = t
		for _, v := range more {
			i := slices.IndexFunc(list, func(o variant) bool { return o.kind == v.kind })
			switch {
			case i < 0:
				list = append(list, v)
			case list[i].body == "":
				list[i].body = v.body
			}
		}
	}
	return tag, list
}

func (g *generator) split(n *node) (tag string, list []variant, ok bool) {
	if len(n.Properties) > 0 || len(n.AllOf) > 0 {
		return "", nil, false
	}
	for _, v := range n.variants() {
		var body string
		if len(v.AllOf) > 1 {
			return "", nil, false
		}
		if len(v.AllOf) == 1 {
			body = g.inline(v.AllOf[0])
		}
		if len(v.Properties) == 0 && body != "" {
			list = append(list, variant{"", body}) // the one without a tag
			continue
		}
		if v.Not != nil {
			continue // what is unknown
		}
		if len(v.Properties) != 1 {
			return "", nil, false
		}
		p := v.Properties[0]
		var kind string
		if json.Unmarshal(p.Value.Const, &kind) != nil || kind == "" || tag != "" && tag != p.Name {
			return "", nil, false
		}
		tag = p.Name
		list = append(list, variant{kind, body})
	}
	return tag, list, tag != ""
}

func (g *generator) union(goName, tag string, list []variant) {
	fmt.Fprintf(&g.out, "// %s is a union: Kind, the property %s, says which field is set. A variant\n"+
		"// that is unknown here has its Kind and the whole object in Raw.\ntype %s struct {\nKind string\n", goName, tag, goName)
	for _, v := range list {
		if v.body != "" {
			fmt.Fprintf(&g.out, "%s *%s\n", member(v), v.body)
		}
	}
	g.out.WriteString("Raw json.RawMessage // as it came; nil if made here\n}\n\n")

	fmt.Fprintf(&g.out, "// MarshalJSON writes the variant of the Kind.\nfunc (u %s) MarshalJSON() ([]byte, error) {\nswitch u.Kind {\n", goName)
	for _, v := range list {
		switch {
		case v.kind == "":
			fmt.Fprintf(&g.out, "case \"\":\nif u.%s != nil {\nreturn acp.Marshal(u.%s)\n}\n", member(v), member(v))
		case v.body == "":
			fmt.Fprintf(&g.out, "case %q:\nreturn acp.MarshalTagged(%q, u.Kind, nil)\n", v.kind, tag)
		default:
			fmt.Fprintf(&g.out, "case %q:\nreturn acp.MarshalTagged(%q, u.Kind, u.%s)\n", v.kind, tag, member(v))
		}
	}
	fmt.Fprintf(&g.out, "}\nreturn acp.MarshalUnknown(%q, u.Kind, u.Raw)\n}\n\n", goName)

	fmt.Fprintf(&g.out, "// UnmarshalJSON reads the variant that the tag names.\nfunc (u *%s) UnmarshalJSON(raw []byte) error {\n", goName)
	fmt.Fprintf(&g.out, "*u = %s{Kind: acp.Tag(raw, %q), Raw: bytes.Clone(raw)}\nswitch u.Kind {\n", goName, tag)
	for _, v := range list {
		if v.body != "" {
			fmt.Fprintf(&g.out, "case %q:\nreturn json.Unmarshal(raw, &u.%s)\n", v.kind, member(v))
		}
	}
	g.out.WriteString("}\nreturn nil\n}\n\n")
}

func member(v variant) string {
	if v.kind == "" {
		return v.body
	}
	return exported(v.kind)
}

func decode(raw json.RawMessage) *node {
	var n node
	if json.Unmarshal(raw, &n) != nil {
		return &node{}
	}
	return &n
}

// exported makes a Go name of a wire name: initialisms in capitals, words from
// _, -, / and $ and from capitals inside.
func exported(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("_-/$.", r) })
	var b strings.Builder
	for _, w := range words {
		switch strings.ToLower(w) {
		case "id", "uri", "url", "http", "mcp", "sse":
			b.WriteString(strings.ToUpper(w))
			continue
		}
		b.WriteString(strings.ToUpper(w[:1]) + w[1:])
	}
	name := b.String()
	for _, r := range [][2]string{{"Id", "ID"}, {"Uri", "URI"}, {"Url", "URL"}, {"Http", "HTTP"}, {"Mcp", "MCP"}, {"Sse", "SSE"}} {
		for i := 0; ; {
			j := strings.Index(name[i:], r[0])
			if j < 0 {
				break
			}
			i += j + len(r[0])
			if i == len(name) || strings.ToUpper(name[i:i+1]) == name[i:i+1] || strings.HasPrefix(name[i:], "s") && i+1 == len(name) {
				name = name[:i-len(r[0])] + r[1] + name[i:]
			}
		}
	}
	return name
}
