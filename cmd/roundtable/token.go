package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"roundtable/commands"
)

// tokenCmd makes a credential on the data folder itself: a lost admin's token
// is no lock-out. Whoever can read the folder could do anything anyway.
type tokenCmd struct {
	Issue tokenIssueCmd `cmd:"" help:"Make a credential, offline, on a data folder that no server has."`
}

type tokenIssueCmd struct {
	Data      string `help:"Data folder." required:"" type:"path"`
	Principal string `help:"Name or id of the principal." required:""`
	ExpiresIn int    `help:"Seconds that it lives; default 30 days." name:"expires-in-seconds"`
}

// Run prints the token, this once. It is an event like any other.
func (c *tokenIssueCmd) Run(ctx context.Context, t terminal) (err error) {
	data := dataFolder(c.Data)
	if _, err := os.Stat(filepath.Join(data, "log.db")); err != nil {
		return notThere(data, err)
	}
	a, err := open(ctx, data, logger(t, "warn"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	token, _, err := a.handler.Issue(ctx, system("offline."+ids()()), commands.IssueToken{Principal: c.Principal, ExpiresIn: c.ExpiresIn})
	if err == nil {
		_, err = fmt.Fprintln(t.out, token)
	}
	return err
}
