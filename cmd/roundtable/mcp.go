package main

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/wire"
	"roundtable/mcp"
)

type mcpCmd struct {
	Data     string `help:"Data folder, to work without a server; else ROUNDTABLE_SERVER is asked." type:"path"`
	MCPNames string `help:"Tool names that are listed: plain (proposal_create) or dotted (proposal.create)." name:"mcp-names" enum:"plain,dotted" default:"plain"`

	ApplyMode   string `help:"With --data: what becomes of a change in a Git workspace, worktree or commit; as of serve." enum:"worktree,commit" default:"worktree"`
	ApplyBranch string `help:"With --data: branch that commit mode commits to."`
}

// Run speaks MCP until its input ends. Nothing but the protocol goes to
// standard output.
func (c *mcpCmd) Run(ctx context.Context, t terminal) error {
	lg := slog.New(slog.NewTextHandler(t.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	token := t.env("ROUNDTABLE_TOKEN")
	if token == "" {
		return fault.Errorf(fault.Unauthenticated, "authentication_required", "set ROUNDTABLE_TOKEN to the agent's token")
	}
	if c.Data != "" {
		return c.embedded(ctx, t, token, lg)
	}
	ops, err := elsewhere(t)
	if err != nil {
		return err
	}
	who, err := me(ctx, ops)
	if err != nil {
		return err
	}
	return c.speak(ctx, t, mcp.Config{Ops: ops, Logger: lg,
		Workspaces:   func(ctx context.Context, _ auth.Principal) ([]string, error) { return listed(ctx, ops) },
		Authenticate: func(ctx context.Context, _ string) (auth.Principal, error) { return who, nil }}, token)
}

// embedded works on the data folder itself, with all that follows the log.
func (c *mcpCmd) embedded(ctx context.Context, t terminal, token string, lg *slog.Logger) (err error) {
	pol, err := policyOf(ctx, c.ApplyMode, c.ApplyBranch)
	if err != nil {
		return err
	}
	a, err := openWith(ctx, dataFolder(c.Data), lg, pol, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := a.settle(ctx); err != nil {
		return err
	}
	a.warnOfBranches(ctx)
	g, running := errgroup.WithContext(ctx)
	running, stop := context.WithCancel(running)
	ready := make(chan struct{})
	g.Go(func() error { return a.follow(running, ready) })
	select {
	case <-ready:
	case <-running.Done():
		stop()
		return g.Wait()
	}
	g.Go(func() error { return unlessStopped(running, a.work(running, working{tests: 1, applies: 1})) })
	err = c.speak(running, t, mcp.Config{Ops: a.ops(), Logger: lg, Workspaces: a.workspaces, Authenticate: a.handler.Authenticate}, token)
	stop()
	return errors.Join(err, g.Wait())
}

func (c *mcpCmd) speak(ctx context.Context, t terminal, cfg mcp.Config, token string) error {
	cfg.Now, cfg.Version, cfg.DottedNames = time.Now, version(), c.MCPNames == "dotted"
	s, err := mcp.New(cfg)
	if err != nil {
		return err
	}
	who := func(ctx context.Context) (auth.Principal, error) { return cfg.Authenticate(ctx, token) }
	if _, err := who(ctx); err != nil {
		return err
	}
	return mcp.ServeStdio(ctx, s, mcp.StdioConfig{Who: who}, t.in, t.out)
}

// me asks the server whom the token stands for. What it may is judged there
// again at each call; here it only decides which tools are listed.
func me(ctx context.Context, ops []op.Op) (auth.Principal, error) {
	got, err := ask[struct {
		Principal wire.Principal `json:"principal"`
	}](ctx, ops, "principal.me")
	p := got.Principal
	who := auth.Principal{ID: p.ID, Name: p.Name, Kind: auth.Kind(p.Kind), Owner: p.Owner}
	for _, r := range p.Roles {
		who.Grants = append(who.Grants, auth.Grant{Workspace: r.Workspace, Role: auth.Role(r.Role)})
	}
	return who, err
}

// listed asks the server which workspaces the token can see.
func listed(ctx context.Context, ops []op.Op) ([]string, error) {
	all, err := ask[struct {
		Workspaces []struct {
			ID string `json:"workspace_id"`
		} `json:"workspaces"`
	}](ctx, ops, "workspace.list")
	var ids []string
	for _, w := range all.Workspaces {
		ids = append(ids, w.ID)
	}
	return ids, err
}

// ask sends an op that needs no input and reads its answer.
func ask[O any](ctx context.Context, ops []op.Op, name string) (out O, err error) {
	i := slices.IndexFunc(ops, func(o op.Op) bool { return o.Name == name })
	v, err := ops[i].Run(ctx, op.Call{}, nil)
	if err != nil {
		return out, err
	}
	b, err := json.Marshal(v)
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}
