package commands_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/fault"
	"roundtable/internal/op"
)

// TestAssignee: a task is given to somebody who is there, by id or by name.
func TestAssignee(t *testing.T) {
	x := setUp(t)
	x.join("ann", auth.Human, "", auth.Orchestrator)
	x.must(x.as("ann"), commands.CreateTask{Title: "t", Assignee: "ANN"})
	x.must(x.as("ann"), commands.CreateTask{Title: "t", Assignee: x.who["ann"].ID})
	x.refused(x.as("ann"), commands.CreateTask{Title: "t", Assignee: "nobody"}, "principal_not_found")
}

// TestZero: what has a default is left out, and 0 is no way of writing that.
func TestZero(t *testing.T) {
	x := setUp(t)
	for name, in := range map[string]string{
		"resource.claim": `{"resource_id":"file:a","claim_type":"write","ttl_seconds":0}`,
		"token.issue":    `{"principal_id":"ann","expires_in_seconds":0}`,
	} {
		for _, o := range x.Ops() {
			if o.Name != name {
				continue
			}
			var into any
			if err := op.Decode([]byte(in), o.In, &into); fault.CodeOf(err) != "invalid_field" {
				t.Errorf("%s: %v", name, err)
			}
			if err := op.Decode([]byte(strings.Replace(in, "seconds\":0", "seconds\":1", 1)), o.In, &into); err != nil {
				t.Errorf("%s of 1: %v", name, err)
			}
		}
	}
}

// TestRoots: what is Git's, the service's or part of another workspace is
// refused; a work tree of its own inside one is not.
func TestRoots(t *testing.T) {
	x := setUp(t)
	x.write("sub/b.txt", "b\n")
	git := exec.CommandContext(t.Context(), "git", "worktree", "add", "-q", "--detach", "tree")
	git.Dir = x.root
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatal(err, string(out))
	}
	for dir, want := range map[string]string{
		"sub": "root_nested", ".git": "root_reserved", ".git/objects": "root_reserved", ".roundtable": "root_reserved", "": "workspace_exists", "a.txt": "invalid_root",
	} {
		x.refused(commands.System("", "root "+dir), commands.AddWorkspace{Root: filepath.Join(x.root, dir), Label: "other"}, want)
	}
	x.must(commands.System("", "tree"), commands.AddWorkspace{Root: filepath.Join(x.root, "tree")})
	x.must(commands.System("", "around"), commands.AddWorkspace{Root: filepath.Dir(x.root), Label: "around"})
}
