package cli

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// verbHelp writes what a command does and takes.
func (env Env) verbHelp(w io.Writer, c command) {
	o := c.o
	var ids []string
	for _, name := range positional(o) {
		ids = append(ids, "<"+name+">")
	}
	fmt.Fprintf(w, "Usage: roundtable %s\n\n%s\n", strings.Join(append([]string{c.words()}, append(ids, "[--flag value …]")...), " "), o.Doc)
	switch {
	case o.May.Human && len(o.May.Roles) > 0:
		fmt.Fprintf(w, "It is for people with one of the roles %s.\n", roles(c))
	case o.May.Human:
		fmt.Fprintln(w, "It is for people.")
	case len(o.May.Roles) > 0:
		fmt.Fprintf(w, "It needs one of the roles %s.\n", roles(c))
	}
	fmt.Fprintln(w, "\nFlags:")
	t := table{}
	for _, name := range order(o.In) {
		p := o.In.Properties[name]
		var notes []string
		if slices.Contains(positionalOrRequired(o), name) {
			notes = append(notes, "required")
		}
		if p.Description != "" {
			notes = append(notes, p.Description)
		}
		notes = append(notes, values(p)...)
		if name == "patch" {
			notes = append(notes, "- reads what is piped in")
		}
		t.row(strings.TrimRight("  "+flagOf(name)+" "+kind(name, p), " "), strings.Join(notes, "; "))
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		isSwitch, err := env.switched(o, name)
		if err != nil || o.In.Properties[name] != nil {
			continue
		}
		value := " TEXT"
		if isSwitch {
			value = ""
		}
		t.row("  "+flagOf(name)+value, own[name])
	}
	t.write(w)
	fmt.Fprintln(w, "\nExit codes: 0 done, 1 refused or failed, 2 usage, 3 not reachable or not allowed, 4 unknown outcome.")
}

func roles(c command) string {
	names := make([]string, len(c.o.May.Roles))
	for i, r := range c.o.May.Roles {
		names[i] = string(r)
	}
	return strings.Join(names, ", ")
}

// kind says what a flag takes.
func kind(name string, p *jsonschema.Schema) string {
	switch {
	case name == "patch":
		return "FILE"
	case p.Type == "array" && p.Items != nil:
		return kind("", p.Items) + " (may be repeated)"
	case strings.HasSuffix(name, "_md"):
		return "TEXT|@FILE"
	case p.Type == "string":
		return "TEXT"
	case p.Type == "integer":
		return "N"
	case p.Type == "number":
		return "NUMBER"
	case p.Type == "boolean":
		return ""
	}
	return "JSON|@FILE"
}

// values says which values a field takes.
func values(p *jsonschema.Schema) (notes []string) {
	if len(p.Enum) > 0 {
		var all []string
		for _, e := range p.Enum {
			all = append(all, fmt.Sprint(e))
		}
		notes = append(notes, "one of "+strings.Join(all, ", "))
	}
	if p.Minimum != nil {
		notes = append(notes, fmt.Sprintf("from %v", *p.Minimum))
	}
	if p.Maximum != nil {
		notes = append(notes, fmt.Sprintf("to %v", *p.Maximum))
	}
	return notes
}
