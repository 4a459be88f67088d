package main

import (
	"fmt"
	"slices"
	"strings"
)

// envelope are the definitions that belong to JSON-RPC itself.
var envelope = []string{"RequestId", "Error", "ErrorCode"}

// patched are the types in whose nullable fields null differs from absent.
var patched = map[int][]string{
	1: {"SessionInfoUpdate"},
	2: {"UserMessage", "AgentMessage", "AgentThought", "ToolCallUpdate", "TerminalUpdate", "SessionInfoUpdate"},
}

// order are the properties that are written first, where the schema lists them
// otherwise.
var order = map[string][]string{
	"ToolCallUpdate":           {"toolCallId", "title", "kind", "status"},
	"ImageContent":             {"data", "mimeType", "uri"},
	"AudioContent":             {"data", "mimeType"},
	"ResourceLink":             {"name", "uri", "description", "mimeType"},
	"TextContent":              {"text"},
	"EmbeddedResource":         {"resource"},
	"EmbeddedResourceResource": {"text", "blob", "uri", "mimeType"},
	"CreateElicitationRequest": {"mode", "sessionId", "toolCallId", "requestId", "requestedSchema", "elicitationId", "url", "message"},
	"ElicitationSchema":        {"type", "title", "description", "properties", "required"},
	"InitializeResponse":       {"protocolVersion", "info", "capabilities"},
	"ContentChunk":             {"content", "messageId"},
}

// field is one property of a struct, all parts of its definition merged.
type field struct {
	name     string
	of       *node
	required bool
	mixed    bool // parts disagree about its type
}

// fields merges the properties of a definition and of all it is made of. What
// only a variant of a union requires is optional.
func (g *generator) fields(n *node, required bool, into []field) []field {
	for _, p := range n.Properties {
		i := slices.IndexFunc(into, func(f field) bool { return f.name == p.Name })
		need := required && slices.Contains(n.Required, p.Name)
		if i < 0 {
			into = append(into, field{name: p.Name, of: p.Value, required: need})
			continue
		}
		into[i].required = into[i].required || need
		if into[i].of.Const == nil && p.Value.Const == nil && g.inline(into[i].of) != g.inline(p.Value) {
			into[i].mixed = true
		}
		if into[i].of.Const != nil {
			into[i].of = p.Value
		}
	}
	if n.Ref != "" {
		into = g.fields(g.resolve(n), required, into)
	}
	for _, part := range n.AllOf {
		into = g.fields(part, required, into)
	}
	for _, part := range n.variants() {
		into = g.fields(part, false, into)
	}
	return into
}

func (g *generator) object(name, goName string) {
	list := g.fields(g.byName[name], true, nil)
	if newer := g.next[name]; newer != nil && newer != g.byName[name] {
		for _, f := range g.fields(newer, false, nil) {
			if !slices.ContainsFunc(list, func(o field) bool { return o.name == f.name }) {
				list = append(list, f)
			}
		}
	}
	rank := func(f field) int {
		if f.name == "_meta" {
			return 1000
		}
		first := order[name]
		if g.version == 2 && name == "ContentChunk" {
			first = []string{"messageId", "content"}
		}
		if i := slices.Index(first, f.name); i >= 0 {
			return i - len(first)
		}
		return 0
	}
	slices.SortStableFunc(list, func(a, b field) int { return rank(a) - rank(b) })
	what := "is an object of the protocol"
	if m := g.byName[name].Method; m != "" {
		what = "belongs to the method " + m
	}
	fmt.Fprintf(&g.out, "// %s %s.\ntype %s struct {\n", goName, what, goName)
	for _, f := range list {
		g.field(name, f)
	}
	g.out.WriteString("}\n\n")
}

func (g *generator) field(owner string, f field) {
	goType, tag := g.inline(f.of), f.name
	null := nullable(f.of)
	if f.mixed {
		goType = "json.RawMessage"
	}
	isSlice := strings.HasPrefix(goType, "[]")
	switch {
	case f.required && isSlice:
		goType = "acp.List[" + goType[2:] + "]"
	case f.required:
	case null && slices.Contains(patched[g.version], owner) && f.name != "_meta":
		goType, tag = "acp.Patch["+goType+"]", tag+",omitzero"
	case isSlice || goType == "json.RawMessage" || strings.HasPrefix(goType, "acp.Object") || strings.HasPrefix(goType, "map["):
		tag += ",omitzero"
	default:
		goType, tag = "*"+goType, tag+",omitzero"
	}
	fmt.Fprintf(&g.out, "%s %s `json:%q`\n", exported(f.name), goType, tag)
}

func nullable(n *node) bool {
	if slices.Contains(n.types(), "null") {
		return true
	}
	return slices.ContainsFunc(n.AnyOf, func(v *node) bool { return slices.Contains(v.types(), "null") })
}

// inline is the Go type of a value, without regard to whether it is optional.
func (g *generator) inline(n *node) string {
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		switch {
		case name == "Error":
			return "acp.Error"
		case name == "RequestId" || g.isRaw(name):
			return "json.RawMessage"
		}
		return exported(name)
	}
	if len(n.AllOf) == 1 && len(n.Properties) == 0 {
		return g.inline(n.AllOf[0])
	}
	if v := n.variants(); len(v) == 2 && slices.Contains(v[1].types(), "null") {
		return g.inline(v[0])
	}
	types := slices.DeleteFunc(n.types(), func(t string) bool { return t == "null" })
	if len(types) != 1 || len(n.variants()) > 0 {
		return "json.RawMessage"
	}
	switch types[0] {
	case "string":
		return "string"
	case "boolean":
		return "bool"
	case "integer":
		if n.Format != "" {
			return n.Format
		}
		return "int64"
	case "number":
		return "json.Number"
	case "array":
		return "[]" + g.inline(n.Items)
	}
	if strings.HasPrefix(string(n.Extra), "{") {
		return "acp.Object[" + g.inline(decode(n.Extra)) + "]"
	}
	return "json.RawMessage"
}
