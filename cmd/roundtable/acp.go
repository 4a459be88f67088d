package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"roundtable/internal/acp/check"
	"roundtable/internal/acp/client"
	"roundtable/internal/acp/proc"
)

// exitError ends the program with a code; an empty Msg is not printed.
type exitError struct {
	Code int
	Msg  string
}

// Error is the message.
func (e exitError) Error() string { return e.Msg }

// acpCmd drives and checks agents over the Agent Client Protocol.
type acpCmd struct {
	Run   acpRunCmd   `cmd:"" help:"Drive an agent by hand: send a prompt and print the conversation."`
	Check acpCheckCmd `cmd:"" help:"Check whether an agent conforms to the protocol."`
}

// agentFlags say which agent is meant.
type agentFlags struct {
	Agent    string   `required:"" placeholder:"CMD" help:"The agent's command line, with quotes as in a shell."`
	Dir      string   `placeholder:"DIR" help:"Directory that the agent works in (default: the current one)."`
	Env      []string `placeholder:"NAME=VALUE" sep:"none" help:"Environment variable for the agent. Repeatable."`
	Protocol string   `enum:"auto,v1,v2" default:"auto" help:"Protocol version: auto (v1 for check), v1 or v2."`
	Draft    string   `enum:"alpha.3,next" default:"alpha.3" help:"Draft of v2."`
}

func (f agentFlags) command() (proc.Command, string, error) {
	argv, err := splitCommand(f.Agent)
	if err != nil {
		return proc.Command{}, "", exitError{2, "--agent: " + err.Error()}
	}
	dir, err := filepath.Abs(f.Dir)
	if err != nil {
		return proc.Command{}, "", err
	}
	env := append(os.Environ(), f.Env...)
	return proc.Command{Argv: argv, Dir: dir, Env: env}, dir, nil
}

// splitCommand takes a command line apart: words, with quotes and backslashes
// as in a shell, but nothing else of one.
func splitCommand(line string) (words []string, err error) {
	var word strings.Builder
	var quote rune
	inWord, escaped := false, false
	for _, r := range line {
		switch {
		case escaped:
			word.WriteRune(r)
			escaped = false
		case r == '\\' && quote != '\'':
			escaped, inWord = true, true
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			quote, inWord = r, true
		case quote == 0 && strings.ContainsRune(" \t\n", r):
			if inWord {
				words = append(words, word.String())
			}
			word.Reset()
			inWord = false
		default:
			word.WriteRune(r)
			inWord = true
		}
	}
	if quote != 0 || escaped {
		return nil, fmt.Errorf("unfinished quote in %q", line)
	}
	if inWord {
		words = append(words, word.String())
	}
	if len(words) == 0 {
		return nil, fmt.Errorf("no command in %q", line)
	}
	return words, nil
}

// acpRunCmd is roundtable acp run.
type acpRunCmd struct {
	agentFlags
	Prompt     []string      `required:"" short:"p" sep:"none" help:"What to say. Repeat it for more turns."`
	Resume     string        `placeholder:"SESSION" help:"Continue a session of the agent instead of starting one."`
	Permission string        `default:"allow" help:"Answer to requests for permission: allow, deny or the id of an option."`
	NoFiles    bool          `help:"Do not offer to read and write files."`
	NoTerminal bool          `help:"Do not offer to run commands."`
	Limit      time.Duration `default:"10m" help:"Limit for a turn."`
	JSON       bool          `name:"json" help:"Print every frame as JSON, one a line, then the outcome."`
	Transcript string        `placeholder:"FILE" help:"Write every frame to this file."`
	Stderr     bool          `help:"Show what the agent writes to standard error."`
}

// Run drives the agent. It fails with code 1 if a turn did not end as it
// should, and with 3 if the agent did something against the protocol.
func (c *acpRunCmd) Run(ctx context.Context, t terminal) error { return c.run(ctx, t.out, t.err) }

func (c *acpRunCmd) run(ctx context.Context, out, errs io.Writer) error {
	cmd, dir, err := c.command()
	if err != nil {
		return err
	}
	if c.Stderr {
		cmd.Stderr = errs
	}
	p := &printer{out: out, json: c.JSON}
	if c.Transcript != "" {
		f, err := os.Create(c.Transcript)
		if err != nil {
			return err
		}
		defer f.Close()
		p.transcript = f
	}
	begin := time.Now()
	cfg := client.Config{
		Command: cmd, Versions: []int{1, 2}, Next: c.Draft == "next", Name: "roundtable", Version: "1",
		TurnLimit: c.Limit, Root: dir, Files: !c.NoFiles, Terminals: !c.NoTerminal,
		Permission: p.permission(c.Permission), Elicit: client.AutoElicit,
		Event: p.event, Frame: p.frame, Clock: func() time.Duration { return time.Since(begin) },
	}
	switch c.Protocol {
	case "v1":
		cfg.Versions = []int{1}
	case "v2":
		cfg.Versions = []int{2}
	}
	agent, err := client.Start(ctx, cfg)
	if err != nil {
		return p.fail(err)
	}
	p.hello(agent.Agent())
	failure := c.turns(ctx, agent, dir, p)
	report := agent.Stop(context.WithoutCancel(ctx))
	p.goodbye(report, agent.Findings())
	switch {
	case failure != nil:
		return p.fail(failure)
	case p.err != nil:
		return p.err
	case p.broken:
		return exitError{Code: 3}
	}
	return nil
}

func (c *acpRunCmd) turns(ctx context.Context, agent *client.Client, dir string, p *printer) error {
	var s *client.Session
	var err error
	if c.Resume != "" {
		s, err = agent.Load(ctx, c.Resume, dir)
	} else {
		s, err = agent.NewSession(ctx, dir)
	}
	if err != nil {
		return err
	}
	p.line("* session %s", clean(s.ID))
	for _, text := range c.Prompt {
		p.say(text)
		result, err := s.Prompt(ctx, client.Text(text))
		if err != nil {
			return err
		}
		p.turnEnded(result)
	}
	return nil
}

// acpCheckCmd is roundtable acp check.
type acpCheckCmd struct {
	agentFlags
	CancelPrompt string        `placeholder:"TEXT" help:"Prompt that keeps the agent busy; without it the rows about cancelling say little. For testy: wait_for_cancel."`
	Prompt       string        `default:"hello" help:"Every other prompt."`
	AuthMethod   string        `placeholder:"ID" help:"Authenticate with this method."`
	Limit        time.Duration `default:"30s" help:"Limit for an answer."`
	Quiet        time.Duration `default:"200ms" help:"How long to watch that nothing more comes."`
	Parallel     int           `short:"j" default:"1" help:"How many agents to run at a time."`
	Filter       string        `short:"k" placeholder:"REGEXP" help:"Only rows whose id matches."`
	Batch        bool          `default:"true" negatable:"" help:"Check batches of messages (v2, alpha.3)."`
	JSON         bool          `name:"json" help:"Print the report as JSON."`
	JUnit        string        `name:"junit" placeholder:"FILE" help:"Write the report as JUnit XML."`
	Stderr       bool          `help:"Show what the agent writes to standard error."`
}

// Run checks the agent. It fails with code 1 if it does not conform.
func (c *acpCheckCmd) Run(ctx context.Context, t terminal) error { return c.run(ctx, t.out, t.err) }

func (c *acpCheckCmd) run(ctx context.Context, out, errs io.Writer) error {
	cmd, dir, err := c.command()
	if err != nil {
		return err
	}
	o := check.Options{
		Command: cmd, Version: 1, Next: c.Draft == "next", CancelPrompt: c.CancelPrompt, Prompt: c.Prompt,
		AuthMethod: c.AuthMethod, Limit: c.Limit, Quiet: c.Quiet, NoBatches: !c.Batch, Dir: dir, Parallel: c.Parallel,
	}
	if c.Protocol == "v2" {
		o.Version = 2
	}
	if c.Stderr {
		o.Stderr = errs
	}
	if c.Filter != "" {
		if o.Filter, err = regexp.Compile(c.Filter); err != nil {
			return exitError{2, "--filter: " + err.Error()}
		}
	}
	var printing error
	if !c.JSON {
		o.Progress = func(r check.Row) {
			if err := r.Print(out); printing == nil {
				printing = err
			}
		}
	}
	begin := time.Now()
	report, err := check.Run(ctx, o, func() time.Duration { return time.Since(begin) })
	if err != nil {
		return err
	}
	if printing != nil {
		return printing
	}
	if err := c.write(report, out); err != nil {
		return err
	}
	if !report.Conformant {
		return exitError{Code: 1}
	}
	return nil
}

func (c *acpCheckCmd) write(report check.Report, out io.Writer) error {
	if c.JUnit != "" {
		f, err := os.Create(c.JUnit)
		if err != nil {
			return err
		}
		if err := report.JUnit(f); err != nil {
			f.Close()
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	if !c.JSON {
		return report.PrintSummary(out)
	}
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(report)
}
