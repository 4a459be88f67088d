package peers_test

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	coder "github.com/coder/acp-go-sdk"

	"roundtable/internal/acp/client"
	"roundtable/internal/acp/proc"
	"roundtable/internal/testy"
)

// What this test binary is when it is started as a process of its own.
const role = "RUN_AS_PEER"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "testy":
		os.Exit(testy.Main(os.Args[1:]))
	case "coder":
		a := &coderAgent{cancels: map[coder.SessionId]chan struct{}{}}
		a.conn = coder.NewAgentSideConnection(a, os.Stdout, os.Stdin)
		<-a.conn.Done()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func self(t *testing.T, as string, args ...string) proc.Command {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return proc.Command{Argv: append([]string{path}, args...), Env: append(os.Environ(), role+"="+as)}
}

// coderAgent is an agent made with coder/acp-go-sdk. What it does not have is
// not called.
type coderAgent struct {
	coder.Agent
	conn    *coder.AgentSideConnection
	mu      sync.Mutex
	cancels map[coder.SessionId]chan struct{}
}

func (a *coderAgent) Initialize(context.Context, coder.InitializeRequest) (coder.InitializeResponse, error) {
	return coder.InitializeResponse{
		ProtocolVersion: coder.ProtocolVersionNumber, AgentInfo: &coder.Implementation{Name: "coder-peer", Version: "1"},
	}, nil
}

func (a *coderAgent) NewSession(context.Context, coder.NewSessionRequest) (coder.NewSessionResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.cancels["s-1"] = make(chan struct{}, 1)
	return coder.NewSessionResponse{SessionId: "s-1"}, nil
}

func (a *coderAgent) Cancel(_ context.Context, p coder.CancelNotification) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case a.cancels[p.SessionId] <- struct{}{}:
	default:
	}
	return nil
}

func (a *coderAgent) Prompt(ctx context.Context, p coder.PromptRequest) (coder.PromptResponse, error) {
	text := p.Prompt[0].Text.Text
	say := func(s string) error {
		return a.conn.SessionUpdate(ctx, coder.SessionNotification{SessionId: p.SessionId, Update: coder.UpdateAgentMessageText(s)})
	}
	switch {
	case text == "wait_for_cancel":
		a.mu.Lock()
		cancelled := a.cancels[p.SessionId]
		a.mu.Unlock()
		<-cancelled
		return coder.PromptResponse{StopReason: coder.StopReasonCancelled}, nil
	case text == "ask":
		r, err := a.conn.RequestPermission(ctx, coder.RequestPermissionRequest{
			SessionId: p.SessionId, ToolCall: coder.ToolCallUpdate{ToolCallId: "call-1", Title: coder.Ptr("Run it")},
			Options: []coder.PermissionOption{
				{OptionId: "yes", Name: "Yes", Kind: coder.PermissionOptionKindAllowOnce},
				{OptionId: "no", Name: "No", Kind: coder.PermissionOptionKindRejectOnce},
			},
		})
		if err != nil {
			return coder.PromptResponse{}, err
		}
		text = "permission: " + string(r.Outcome.Selected.OptionId)
	case strings.HasPrefix(text, "read "):
		r, err := a.conn.ReadTextFile(ctx, coder.ReadTextFileRequest{SessionId: p.SessionId, Path: strings.TrimPrefix(text, "read ")})
		if err != nil {
			return coder.PromptResponse{}, err
		}
		text = r.Content
	}
	return coder.PromptResponse{StopReason: coder.StopReasonEndTurn}, say(text)
}

// coderClient is a client made with coder/acp-go-sdk that offers everything
// the SDK has.
type coderClient struct {
	mu   sync.Mutex
	seen []string
}

func (c *coderClient) note(what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = append(c.seen, what)
}

func (c *coderClient) ReadTextFile(context.Context, coder.ReadTextFileRequest) (coder.ReadTextFileResponse, error) {
	c.note("fs/read_text_file")
	return coder.ReadTextFileResponse{Content: "written by testy\n"}, nil
}

func (c *coderClient) WriteTextFile(context.Context, coder.WriteTextFileRequest) (coder.WriteTextFileResponse, error) {
	c.note("fs/write_text_file")
	return coder.WriteTextFileResponse{}, nil
}

func (c *coderClient) RequestPermission(_ context.Context, p coder.RequestPermissionRequest) (coder.RequestPermissionResponse, error) {
	c.note("session/request_permission")
	return coder.RequestPermissionResponse{Outcome: coder.NewRequestPermissionOutcomeSelected(p.Options[0].OptionId)}, nil
}

func (c *coderClient) SessionUpdate(_ context.Context, n coder.SessionNotification) error {
	switch u := n.Update; {
	case u.ToolCall != nil:
		c.note("tool_call")
	case u.ToolCallUpdate != nil:
		c.note("tool_call_update")
	case u.Plan != nil:
		c.note("plan")
	case u.UsageUpdate != nil:
		c.note("usage_update")
	case u.AgentMessageChunk != nil:
		c.note("agent_message_chunk")
	default:
		c.note("update")
	}
	return nil
}

func (c *coderClient) CreateTerminal(context.Context, coder.CreateTerminalRequest) (coder.CreateTerminalResponse, error) {
	c.note("terminal/create")
	return coder.CreateTerminalResponse{TerminalId: "t-1"}, nil
}

func (c *coderClient) KillTerminal(context.Context, coder.KillTerminalRequest) (coder.KillTerminalResponse, error) {
	c.note("terminal/kill")
	return coder.KillTerminalResponse{}, nil
}

func (c *coderClient) TerminalOutput(context.Context, coder.TerminalOutputRequest) (coder.TerminalOutputResponse, error) {
	c.note("terminal/output")
	return coder.TerminalOutputResponse{}, nil
}

func (c *coderClient) ReleaseTerminal(context.Context, coder.ReleaseTerminalRequest) (coder.ReleaseTerminalResponse, error) {
	c.note("terminal/release")
	return coder.ReleaseTerminalResponse{}, nil
}

func (c *coderClient) WaitForTerminalExit(context.Context, coder.WaitForTerminalExitRequest) (coder.WaitForTerminalExitResponse, error) {
	c.note("terminal/wait_for_exit")
	return coder.WaitForTerminalExitResponse{ExitCode: coder.Ptr(0)}, nil
}

// TestCoderClientDrivesTesty runs every scenario. The SDK has no stable
// elicitation, so callbacks and full end with the error of that gate.
func TestCoderClientDrivesTesty(t *testing.T) {
	command := self(t, "testy")
	cmd := exec.CommandContext(t.Context(), command.Argv[0])
	cmd.Env, cmd.Stderr = command.Env, t.Output()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	seen := &coderClient{}
	conn := coder.NewClientSideConnection(seen, in, out)
	conn.SetLogger(slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx := t.Context()
	hello, err := conn.Initialize(ctx, coder.InitializeRequest{
		ProtocolVersion:    coder.ProtocolVersionNumber,
		ClientCapabilities: coder.ClientCapabilities{Fs: coder.FileSystemCapabilities{ReadTextFile: true, WriteTextFile: true}, Terminal: true},
	})
	if err != nil || hello.AgentInfo == nil || hello.AgentInfo.Name != "testy" {
		t.Fatal(hello, err)
	}
	s, err := conn.NewSession(ctx, coder.NewSessionRequest{Cwd: "/", McpServers: []coder.McpServer{}})
	if err != nil {
		t.Fatal(err)
	}
	for prompt, want := range map[string][]string{
		"greet": {"agent_message_chunk"}, "content": {"agent_message_chunk"}, "session_updates": {"usage_update", "tool_call", "plan"},
		"tool_calls": {"tool_call", "tool_call_update", "plan"}, "cancel_status": {"agent_message_chunk"},
		"callbacks": {"session/request_permission", "fs/write_text_file", "terminal/kill", "terminal/release"}, "full": {"plan", "terminal/wait_for_exit"},
		"elicitations": nil,
	} {
		seen.mu.Lock()
		seen.seen = nil
		seen.mu.Unlock()
		r, err := conn.Prompt(ctx, coder.PromptRequest{SessionId: s.SessionId, Prompt: []coder.ContentBlock{coder.TextBlock(prompt)}})
		gated := prompt == "callbacks" || prompt == "full" || prompt == "elicitations"
		if gated != (err != nil) || err != nil && !strings.Contains(err.Error(), "form elicitation") {
			t.Errorf("%s: %v", prompt, err)
		}
		if err == nil && r.StopReason != coder.StopReasonEndTurn {
			t.Errorf("%s ends with %s", prompt, r.StopReason)
		}
		seen.mu.Lock()
		for _, kind := range want {
			if !slices.Contains(seen.seen, kind) {
				t.Errorf("%s: no %s among %v", prompt, kind, seen.seen)
			}
		}
		seen.mu.Unlock()
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestOurClientDrivesACoderAgent(t *testing.T) {
	drive(t, self(t, "coder"), 1, "coder-peer")
}

// drive runs our client against an agent that echoes, asks, reads and waits.
func drive(t *testing.T, command proc.Command, version int, name string) {
	t.Helper()
	root := t.TempDir()
	if err := os.WriteFile(root+"/note.txt", []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	texts := ""
	var session *client.Session
	command.Stderr = t.Output()
	c, err := client.Start(t.Context(), client.Config{
		Command: command, Versions: []int{version}, Next: true, Root: root, Files: true, Permission: client.Deny,
		Event: func(e client.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Kind == "agent_message_chunk" {
				texts += e.Text() + ";"
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Stop(context.Background())
	if c.Agent().Name != name || c.Agent().Version != version {
		t.Errorf("%+v", c.Agent())
	}
	if session, err = c.NewSession(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	prompts := []string{"hello", "ask", "read " + root + "/note.txt"}
	want := "hello;permission: no;one\ntwo\n;"
	if version == 2 {
		prompts, want = prompts[:1], "hello;"
	}
	for _, text := range prompts {
		if r, err := session.Prompt(t.Context(), client.Text(text)); err != nil || r.StopReason != "end_turn" {
			t.Errorf("%s: %+v, %v", text, r, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := session.Prompt(ctx, client.Text("wait_for_cancel")); err != nil || r.StopReason != "cancelled" {
		t.Errorf("%+v, %v", r, err)
	}
	mu.Lock()
	defer mu.Unlock()
	if texts != want {
		t.Errorf("it says %q", texts)
	}
	c.Stop(context.Background())
	for _, f := range c.Findings() {
		t.Errorf("a sound agent has the finding %s", f)
	}
}
