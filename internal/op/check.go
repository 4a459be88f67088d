package op

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// WorkspaceParam is the path parameter that becomes Call.Workspace. Every
// other one fills the input field of its name.
const WorkspaceParam = "workspace_id"

// Check returns all that is wrong with a list of ops, joined, or nil. Every
// transport relies on what it checks. Looking at every schema takes a tenth of
// a second, so a program whose list is fixed leaves that to a test, and asks
// CheckRoutes when it starts.
func Check(ops []Op) error {
	errs := []error{CheckRoutes(ops)}
	for _, o := range ops {
		o.checkSchemas(func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("op %s: "+format, append([]any{o.Name}, args...)...))
		})
	}
	return errors.Join(errs...)
}

// CheckRoutes is Check without a look into the schemas: names, routes, rights,
// docs, and that each op can run.
func CheckRoutes(ops []Op) error {
	var errs []error
	names, routes := map[string]bool{}, map[string]bool{}
	for _, o := range ops {
		bad := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("op %s: "+format, append([]any{o.Name}, args...)...))
		}
		o.checkRoute(bad)
		shape := params.ReplaceAllString(o.Route, "{}")
		if names[o.Name] {
			bad("the name is used twice")
		}
		if routes[shape] {
			bad("the route %s is used twice", o.Route)
		}
		names[o.Name], routes[shape] = true, true
		switch {
		case !nameForm.MatchString(o.Name):
			bad("the name must be noun.verb in lower case")
		case o.Run == nil:
			bad("it has no Run")
		case o.Effect < Reads || o.Effect > Changes:
			bad("no such effect: %d", o.Effect)
		case !sentence(o.Doc):
			bad("the doc must be one sentence, with a capital and a full stop, of at most 300 characters")
		case (o.May.Server || o.May.Everywhere) && (o.InWorkspace() || len(o.May.Roles) == 0):
			bad("rights over the server need roles and a route outside workspaces")
		}
	}
	return errors.Join(errs...)
}

var (
	params    = regexp.MustCompile(`\{[^}]*\}`)
	nameForm  = regexp.MustCompile(`^[a-z]+(_[a-z]+)*\.[a-z]+(_[a-z]+)*$`)
	routeForm = regexp.MustCompile(`^(GET|POST|PUT|PATCH|DELETE) (/(api/)?v1(/([a-z0-9]+([-.][a-z0-9]+)*|\{[a-z]+(_[a-z]+)*\}))+)$`)
)

// sentence reports whether doc reads as one sentence.
func sentence(doc string) bool {
	return len(doc) <= 300 && strings.HasSuffix(doc, ".") && !strings.Contains(doc, "\n") &&
		strings.ToUpper(doc[:1]) == doc[:1] && strings.TrimSpace(doc) == doc && !strings.Contains(doc, ". ")
}

func (o Op) checkRoute(bad func(string, ...any)) {
	if !routeForm.MatchString(o.Route) {
		bad("the route %q is not of the form METHOD /api/v1/…", o.Route)
		return
	}
	if get := strings.HasPrefix(o.Route, "GET "); get == o.Writes() {
		bad("what only reads is a GET and nothing else is, but the route is %s", o.Route)
	}
	seen := map[string]bool{}
	for _, p := range o.Params() {
		switch {
		case seen[p]:
			bad("{%s} stands twice in the route", p)
		case p == WorkspaceParam && o.In != nil && o.In.Properties[p] != nil:
			bad("the input may not have %s: the path has it", p)
		case p != WorkspaceParam && (o.In == nil || o.In.Properties[p] == nil || !scalar(o.In.Properties[p].Type)):
			bad("{%s} is no string or integer field of the input", p)
		}
		seen[p] = true
	}
}

func scalar(typ string) bool { return typ == "string" || typ == "integer" }

func (o Op) checkSchemas(bad func(string, ...any)) {
	if o.In == nil || o.In.Type != "object" {
		bad("the input must be an object")
		return
	}
	for _, key := range enforced("", o.In) {
		bad("the input's schema has %s, which nothing enforces", key)
	}
	if o.Out == nil {
		bad("it has no output schema")
		return
	}
	for what, s := range map[string]*jsonschema.Schema{"input": o.In, "output": o.Out} {
		if _, err := s.CloneSchemas().Resolve(nil); err != nil {
			bad("the %s schema: %v", what, err)
		}
	}
	if strings.HasPrefix(o.Route, "GET ") {
		for name, p := range o.In.Properties {
			if p.Items != nil && !queryable(p.Items.Type) || p.Items == nil && !queryable(p.Type) {
				bad("the field %s of type %s cannot be given in a query", name, p.Type)
			}
		}
	}
}

func queryable(typ string) bool { return scalar(typ) || typ == "number" || typ == "boolean" }

// enforced returns the keywords of an input's schema that Decode does not hold.
func enforced(at string, s *jsonschema.Schema) []string {
	if s == nil || s.Not != nil && at != "" && strings.HasSuffix(at, "/additionalProperties") {
		return nil
	}
	rest := *s
	rest.Type, rest.Description, rest.Title, rest.Default, rest.Examples = "", "", "", nil, nil
	rest.Properties, rest.PropertyOrder, rest.Required, rest.AdditionalProperties, rest.Items = nil, nil, nil, nil, nil
	rest.Enum, rest.Minimum, rest.Maximum = nil, nil, nil
	rest.MinLength, rest.MaxLength, rest.MinItems, rest.MaxItems = nil, nil, nil, nil
	rest.ContentEncoding = ""
	if rest.Format == "date-time" {
		rest.Format = ""
	}
	var keys []string
	if b, err := rest.MarshalJSON(); err != nil || string(b) != "true" {
		keys = append(keys, fmt.Sprintf("%s at %q", b, at))
	}
	if len(s.Enum) > 0 && s.Type != "string" {
		keys = append(keys, fmt.Sprintf("enum of a type other than string at %q", at))
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		keys = append(keys, enforced(at+"/"+name, s.Properties[name])...)
	}
	keys = append(keys, enforced(at+"/items", s.Items)...)
	return append(keys, enforced(at+"/additionalProperties", s.AdditionalProperties)...)
}
