package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
)

// columns are what the table of a list shows, where not simply all that is
// short.
var columns = map[string][]string{
	"approvals":    {"approval_id", "status", "proposal_id", "subject", "requested_by", "requested_at"},
	"checks":       {"check", "status", "detail"},
	"claims":       {"claim_id", "state", "claim_type", "resource_id", "holder", "expires_at"},
	"events":       {"position", "time", "type", "stream", "actor"},
	"files":        {"operation", "path", "old_path", "added_lines", "removed_lines", "stored"},
	"gates":        {"gate", "status", "because", "needs"},
	"phases":       {"phase", "status", "attempt", "actor", "failure_code", "ended_at"},
	"principals":   {"principal_id", "kind", "name", "owner"},
	"proposals":    {"proposal_id", "status", "effective_risk", "author", "title"},
	"revisions":    {"number", "patch_digest", "patch_bytes", "attached_by", "attached_at"},
	"tasks":        {"task_id", "status", "priority", "assignee", "title"},
	"test_runs":    {"test_run_id", "state", "exit_code", "duration_ms", "command"},
	"transactions": {"transaction_id", "state", "applied", "proposal_id", "opened_by", "opened_at"},
	"votes":        {"vote_id", "vote", "voter", "revision", "current", "stale"},
	"workspaces":   {"workspace_id", "kind", "name", "root"},
}

const (
	maxColumns = 8
	maxCell    = 60 // characters
)

// A member of a JSON object, in the order in which it was sent.
type member struct {
	name  string
	value json.RawMessage
}

// members takes an object apart; ok is false of what is none.
func members(raw json.RawMessage) (ms []member, ok bool) {
	d := json.NewDecoder(bytes.NewReader(raw))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	for d.More() {
		t, err := d.Token()
		name, isName := t.(string)
		var v json.RawMessage
		if err != nil || !isName || d.Decode(&v) != nil {
			return nil, false
		}
		ms = append(ms, member{name, v})
	}
	return ms, true
}

// show writes an answer for a person.
func show(w io.Writer, raw json.RawMessage) {
	ms, ok := members(raw)
	if !ok {
		fmt.Fprintln(w, cell(raw, 0))
		return
	}
	more := ""
	lists := slices.ContainsFunc(ms, func(m member) bool { return m.name == "next_cursor" })
	var rest []member
	for _, m := range ms {
		items, isList := array(m.value)
		inner, isObject := members(m.value)
		switch {
		case m.name == "position":
		case m.name == "next_cursor":
			if c := cell(m.value, 0); c != "" {
				more = c
			}
		case isList && lists:
			showList(w, "", m.name, items)
			showHunks(w, items)
			showSymbols(w, items)
		case isObject && !lists:
			showObject(w, "", inner)
		default:
			rest = append(rest, m)
		}
	}
	showObject(w, "", rest)
	if more != "" {
		fmt.Fprintf(w, "more: --cursor %s\n", quote(more))
	}
}

// showObject writes plain values as lines and nested ones below them.
func showObject(w io.Writer, indent string, ms []member) {
	var nested []member
	t := table{}
	for _, m := range ms {
		items, isList := array(m.value)
		_, isObject := members(m.value)
		text := cell(m.value, 0)
		switch {
		case text == "" || text == "{}":
		case isObject, isList && nests(items), strings.Contains(text, "\n"):
			nested = append(nested, m)
		default:
			t.row(indent+m.name, text)
		}
	}
	t.write(w)
	for _, m := range nested {
		items, isList := array(m.value)
		inner, isObject := members(m.value)
		switch {
		case isList:
			fmt.Fprintf(w, "%s%s:\n", indent, m.name)
			showList(w, indent+"  ", m.name, items)
		case isObject:
			fmt.Fprintf(w, "%s%s:\n", indent, m.name)
			showObject(w, indent+"  ", inner)
		default:
			fmt.Fprintf(w, "%s%s:\n", indent, m.name)
			for line := range strings.Lines(cell(m.value, 0)) {
				fmt.Fprintf(w, "%s  %s\n", indent, strings.TrimSuffix(line, "\n"))
			}
		}
	}
}

// showList writes a list as a table.
func showList(w io.Writer, indent, name string, items []json.RawMessage) {
	if len(items) == 0 {
		fmt.Fprintf(w, "%snone\n", indent)
		return
	}
	if !nests(items) {
		for _, item := range items {
			fmt.Fprintf(w, "%s%s\n", indent, cell(item, 0))
		}
		return
	}
	var rows []map[string]string
	seen := map[string]bool{}
	var all []string
	for _, item := range items {
		row := map[string]string{}
		ms, _ := members(item)
		for _, m := range ms {
			row[m.name] = cell(m.value, maxCell)
			if row[m.name] != "" && !seen[m.name] {
				seen[m.name] = true
				all = append(all, m.name)
			}
		}
		rows = append(rows, row)
	}
	cols := columns[name]
	if cols == nil {
		cols = slices.DeleteFunc(all, func(c string) bool { return c == "workspace_id" || strings.HasSuffix(c, "_md") })
		cols = cols[:min(len(cols), maxColumns)]
	} else {
		cols = slices.DeleteFunc(slices.Clone(cols), func(c string) bool { return !seen[c] })
	}
	t := table{}
	head := make([]string, len(cols))
	for i, c := range cols {
		head[i] = strings.ToUpper(strings.ReplaceAll(c, "_", " "))
	}
	if len(head) == 0 {
		fmt.Fprintf(w, "%s%d\n", indent, len(items))
		return
	}
	head[0] = indent + head[0]
	t.row(head...)
	for _, row := range rows {
		line := make([]string, len(cols))
		for i, c := range cols {
			line[i] = row[c]
		}
		line[0] = indent + line[0]
		t.row(line...)
	}
	t.write(w)
}

func array(raw json.RawMessage) (items []json.RawMessage, ok bool) {
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	return items, json.Unmarshal(raw, &items) == nil
}

// nests reports whether a list has objects in it.
func nests(items []json.RawMessage) bool {
	return slices.ContainsFunc(items, func(i json.RawMessage) bool { return len(i) > 0 && i[0] == '{' })
}

// cell is a value in one piece, empty of what says nothing. With a bound it is
// one line of at most that many characters.
func cell(raw json.RawMessage, bound int) string {
	var s string
	switch items, isList := array(raw); {
	case string(raw) == "null":
		return ""
	case json.Unmarshal(raw, &s) == nil:
		if at, err := time.Parse(time.RFC3339Nano, s); err == nil {
			s = at.UTC().Format(time.RFC3339) // a person reads seconds; --json has the rest
		}
	case isList:
		parts := make([]string, len(items))
		for i, item := range items {
			parts[i] = cell(item, 0)
		}
		s = strings.Join(parts, "; ")
	default:
		s = string(raw)
	}
	s = plain(s)
	if bound > 0 {
		s = strings.Join(strings.Fields(s), " ")
		if r := []rune(s); len(r) > bound {
			s = string(r[:bound-1]) + "…"
		}
	}
	return s
}

// plain shows text from others so that it cannot steer a terminal or turn a
// line around: but for line breaks, what has no shape of its own is escaped.
func plain(s string) string {
	ok := func(r rune) bool { return r == '\n' || unicode.IsPrint(r) }
	if !strings.ContainsFunc(s, func(r rune) bool { return !ok(r) }) {
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case ok(r):
			b.WriteRune(r)
		case r == '\t':
			b.WriteString("    ")
		case r == '\r':
		default:
			fmt.Fprintf(&b, "\\u%04x", r)
		}
	}
	return b.String()
}

// A table lines up columns.
type table struct{ rows [][]string }

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

func (t *table) write(w io.Writer) {
	var b bytes.Buffer
	tw := tabwriter.NewWriter(&b, 0, 8, 2, ' ', 0)
	for _, r := range t.rows {
		fmt.Fprintln(tw, strings.Join(r, "\t"))
	}
	_ = tw.Flush() // a Buffer takes everything
	for line := range strings.Lines(b.String()) {
		fmt.Fprintln(w, strings.TrimRight(line, " \n"))
	}
}
