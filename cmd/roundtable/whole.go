package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"roundtable/commands"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/auth"
	"roundtable/internal/blob"
	"roundtable/internal/policy"
	"roundtable/internal/repo"
	"roundtable/internal/world"
)

// A whole is a handler on a log of its own, to measure whole commands: key
// looked up, aggregates loaded, rules asked, events and outcome durable.
type whole struct {
	*commands.Handler
	workspace string
	claims    []string // of each writer; "" of one that holds none
	close     func() error
}

// maxWriters bounds the writers of a measurement.
const maxWriters = 1024

func openWhole(ctx context.Context, path string) (*whole, error) {
	store, err := sqlitelog.Open(ctx, path, sqlitelog.Options{Now: time.Now})
	if err != nil {
		return nil, err
	}
	w := &whole{claims: make([]string, maxWriters), close: store.Close}
	blobs, err := blob.Open(path+".blobs", blob.Options{})
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	files := world.New(blobs, path, repo.Options{UserEnv: os.Environ()})
	w.close = func() error { return errors.Join(files.Close(), blobs.Close(), store.Close()) }
	w.Handler = commands.New(commands.Config{Log: store, World: files, Policy: policy.Default(), Now: time.Now, NewID: ids()})
	root, err := filepath.Abs(path + ".files")
	if err == nil {
		err = os.MkdirAll(root, 0o755)
	}
	if err == nil {
		var r commands.Result
		r, err = w.Do(ctx, system("workspace"), commands.AddWorkspace{Root: root})
		w.workspace = r.IDs["workspace"]
	}
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	return w, nil
}

func (w *whole) caller(writer int, key string) commands.Caller {
	who := auth.Principal{ID: fmt.Sprintf("PR-%026d", writer), Name: "bench", Kind: auth.Agent}
	return commands.Caller{Who: who, Workspace: w.workspace, Key: key, Request: key}
}

// wholeOwn makes a task with each command: a stream of its own.
func wholeOwn(ctx context.Context, path string) (func(context.Context, int, string) error, func() error, error) {
	w, err := openWhole(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, writer int, key string) error {
		_, err := w.Do(ctx, w.caller(writer, key), commands.CreateTask{Title: "Make the parser refuse a hunk that overlaps the one before it",
			Body: "A patch whose hunks overlap is applied as if they did not. A task of about the size of the raw row's event, give or take a word."})
		return err
	}, w.close, nil
}

// wholeHot claims a file of the writer's own and gives it back, in turns: all
// claims of a workspace are one stream.
func wholeHot(ctx context.Context, path string) (func(context.Context, int, string) error, func() error, error) {
	w, err := openWhole(ctx, path)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, writer int, key string) (err error) {
		if id := w.claims[writer]; id != "" {
			w.claims[writer] = ""
			_, err = w.Do(ctx, w.caller(writer, key), commands.ReleaseClaim{Claim: id})
			return err
		}
		r, err := w.Do(ctx, w.caller(writer, key), commands.ClaimResource{Resource: fmt.Sprintf("file:f/%d", writer), Type: "write"})
		w.claims[writer] = r.IDs["claim"]
		return err
	}, w.close, nil
}
