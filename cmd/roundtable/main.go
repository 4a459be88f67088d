// Command roundtable is the governed way into a repository that agents and
// people share: server, client and tools in one program.
//
// What always holds: this folder holds flags and wiring and nothing else; it is
// the only place that sees every package, reads the clock and the environment,
// and picks the store.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/alecthomas/kong"

	"roundtable/internal/cli"
	"roundtable/internal/fault"
	"roundtable/internal/runner"
	"roundtable/internal/symbol"
)

func main() {
	for _, as := range []func([]string) (int, bool){runner.Main, symbol.Main} {
		if status, handled := as(os.Args); handled {
			os.Exit(status)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], terminal{os.Stdin, os.Stdout, os.Stderr, os.Getenv, nil})
	stop()
	os.Exit(code)
}

// A terminal is what surrounds one run of the program.
type terminal struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) string
	ready    chan<- string // gets the address once it is served; nil of none
}

// root is the commands that are written by hand. Every operation is a command
// too: see internal/cli.
type root struct {
	Demo    demoCmd    `cmd:"" help:"Play the main job on a repository of its own, and check every step."`
	Init    initCmd    `cmd:"" help:"Make the data folder, put a folder under governance, and print an admin's token once."`
	Serve   serveCmd   `cmd:"" help:"Serve REST, the live stream and MCP."`
	MCP     mcpCmd     `cmd:"" name:"mcp" help:"Speak MCP on standard input and output."`
	Log     logCmd     `cmd:"" help:"Verify, export and replay the history; log list shows it."`
	Token   tokenCmd   `cmd:"" hidden:""`
	Tx      txCmd      `cmd:"" help:"Check signed receipts of transactions without a server; the other verbs of tx are operations."`
	Key     keyCmd     `cmd:"" help:"Show the public keys of a data folder; key list asks a server."`
	Rebuild rebuildCmd `cmd:"" help:"Build the views again from the history."`
	Patch   patchCmd   `cmd:"" help:"Check, apply, reverse and explain patches on any folder, without a server."`
	ACP     acpCmd     `cmd:"" name:"acp" help:"Drive agents by hand over ACP, and check whether they conform."`
	Bench   benchCmd   `cmd:"" help:"Measure on this machine."`
	Doctor  doctorCmd  `cmd:"" help:"Print the settings in effect, and what is wrong with the machine, the data folder and the workspaces."`
	Version versionCmd `cmd:"" help:"Print the version."`
}

// run is the whole program; tests call it too.
func run(ctx context.Context, args []string, t terminal) int {
	if len(args) > 0 && args[0] == "help" { // help NOUN VERB is NOUN VERB --help
		args = append(slices.Clone(args[1:]), "--help")
	}
	if generated(args, t) {
		return runOp(ctx, args, t)
	}
	resolver, err := settings(args, t.env)
	if err != nil {
		return exitCode(t, err)
	}
	var r root
	exit := -1
	parser, err := kong.New(&r, kong.Name("roundtable"), kong.Description(about), kong.Writers(t.out, t.err), kong.UsageOnError(),
		kong.Exit(func(code int) { exit = code }), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(t),
		kong.Resolvers(resolver), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))
	if err != nil {
		fmt.Fprintln(t.err, "roundtable:", err)
		return cli.Usage
	}
	if len(args) == 0 {
		args = []string{"--help"}
	}
	k, err := parser.Parse(args)
	switch {
	case exit >= 0:
		return exit // --help was answered
	case err != nil:
		fmt.Fprintf(t.err, "roundtable: %v\nSee: roundtable %s--help\n", err, understood(err))
		return cli.Usage
	}
	return exitCode(t, k.Run())
}

// understood returns the words of a command line that cannot be parsed up to
// where it went wrong, each with a space after it.
func understood(err error) (words string) {
	wrong, ok := errors.AsType[*kong.ParseError](err)
	if !ok {
		return ""
	}
	for _, p := range wrong.Context.Path {
		if p.Command != nil {
			words += p.Command.Name + " "
		}
	}
	return words
}

const about = "Agents and people change a repository through claims, proposals, tests, votes and approvals. " +
	"Besides the commands below, every operation is one: " +
	"see `roundtable ops`, or `roundtable claim` for those of a noun. " +
	"Exit codes: 0 done, 1 refused or failed, 2 usage, 3 not reachable or not allowed, 4 unknown outcome."

// exitCode prints an error for people and says how the program ends.
func exitCode(t terminal, err error) int {
	if err == nil {
		return cli.Done
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		if exit.Msg != "" {
			fmt.Fprintln(t.err, "roundtable:", exit.Msg)
		}
		return exit.Code
	}
	fmt.Fprintln(t.err, "roundtable:", err)
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return cli.ExitCode(f)
	}
	return cli.Failed
}
