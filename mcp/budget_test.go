package mcp_test

import (
	"context"
	"testing"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/op"
	"roundtable/mcp"
	"roundtable/projections"
)

// What a model pays for the list before it has done anything: at four bytes a
// token, the whole list of an implementer stays under 6,000.
func TestListBudget(t *testing.T) {
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, func(c *mcp.Config) { c.Ops = realOps() })
	total := 0
	for _, tool := range listed(t, url, "a") {
		tool.Annotations = nil
		n := len(toJSON(t, tool))
		t.Logf("%5d %s", n, tool.Name)
		total += n
	}
	t.Logf("%d tokens", total/4)
	if total/4 >= 6000 {
		t.Errorf("the list takes %d tokens", total/4)
	}
}

// Every op that is to be a tool can be one, and nobody but an implementer is
// shown what only implementers may do.
func TestRealOps(t *testing.T) {
	ops := realOps()
	for _, dotted := range []bool{false, true} {
		if _, err := mcp.New(mcp.Config{Ops: ops, DottedNames: dotted}); err != nil {
			t.Fatal(err)
		}
	}
	w := newWorld()
	url := w.serve(t, mcp.HTTPConfig{}, func(c *mcp.Config) { c.Ops = ops })
	for token := range w.tokens {
		shown := map[string]bool{}
		for _, tool := range listed(t, url, token) {
			shown[tool.Name] = true
		}
		who, err := w.authenticate(context.Background(), token)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range ops {
			if got := shown[wireName(o)]; o.Tool && got != allowedAnywhere(o, who) {
				t.Errorf("%s is shown %s: %v", token, o.Name, got)
			}
		}
	}
}

func allowedAnywhere(o op.Op, who auth.Principal) bool {
	for _, ws := range []string{"", "WS-1", "WS-2"} {
		if o.Allows(op.Call{Who: who, Workspace: ws}) == nil {
			return true
		}
	}
	return false
}

// realOps are the product's, of which only the description is looked at.
func realOps() []op.Op {
	return append(new(commands.Handler).Ops(), new(projections.Reader).Ops()...)
}
