package cli_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"roundtable/internal/cli"
	"roundtable/internal/op"
)

// What help shows as an example is taken as it stands.
func TestExamples(t *testing.T) {
	asked := 0
	ops := realOps()
	for i := range ops {
		ops[i].Run = func(_ context.Context, _ op.Call, raw []byte) (any, error) {
			asked++
			var in any
			if err := json.Unmarshal(raw, &in); err != nil {
				return nil, err
			}
			schema, err := ops[i].In.Resolve(nil)
			if err != nil {
				return nil, err
			}
			return struct{}{}, schema.Validate(in)
		}
	}
	examples := 0
	for _, o := range ops {
		var out, e strings.Builder
		args := strings.Fields(strings.Replace(o.Name, ".", " ", 1) + " --help")
		if code := cli.Run(t.Context(), cli.Env{Ops: ops, Args: args, Stdout: &out, Stderr: &e}); code != cli.Done {
			t.Errorf("%s: %d %s", o.Name, code, e.String())
		}
		_, example, ok := strings.Cut(out.String(), "\nExample: roundtable ")
		if !ok {
			continue
		}
		examples++
		line, _, _ := strings.Cut(example, "\n")
		env := cli.Env{Ops: ops, Args: words(line), Call: op.Call{Workspace: "WS-1"}, Stdout: &out, Stderr: &e, NewKey: func() string { return "k" },
			ReadFile: func(string) ([]byte, error) { return []byte("diff"), nil }}
		if code := cli.Run(t.Context(), env); code != cli.Done {
			t.Errorf("%s: %d %s", line, code, e.String())
		}
	}
	if examples == 0 || asked != examples {
		t.Errorf("%d examples, %d calls", examples, asked)
	}
}

// words splits a line as a shell would, with nothing but single quotes.
func words(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
