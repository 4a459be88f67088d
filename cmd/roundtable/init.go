package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"roundtable/commands"
	"roundtable/domain"
	"roundtable/events"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/wire"
	"roundtable/internal/world"
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
	if err := c.check(ctx, dir, m.Data); err != nil {
		return m, err
	}
	if err := os.MkdirAll(m.Data, 0o700); err != nil {
		return m, err
	}
	a, err := open(ctx, m.Data, logger(t, "warn"))
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := errors.Join(a.whole(ctx), a.signing()); err != nil {
		return m, err
	}
	m.Workspace, m.Token, err = a.bootstrap(ctx, dir, c.Name)
	return m, err
}

// check refuses what would fail later, before anything is made.
func (c *initCmd) check(ctx context.Context, dir, data string) error {
	if err := domain.CheckPrincipalName("name", c.Name); err != nil {
		return err
	}
	if _, err := world.CheckRoot(dir, data); err != nil {
		return err
	}
	return errors.Join(ownData(ctx, filepath.Join(dir, ".roundtable")), ownData(ctx, data))
}

// bootstrap puts dir under governance and makes the first admin, unless an
// earlier run came to its end. What one that was cut short has made is used:
// without a credential nobody could.
func (a *app) bootstrap(ctx context.Context, dir, name string) (workspace, token string, err error) {
	begun, err := a.begun(ctx)
	if err != nil {
		return "", "", err
	}
	if begun.over {
		return "", "", fault.Errorf(fault.Conflict, "already_there", "%s has a history already; for a lost token: roundtable token issue --data %s --principal NAME", a.data, a.data)
	}
	root, err := world.CheckRoot(dir, a.data)
	if err != nil {
		return "", "", err
	}
	run := ids()()
	if workspace = begun.workspaces[root]; workspace == "" {
		ws, err := a.handler.Do(ctx, system("init.workspace."+run), commands.AddWorkspace{Root: dir})
		if err != nil {
			return "", "", err
		}
		workspace = ws.IDs["workspace"]
	}
	admin, made := begun.directory.Named(name)
	if !made {
		who, err := a.handler.Do(ctx, system("init.admin."+run), commands.CreatePrincipal{Label: name, Kind: string(auth.Human),
			Roles: []wire.Role{{Workspace: auth.AllWorkspaces, Role: string(auth.Admin)}, {Workspace: auth.AllWorkspaces, Role: string(auth.Auditor)}}})
		if err != nil {
			return "", "", err
		}
		admin.ID = who.IDs["principal"]
	}
	token, _, err = a.handler.Issue(ctx, system("init.token."+run), commands.IssueToken{Principal: admin.ID, ExpiresIn: 366 * 24 * 3600})
	return workspace, token, err
}

// A beginning is what runs of init have made so far.
type beginning struct {
	workspaces map[string]string // root → id
	directory  domain.Directory
	over       bool // a credential was issued: whoever got it goes on from there
}

func (a *app) begun(ctx context.Context) (b beginning, err error) {
	b.workspaces = map[string]string{}
	roots, err := a.handler.Roots(ctx)
	if err != nil {
		return b, err
	}
	for id, root := range roots {
		b.workspaces[root] = id
	}
	es, err := a.store.Stream(ctx, events.DirectoryStream, 0)
	for _, e := range es {
		b.directory = b.directory.Evolve(e.Payload)
		if _, issued := e.Payload.(events.TokenIssued); issued {
			b.over = true
		}
	}
	return b, err
}
