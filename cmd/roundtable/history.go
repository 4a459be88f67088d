package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"

	"roundtable/events"
	"roundtable/events/eventlog"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/fault"
	"roundtable/projections"
)

// logCmd reads the history of a data folder, also beside a running server.
type logCmd struct {
	Verify logVerifyCmd `cmd:"" help:"Check the chain of the whole history, of a data folder or of an export."`
	Export logExportCmd `cmd:"" help:"Write the whole history as lines of JSON."`
	Replay logReplayCmd `cmd:"" help:"Print the state that the history gives, at its end or at a position."`
}

type logVerifyCmd struct {
	Data string `help:"Data folder; default: .roundtable." type:"path"`
	File string `help:"An export to verify instead." type:"path"`
	Head string `help:"POSITION:HASH of a head kept elsewhere: only against one can a cut tail be seen."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Run verifies, and fails if anything is wrong.
func (c *logVerifyCmd) Run(ctx context.Context, t terminal) (err error) {
	var known []eventlog.Point
	if c.Head != "" {
		var p eventlog.Point
		if _, err := fmt.Sscanf(c.Head, "%d:%s", &p.Position, &p.Hash); err != nil {
			return fault.Errorf(fault.Invalid, "invalid_flag", "--head %s: write POSITION:HASH", c.Head)
		}
		known = append(known, p)
	}
	records, done, err := c.records(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	r, err := eventlog.Verify(ctx, records, eventlog.Point{}, known...)
	if err != nil {
		return err
	}
	if c.JSON {
		err = json.NewEncoder(t.out).Encode(verified(r))
	} else if r.OK {
		_, err = fmt.Fprintf(t.out, "ok: %d events, head %d:%s, root %s\n", r.Events, r.Head.Position, r.Head.Hash, r.Root)
	}
	if err == nil && !r.OK {
		err = fmt.Errorf("position %d is wrong (%s): %s", r.FirstBad, r.Reason, r.Detail)
	}
	return err
}

func (c *logVerifyCmd) records(ctx context.Context) (iter.Seq2[events.Record, error], func() error, error) {
	if c.File == "" {
		r, err := reader(ctx, dataFolder(c.Data))
		if err != nil {
			return nil, nil, err
		}
		return eventlog.Records(ctx, r, 0, 0), r.Close, nil
	}
	f, err := os.Open(c.File)
	if err != nil {
		return nil, nil, err
	}
	return eventlog.Import(f), f.Close, nil
}

// reader opens the history in data for reading, beside whoever may write it.
func reader(ctx context.Context, data string) (*sqlitelog.Reader, error) {
	if err := ownData(ctx, data); err != nil {
		return nil, err
	}
	path := filepath.Join(data, "log.db")
	if _, err := os.Stat(path); err != nil {
		return nil, notThere(data, err)
	}
	return sqlitelog.OpenReader(ctx, path)
}

type logExportCmd struct {
	Data string `help:"Data folder; default: .roundtable." type:"path"`
}

// Run writes every record as it is stored.
func (c *logExportCmd) Run(ctx context.Context, t terminal) (err error) {
	r, err := reader(ctx, dataFolder(c.Data))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	return eventlog.Export(t.out, eventlog.Records(ctx, r, 0, 0))
}

type logReplayCmd struct {
	Data  string `help:"Data folder; default: .roundtable." type:"path"`
	Until int64  `help:"Position to stop at; default: the newest."`
}

// Run prints the tables that the history gives.
func (c *logReplayCmd) Run(ctx context.Context, t terminal) (err error) {
	r, err := reader(ctx, dataFolder(c.Data))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	at := c.Until
	if at == 0 {
		if at, _, err = r.Head(ctx); err != nil {
			return err
		}
	}
	past, err := projections.At(ctx, r, at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, past.Close()) }()
	return past.Write(ctx, t.out)
}

type rebuildCmd struct {
	Data string `help:"Data folder; default: .roundtable." type:"path"`
}

// Run builds the views again, on a data folder that no server has.
func (c *rebuildCmd) Run(ctx context.Context, t terminal) (err error) {
	data := dataFolder(c.Data)
	if _, err := os.Stat(filepath.Join(data, "log.db")); err != nil {
		return notThere(data, err)
	}
	a, err := open(ctx, data, logger(t, "warn"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	at, err := a.views.Rebuild(ctx)
	if err == nil {
		_, err = fmt.Fprintf(t.out, "the views stand for position %d\n", at)
	}
	return err
}
