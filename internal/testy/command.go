package testy

import (
	"encoding/json"
	"slices"
	"strings"

	"roundtable/internal/acp"
)

// command is what a prompt asks for.
type command struct {
	name         string // help, greet, echo, run_scenario, call_tool or list_tools
	message      string // of echo
	scenario     string
	server, tool string
	params       map[string]any
}

var scenarioNames = []string{
	"session_updates", "content", "tool_calls", "callbacks", "elicitations", "cancel_status", "wait_for_cancel", "full",
}

// scenarioOf is the scenario that a plain text names, or "".
func scenarioOf(text string) string {
	switch text {
	case "session updates", "updates":
		return "session_updates"
	case "tool calls", "tools":
		return "tool_calls"
	case "client_callbacks", "client callbacks":
		return "callbacks"
	case "elicitation", "elicit":
		return "elicitations"
	case "cancel status", "cancel":
		return "cancel_status"
	case "wait for cancel":
		return "wait_for_cancel"
	case "all":
		return "full"
	}
	if slices.Contains(scenarioNames, text) {
		return text
	}
	return ""
}

// parseCommand reads a prompt's text. What it does not know is a greeting.
func parseCommand(text string) command {
	if c, ok := parseJSONCommand(text); ok {
		return c
	}
	trimmed := strings.TrimSpace(text)
	lower := strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, trimmed)
	if lower == "help" {
		return command{name: "help"}
	}
	if s := scenarioOf(lower); s != "" {
		return command{name: "run_scenario", scenario: s}
	}
	if rest, ok := strings.CutPrefix(trimmed, "echo "); ok {
		return command{name: "echo", message: rest}
	}
	return command{name: "greet"}
}

func parseJSONCommand(text string) (command, bool) {
	var f map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &f) != nil {
		return command{}, false
	}
	get := func(name string) (s string, ok bool) {
		raw := f[name]
		return s, len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &s) == nil
	}
	var c command
	ok := true
	need := func(name string) string {
		s, found := get(name)
		ok = ok && found
		return s
	}
	c.name = need("command")
	switch c.name {
	case "help", "greet":
	case "echo":
		c.message = need("message")
	case "run_scenario":
		c.scenario = need("scenario")
		ok = ok && slices.Contains(scenarioNames, c.scenario)
	case "call_tool":
		c.server, c.tool = need("server"), need("tool")
		if json.Unmarshal(f["params"], &c.params) != nil || c.params == nil {
			c.params = map[string]any{}
		}
	case "list_tools":
		c.server = need("server")
	default:
		ok = false
	}
	return c, ok
}

// promptText joins the text blocks of a prompt by one space.
func promptText(blocks []json.RawMessage) string {
	var texts []string
	for _, raw := range blocks {
		var b struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		if json.Unmarshal(raw, &b) == nil && b.Type == "text" {
			texts = append(texts, b.Text)
		}
	}
	return strings.Join(texts, " ")
}

// promptBlocks are the content blocks of a session/prompt as they came.
func promptBlocks(params json.RawMessage) ([]json.RawMessage, error) {
	var p struct {
		Prompt []json.RawMessage `json:"prompt"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.InvalidParams("prompt: %v", err)
	}
	return p.Prompt, nil
}
