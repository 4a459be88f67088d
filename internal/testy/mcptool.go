package testy

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgo "github.com/mark3labs/mcp-go/mcp"

	v1 "roundtable/internal/acp/v1"
)

// mcp runs call_tool and list_tools. A cancel ends the turn at once; the
// server is stopped beside it.
func (t *turn) mcp(c command) string {
	t.mu.Lock()
	var server *v1.MCPServer
	for i := range t.s.servers {
		if serverName(t.s.servers[i]) == c.server && server == nil {
			server = &t.s.servers[i]
		}
	}
	t.mu.Unlock()
	if server == nil {
		return fmt.Sprintf("ERROR: MCP server '%s' not found", c.server)
	}
	reply := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.ctx)
	t.conn.Go(func(context.Context) {
		defer cancel()
		text, err := t.askServer(ctx, *server, c)
		if err != nil {
			text = "ERROR: " + oneLine(err.Error())
		}
		reply <- text
	})
	select {
	case text := <-reply:
		if t.cancelled() {
			return "ERROR: session cancelled"
		}
		return text
	case <-t.ctx.Done():
		return "ERROR: session cancelled"
	}
}

func serverName(s v1.MCPServer) string {
	switch {
	case s.HTTP != nil:
		return s.HTTP.Name
	case s.SSE != nil:
		return s.SSE.Name
	case s.MCPServerStdio != nil:
		return s.MCPServerStdio.Name
	}
	return ""
}

func (t *turn) askServer(ctx context.Context, s v1.MCPServer, c command) (text string, err error) {
	session, err := connect(s)
	if err != nil {
		return "", err
	}
	if err := session.Start(ctx); err != nil {
		return "", err
	}
	defer func() {
		if closing := session.Close(); closing != nil {
			t.log.Info("mcp: server did not end well", "server", c.server, "error", closing)
		}
	}()
	request := mcpgo.InitializeRequest{}
	request.Params.ProtocolVersion = mcpgo.LATEST_PROTOCOL_VERSION
	request.Params.ClientInfo = mcpgo.Implementation{Name: "testy", Version: t.opts.Version}
	if _, err := session.Initialize(ctx, request); err != nil {
		return "", err
	}
	if c.name == "list_tools" {
		return listTools(ctx, session)
	}
	call := mcpgo.CallToolRequest{}
	call.Params.Name, call.Params.Arguments = c.tool, c.params
	result, err := session.CallTool(ctx, call)
	if err != nil {
		return "", err
	}
	return "OK: " + string(raw(result)), nil
}

func listTools(ctx context.Context, session *client.Client) (string, error) {
	list, err := session.ListTools(ctx, mcpgo.ListToolsRequest{})
	if err != nil {
		return "", err
	}
	lines := []string{"Available tools:"}
	for _, tool := range list.Tools {
		description := tool.Description
		if description == "" {
			description = "No description"
		}
		lines = append(lines, fmt.Sprintf("  - %s: %s", tool.Name, description))
	}
	return strings.Join(lines, "\n"), nil
}

func connect(s v1.MCPServer) (*client.Client, error) {
	switch {
	case s.SSE != nil:
		return nil, errors.New("SSE MCP servers not yet supported")
	case s.HTTP != nil:
		headers := map[string]string{}
		for _, h := range s.HTTP.Headers {
			if err := checkHeader(h.Name, h.Value); err != nil {
				return nil, err
			}
			headers[h.Name] = h.Value
		}
		return client.NewStreamableHttpClient(s.HTTP.URL, transport.WithHTTPHeaders(headers))
	case s.MCPServerStdio != nil:
		var env []string
		for _, e := range s.MCPServerStdio.Env {
			env = append(env, e.Name+"="+e.Value)
		}
		return client.NewClient(transport.NewStdioWithOptions(s.MCPServerStdio.Command, env, s.MCPServerStdio.Args,
			transport.WithCommandFunc(serverCommand))), nil
	}
	//lint:ignore ST1005 the text goes on the wire
	return nil, errors.New("Unknown MCP server type")
}

// serverCommand starts a server in a process group that ends with the context.
func serverCommand(ctx context.Context, name string, env, args []string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(cmd.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	return cmd, nil
}

func checkHeader(name, value string) error {
	for _, r := range name {
		if r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r) {
			return fmt.Errorf("invalid HTTP header name `%s`: %q is not allowed", name, r)
		}
	}
	if name == "" {
		return fmt.Errorf("invalid HTTP header name `%s`: it is empty", name)
	}
	for _, r := range value {
		if r < ' ' && r != '\t' || r == 0x7f {
			return fmt.Errorf("invalid HTTP header value for `%s`: %q is not allowed", name, r)
		}
	}
	return nil
}
