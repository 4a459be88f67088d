package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"roundtable/internal/cli"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

var (
	stepLiteral = regexp.MustCompile(`(?:Then\(|Op:\s*)"([a-z_]+\.[a-z_]+)",\s*(?:Args:\s*)?(nil|map\[string\]any\{[^}]*\})`)
	argLiteral  = regexp.MustCompile(`"(\w+)":`)
)

// a sample is a value that a field of the schema may have, as it comes out of JSON.
func sample(p *jsonschema.Schema, odd bool) any {
	switch {
	case p.Type == "integer" || p.Type == "number":
		return 1234567.0
	case p.Type == "boolean":
		return !odd
	case p.Type == "array":
		return []any{sample(p.Items, odd), sample(p.Items, odd)}
	case p.Type == "object" || p.Type != "string":
		return map[string]any{"a": "b c"}
	case odd:
		return "-x  y"
	}
	return "x:y z"
}

// TestStepsParse: every step that a refusal names is printed as a command that
// the command line takes, and gives the call that the step is.
func TestStepsParse(t *testing.T) {
	t.Parallel()
	ops := append(allOps(), fileOps()...)
	byName := map[string]op.Op{}
	for _, o := range ops {
		byName[o.Name] = o
	}
	found := 0
	for _, dir := range []string{"commands", "domain", "internal/op", "projections", "api", "mcp", "cmd/roundtable"} {
		files, err := filepath.Glob(filepath.Join("../..", dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range stepLiteral.FindAllStringSubmatch(string(text), -1) {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				found++
				for _, odd := range []bool{false, true} {
					args := map[string]any{}
					for _, k := range argLiteral.FindAllStringSubmatch(m[2], -1) {
						if p := byName[m[1]].In; p == nil || p.Properties[k[1]] == nil {
							t.Fatalf("%s: %s has no field %s", file, m[1], k[1])
						}
						args[k[1]] = sample(byName[m[1]].In.Properties[k[1]], odd)
					}
					stepParses(t, ops, m[1], args)
				}
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d steps were found in the source", found)
	}
	stepParses(t, ops, "proposal.attach_patch", map[string]any{"proposal_id": "P-1", "expected_revision": 2.0, "rebase": true})
	for _, o := range ops { // whatever a step may ever name
		for _, odd := range []bool{false, true} {
			args := map[string]any{}
			for name, p := range o.In.Properties {
				if name != "patch" && name != op.WorkspaceParam && !strings.HasPrefix(name, "patch_") {
					args[name] = sample(p, odd)
				}
			}
			stepParses(t, ops, o.Name, args)
		}
	}
}

// stepParses prints a step and takes it as a command line.
func stepParses(t *testing.T, ops []op.Op, name string, args map[string]any) {
	t.Helper()
	var said, errs strings.Builder
	var got map[string]any
	mine := make([]op.Op, len(ops))
	refuse := true
	for i, o := range ops {
		mine[i] = o
		mine[i].Shortfall = nil
		mine[i].Run = func(_ context.Context, _ op.Call, raw []byte) (any, error) {
			if refuse {
				return nil, fault.Errorf(fault.Conflict, "gates_not_met", "No.").Then(name, args, "you", "it helps")
			}
			if o.Name != name {
				t.Errorf("%s was called for %s", o.Name, name)
			}
			return struct{}{}, json.Unmarshal(raw, &got)
		}
	}
	env := cli.Env{Ops: mine, Args: []string{"apply", "P-1"}, Call: op.Call{Workspace: "WS-1"}, Stdout: &said, Stderr: &said, NewKey: func() string { return "k" }}
	cli.Run(t.Context(), env)
	_, line, _ := strings.Cut(said.String(), "  try: roundtable ")
	line, _, _ = strings.Cut(line, "   # ")
	refuse = false
	env.Args, env.Stderr, env.Stdout = shellWords(line), &errs, &errs
	if code := cli.Run(t.Context(), env); code != cli.Done {
		t.Errorf("roundtable %s: %d %s", line, code, errs.String())
		return
	}
	for k, v := range args {
		if !reflect.DeepEqual(got[k], v) {
			t.Errorf("roundtable %s: %s is %v, not %v", line, k, got[k], v)
		}
	}
}

// shellWords splits a line as a shell would, with nothing but single quotes.
func shellWords(line string) (all []string) {
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}
