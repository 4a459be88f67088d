package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"roundtable/commands"
	"roundtable/events"
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
	JSON      bool   `name:"json" help:"Print JSON."`
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
	if err := a.whole(ctx); err != nil {
		return err
	}
	token, r, err := a.handler.Issue(ctx, system("offline."+ids()()), commands.IssueToken{Principal: c.Principal, ExpiresIn: c.ExpiresIn})
	switch {
	case err != nil:
		return err
	case !c.JSON:
		_, err = fmt.Fprintln(t.out, token)
		return err
	}
	e, err := issued(ctx, a, r.IDs["token"])
	if err != nil {
		return err
	}
	return json.NewEncoder(t.out).Encode(struct {
		Token     string    `json:"token"`
		ID        string    `json:"token_id"`
		ExpiresAt time.Time `json:"expires_at"`
	}{token, e.Token, e.ExpiresAt})
}

// issued reads from the history what was recorded of a token; no view follows
// it here.
func issued(ctx context.Context, a *app, id string) (events.TokenIssued, error) {
	all, err := a.store.Stream(ctx, events.DirectoryStream, 0)
	if err != nil {
		return events.TokenIssued{}, err
	}
	for _, e := range slices.Backward(all) {
		if i, ok := e.Payload.(events.TokenIssued); ok && i.Token == id {
			return i, nil
		}
	}
	return events.TokenIssued{}, fmt.Errorf("the history does not have the token %s", id)
}
