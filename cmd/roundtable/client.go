package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"roundtable/api"
	"roundtable/commands"
	"roundtable/events/eventlog/sqlitelog"
	"roundtable/internal/cli"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/internal/remote"
	"roundtable/projections"
)

// handWritten are the nouns of commands that no operation makes.
var handWritten = []string{"demo", "init", "serve", "mcp", "rebuild", "bench", "version", "acp", "doctor"}

// generated reports whether the arguments are a command made from an
// operation. `log verify` and `token issue` are too, and are also written by
// hand for a data folder that no server has; of `patch` some verbs are.
func generated(args []string, t terminal) bool {
	switch {
	case len(args) == 0 || strings.HasPrefix(args[0], "-") || slices.Contains(handWritten, args[0]):
		return false
	case args[0] == "patch":
		return !patchTool(args)
	case args[0] == "log":
		return len(args) > 1 && (args[1] == "list" || args[1] == "verify" && !offline(args))
	case args[0] == "token" && len(args) > 1 && args[1] == "issue":
		return !offline(args)
	case (args[0] == "tx" || args[0] == "transaction") && len(args) > 1 && args[1] == "verify", args[0] == "key" && len(args) > 1 && args[1] == "show":
		return false
	}
	return true
}

// offline reports whether the arguments name a data folder or a file.
func offline(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool {
		return a == "--data" || a == "--file" || strings.HasPrefix(a, "--data=") || strings.HasPrefix(a, "--file=")
	})
}

// allOps lists every operation, on parts that are not there: for what only
// looks at names, routes and schemas.
func allOps() []op.Op {
	feed := noFeed()
	h := commands.New(commands.Config{})
	return append(operations(h, projections.NewReader(nil, nil, projections.Limits{}), nil), feed.Ops()...)
}

// fileOps lists the operations that answer no JSON and end.
func fileOps() (files []op.Op) {
	for _, x := range (&app{}).extras() {
		files = append(files, x.Op)
	}
	return files
}

// opNames names every operation, those without a JSON answer among them.
var opNames = sync.OnceValue(func() (names []string) {
	for _, o := range allOps() {
		names = append(names, o.Name)
	}
	for _, x := range append(noFeed().Extras(), (&app{}).extras()...) {
		names = append(names, x.Op.Name)
	}
	return names
})

// noFeed is a live stream of no log.
func noFeed() *api.Feed {
	feed, err := api.NewFeed(api.FeedConfig{Log: (*sqlitelog.Store)(nil), Known: (&app{}).known, Revoked: (&watch{}).Next,
		Metrics: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Now: time.Now})
	if err != nil {
		panic(err) // nothing that it is given is looked at
	}
	return feed
}

// elsewhere lists every operation as the running server answers it.
func elsewhere(t terminal) ([]op.Op, error) {
	base := t.env("ROUNDTABLE_SERVER")
	if base == "" {
		base = "http://127.0.0.1:7117"
	}
	token := t.env("ROUNDTABLE_TOKEN")
	if token == "" {
		return nil, fault.Errorf(fault.Unauthenticated, "authentication_required", "set ROUNDTABLE_TOKEN to your token; `roundtable init` prints an admin's")
	}
	c := remote.Client{Base: base, Token: token}
	files, err := remote.Files(fileOps(), c)
	if err != nil {
		return nil, err
	}
	ops, err := remote.Ops(allOps(), c)
	return append(ops, files...), err
}

// runOp runs a command that is made from an operation. One that cannot be sent
// is looked at all the same: help and wrong words need no server.
func runOp(ctx context.Context, args []string, t terminal) int {
	ops, err := elsewhere(t)
	if err != nil {
		ops = append(allOps(), fileOps()...)
		for i := range ops {
			ops[i].Run = func(context.Context, op.Call, []byte) (any, error) { return nil, err }
		}
	}
	if args[0] == "ops" {
		return listOps(args[1:], ops, t)
	}
	return cli.Run(ctx, cli.Env{Ops: ops, Args: args, Stdin: t.in, Stdout: t.out, Stderr: t.err, NewKey: ids(), ReadFile: os.ReadFile, WriteNew: createFile,
		Terminal: isTerminal(t.out), Call: op.Call{Workspace: t.env("ROUNDTABLE_WORKSPACE")}, Taken: []string{"patch.apply"}, Beside: map[string]string{
			"tx":  "Without a server: roundtable tx verify FILE --key PUBLIC checks a signed receipt.",
			"key": "Without a server: roundtable key show --data DIR prints the public keys of a data folder.",
		}, More: map[string]string{
			"log.verify":          "With --data DIR or --file EXPORT it needs no server: roundtable log verify --data DIR --help",
			"key.list":            "roundtable key show --data DIR reads a data folder instead, without a server.",
			"transaction.receipt": "roundtable tx verify FILE --key PUBLIC checks a receipt, without a server.",
			"token.issue":         "With --data DIR it works on a data folder that no server has: roundtable token issue --data DIR --help",
		}})
}

// createFile writes a file that is not there yet, whole.
func createFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}

// listOps prints every operation.
func listOps(args []string, ops []op.Op, t terminal) int {
	if len(args) > 0 && !helpAsked(args) {
		fmt.Fprintln(t.err, "roundtable ops: it takes no arguments")
		return cli.Usage
	}
	if len(args) > 0 {
		fmt.Fprint(t.out, "Usage: roundtable ops\n\nEvery operation with the command that asks for it; roundtable resource claim works as roundtable claim take does.\n\n")
	}
	return cli.List(t.out, t.err, ops)
}

func helpAsked(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "--help" || a == "-h" })
}

// isTerminal reports whether what is written there is read by a person.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// notThere reports a data folder that is not one.
func notThere(data string, err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return fault.Errorf(fault.NotFound, "no_data_folder", "there is no history in %s: give --data, or run `roundtable init`", data)
	}
	return err
}
