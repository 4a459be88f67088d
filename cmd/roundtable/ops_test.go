package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"roundtable/api"
	"roundtable/internal/auth"
	"roundtable/internal/cli"
	"roundtable/internal/op"
)

var update = flag.Bool("update", false, "write the generated documents")

// current compares a generated document with the file that holds it.
func current(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(file); err != nil || !bytes.Equal(have, want) {
		t.Errorf("%s is not current (%v): go test ./cmd/roundtable -update writes it; review what it changes", file, err)
	}
}

// TestOps: what every transport relies on holds for every op.
func TestOps(t *testing.T) {
	if err := op.Check(allOps()); err != nil {
		t.Error(err)
	}
}

// TestWords: every op has a command of its own, and its own name works too.
func TestWords(t *testing.T) {
	ops := append(allOps(), fileOps()...)
	var lines strings.Builder
	if code := cli.List(&lines, &lines, ops); code != cli.Done {
		t.Fatal(code, lines.String())
	}
	seen := map[string]bool{}
	for line := range strings.Lines(lines.String()) {
		words, _, _ := strings.Cut(line, "  ")
		if seen[words] {
			t.Errorf("%s stands for two operations", words)
		}
		seen[words] = true
		asked := append(strings.Fields(words), "--help")
		if name := strings.Fields(strings.TrimPrefix(line, words))[0]; name != "OPERATION" {
			var help [2]output
			for i, args := range [][]string{asked, {strings.Split(name, ".")[0], strings.Split(name, ".")[1], "--help"}} {
				if code := run(t.Context(), args, terminal{out: &help[i], err: &help[i], env: environment(nil)}); code != cli.Done {
					t.Errorf("%v: %d", args, code)
				}
			}
			same := help[0].String() == help[1].String()
			if told := strings.Contains(help[0].String(), "is the same command"); name == "patch.apply" && (same || told) || name != "patch.apply" && !same {
				t.Errorf("%s and %s: the same help: %v, said so: %v", words, name, same, told)
			}
		}
	}
	if len(seen) != len(ops)+1 {
		t.Errorf("%d commands of %d operations", len(seen)-1, len(ops))
	}
}

// tools of the specification that this version has.
const tools = `table_get_state task_create task_get task_list resource_claim resource_claim_status resource_release
	proposal_create proposal_attach_patch proposal_get proposal_list proposal_request_review proposal_explain proposal_withdraw
	patch_validate patch_apply patch_reject vote_cast vote_list human_request_approval human_approval_status
	test_run test_cancel test_get_result transaction_get transaction_list transaction_stage transaction_validate transaction_recovery transaction_compensate`

// TestTools: exactly the tools that the specification names are offered to
// agents; all else is for HTTP and the command line.
func TestTools(t *testing.T) {
	var have []string
	for _, o := range allOps() {
		if o.Tool {
			have = append(have, strings.ReplaceAll(o.Name, ".", "_"))
		}
	}
	want := strings.Fields(tools)
	slices.Sort(have)
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Errorf("have %v\nwant %v", have, want)
	}
}

func extras() []api.Extra { return append(noFeed().Extras(), (&app{}).extras()...) }

func TestOpenAPI(t *testing.T) {
	doc, err := api.OpenAPI(allOps(), extras())
	if err != nil {
		t.Fatal(err)
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, doc, "", " "); err != nil {
		t.Fatal(err)
	}
	pretty.WriteByte('\n')
	current(t, "../../docs/openapi.json", pretty.Bytes())
}

// TestRights: who may ask for what is as it was reviewed. The right is judged
// by the ops themselves.
func TestRights(t *testing.T) {
	var b bytes.Buffer
	b.WriteString(`# Rights

Made by ` + "`go test ./cmd/roundtable -update`" + ` from the operations; review what changes here.

A mark says that a principal with this role alone, in the workspace, may ask; a rule of the operation may still refuse, such
as that nobody votes on a proposal of their own. h: people only. Operations of the server as a whole ask for the role in any
workspace, or, marked *, in all of them. An operation without a column's mark answers 403, without a token 401.

A token can be narrowed to a workspace, a task, a proposal, and some operations: it may do what its principal may and
of that only what it is narrowed to; all else answers 403 token_scope. No narrowed token gives rights (principal.create, token.issue).
Narrowed to a workspace, a task or a proposal it reads that workspace, or the workspaces of its principal, whole: tasks, claims,
proposals with their patches and reviews, test runs, transactions and events; but no other task or proposal by its id where the input
names one. It changes nothing of the server as a whole. Narrowed to a task it writes only what names the task, or a proposal of
the task; narrowed to a proposal, only what names the proposal.

`)
	b.WriteString("| operation | route |")
	for _, r := range auth.Roles {
		fmt.Fprintf(&b, " %s |", r)
	}
	b.WriteString("\n|---|---|" + strings.Repeat(":-:|", len(auth.Roles)) + "\n")
	all := allOps()
	for _, x := range extras() {
		all = append(all, x.Op)
	}
	slices.SortFunc(all, func(a, b op.Op) int { return strings.Compare(a.Name, b.Name) })
	for _, o := range all {
		fmt.Fprintf(&b, "| %s | `%s` |", o.Name, strings.ReplaceAll(o.Route, "/api/v1", ""))
		for _, r := range auth.Roles {
			fmt.Fprintf(&b, " %s |", mark(o, r))
		}
		b.WriteString("\n")
	}
	current(t, "../../docs/rights.md", b.Bytes())
}

func mark(o op.Op, r auth.Role) string {
	ws := "WS-1"
	if o.May.Everywhere {
		ws = auth.AllWorkspaces
	}
	may := func(k auth.Kind) bool {
		c := op.Call{Who: auth.Principal{ID: "PR-1", Kind: k, Grants: []auth.Grant{{Workspace: ws, Role: r}}}}
		if o.InWorkspace() {
			c.Workspace = "WS-1"
		}
		return o.Allows(c) == nil
	}
	star := ""
	if o.May.Everywhere {
		star = "*"
	}
	switch {
	case may(auth.Agent):
		return "x" + star
	case may(auth.Human):
		return "h" + star
	}
	return ""
}
