package main

import (
	"context"
	"encoding/json"
	"fmt"

	"roundtable/internal/attest"
	"roundtable/internal/fault"
	"roundtable/internal/wire"
)

// keyCmd shows the public half of what receipts are signed with.
type keyCmd struct {
	Show keyShowCmd `cmd:"" help:"Print the public keys of a data folder in PEM, the one in use first."`
}

type keyShowCmd struct {
	Data string `help:"Data folder; default: .roundtable." type:"path"`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run prints the keys on standard output, so that it can be kept as a file for
// tx verify, and their ids beside it.
func (c *keyShowCmd) Run(ctx context.Context, t terminal) error {
	data := dataFolder(c.Data)
	if err := ownData(ctx, data); err != nil {
		return err
	}
	keys, err := attest.PublicIn(keysFolder(data))
	if err != nil {
		return fault.Errorf(fault.Conflict, "signing_key_unusable", "%v", err)
	}
	out := []wire.PublicKey{}
	for _, k := range keys {
		out = append(out, wire.PublicKey{ID: k.ID, Algorithm: attest.Algorithm, PEM: k.PEM(), Current: k.Current})
	}
	if c.JSON {
		return json.NewEncoder(t.out).Encode(map[string]any{"keys": out})
	}
	for _, k := range out {
		use := "of older receipts"
		if k.Current {
			use = "in use"
		}
		fmt.Fprintf(t.err, "key %s, %s\n", k.ID, use)
		if _, err := fmt.Fprint(t.out, k.PEM); err != nil {
			return err
		}
	}
	return nil
}
