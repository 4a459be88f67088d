package client

import (
	"context"
	"encoding/json"
	"strings"

	"roundtable/internal/acp"
	v1 "roundtable/internal/acp/v1"
)

// An Elicitor answers a request for input. When ctx ends, the turn has been
// cancelled.
type Elicitor func(ctx context.Context, r v1.CreateElicitationRequest) (v1.CreateElicitationResponse, error)

func (c *Client) elicit(ctx context.Context, raw json.RawMessage) (any, error) {
	r, err := params[v1.CreateElicitationRequest](raw, "mode", "message")
	if err != nil {
		return nil, err
	}
	if mode := *r.Mode; mode != "form" && mode != "url" {
		return nil, acp.InvalidParams("elicitation mode `%s` was not offered", mode)
	}
	answer, err := c.cfg.Elicit(ctx, r)
	if err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		answer = v1.CreateElicitationResponse{Action: new("cancel")}
	}
	return answer, nil
}

// AutoElicit does what the first word of the message says: Accept, Decline or,
// with any other word, cancel. A form that is accepted gets one valid value for
// each required field.
func AutoElicit(_ context.Context, r v1.CreateElicitationRequest) (v1.CreateElicitationResponse, error) {
	word, _, _ := strings.Cut(r.Message, " ")
	switch word {
	case "Accept":
		answer := v1.CreateElicitationResponse{Action: new("accept")}
		if r.RequestedSchema != nil {
			answer.Content = fill(*r.RequestedSchema)
		}
		return answer, nil
	case "Decline":
		return v1.CreateElicitationResponse{Action: new("decline")}, nil
	}
	return v1.CreateElicitationResponse{Action: new("cancel")}, nil
}

func fill(schema v1.ElicitationSchema) acp.Object[json.RawMessage] {
	content := acp.Object[json.RawMessage]{}
	for _, name := range schema.Required {
		for _, p := range schema.Properties {
			if p.Name != name {
				continue
			}
			value, err := acp.Marshal(valid(p.Value))
			if err == nil {
				content = append(content, acp.Member[json.RawMessage]{Name: name, Value: value})
			}
		}
	}
	return content
}

// valid is a value that a property takes.
func valid(p v1.ElicitationPropertySchema) any {
	switch p.Kind {
	case "boolean":
		return true
	case "integer":
		if p.Integer != nil && p.Integer.Minimum != nil {
			return *p.Integer.Minimum
		}
		return 1
	case "number":
		if p.Number != nil && p.Number.Minimum != nil {
			return *p.Number.Minimum
		}
		return 1
	case "array":
		return firstItems(p.Array)
	}
	if p.String == nil {
		return "text"
	}
	s := *p.String
	switch {
	case s.Default != nil:
		return *s.Default
	case len(s.Enum) > 0:
		return s.Enum[0]
	case len(s.OneOf) > 0:
		return s.OneOf[0].Const
	}
	text := "text"
	if s.Format != nil {
		switch *s.Format {
		case v1.StringFormatEmail:
			text = "someone@example.com"
		case v1.StringFormatURI:
			text = "https://example.com/"
		case v1.StringFormatDate:
			text = "2026-01-01"
		case v1.StringFormatDateTime:
			text = "2026-01-01T00:00:00Z"
		}
		return text
	}
	if s.MinLength != nil && int(*s.MinLength) > len(text) {
		text = strings.Repeat("x", int(min(*s.MinLength, 1<<16)))
	}
	if s.MaxLength != nil && int(*s.MaxLength) < len(text) {
		text = text[:*s.MaxLength]
	}
	return text
}

// firstItems are as many choices as an array needs, at least one.
func firstItems(p *v1.MultiSelectPropertySchema) []string {
	if p == nil {
		return []string{}
	}
	var choices []string
	switch {
	case p.Items.String != nil:
		choices = p.Items.String.Enum
	case p.Items.TitledMultiSelectItems != nil:
		for _, o := range p.Items.TitledMultiSelectItems.AnyOf {
			choices = append(choices, o.Const)
		}
	}
	n := 1
	if p.MinItems != nil {
		n = int(min(*p.MinItems, 1<<16))
	}
	return append([]string{}, choices[:min(n, len(choices))]...)
}
