package cli

import (
	"fmt"
	"io"
	"maps"
	"regexp"
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
	fmt.Fprintf(w, "Usage: roundtable %s\n\n%s\n", strings.Join(append([]string{c.words()}, append(ids, "[--flag value …]")...), " "), env.doc(o.Doc))
	switch {
	case o.May.Human && len(o.May.Roles) > 0:
		fmt.Fprintf(w, "It is for people with one of the roles %s.\n", o.May.RoleNames())
	case o.May.Human:
		fmt.Fprintln(w, "It is for people.")
	case len(o.May.Roles) > 0:
		fmt.Fprintf(w, "It needs one of the roles %s.\n", o.May.RoleNames())
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
			notes = append(notes, env.doc(p.Description))
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
	for _, e := range examples[o.Name] {
		fmt.Fprintf(w, "\nExample: %s\n", e)
	}
	if more := env.More[o.Name]; more != "" {
		fmt.Fprintf(w, "\n%s\n", more)
	}
	if name := strings.Replace(o.Name, ".", " ", 1); name != c.words() && !slices.Contains(env.Taken, o.Name) {
		fmt.Fprintf(w, "\nThe operation is %s; roundtable %s is the same command.\n", o.Name, name)
	}
	fmt.Fprintln(w, "\nExit codes: 0 done, 1 refused or failed, 2 usage, 3 not reachable or not allowed, 4 unknown outcome.")
	if o.Shortfall != nil {
		fmt.Fprintln(w, "They follow what the answer says: it is printed, and what fell short is on standard error.")
	}
}

// examples show what cannot be seen from the flags.
var examples = map[string][]string{
	"principal.create": {"roundtable principal create coder agent --owner team-blue --roles WS-…:implementer --roles '*:reviewer'"},
	"proposal.create":  {"roundtable proposal create --title 'Mend it' --summary-md 'A word was wrong.' --patch change.patch"},
	"resource.claim":   {"roundtable claim take file:src/main.go write"},
}

// doc writes the operations that a description names as commands.
func (env Env) doc(text string) string {
	return named.ReplaceAllStringFunc(text, func(name string) string {
		for _, o := range env.Ops {
			if name == o.Name || name == strings.ReplaceAll(o.Name, ".", "_") {
				return "`roundtable " + commandOf(o).words() + "`"
			}
		}
		return name
	})
}

// named is what may be an operation's name, as people or as agents call it.
var named = regexp.MustCompile(`[a-z]+[._][a-z._]*[a-z]`)

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
	if a, b, ok := pair(p); ok {
		return strings.ToUpper(a + ":" + b + "|JSON|@FILE")
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
