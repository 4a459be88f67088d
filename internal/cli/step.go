package cli

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// step writes a step as a command, or in words where there is none.
func (env Env) step(s fault.Step) string {
	text := plain(s.Op)
	for _, o := range env.Ops {
		if o.Name == s.Op {
			text = "roundtable " + commandOf(o).words() + flags(o, s.Args)
		}
	}
	var notes []string
	if s.Who != "" {
		notes = append(notes, "by: "+s.Who)
	}
	if s.Why != "" {
		notes = append(notes, s.Why)
	}
	if len(notes) > 0 {
		text += "   # " + plain(strings.Join(notes, "; "))
	}
	return text
}

// flags writes arguments of a step as a command line that parse takes. What the
// step leaves to the caller and the command needs stands as <its name>.
func flags(o op.Op, args map[string]any) string {
	var b strings.Builder
	rest := maps.Clone(args)
	for _, p := range o.Params() {
		if v, ok := rest[p]; ok && p != op.WorkspaceParam {
			word := text(v)
			if strings.HasPrefix(word, "-") {
				break
			}
			fmt.Fprintf(&b, " %s", quote(word))
			delete(rest, p)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(rest)) {
		b.WriteString(flag(o, name, rest[name]))
	}
	for _, name := range positionalOrRequired(o) {
		if _, ok := args[name]; !ok && name != op.WorkspaceParam {
			fmt.Fprintf(&b, " %s %s", flagOf(name), quote("<"+name+">"))
		}
	}
	return b.String()
}

// flag writes one field as flags: a switch stands alone, and a list has one
// flag for each item.
func flag(o op.Op, name string, v any) string {
	p := o.In.Properties[name]
	switch {
	case p != nil && p.Type == "boolean" && v == true:
		return " " + flagOf(name)
	case p != nil && p.Type == "boolean":
		return " " + flagOf(name) + "=" + text(v)
	case p != nil && p.Type == "array":
		var items []any
		raw, err := json.Marshal(v)
		if err != nil || json.Unmarshal(raw, &items) != nil {
			break
		}
		var b strings.Builder
		for _, item := range items {
			fmt.Fprintf(&b, " %s %s", flagOf(name), quote(text(item)))
		}
		return b.String()
	}
	return " " + flagOf(name) + " " + quote(text(v))
}

// text writes an argument as value reads it.
func text(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

// quote makes a word that a shell takes as it is.
func quote(s string) string {
	s = plain(s)
	odd := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+,=", r))
	}
	if s != "" && !strings.ContainsFunc(s, odd) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
