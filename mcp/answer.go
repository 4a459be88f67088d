package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// metaError is where a result keeps the problem for programs.
const metaError = "roundtable/error"

// structuredSince is the first revision of the protocol whose clients know
// structured content. Revisions are dates, so they compare as text.
const structuredSince = "2025-06-18"

// answer is the result of a call that was done: all of it as structured
// content, and an outline of it as text for a model that sees only that.
func answer(ctx context.Context, out json.RawMessage) *mcp.CallToolResult {
	if v := server.RequestProtocolVersion(ctx); v != "" && v < structuredSince {
		return mcp.NewToolResultText(string(out))
	}
	return mcp.NewToolResultStructured(out, outline(out))
}

// refusal is the result of a call that was not done. It has no structured
// content: clients would check that against the schema of an answer.
func refusal(p map[string]any) *mcp.CallToolResult {
	detail := fmt.Sprint(p["detail"])
	b, err := json.Marshal(p)
	if err != nil { // a fault with facts that are no JSON is a broken program
		panic(err)
	}
	r := mcp.NewToolResultError(detail + "\n" + string(b))
	r.Meta = &mcp.Meta{AdditionalFields: map[string]any{metaError: json.RawMessage(b)}}
	return r
}

// Bounds of an outline.
const (
	outlineBytes = 3000
	outlineText  = 160 // of one value
	outlineItems = 20  // of one list
)

// outline writes JSON as indented lines of name=value, without what is empty.
func outline(raw json.RawMessage) string {
	var b strings.Builder
	ms, err := members(raw)
	if err != nil {
		return short(raw)
	}
	for _, m := range ms {
		if m.name != "position" && m.name != "next_cursor" {
			outlineValue(&b, "", m.name, m.value)
		}
	}
	for _, m := range ms {
		if m.name == "next_cursor" && string(m.value) != "null" {
			fmt.Fprintf(&b, "more with cursor=%s\n", m.value)
		}
	}
	text := strings.TrimSuffix(b.String(), "\n")
	if text == "" {
		text = "done"
	}
	if len(text) > outlineBytes {
		text = strings.ToValidUTF8(text[:outlineBytes], "") + "\n… cut; structuredContent has the rest"
	}
	return text
}

func outlineValue(b *strings.Builder, indent, name string, raw json.RawMessage) {
	if b.Len() > outlineBytes {
		return
	}
	if ms, err := members(raw); err == nil {
		fmt.Fprintf(b, "%s%s:", indent, name)
		outlineObject(b, indent, ms)
		return
	}
	var items []json.RawMessage
	if raw[0] != '[' || json.Unmarshal(raw, &items) != nil {
		fmt.Fprintf(b, "%s%s: %s\n", indent, name, short(raw))
		return
	}
	fmt.Fprintf(b, "%s%s: %d\n", indent, name, len(items))
	for i, item := range items {
		if i == outlineItems {
			fmt.Fprintf(b, "%s- … %d more\n", indent, len(items)-i)
			return
		}
		if ms, err := members(item); err == nil {
			fmt.Fprintf(b, "%s-", indent)
			outlineObject(b, indent, ms)
		} else {
			fmt.Fprintf(b, "%s- %s\n", indent, short(item))
		}
	}
}

// outlineObject ends the line at hand with ms's plain values, and writes what
// is nested below it.
func outlineObject(b *strings.Builder, indent string, ms []member) {
	var nested []member
	for _, m := range ms {
		switch v := bytes.TrimSpace(m.value); {
		case string(v) == "null" || string(v) == `""` || string(v) == "[]" || string(v) == "{}":
		case v[0] == '{' || v[0] == '[':
			nested = append(nested, member{name: m.name, value: v})
		default:
			fmt.Fprintf(b, " %s=%s", m.name, short(v))
		}
	}
	b.WriteByte('\n')
	for _, m := range nested {
		outlineValue(b, indent+"  ", m.name, m.value)
	}
}

// short is one value, cut, and without quotes where it reads well so.
func short(raw json.RawMessage) string {
	s := string(raw)
	var text string
	if json.Unmarshal(raw, &text) == nil {
		s = text
		if strings.ContainsAny(s, " \n\t\r=") {
			s = string(raw)
		}
	}
	if len(s) > outlineText {
		s = strings.ToValidUTF8(s[:outlineText], "") + "…"
	}
	return s
}
