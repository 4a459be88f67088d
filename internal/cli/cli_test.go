package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/cli"
	"roundtable/internal/fault"
	"roundtable/internal/op"
	"roundtable/projections"
)

// A desk is a terminal with ops behind it.
type desk struct {
	call     op.Call // the last one
	in       string
	fail     error
	wait     chan struct{}
	answer   any
	several  bool
	stdin    string
	terminal bool
	real     bool // the ops are the product's
	files    map[string]string
	out      strings.Builder
	err      strings.Builder
}

type create struct {
	Title   string            `json:"title" jsonschema:"what it is"`
	Summary string            `json:"summary_md,omitempty"`
	Tests   []string          `json:"expected_tests,omitempty"`
	Counts  []int             `json:"counts,omitempty"`
	Size    int64             `json:"size,omitempty" min:"1" max:"9"`
	Share   float64           `json:"share,omitempty"`
	Loud    bool              `json:"loud,omitempty"`
	Risk    string            `json:"risk,omitempty" enum:"low,high"`
	Scope   map[string]string `json:"scope,omitempty"`
	Grants  []grant           `json:"grants,omitempty"`
	Patch   string            `json:"patch,omitempty"`
}

type grant struct {
	Where string `json:"where"`
	What  string `json:"what"`
}

func (d *desk) ops() []op.Op {
	const ws = "/api/v1/workspaces/{workspace_id}"
	o := func(name, route string, e op.Effect, in op.Op) op.Op {
		in.Name, in.Route, in.Effect, in.Doc = name, route, e, "Do "+name+"."
		in.Run = func(ctx context.Context, c op.Call, raw []byte) (any, error) {
			d.call, d.in = c, string(raw)
			if d.wait != nil {
				<-d.wait
			}
			return d.answer, d.fail
		}
		return in
	}
	id := op.Op{In: op.SchemaOf[struct {
		ID   string `json:"proposal_id"`
		Vote string `json:"vote"`
	}]()}
	list := op.Of(op.Op{Name: "workspace.list", Route: "GET /api/v1/workspaces", Doc: "List workspaces."}, func(context.Context, op.Call, struct{}) (any, error) {
		all := []map[string]any{{"workspace_id": "WS-1"}, {"workspace_id": "WS-2"}}
		if !d.several {
			all = all[:1]
		}
		return map[string]any{"workspaces": all, "next_cursor": nil, "position": 1}, nil
	})
	return []op.Op{
		o("proposal.create", "POST "+ws+"/proposals", op.Records, op.Op{In: op.SchemaOf[create](), May: op.May{Roles: []auth.Role{auth.Implementer}}}),
		o("proposal.request_review", "POST "+ws+"/proposals/{proposal_id}/request-review", op.Records, op.Op{In: op.SchemaOf[struct {
			ID string `json:"proposal_id"`
		}]()}),
		o("proposal.get", "GET "+ws+"/proposals/{proposal_id}", op.Reads, op.Op{In: op.SchemaOf[struct {
			ID string `json:"proposal_id"`
		}]()}),
		o("patch.apply", "POST "+ws+"/proposals/{proposal_id}/apply", op.Changes, op.Op{In: op.SchemaOf[struct {
			ID string `json:"proposal_id"`
		}]()}),
		o("vote.cast", "POST "+ws+"/proposals/{proposal_id}/votes", op.Records, id),
		o("resource.claim", "POST "+ws+"/claims", op.Records, op.Op{In: op.SchemaOf[struct {
			Resource string `json:"resource_id"`
			Type     string `json:"claim_type"`
		}]()}),
		o("transaction.get", "GET "+ws+"/transactions/{transaction_id}", op.Reads, op.Op{In: op.SchemaOf[struct {
			ID string `json:"transaction_id"`
		}]()}),
		o("event.list", "GET /api/v1/events", op.Reads, op.Op{In: op.SchemaOf[struct {
			After int64 `json:"after,omitempty"`
		}]()}),
		list,
	}
}

// me is who every call is by.
var me = op.Call{Who: auth.Principal{ID: "PR-1"}}

func (d *desk) run(args ...string) int {
	d.out.Reset()
	d.err.Reset()
	if d.answer == nil {
		d.answer = map[string]any{"proposal": map[string]any{"proposal_id": "P-1"}, "position": 7}
	}
	ops := d.ops()
	if d.real {
		ops = append(realOps(), ops[len(ops)-1]) // and the only workspace
		for i := range ops[:len(ops)-1] {
			ops[i].Run = func(context.Context, op.Call, []byte) (any, error) { return d.answer, d.fail }
		}
		ops = slices.DeleteFunc(ops, func(o op.Op) bool { return o.Name == "workspace.list" && o.Doc != "List workspaces." })
	}
	return cli.Run(context.Background(), cli.Env{
		Ops: ops, Args: args, Call: me, Stdin: strings.NewReader(d.stdin), Stdout: &d.out, Stderr: &d.err,
		Terminal: d.terminal, NewKey: func() string { return "fresh" },
		ReadFile: func(path string) ([]byte, error) {
			if s, ok := d.files[path]; ok {
				return []byte(s), nil
			}
			return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
		},
	})
}

func TestFlags(t *testing.T) {
	d := &desk{files: map[string]string{"p.diff": "diff\xff", "sum.md": "# hi", "scope.json": `{"a":"b"}`, "grants.json": `[{"where":"f"},{"where":"g"}]`, "grant.json": `{"where":"f"}`, "empty": ""}, stdin: "piped"}
	for _, c := range []struct {
		args string
		in   string
		body string
		call func(op.Call) bool
	}{
		{args: "proposal create --title x", in: `{"title":"x"}`, call: func(c op.Call) bool { return c.Key == "fresh" && c.Workspace == "WS-1" }},
		{args: "proposal create x", in: `{"title":"x"}`},
		{args: "proposal create --title=a=b --loud --size 3 --share 0.5 --risk low", in: `{"loud":true,"risk":"low","share":0.5,"size":3,"title":"a=b"}`},
		{args: "proposal create --loud=false --title -x", in: `{"loud":false,"title":"-x"}`},
		{args: "proposal create -- --title", in: `{"title":"--title"}`},
		{args: "proposal create x --expected-tests a --expected_tests b --counts 1 --counts 2", in: `{"counts":[1,2],"expected_tests":["a","b"],"title":"x"}`},
		{args: "proposal create x --summary-md @sum.md --scope @scope.json", in: `{"scope":{"a":"b"},"summary_md":"# hi","title":"x"}`},
		{args: "proposal create @x --scope {}", in: `{"scope":{},"title":"@x"}`},
		{args: "proposal create x --patch p.diff", in: `{"title":"x"}`, body: "diff\xff"},
		{args: "proposal create x --patch @p.diff", in: `{"title":"x"}`, body: "diff\xff"},
		{args: "proposal create x --patch -", in: `{"title":"x"}`, body: "piped"},
		{args: "proposal create x --key k --workspace WS-9", in: `{"title":"x"}`, call: func(c op.Call) bool { return c.Key == "k" && c.Workspace == "WS-9" }},
		{args: "proposal get P-1 --after 7", in: `{"proposal_id":"P-1"}`, call: func(c op.Call) bool { return c.After == 7 && c.Key == "" }},
		{args: "proposal get --proposal-id P-1", in: `{"proposal_id":"P-1"}`},
		{args: "proposal request-review P-1", in: `{"proposal_id":"P-1"}`},
		{args: "proposal request_review P-1", in: `{"proposal_id":"P-1"}`},
		{args: "apply P-1", in: `{"proposal_id":"P-1"}`},
		{args: "patch apply P-1", in: `{"proposal_id":"P-1"}`},
		{args: "vote cast P-1 approve", in: `{"proposal_id":"P-1","vote":"approve"}`},
		{args: "vote cast --vote approve P-1", in: `{"proposal_id":"P-1","vote":"approve"}`},
		{args: "claim take file:a.go write", in: `{"claim_type":"write","resource_id":"file:a.go"}`},
		{args: "resource claim file:a.go write", in: `{"claim_type":"write","resource_id":"file:a.go"}`},
		{args: "tx get TX-1", in: `{"transaction_id":"TX-1"}`},
		{args: "transaction get TX-1", in: `{"transaction_id":"TX-1"}`},
		{args: "proposal create x --grants WS-1:a --grants *:b:c", in: `{"grants":[{"what":"a","where":"WS-1"},{"what":"b:c","where":"*"}],"title":"x"}`},
		{args: `proposal create x --grants {"where":"a","what":"b"} --grants [{"where":"c"},{}]`, in: `{"grants":[{"where":"a","what":"b"},{"where":"c"},{}],"title":"x"}`},
		{args: "proposal create x --grants @grant.json --grants []", in: `{"grants":[{"where":"f"}],"title":"x"}`},
		{args: "proposal create x --grants @grants.json", in: `{"grants":[{"where":"f"},{"where":"g"}],"title":"x"}`},
		{args: "event list --after 5", in: `{"after":5}`, call: func(c op.Call) bool { return c.After == 0 && c.Workspace == "" }},
	} {
		if code := d.run(strings.Fields(c.args)...); code != cli.Done {
			t.Errorf("%s: %d %s", c.args, code, d.err.String())
			continue
		}
		if d.in != c.in || string(d.call.Body) != c.body || c.call != nil && !c.call(d.call) {
			t.Errorf("%s: %s, body %q, %+v", c.args, d.in, d.call.Body, d.call)
		}
	}
}

func TestUsage(t *testing.T) {
	d := &desk{files: map[string]string{"empty": ""}}
	for args, want := range map[string]string{
		"":                                              "Usage:",
		"nothing":                                       "no command nothing",
		"proposal":                                      "roundtable proposal get",
		"proposal fly":                                  "has no command fly",
		"proposal create":                               "it needs --title",
		"proposal create x --titel y":                   "no flag --titel",
		"proposal create x --title":                     "--title needs a value",
		"proposal create x y":                           "y is too much",
		"proposal create --title x --title y":           "more than once",
		"proposal create x --size many":                 "whole number",
		"proposal create x --share much":                "a number",
		"proposal create x --loud=maybe":                "true or false",
		"proposal create x --scope {":                   "must be JSON",
		"proposal create x --scope @no.json":            "does not exist",
		"proposal create x --patch no.diff":             "does not exist",
		"proposal create x --patch empty":               "is empty",
		"proposal create x --key=":                      "blank",
		"proposal create x --after 3":                   "no flag --after",
		"proposal get P-1 --key k":                      "no flag --key",
		"proposal get P-1 --after -1":                   "log position",
		"proposal create x --grants a":                  "--grants must be WHERE:WHAT, JSON",
		"proposal create x --grants {\"a\":":            "--grants must be WHERE:WHAT, JSON",
		"proposal create x --grants [{]":                "--grants must be WHERE:WHAT, JSON",
		"event list --workspace WS-1":                   "no flag --workspace",
		"proposal get P-1 --\x1b[31m x":                 `\u001b`,
		"vote cast P-1":                                 "it needs --vote",
		"proposal create x --counts 1.5":                "whole number",
		"proposal create x --size 99999999999999999999": "whole number",
	} {
		if code := d.run(strings.Fields(args)...); code != cli.Usage || !strings.Contains(d.err.String(), want) || d.out.Len() > 0 || strings.Contains(d.err.String(), "\x1b") {
			t.Errorf("%q: %d %q %q", args, code, d.out.String(), d.err.String())
		}
	}
}

func TestExitCodes(t *testing.T) {
	d := &desk{}
	for _, k := range fault.Kinds {
		want := map[fault.Kind]int{fault.Invalid: 2, fault.Unauthenticated: 3, fault.Forbidden: 3, fault.Unavailable: 3}[k]
		if want == 0 {
			want = 1
		}
		d.fail = fmt.Errorf("wrapped: %w", fault.Errorf(k, "a_code", "Some text."))
		for _, args := range []string{"apply P-1", "apply P-1 --json"} {
			if code := d.run(strings.Fields(args)...); code != want || d.out.Len() > 0 || !strings.Contains(d.err.String(), "Some text.") {
				t.Errorf("%s %s: %d %s %s", k, args, code, d.out.String(), d.err.String())
			}
		}
	}
	d.fail = fault.Errorf(fault.Unavailable, "unknown_outcome", "It may be done.").With("idempotency_key", "k 1")
	if code := d.run("apply", "P-1"); code != cli.UnknownOutcome || !strings.Contains(d.err.String(), "--key 'k 1'") {
		t.Errorf("%d %s", code, d.err.String())
	}
	d.fail = fault.Errorf(fault.Unavailable, "server_unreachable", "It is not there.")
	if code := d.run("apply", "P-1"); code != cli.NotAllowed {
		t.Errorf("%d %s", code, d.err.String())
	}
	d.fail = errors.New("disk on fire")
	if code := d.run("apply", "P-1"); code != cli.Failed || !strings.Contains(d.err.String(), "disk on fire") {
		t.Errorf("%d %s", code, d.err.String())
	}
}

func TestErrorText(t *testing.T) {
	d := &desk{fail: fault.Errorf(fault.Conflict, "claim_conflict", "a.go is claimed by \x1b[2JPR-2.").
		At("/claim_type", "is taken").
		Then("proposal.get", map[string]any{"proposal_id": "P-1"}, "", "to see it").
		Then("vote.cast", map[string]any{"proposal_id": "P-1", "vote": "it's fine"}, "a reviewer", "").
		Then("unknown.op", nil, "", "")}
	d.run("apply", "P-1")
	want := "roundtable apply: a.go is claimed by \\u001b[2JPR-2.\n" +
		"  code: claim_conflict\n" +
		"  --claim-type: is taken\n" +
		"  try: roundtable proposal get P-1   # to see it\n" +
		"  try: roundtable vote cast P-1 --vote 'it'\\''s fine'   # by: a reviewer\n" +
		"  try: unknown.op\n"
	if diff := cmp.Diff(want, d.err.String()); diff != "" {
		t.Error(diff)
	}
	d.run("apply", "P-1", "--json")
	var p map[string]any
	if err := json.Unmarshal([]byte(d.err.String()), &p); err != nil || p["code"] != "claim_conflict" || p["kind"] != "conflict" {
		t.Errorf("%v %s", err, d.err.String())
	}
}

func TestWorkspace(t *testing.T) {
	d := &desk{several: true}
	if code := d.run("apply", "P-1"); code != cli.Usage || !strings.Contains(d.err.String(), "--workspace") || d.in != "" {
		t.Errorf("%d %s", code, d.err.String())
	}
	if code := d.run("apply", "P-1", "--workspace", "WS-2"); code != cli.Done || d.call.Workspace != "WS-2" {
		t.Errorf("%d %s", code, d.err.String())
	}
}

func TestPatience(t *testing.T) {
	d := &desk{wait: make(chan struct{}), answer: map[string]any{}}
	told, pipe := io.Pipe()
	done := make(chan int)
	go func() {
		done <- cli.Run(context.Background(), cli.Env{Ops: d.ops(), Args: []string{"apply", "P-1"}, Call: me, Stdout: io.Discard, Stderr: pipe,
			NewKey: func() string { return "k" }, Patience: time.Millisecond})
	}()
	b := make([]byte, 100)
	n, err := told.Read(b)
	if err != nil || string(b[:n]) != "apply: still waiting …\n" {
		t.Errorf("%v %q", err, b[:n])
	}
	close(d.wait)
	if code := <-done; code != cli.Done {
		t.Errorf("%d", code)
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

func TestStdoutFull(t *testing.T) {
	d := &desk{answer: map[string]any{"proposal": map[string]any{"proposal_id": "P-1"}}}
	for _, args := range [][]string{{"apply", "P-1"}, {"apply", "P-1", "--json"}} {
		var e strings.Builder
		if code := cli.Run(t.Context(), cli.Env{Ops: d.ops(), Args: args, Call: me, Stdout: full{}, Stderr: &e, NewKey: func() string { return "k" }}); code != cli.Failed || !strings.Contains(e.String(), "no space") {
			t.Errorf("%d %s", code, e.String())
		}
	}
}

// The words of all real ops are there once, and each has a help.
func TestRealOps(t *testing.T) {
	ops := realOps()
	var all strings.Builder
	cli.Run(t.Context(), cli.Env{Ops: ops, Args: []string{"--help"}, Stdout: &all, Stderr: io.Discard})
	seen := map[string]bool{}
	for line := range strings.Lines(all.String()) {
		words, ok := strings.CutPrefix(line, "  roundtable ")
		if !ok {
			continue
		}
		words, _, _ = strings.Cut(words, "  ")
		if seen[words] {
			t.Errorf("%s stands for two ops", words)
		}
		seen[words] = true
		var out, e strings.Builder
		code := cli.Run(t.Context(), cli.Env{Ops: ops, Args: append(strings.Fields(words), "--help"), Stdout: &out, Stderr: &e})
		if code != cli.Done || e.Len() > 0 || !strings.HasPrefix(out.String(), "Usage: roundtable "+words) {
			t.Errorf("%s: %d %s %s", words, code, out.String(), e.String())
		}
	}
	if len(seen) != len(ops) {
		t.Errorf("%d commands of %d ops", len(seen), len(ops))
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s: %s", name, d)
	}
}

// realOps are the product's, of which only the description is looked at.
func realOps() []op.Op {
	return append(new(commands.Handler).Ops(), new(projections.Reader).Ops()...)
}
