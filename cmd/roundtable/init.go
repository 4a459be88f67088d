package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/wire"
)

type initCmd struct {
	Dir  string `arg:"" optional:"" default:"." help:"Git work tree or folder to govern." type:"path"`
	Data string `help:"Data folder; default: .roundtable in DIR." type:"path"`
	Name string `help:"Name of the admin." default:"admin"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// made is what init made.
type made struct {
	Workspace string `json:"workspace_id"`
	Token     string `json:"token"`
	Data      string `json:"data"`
}

// Run makes the data folder and prints the admin's token, this once.
func (c *initCmd) Run(ctx context.Context, t terminal) error {
	m, err := c.make(ctx, t)
	if err != nil {
		return err
	}
	if c.JSON {
		return json.NewEncoder(t.out).Encode(m)
	}
	_, err = fmt.Fprintf(t.out, `workspace  %s  %s
data       %s
token      %s

The token is the admin's and is shown this once. Next:

  export ROUNDTABLE_TOKEN=%s
  roundtable serve --data %s
`, m.Workspace, c.Dir, m.Data, m.Token, m.Token, m.Data)
	return err
}

func (c *initCmd) make(ctx context.Context, t terminal) (m made, err error) {
	dir, err := filepath.Abs(c.Dir)
	if err != nil {
		return m, err
	}
	m.Data = c.Data
	if m.Data == "" {
		m.Data = filepath.Join(dir, ".roundtable")
	}
	if m.Data, err = filepath.Abs(m.Data); err != nil {
		return m, err
	}
	if _, err := os.Stat(filepath.Join(m.Data, "log.db")); err == nil {
		return m, fault.Errorf(fault.Conflict, "already_there", "%s has a history already; for a lost token: roundtable token issue --data %s --principal NAME", m.Data, m.Data)
	}
	if err := os.MkdirAll(m.Data, 0o700); err != nil {
		return m, err
	}
	a, err := open(ctx, m.Data, logger(t, "warn"))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	m.Workspace, m.Token, err = a.bootstrap(ctx, dir, c.Name)
	return m, err
}

// bootstrap puts dir under governance and makes the first admin.
func (a *app) bootstrap(ctx context.Context, dir, name string) (workspace, token string, err error) {
	ws, err := a.handler.Do(ctx, system("init.workspace"), commands.AddWorkspace{Root: dir})
	if err != nil {
		return "", "", err
	}
	who, err := a.handler.Do(ctx, system("init.admin"), commands.CreatePrincipal{Label: name, Kind: string(auth.Human),
		Roles: []wire.Role{{Workspace: auth.AllWorkspaces, Role: string(auth.Admin)}, {Workspace: auth.AllWorkspaces, Role: string(auth.Auditor)}}})
	if err != nil {
		return "", "", err
	}
	token, _, err = a.handler.Issue(ctx, system("init.token"), commands.IssueToken{Principal: who.IDs["principal"], ExpiresIn: 366 * 24 * 3600})
	return ws.IDs["workspace"], token, err
}
