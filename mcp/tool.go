package mcp

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/mark3labs/mcp-go/mcp"

	"roundtable/internal/op"
)

// The arguments that a tool takes besides its op's input. An op that has a
// field of such a name keeps it for itself.
const (
	argKey       = "idempotency_key"
	argAfter     = "after"
	argWorkspace = op.WorkspaceParam
)

// extras returns those of them that are added to o.
func extras(o op.Op) map[string]*jsonschema.Schema {
	out := map[string]*jsonschema.Schema{}
	add := func(name string, s *jsonschema.Schema) {
		if o.In.Properties[name] == nil {
			out[name] = s
		}
	}
	if o.Writes() {
		add(argKey, &jsonschema.Schema{Type: "string", Description: "same key, done once"})
	} else {
		add(argAfter, &jsonschema.Schema{Type: "integer", Description: "wait for this position"})
	}
	if o.InWorkspace() {
		add(argWorkspace, &jsonschema.Schema{Type: "string"})
	}
	return out
}

// tool describes o under the name listed.
func tool(o op.Op, listed string) (mcp.Tool, error) {
	if o.In == nil || o.In.Type != "object" {
		return mcp.Tool{}, errors.New("its input is no object")
	}
	if o.Doc == "" {
		return mcp.Tool{}, errors.New("it has no doc")
	}
	in, err := json.Marshal(inputSchema(o))
	if err != nil {
		return mcp.Tool{}, err
	}
	t := mcp.NewToolWithRawSchema(listed, o.Doc, in)
	if out := outputSchema(o); out != nil {
		if t.RawOutputSchema, err = json.Marshal(out); err != nil {
			return mcp.Tool{}, err
		}
	}
	t.Annotations = mcp.ToolAnnotation{
		ReadOnlyHint:    new(o.Effect == op.Reads),
		DestructiveHint: new(o.Effect == op.Changes),
		IdempotentHint:  new(true), // reads are, and a write is under its key
		OpenWorldHint:   new(false),
	}
	return t, nil
}

// inputSchema is o's input with the extras.
func inputSchema(o op.Op) *jsonschema.Schema {
	in := *o.In
	in.Properties = maps.Clone(o.In.Properties)
	if in.Properties == nil {
		in.Properties = map[string]*jsonschema.Schema{}
	}
	more := extras(o)
	maps.Copy(in.Properties, more)
	if in.PropertyOrder != nil {
		in.PropertyOrder = append(slices.Clone(in.PropertyOrder), slices.Sorted(maps.Keys(more))...)
	}
	return &in
}

// outputSchema is the top level of what o answers, or nil where that is no
// object. The rest is in the OpenAPI document: a model reads the answer itself
// and pays for each word of the list.
func outputSchema(o op.Op) *jsonschema.Schema {
	if o.Out == nil || o.Out.Type != "object" {
		return nil
	}
	out := &jsonschema.Schema{Type: "object", Required: o.Out.Required, Properties: map[string]*jsonschema.Schema{}}
	for name, p := range o.Out.Properties {
		out.Properties[name] = &jsonschema.Schema{Type: p.Type, Types: p.Types}
		if p.Type == "" && len(p.Types) == 0 {
			out.Properties[name].AnyOf = p.AnyOf
		}
	}
	return out
}
