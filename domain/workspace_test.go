package domain

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"roundtable/events"
	"roundtable/internal/fault"
)

func TestWorkspaceName(t *testing.T) {
	for folder, want := range map[string]string{
		"repo": "repo", "my repo": "my-repo", "héllo": "hello", "漢字": "workspace", ".config": "config", "": "workspace", "/": "workspace",
		"a  ~ b": "a-b", "x_1.2-3": "x_1.2-3", "été 2026!": "ete-2026", strings.Repeat("a", 80): strings.Repeat("a", 64), "\xff\xfe": "workspace",
	} {
		if got := WorkspaceName(folder); got != want {
			t.Errorf("%q is named %q, want %q", folder, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		folder := rapid.String().Draw(t, "folder")
		if name := WorkspaceName(folder); !workspaceName.MatchString(name) {
			t.Fatalf("%q is named %q", folder, name)
		}
	})
}

// TestNestedRoots: one file has one workspace, unless Git too keeps it apart.
func TestNestedRoots(t *testing.T) {
	for _, x := range []struct{ there, kind, root, newKind, want string }{
		{"/a/b", "git", "/a/b/c", "folder", "root_nested"}, {"/a/b", "git", "/a", "folder", ""}, {"/a/b", "folder", "/a", "git", "root_nested"},
		{"/a/b", "folder", "/a/b/c", "git", ""}, {"/a/b", "git", "/a/b/c", "git", ""}, {"/a/b", "folder", "/", "folder", "root_nested"},
		{"/a/b", "folder", "/a/bc", "folder", ""}, {"/a/b", "folder", "/a/..b", "folder", ""}, {"/a", "folder", "/a/..b", "folder", "root_nested"},
		{"/a/b", "git", "/a/b", "git", "workspace_exists"},
	} {
		w := Workspaces{}.Evolve(events.WorkspaceAdded{Workspace: "WS-1", Name: "one", Root: x.there, Kind: x.kind})
		_, err := w.Add(events.WorkspaceAdded{Workspace: "WS-2", Name: "two", Root: x.root, Kind: x.newKind})
		if err == nil && x.want != "" || err != nil && fault.CodeOf(err) != x.want {
			t.Errorf("%+v: %v", x, err)
		}
	}
}
