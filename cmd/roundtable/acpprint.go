package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"unicode"

	"roundtable/internal/acp"
	"roundtable/internal/acp/client"
	"roundtable/internal/acp/proc"
	"roundtable/internal/acp/rules"
)

// printer shows a conversation as a person would like to read it, or as JSON.
type printer struct {
	out        io.Writer
	transcript io.Writer // may be nil
	json       bool
	broken     bool // the agent broke a rule that it must keep

	mu   sync.Mutex
	err  error  // the first error of writing
	open string // the kind of message that is being printed
}

func (p *printer) print(format string, args ...any) {
	if p.json {
		return
	}
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

// line ends the message that is open and starts a line.
func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.end()
	p.print(format+"\n", args...)
}

func (p *printer) end() {
	if p.open != "" {
		p.print("\n")
	}
	p.open = ""
}

// object prints a line of --json.
func (p *printer) object(w io.Writer, v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	raw, err := acp.Marshal(v)
	if err == nil {
		_, err = w.Write(append(raw, '\n'))
	}
	if err != nil && p.err == nil {
		p.err = err
	}
}

func (p *printer) frame(f acp.Frame) {
	v := struct {
		Seq   int             `json:"seq"`
		AtMS  float64         `json:"at_ms"`
		From  string          `json:"from"`
		Frame json.RawMessage `json:"frame,omitempty"`
		Text  string          `json:"text,omitempty"` // of a line that is not JSON
	}{f.Seq, float64(f.At.Microseconds()) / 1000, "agent", nil, ""}
	if f.Dir == acp.Out {
		v.From = "client"
	}
	if json.Valid(f.Line) && !f.TooLong {
		v.Frame = f.Line
	} else {
		v.Text = string(f.Line)
	}
	if p.transcript != nil {
		p.object(p.transcript, v)
	}
	if p.json {
		p.object(p.out, v)
	}
}

func (p *printer) hello(a client.Agent) {
	name := strings.TrimSpace(a.Name + " " + a.Release)
	if name == "" {
		name = "an agent that does not say its name"
	}
	p.line("* %s, protocol version %d", clean(name), a.Version)
}

func (p *printer) say(text string) {
	p.line("> %s", clean(strings.ReplaceAll(text, "\n", "\n> ")))
}

// clean keeps an agent from steering the terminal.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return '\uFFFD'
		}
		return r
	}, s)
}

// event prints an update.
func (p *printer) event(e client.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if e.Replay {
		return // it was said before
	}
	switch e.Kind {
	case "agent_message_chunk", "agent_message", "agent_thought_chunk", "agent_thought":
		p.chunk(e)
		return
	case "user_message", "user_message_chunk":
		return // what was said here
	}
	p.end()
	p.print("%s\n", clean(describe(e)))
}

func (p *printer) chunk(e client.Event) {
	kind := strings.TrimSuffix(e.Kind, "_chunk")
	if p.open != kind {
		p.end()
		if kind == "agent_thought" {
			p.print("~ ")
		}
		p.open = kind
	}
	text := e.Text()
	if text == "" {
		text = content(e.Raw)
	}
	p.print("%s", clean(text))
}

// content says what a block that is no text holds.
func content(raw json.RawMessage) string {
	var u struct {
		Content json.RawMessage `json:"content"`
	}
	var b struct{ Type, Name, URI, MimeType string }
	if json.Unmarshal(raw, &u) != nil || json.Unmarshal(u.Content, &b) != nil {
		return ""
	}
	words := []string{b.Type, b.MimeType, b.Name, b.URI}
	return "[" + strings.Join(strings.Fields(strings.Join(words, " ")), " ") + "]"
}

// describe is an update on one line.
func describe(e client.Event) string {
	var u struct {
		Title, Kind, Status, State, StopReason, ToolCallID, CurrentModeID string
		Entries                                                           []struct{ Content, Status string }
		Plan                                                              struct {
			Entries []struct{ Content, Status string }
		}
		Used, Size int64
	}
	if e.Unknown || json.Unmarshal(e.Raw, &u) != nil {
		return fmt.Sprintf("? %s %s", e.Kind, shorten(string(e.Raw)))
	}
	switch e.Kind {
	case "tool_call", "tool_call_update":
		words := []string{u.Title, u.Kind, u.Status}
		return fmt.Sprintf("# %s: %s", u.ToolCallID, strings.Join(strings.Fields(strings.Join(words, " ")), " "))
	case "plan", "plan_update":
		text := "# plan"
		for _, entry := range append(u.Entries, u.Plan.Entries...) {
			text += fmt.Sprintf("\n    %-12s %s", entry.Status, entry.Content)
		}
		return text
	case "state_update":
		return strings.TrimSpace("* " + u.State + " " + u.StopReason)
	case "current_mode_update":
		return "* mode " + u.CurrentModeID
	case "usage_update":
		return fmt.Sprintf("* %d of %d tokens", u.Used, u.Size)
	}
	return fmt.Sprintf("* %s %s", e.Kind, u.Title)
}

func shorten(s string) string {
	if len(s) > 200 {
		return s[:200] + "..."
	}
	return s
}

// permission asks a policy and shows what it decided.
func (p *printer) permission(name string) client.Policy {
	policy := client.Pick(name)
	switch name {
	case "allow":
		policy = client.Allow
	case "deny":
		policy = client.Deny
	}
	return func(ctx context.Context, ask client.Permission) client.Decision {
		d := policy(ctx, ask)
		answer := d.Option
		if d.No {
			answer = "no"
		}
		p.line("! permission for %s: %s", clean(ask.Title), clean(answer))
		return d
	}
}

func (p *printer) turnEnded(r client.Result) {
	p.line("* the turn ended: %s", clean(r.StopReason))
}

// goodbye shows how the agent ended and what it did against the protocol.
func (p *printer) goodbye(report proc.Report, findings []rules.Finding) {
	for _, f := range findings {
		p.broken = p.broken || f.Level == rules.Must
		p.line("! %s", clean(f.String()))
	}
	if p.json {
		p.object(p.out, map[string]any{"stop": report.Step, "exit": report.Exit.String(), "survivors": report.Survivors, "findings": findings})
		return
	}
	if report.Step != proc.StepStdin {
		p.line("* the agent ended with %s (step: %s)", report.Exit, report.Step)
	}
}

// fail is the error of a run that did not go through.
func (p *printer) fail(err error) error {
	p.mu.Lock()
	p.end()
	p.mu.Unlock()
	return exitError{1, clean(err.Error())}
}
