package api

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

type object = map[string]any

// OpenAPI describes ops and extras as an OpenAPI 3.1 document, whose schemas
// are plain JSON Schema and so the very ones that other transports show. The
// same lists give the same bytes.
func OpenAPI(ops []op.Op, extras []Extra) ([]byte, error) {
	paths := map[string]object{}
	add := func(o op.Op, what object) {
		method, path, _ := strings.Cut(o.Route, " ")
		if paths[path] == nil {
			paths[path] = object{}
		}
		paths[path][strings.ToLower(method)] = what
	}
	for _, o := range ops {
		what := describe(o, bounded(o.In))
		code := o.Status
		if code == 0 {
			code = http.StatusOK
		}
		what["responses"].(object)[strconv.Itoa(code)] = object{
			"description": "Done.", "content": content("application/json", o.Out)}
		if o.Later {
			what["responses"].(object)[strconv.Itoa(http.StatusAccepted)] = object{
				"description": "Begun; it goes on after this answer.", "content": content("application/json", o.Out)}
		}
		add(o, what)
	}
	for _, e := range extras {
		what := describe(e.Op, bounded(e.input()))
		what["responses"].(object)["200"] = object{"description": "Done.", "content": object{e.Media: object{}}}
		add(e.Op, what)
	}
	doc := object{
		"openapi": "3.1.0",
		"info": object{"title": "Roundtable", "version": "1",
			"description": "Every operation of the service. A write takes an Idempotency-Key; a read takes the position that a write answered as after, and waits for its effect."},
		"paths":    paths,
		"security": []object{{"bearer": []string{}}},
		"components": object{
			"securitySchemes": object{"bearer": object{"type": "http", "scheme": "bearer"}},
			"schemas":         object{"Problem": problemSchema()},
			"responses": object{"Problem": object{"description": "Not done; why, and which calls would help.",
				"content": object{"application/problem+json": object{"schema": object{"$ref": "#/components/schemas/Problem"}}}}},
		},
	}
	return json.MarshalIndent(doc, "", " ")
}

// describe writes down one operation; in is its input.
func describe(o op.Op, in *jsonschema.Schema) object {
	noun, _, _ := strings.Cut(o.Name, ".")
	what := object{
		"operationId": o.Name, "summary": o.Doc, "tags": []string{noun}, "description": rights(o),
		"responses": object{"default": object{"$ref": "#/components/responses/Problem"}},
	}
	params := []object{}
	rest := *in
	rest.Properties, rest.Required = maps.Clone(in.Properties), slices.Clone(in.Required)
	for _, name := range o.Params() {
		schema := &jsonschema.Schema{Type: "string"}
		if p := in.Properties[name]; p != nil {
			schema = p
		}
		params = append(params, object{"name": name, "in": "path", "required": true, "schema": schema})
		delete(rest.Properties, name)
		rest.Required = slices.DeleteFunc(rest.Required, func(r string) bool { return r == name })
		rest.PropertyOrder = slices.DeleteFunc(slices.Clone(rest.PropertyOrder), func(r string) bool { return r == name })
	}
	switch {
	case !o.Writes():
		params = append(params, query(&rest)...)
		if in.Properties["after"] == nil {
			params = append(params, object{"name": "after", "in": "query", "schema": object{"type": "integer", "minimum": 0},
				"description": "Wait for the effect of the command that answered this position."})
		}
	default:
		key := object{"name": "Idempotency-Key", "in": "header", "required": strings.Contains(o.Route, " /api/v1/"),
			"schema":      object{"type": "string", "minLength": 1, "maxLength": 255},
			"description": "New for each new wish, the same when one is repeated."}
		params = append(params, key)
		body := content("application/json", &rest)
		if rest.Properties["patch"] != nil {
			body[patchMedia] = object{"schema": object{"type": "string", "format": "binary"}}
			for _, p := range query(&rest, patchFields...) {
				p["description"] = strings.TrimSpace("Only with a text/x-patch body. " + rest.Properties[p["name"].(string)].Description)
				delete(p, "required")
				params = append(params, p)
			}
		}
		what["requestBody"] = object{"required": len(rest.Required) > 0, "content": body}
	}
	what["parameters"] = params
	return what
}

// query lists the fields of in, but for some, as query parameters.
func query(in *jsonschema.Schema, without ...string) []object {
	names := slices.Clone(in.PropertyOrder)
	for _, name := range slices.Sorted(maps.Keys(in.Properties)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	params := []object{}
	for _, name := range names {
		if slices.Contains(without, name) {
			continue
		}
		p := *in.Properties[name]
		what := object{"name": name, "in": "query", "schema": &p}
		if p.Description != "" {
			what["description"] = p.Description
			p.Description = ""
		}
		if slices.Contains(in.Required, name) {
			what["required"] = true
		}
		params = append(params, what)
	}
	return params
}

// bounded returns s with the bounds that op.Decode holds where s has none.
func bounded(s *jsonschema.Schema) *jsonschema.Schema {
	s = s.CloneSchemas()
	var fill func(*jsonschema.Schema)
	fill = func(s *jsonschema.Schema) {
		if s == nil {
			return
		}
		if s.Type == "string" && s.MaxLength == nil && s.Enum == nil && s.Format == "" {
			s.MaxLength = jsonschema.Ptr(op.MaxText)
		}
		if s.Type == "array" && s.MaxItems == nil {
			s.MaxItems = jsonschema.Ptr(op.MaxItems)
		}
		for _, p := range s.Properties {
			fill(p)
		}
		fill(s.Items)
		fill(s.AdditionalProperties)
	}
	fill(s)
	return s
}

// rights says who may, in a sentence.
func rights(o op.Op) string {
	m, say := o.May, "For whoever has a token"
	if o.InWorkspace() {
		say = "For any role in the workspace"
	}
	var roles []string
	for _, r := range m.Roles {
		roles = append(roles, string(r))
	}
	if len(roles) > 0 {
		say = "For the roles " + strings.Join(roles, ", ")
	}
	switch {
	case m.Everywhere:
		say += " in all workspaces"
	case m.Server:
		say += " in any workspace"
	}
	if m.Human {
		say += ", people only"
	}
	return say + "."
}

func content(media string, schema any) object { return object{media: object{"schema": schema}} }

// problemSchema is that of every answer that is no success.
func problemSchema() object {
	kinds := []string{}
	for _, k := range fault.Kinds {
		kinds = append(kinds, string(k))
	}
	str := object{"type": "string"}
	return object{
		"type":        "object",
		"description": "RFC 9457. Further members are facts for programs, such as the holder of a claim.",
		"required":    []string{"type", "title", "status", "kind", "code", "detail", "errors", "next", "request_id"},
		"properties": object{
			"type": str, "title": str, "status": object{"type": "integer"},
			"kind": object{"type": "string", "enum": kinds}, "code": str, "detail": str, "request_id": str,
			"errors": object{"type": "array", "items": op.SchemaOf[fault.Field]()},
			"next":   object{"type": "array", "items": op.SchemaOf[fault.Step]()},
		},
	}
}
