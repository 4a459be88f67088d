package testy

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"roundtable/internal/acp"
	v1 "roundtable/internal/acp/v1"
)

// scenario runs one and makes the reply of its report lines.
func (t *turn) scenario(name string) (string, v1.StopReason, error) {
	lines, err := t.play(name)
	if err != nil {
		return "", "", err
	}
	lines = append([]string{"scenario: " + name}, lines...)
	stop := v1.StopReasonEndTurn
	if slices.Contains(lines, "cancel_status: cancelled") || slices.Contains(lines, "wait_for_cancel: cancelled") {
		stop = stopCancelled
	}
	return strings.Join(lines, "\n"), stop, nil
}

func (t *turn) play(name string) ([]string, error) {
	switch name {
	case "session_updates":
		t.sessionUpdates()
		t.content()
		t.toolCalls("")
		return []string{"session_updates: sent"}, nil
	case "content":
		t.content()
		return []string{t.blocksLine()}, nil
	case "tool_calls":
		t.toolCalls("")
		return []string{"tool_calls: sent"}, nil
	case "callbacks":
		lines, cancelled := t.callbacks()
		return t.thenElicit(lines, cancelled)
	case "elicitations":
		return t.elicitations()
	case "cancel_status":
		return []string{t.readCancel()}, nil
	case "wait_for_cancel":
		<-t.ctx.Done()
		return []string{"wait_for_cancel: cancelled"}, nil
	default:
		return t.full()
	}
}

func (t *turn) blocksLine() string { return fmt.Sprintf("content_blocks: %d", t.blocks) }

func (t *turn) thenElicit(lines []string, cancelled bool) ([]string, error) {
	if cancelled {
		return lines, nil
	}
	more, err := t.elicitations()
	return append(lines, more...), err
}

func (t *turn) full() ([]string, error) {
	t.sessionUpdates()
	t.content()
	lines := []string{"session_updates: sent", t.blocksLine()}
	terminal, line := t.createTerminal("terminal/create_for_tool_call", "testy terminal content\n")
	lines = append(lines, line)
	release := v1.ReleaseTerminalRequest{SessionID: v1.SessionID(t.s.id), TerminalID: v1.TerminalID(terminal)}
	if t.cancelled() {
		if terminal != "" {
			if _, err := t.conn.Send(v1.MethodTerminalRelease, release, nil); err != nil {
				t.log.Warn("terminal not released", "error", err)
			}
			lines = append(lines, "terminal/release_for_tool_call: sent")
		}
		return append(lines, "full: cancelled"), nil
	}
	t.toolCalls(terminal)
	lines = append(lines, "tool_calls: sent")
	if terminal != "" {
		_, line := t.call("terminal/release_for_tool_call", v1.MethodTerminalRelease, release)
		lines = append(lines, line)
		if t.cancelled() {
			return append(lines, "full: cancelled"), nil
		}
	}
	more, cancelled := t.callbacks()
	lines, err := t.thenElicit(append(lines, more...), cancelled)
	if err != nil {
		return nil, err
	}
	return append(lines, t.readCancel()), nil
}

// call asks the client and reports what it said on one line.
func (t *turn) call(label, method string, params any) (json.RawMessage, string) {
	result, err := t.conn.Call(t.ctx, method, params)
	if errors.Is(err, acp.ErrClosed) {
		t.ended = true // the client is gone: the turn ends as a cancelled one
	}
	if err != nil {
		return nil, errorLine(label, err)
	}
	return result, label + ": ok " + compact(result)
}

func errorLine(label string, err error) string {
	code, text := acp.CodeCancelled, "Request was cancelled"
	if e, ok := errors.AsType[*acp.Error](err); ok {
		code, text = e.Code, e.Message
	}
	return fmt.Sprintf("%s: error %d %s", label, code, oneLine(text))
}

func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, s)
}

// createTerminal returns the id of the new terminal, "" if there is none.
func (t *turn) createTerminal(label, output string) (id, line string) {
	if t.skips(v1.MethodTerminalCreate) {
		return "", label + ": skipped (not advertised)"
	}
	result, line := t.call(label, v1.MethodTerminalCreate, v1.CreateTerminalRequest{
		SessionID: v1.SessionID(t.s.id), Command: "printf", Args: []string{output},
		Cwd: new(t.opts.Scratch), OutputByteLimit: new(uint64(1024)),
	})
	var r v1.CreateTerminalResponse
	if result != nil && json.Unmarshal(result, &r) != nil {
		return "", errorLine(label, acp.NewError(acp.CodeInvalidParams, nil))
	}
	return string(r.TerminalID), line
}

// skips reports whether a strict agent leaves a method out because the client
// did not offer it.
func (t *turn) skips(method string) bool {
	if !t.opts.Strict {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	on := func(b *bool) bool { return b != nil && *b }
	fs := t.client.Fs
	switch method {
	case v1.MethodFsReadTextFile:
		return fs == nil || !on(fs.ReadTextFile)
	case v1.MethodFsWriteTextFile:
		return fs == nil || !on(fs.WriteTextFile)
	case v1.MethodSessionRequestPermission:
		return false
	}
	return !on(t.client.Terminal)
}

// callbacks asks the client for everything a client may offer.
func (t *turn) callbacks() (lines []string, cancelled bool) {
	id, file := v1.SessionID(t.s.id), t.opts.Scratch+"/testy-write.txt"
	steps := []struct {
		method string
		params func() any
	}{
		{v1.MethodSessionRequestPermission, func() any { return t.permission() }},
		{v1.MethodFsWriteTextFile, func() any {
			return v1.WriteTextFileRequest{SessionID: id, Path: file, Content: "written by testy\n"}
		}},
		{v1.MethodFsReadTextFile, func() any {
			return v1.ReadTextFileRequest{SessionID: id, Path: file, Line: new(uint32(1)), Limit: new(uint32(20))}
		}},
		{v1.MethodTerminalCreate, nil},
		{v1.MethodTerminalOutput, nil},
		{v1.MethodTerminalWaitForExit, nil},
		{v1.MethodTerminalKill, nil},
		{v1.MethodTerminalRelease, nil},
	}
	terminal, noTerminal := "", false
	for _, step := range steps {
		if t.cancelled() {
			return append(lines, "callbacks: cancelled"), true
		}
		var line string
		switch {
		case t.skips(step.method):
			line = step.method + ": skipped (not advertised)"
		case step.method == v1.MethodTerminalCreate:
			terminal, line = t.createTerminal(step.method, "testy terminal\n")
			noTerminal = terminal == ""
		case step.params == nil && noTerminal:
			line = step.method + ": skipped"
		case step.params == nil:
			_, line = t.call(step.method, step.method, v1.TerminalOutputRequest{SessionID: id, TerminalID: v1.TerminalID(terminal)})
		default:
			_, line = t.call(step.method, step.method, step.params())
		}
		lines = append(lines, line)
	}
	if t.cancelled() {
		return append(lines, "callbacks: cancelled"), true
	}
	return lines, false
}

func (t *turn) permission() v1.RequestPermissionRequest {
	return v1.RequestPermissionRequest{
		SessionID: v1.SessionID(t.s.id),
		ToolCall: v1.ToolCallUpdate{
			ToolCallID: t.toolID("testy-permission"), Title: new("Permission request"),
			Kind: new(v1.ToolKindExecute), Status: new(v1.ToolCallStatusPending),
		},
		Options: acp.List[v1.PermissionOption]{
			{OptionID: "allow_once", Name: "Allow once", Kind: v1.PermissionOptionKindAllowOnce},
			{OptionID: "reject_once", Name: "Reject once", Kind: v1.PermissionOptionKindRejectOnce},
		},
	}
}
