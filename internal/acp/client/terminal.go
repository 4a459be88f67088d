package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"roundtable/internal/acp"
)

// The bounds of terminals.
const (
	defaultOutput = 1 << 20 // bytes kept of an output
	maxOutput     = 8 << 20
	maxTerminals  = 64 // at a time
)

// terminal is a command that the agent runs through the client.
type terminal struct {
	id    string
	cmd   *exec.Cmd
	limit int
	done  chan struct{}

	mu        sync.Mutex
	output    []byte
	truncated bool
	status    *exitStatus
}

type exitStatus struct {
	ExitCode *int    `json:"exitCode"`
	Signal   *string `json:"signal"`
}

// Write keeps the end of the output, cut on a character boundary.
func (t *terminal) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.output = append(t.output, b...)
	if over := len(t.output) - t.limit; over > 0 {
		for over < len(t.output) && !utf8.RuneStart(t.output[over]) {
			over++
		}
		t.output, t.truncated = append(t.output[:0], t.output[over:]...), true
	}
	return len(b), nil
}

func (t *terminal) kill() {
	select {
	case <-t.done:
	default:
		if err := syscall.Kill(-t.cmd.Process.Pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.cmd.Process.Kill() //nolint:errcheck // it may have ended by now
		}
	}
}

// release ends the command and waits for it.
func (t *terminal) release() {
	t.kill()
	<-t.done
}

func (c *Client) terminalServer(method string) server {
	if method == "terminal/create" {
		return c.createTerminal
	}
	return func(ctx context.Context, raw json.RawMessage) (any, error) {
		p, err := params[struct {
			TerminalID string `json:"terminalId"`
		}](raw, "sessionId", "terminalId")
		if err != nil {
			return nil, err
		}
		c.mu.Lock()
		t := c.terminals[p.TerminalID]
		if method == "terminal/release" {
			delete(c.terminals, p.TerminalID)
		}
		c.mu.Unlock()
		if t == nil {
			return nil, acp.NewError(acp.CodeNotFound, map[string]string{"terminalId": p.TerminalID})
		}
		return t.serve(ctx, method)
	}
}

func (t *terminal) serve(ctx context.Context, method string) (any, error) {
	switch method {
	case "terminal/output":
		t.mu.Lock()
		defer t.mu.Unlock()
		return struct {
			Output     string      `json:"output"`
			Truncated  bool        `json:"truncated"`
			ExitStatus *exitStatus `json:"exitStatus,omitempty"`
		}{strings.ToValidUTF8(string(t.output), "\uFFFD"), t.truncated, t.status}, nil
	case "terminal/wait_for_exit":
		select {
		case <-t.done:
			return t.status, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case "terminal/kill":
		t.kill()
		return object{}, nil
	case "terminal/release":
		t.release()
		return object{}, nil
	}
	return nil, acp.NewError(acp.CodeMethodNotFound, method)
}

func (c *Client) createTerminal(_ context.Context, raw json.RawMessage) (any, error) {
	type variable struct{ Name, Value string }
	p, err := params[struct {
		Command string          `json:"command"`
		Args    []string        `json:"args"`
		Env     []variable      `json:"env"`
		Cwd     string          `json:"cwd"`
		Limit   json.RawMessage `json:"outputByteLimit"`
	}](raw, "sessionId", "command")
	if err != nil {
		return nil, err
	}
	if p.Cwd == "" {
		p.Cwd = c.cfg.Root
	}
	root, rel, err := c.inside(p.Cwd)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	dir, err := root.Open(rel) // a link that leads out is refused here
	if err != nil {
		return nil, fileError(p.Cwd, err)
	}
	defer dir.Close()
	argv := append([]string{p.Command}, p.Args...)
	if c.cfg.Wrap != nil {
		argv = c.cfg.Wrap(argv)
	}
	t := &terminal{limit: min(number(p.Limit, defaultOutput), maxOutput), done: make(chan struct{})}
	t.cmd = exec.Command(argv[0], argv[1:]...) //nolint:noctx // it lives as long as the agent wants
	t.cmd.Dir = filepath.Join(c.cfg.Root, rel)
	t.cmd.Env = append(t.cmd.Environ(), c.proc.Mark())
	for _, v := range p.Env {
		t.cmd.Env = append(t.cmd.Env, v.Name+"="+v.Value)
	}
	t.cmd.Stdout, t.cmd.Stderr = t, t
	t.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	t.cmd.WaitDelay = time.Second // whoever else has its output does not keep it alive
	return c.startTerminal(t)
}

func (c *Client) startTerminal(t *terminal) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopping {
		return nil, acp.NewError(acp.CodeInternal, "the connection is ending")
	}
	if len(c.terminals) >= maxTerminals {
		return nil, acp.NewError(acp.CodeInternal, fmt.Sprintf("more than %d terminals", maxTerminals))
	}
	if err := t.cmd.Start(); err != nil {
		return nil, acp.NewError(acp.CodeInternal, err.Error())
	}
	c.nTerminal++
	t.id = fmt.Sprintf("terminal-%d", c.nTerminal)
	c.terminals[t.id] = t
	c.work.Go(t.wait)
	return map[string]string{"terminalId": t.id}, nil
}

func (t *terminal) wait() {
	err := t.cmd.Wait()
	state := t.cmd.ProcessState
	status := &exitStatus{}
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		status.Signal = new(unix.SignalName(ws.Signal()))
	} else {
		status.ExitCode = new(state.ExitCode())
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.status = status
	if err != nil && errors.Is(err, exec.ErrWaitDelay) {
		t.truncated = true // something else still writes
	}
	close(t.done)
}

func (c *Client) allTerminals() (all []*terminal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.terminals {
		all = append(all, t)
	}
	return all
}
