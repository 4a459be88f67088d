package testy

import (
	"encoding/json"
	"fmt"

	"roundtable/internal/acp"
	v1 "roundtable/internal/acp/v1"
)

const (
	pixel   = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mP8/x8AAwMCAO+/p9sAAAAASUVORK5CYII="
	silence = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAESsAACJWAAACABAAZGF0YQAAAAA="
)

func textBlock(s string) v1.ContentBlock {
	return v1.ContentBlock{Kind: "text", Text: &v1.TextContent{Text: s}}
}

func chunk(kind string, content v1.ContentBlock, id *v1.MessageID) v1.SessionUpdate {
	c := &v1.ContentChunk{Content: content, MessageID: id}
	u := v1.SessionUpdate{Kind: kind}
	switch kind {
	case "user_message_chunk":
		u.UserMessageChunk = c
	case "agent_thought_chunk":
		u.AgentThoughtChunk = c
	default:
		u.AgentMessageChunk = c
	}
	return u
}

// sessionUpdates sends what is no part of the conversation (block U).
func (t *turn) sessionUpdates() {
	t.mu.Lock()
	mode, verbosity := t.s.mode, t.s.verbosity
	t.mu.Unlock()
	t.send(t.s, v1.SessionUpdate{Kind: "session_info_update", SessionInfoUpdate: &v1.SessionInfoUpdate{
		Title: acp.To("Testy deterministic session"), UpdatedAt: acp.To(updatedAt),
	}})
	t.send(t.s, v1.SessionUpdate{Kind: "current_mode_update", CurrentModeUpdate: &v1.CurrentModeUpdate{CurrentModeID: mode}})
	t.send(t.s, v1.SessionUpdate{Kind: "config_option_update", ConfigOptionUpdate: &v1.ConfigOptionUpdate{
		ConfigOptions: configOptions(verbosity),
	}})
	t.send(t.s, v1.SessionUpdate{Kind: "available_commands_update", AvailableCommandsUpdate: &v1.AvailableCommandsUpdate{
		AvailableCommands: acp.List[v1.AvailableCommand]{
			{
				Name: "full", Description: "Run every stable Testy scenario",
				Input: &v1.AvailableCommandInput{Hint: new("optional scenario arguments")},
			},
			{Name: "callbacks", Description: "Exercise agent-to-client requests"},
			{Name: "elicitations", Description: "Exercise elicitation requests"},
		},
	}})
	t.send(t.s, v1.SessionUpdate{Kind: "usage_update", UsageUpdate: &v1.UsageUpdate{
		Used: 128, Size: 4096, Cost: &v1.Cost{Amount: json.Number("0.0"), Currency: "USD"},
	}})
}

// content sends every kind of content block (block C).
func (t *turn) content() {
	file := func(name string) string { return "file://" + t.opts.Scratch + "/" + name }
	say := func(kind, prefix string, b v1.ContentBlock) { t.send(t.s, chunk(kind, b, t.messageID(prefix))) }
	say("user_message_chunk", "testy-user-message", textBlock(fmt.Sprintf("received %d prompt content block(s)", t.blocks)))
	say("agent_thought_chunk", "testy-thought-message", textBlock("thinking deterministically"))
	say("agent_message_chunk", "testy-content-text", textBlock("text content block"))
	say("agent_message_chunk", "testy-content-image", v1.ContentBlock{Kind: "image", Image: &v1.ImageContent{
		Data: pixel, MimeType: "image/png", URI: new(file("testy-pixel.png")),
	}})
	say("agent_message_chunk", "testy-content-audio", v1.ContentBlock{Kind: "audio", Audio: &v1.AudioContent{
		Data: silence, MimeType: "audio/wav",
	}})
	say("agent_message_chunk", "testy-resource-message", v1.ContentBlock{Kind: "resource_link", ResourceLink: &v1.ResourceLink{
		Name: "Testy reference", URI: file("testy-reference.txt"),
		Description: new("A deterministic resource link emitted by Testy"), MimeType: new("text/plain"),
	}})
	say("agent_message_chunk", "testy-content-resource", v1.ContentBlock{Kind: "resource", Resource: &v1.EmbeddedResource{
		Resource: v1.EmbeddedResourceResource{
			Text: new("embedded resource text from testy"), URI: new(file("testy-embedded.txt")), MimeType: new("text/plain"),
		},
	}})
}

// toolCalls announces and finishes tool calls and sends a plan (block T). With
// a terminal there is one more.
func (t *turn) toolCalls(terminal string) {
	read, edit := t.toolID("testy-tool-read"), t.toolID("testy-tool-edit")
	input, output := t.opts.Scratch+"/testy-input.txt", t.opts.Scratch+"/testy-output.txt"
	t.announce(v1.ToolCall{
		ToolCallID: read, Title: "Read deterministic fixture", Kind: new(v1.ToolKindRead),
		Locations: []v1.ToolCallLocation{{Path: input, Line: new(uint32(1))}}, RawInput: raw(map[string]string{"path": input}),
	})
	t.update(v1.ToolCallUpdate{ToolCallID: read, Status: new(v1.ToolCallStatusInProgress), Content: said("reading " + input)})
	t.update(v1.ToolCallUpdate{
		ToolCallID: read, Status: new(v1.ToolCallStatusCompleted), Content: said("read " + input), RawOutput: raw(map[string]int{"bytes": 12}),
	})
	t.announce(v1.ToolCall{
		ToolCallID: edit, Title: "Apply deterministic edit", Kind: new(v1.ToolKindEdit), RawInput: raw(map[string]string{"path": output}),
	})
	t.update(v1.ToolCallUpdate{
		ToolCallID: edit, Title: new("Apply deterministic edit"), Kind: new(v1.ToolKindEdit), Status: new(v1.ToolCallStatusCompleted),
		Content:   []v1.ToolCallContent{{Kind: "diff", Diff: &v1.Diff{Path: output, OldText: new("before\n"), NewText: "after\n"}}},
		RawOutput: raw(map[string]bool{"changed": true}),
	})
	if terminal != "" {
		id, title := t.toolID("testy-tool-terminal"), "Embed deterministic terminal"
		t.announce(v1.ToolCall{
			ToolCallID: id, Title: title, Kind: new(v1.ToolKindExecute), RawInput: raw(map[string]string{"command": "printf testy"}),
		})
		t.update(v1.ToolCallUpdate{
			ToolCallID: id, Title: &title, Kind: new(v1.ToolKindExecute), Status: new(v1.ToolCallStatusCompleted),
			Content: []v1.ToolCallContent{{Kind: "terminal", Terminal: &v1.Terminal{TerminalID: v1.TerminalID(terminal)}}},
		})
	}
	t.send(t.s, v1.SessionUpdate{Kind: "plan", Plan: &v1.Plan{Entries: acp.List[v1.PlanEntry]{
		{Content: "Emit session updates", Priority: v1.PlanEntryPriorityHigh, Status: v1.PlanEntryStatusCompleted},
		{Content: "Exercise callbacks", Priority: v1.PlanEntryPriorityMedium, Status: v1.PlanEntryStatusInProgress},
		{Content: "Summarize results", Priority: v1.PlanEntryPriorityLow, Status: v1.PlanEntryStatusPending},
	}}})
}

func (t *turn) announce(c v1.ToolCall) {
	c.Status = new(v1.ToolCallStatusPending)
	t.send(t.s, v1.SessionUpdate{Kind: "tool_call", ToolCall: &c})
}

func (t *turn) update(u v1.ToolCallUpdate) {
	t.send(t.s, v1.SessionUpdate{Kind: "tool_call_update", ToolCallUpdate: &u})
}

func said(s string) []v1.ToolCallContent {
	return []v1.ToolCallContent{{Kind: "content", Content: &v1.Content{Content: textBlock(s)}}}
}

// raw is a value as JSON; what is given here always marshals.
func raw(v any) json.RawMessage {
	b, err := acp.Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
