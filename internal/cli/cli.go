// Package cli makes a command of every op: roundtable <noun> <verb> with the
// input's fields as flags.
//
// What always holds: what is asked goes to stdout and everything else to
// stderr; the exit code follows from the fault alone; text from others is
// shown so that it cannot steer a terminal; with --json both the answer and
// the problem are the objects that every other transport has.
package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// The exit codes.
const (
	Done           = 0
	Failed         = 1 // refused, or failed
	Usage          = 2 // the command line, or the input it makes, can never be right
	NotAllowed     = 3 // not reachable, not known or not allowed
	UnknownOutcome = 4 // it may have been done; the same --key asks again
)

// exits is the one table from kinds to exit codes. A fault with the code
// unknown_outcome is UnknownOutcome, whatever its kind.
var exits = map[fault.Kind]int{
	fault.Internal:        Failed,
	fault.Invalid:         Usage,
	fault.Unauthenticated: NotAllowed,
	fault.Forbidden:       NotAllowed,
	fault.NotFound:        Failed,
	fault.Conflict:        Failed,
	fault.TooLarge:        Failed,
	fault.Refused:         Failed,
	fault.Limit:           Failed,
	fault.Unavailable:     NotAllowed,
}

// ExitCode returns the exit code that f ends a program with.
func ExitCode(f *fault.Error) int {
	if f.Code == "unknown_outcome" {
		return UnknownOutcome
	}
	return exits[f.Kind]
}

// An Env is where a command runs. All fields without a remark are needed.
type Env struct {
	Ops            []op.Op
	Args           []string // without the program's name
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Call           op.Call // what every call has; Workspace may be empty, Key is filled in
	NewKey         func() string
	ReadFile       func(path string) ([]byte, error)
	WriteNew       func(path string, data []byte) error // a file that is not there yet
	Taken          []string                             // ops whose own name is another command
	More           map[string]string                    // what help adds, by the name of the op; may be nil
	Beside         map[string]string                    // what the list of a noun's commands adds, by noun; may be nil
	Patience       time.Duration                        // after which stderr is told that it still runs; 0: 1 s
	Terminal       bool                                 // Stdout is one: a file is shown there, where it would else be passed on as it is
}

// Run runs one command and returns its exit code. An answer that cannot be
// written is a failure, since nobody has it.
func Run(ctx context.Context, env Env) int {
	out := &checked{Writer: env.Stdout}
	env.Stdout = out
	code := env.run(ctx)
	if out.err != nil && code == Done {
		fmt.Fprintf(env.Stderr, "roundtable: cannot write the answer: %v\n", out.err)
		return Failed
	}
	return code
}

// checked remembers the first error of writing.
type checked struct {
	io.Writer
	err error
}

func (c *checked) Write(b []byte) (int, error) {
	n, err := c.Writer.Write(b)
	if c.err == nil {
		c.err = err
	}
	return n, err
}

func (env Env) run(ctx context.Context) int {
	c, rest, stop := env.find()
	if stop != nil {
		return stop()
	}
	in, err := env.parse(c, rest)
	switch {
	case err != nil:
		fmt.Fprintf(env.Stderr, "roundtable %s: %s\nSee: roundtable %s --help\n", c.words(), plain(err.Error()), c.words())
		return Usage
	case in.help:
		env.verbHelp(env.Stdout, c)
		return Done
	}
	out, err := env.ask(ctx, c, in)
	if err != nil {
		return env.fail(ctx, c, in, err)
	}
	if in.out == "" {
		env.print(in, out)
	} else if code := env.save(c, in, out); code != Done {
		return code
	}
	return env.outcome(ctx, c, in, out)
}

// outcome says of an answer that was given whether what was asked for came
// true, and if not, why.
func (env Env) outcome(ctx context.Context, c command, in input, out any) int {
	if raw, ok := out.(json.RawMessage); ok && c.o.Shortfall != nil {
		if f := c.o.Shortfall(raw); f != nil {
			return env.fail(ctx, c, in, f)
		}
	}
	return Done
}

// save writes an answer to a file.
func (env Env) save(c command, in input, out any) int {
	var b bytes.Buffer
	file := env
	file.Stdout, file.Terminal = &b, false
	file.print(in, out)
	if err := env.WriteNew(in.out, b.Bytes()); err != nil {
		fmt.Fprintf(env.Stderr, "roundtable %s: the answer cannot be written: %s\n", c.words(), plain(err.Error()))
		return Failed
	}
	return Done
}

// print writes an answer.
func (env Env) print(in input, out any) {
	switch out := out.(type) {
	case op.File:
		env.pass(out)
	case json.RawMessage:
		if in.json {
			fmt.Fprintf(env.Stdout, "%s\n", out)
		} else {
			show(env.Stdout, out)
		}
	}
}

// pass writes a file, byte for byte unless a person sees it.
func (env Env) pass(f op.File) {
	if env.Terminal {
		f = op.File(plain(string(f)))
	}
	_, _ = env.Stdout.Write(f) // Run knows of an error and tells
}

// ask sends the call, in the only workspace there is where none is named. It
// answers an op.File or a json.RawMessage.
func (env Env) ask(ctx context.Context, c command, in input) (any, error) {
	call := env.Call
	call.Body, call.After = in.body, in.after
	if in.workspace != "" {
		call.Workspace = in.workspace
	}
	if c.o.Writes() {
		if call.Key = in.key; call.Key == "" {
			call.Key = env.NewKey()
		}
	}
	done := env.patience(c)
	defer done()
	if c.o.InWorkspace() && call.Workspace == "" {
		var err error
		if call.Workspace, err = env.onlyWorkspace(ctx); err != nil {
			return nil, err
		}
	}
	if !c.o.InWorkspace() {
		call.Workspace = ""
	}
	raw, err := json.Marshal(in.fields)
	if err != nil {
		return nil, err
	}
	out, err := c.o.Run(ctx, call, raw)
	if err != nil {
		return nil, err
	}
	if f, ok := out.(op.File); ok {
		return f, nil
	}
	if raw, err = json.Marshal(out); err != nil {
		return nil, err
	}
	return json.RawMessage(raw), nil
}

// onlyWorkspace asks the list of workspaces for the only one.
func (env Env) onlyWorkspace(ctx context.Context) (string, error) {
	for _, o := range env.Ops {
		if o.Name != "workspace.list" {
			continue
		}
		call := env.Call
		call.Workspace = ""
		out, err := o.Run(ctx, call, []byte("{}"))
		if err != nil {
			return "", err
		}
		raw, err := json.Marshal(out)
		if err != nil {
			return "", err
		}
		var list struct {
			Workspaces []struct {
				ID string `json:"workspace_id"`
			} `json:"workspaces"`
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return "", err
		}
		switch len(list.Workspaces) {
		case 1:
			return list.Workspaces[0].ID, nil
		case 0:
			return "", fault.Errorf(fault.NotFound, "workspace_not_found", "there is no workspace that this token can see")
		}
		return "", fault.Errorf(fault.Invalid, "workspace_required", "there are several workspaces: say which, with --workspace").
			Then("workspace.list", nil, "", "it lists them")
	}
	return "", fault.Errorf(fault.Invalid, "workspace_required", "say which workspace, with --workspace")
}

// patience tells stderr of a call that takes long. What it returns ends that.
func (env Env) patience(c command) (done func()) {
	wait := env.Patience
	if wait == 0 {
		wait = time.Second
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		t := time.NewTimer(wait)
		defer t.Stop()
		select {
		case <-t.C:
			fmt.Fprintf(env.Stderr, "%s: still waiting …\n", c.words())
		case <-stop:
		}
	}()
	return func() { close(stop); <-ended }
}

// fail reports err and returns the exit code for it.
func (env Env) fail(ctx context.Context, c command, in input, err error) int {
	code, f := Failed, (*fault.Error)(nil)
	if e, ok := errors.AsType[*fault.Error](err); ok {
		f, code = e, ExitCode(e)
	}
	switch {
	case in.json:
		b, jerr := json.Marshal(problem(err))
		if jerr != nil {
			b = []byte(`{"kind":"internal","code":"internal"}`)
		}
		fmt.Fprintf(env.Stderr, "%s\n", b)
	case f == nil && ctx.Err() != nil:
		fmt.Fprintf(env.Stderr, "roundtable %s: stopped\n", c.words())
	case f == nil:
		fmt.Fprintf(env.Stderr, "roundtable %s: %s\n", c.words(), plain(err.Error()))
	default:
		env.explain(c, f)
	}
	return code
}

// problem is err as other transports answer it. The operator's own terminal
// may see what went wrong inside.
func problem(err error) map[string]any {
	p := op.Problem(err, "")
	delete(p, "request_id")
	if fault.KindOf(err) == fault.Internal {
		p["detail"] = err.Error()
	}
	return p
}

// explain writes a fault for a person: what is wrong, where, and which
// commands would help.
func (env Env) explain(c command, f *fault.Error) {
	w := env.Stderr
	fmt.Fprintf(w, "roundtable %s: %s\n", c.words(), plain(f.Detail))
	if !strings.Contains(f.Detail, f.Code) {
		fmt.Fprintf(w, "  code: %s\n", plain(f.Code))
	}
	for _, field := range f.Fields {
		fmt.Fprintf(w, "  %s: %s\n", plain(flagOf(strings.TrimPrefix(field.Pointer, "/"))), plain(field.Message))
	}
	if key, ok := f.Context["idempotency_key"].(string); ok && f.Code == "unknown_outcome" {
		fmt.Fprintf(w, "  ask again with: --key %s\n", quote(key))
	}
	for _, s := range fault.Steps(nil, f.Next) {
		fmt.Fprintf(w, "  try: %s\n", env.step(s))
	}
}
