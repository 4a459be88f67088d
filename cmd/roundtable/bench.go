package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"roundtable/internal/bench"
)

// benchCmd measures side by side in one run: ratios are what counts.
type benchCmd struct {
	Append benchAppendCmd `cmd:"" help:"Measure durable appends beside the raw database."`
	Replay benchReplayCmd `cmd:"" help:"Measure ways of going through a long history."`
	Patch  benchPatchCmd  `cmd:"" help:"Measure validation and apply beside git, on generated repositories."`
}

type benchAppendCmd struct {
	Dir     string        `help:"Folder on the disk to be measured; default: a temporary one." type:"path"`
	Writers []int         `help:"Numbers of writers." default:"1,16,64"`
	Rounds  int           `help:"Rounds for each number of writers." default:"9"`
	Slice   time.Duration `help:"Time for each contender in each round." default:"400ms"`
	Seed    uint64        `help:"Of the order in a round." default:"1"`
	JSON    bool          `name:"json" help:"Print JSON."`
}

// Run measures appends.
func (c *benchAppendCmd) Run(ctx context.Context, t terminal) error {
	return inFolder(c.Dir, func(dir string) error {
		out := t.out
		if c.JSON {
			out = t.err
		}
		results, err := bench.Append(ctx, bench.Settings{Dir: dir, Writers: c.Writers, Rounds: c.Rounds, Slice: c.Slice, Seed: c.Seed, Now: time.Now,
			Own: []bench.Extra{{Name: "whole commands", Open: wholeOwn}}, Hot: []bench.Extra{{Name: "whole commands", Open: wholeHot}}}, out)
		if err == nil && c.JSON {
			err = json.NewEncoder(t.out).Encode(results)
		}
		return err
	})
}

type benchReplayCmd struct {
	Dir    string `help:"Folder for the history, which is kept and used again; default: a temporary one." type:"path"`
	Events int64  `help:"Length of the history." default:"1000000"`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Run measures replay.
func (c *benchReplayCmd) Run(ctx context.Context, t terminal) error {
	return inFolder(c.Dir, func(dir string) error {
		out := t.out
		if c.JSON {
			out = t.err
		}
		results, err := bench.Replay(ctx, dir, c.Events, time.Now, out)
		if err == nil && c.JSON {
			err = json.NewEncoder(t.out).Encode(results)
		}
		return err
	})
}

type benchPatchCmd struct {
	Dir        string `help:"Folder for the repositories, empty or not there; default: a temporary one." type:"path"`
	Files      []int  `help:"Files of the repositories." default:"10000,100000"`
	Sizes      []int  `help:"Files of the patches." default:"1,50,1000"`
	Rounds     int    `help:"Rounds for each size of patch." default:"9"`
	Attributes string `help:"What .gitattributes says in every repository." placeholder:"LINE"`
	Seed       uint64 `help:"Of the order in a round." default:"1"`
	JSON       bool   `name:"json" help:"Print JSON."`
}

// Run measures validation and apply.
func (c *benchPatchCmd) Run(ctx context.Context, t terminal) error {
	return inFolder(c.Dir, func(dir string) error {
		out := t.out
		if c.JSON {
			out = t.err
		}
		results, err := bench.Patch(ctx, bench.PatchSettings{Dir: dir, Files: c.Files, Sizes: c.Sizes, Rounds: c.Rounds, Seed: c.Seed,
			Now: time.Now, Attrs: c.Attributes, UserEnv: os.Environ()}, out, t.err)
		if err == nil && c.JSON {
			err = json.NewEncoder(t.out).Encode(results)
		}
		return err
	})
}

// inFolder does something in dir, or in a temporary folder that it removes.
func inFolder(dir string, do func(dir string) error) (err error) {
	if dir != "" {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
		return do(dir)
	}
	if dir, err = os.MkdirTemp("", "roundtable-bench-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return do(dir)
}

type versionCmd struct{}

// Run prints the version.
func (versionCmd) Run(t terminal) error {
	_, err := fmt.Fprintln(t.out, "roundtable", version())
	return err
}
