package world_test

import (
	"os"
	"path/filepath"
	"testing"

	"roundtable/internal/fault"
	"roundtable/internal/world"
)

// TestCheckRoot: Git's folders and the service's are nobody's workspace, by
// whatever name.
func TestCheckRoot(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range []string{"ok", "a/.git/hooks", "b/.GIT", "c/.Roundtable/x", "data/runs/tree", "a.git", ".gitx"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{"link": "data/runs", "linked": "ok", "data-too": "data"} {
		if err := os.Symlink(filepath.Join(top, target), filepath.Join(top, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(top, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		"": "", "ok": "", "linked": "", "a": "", "a.git": "", ".gitx": "",
		"a/.git": "root_reserved", "a/.git/hooks": "root_reserved", "b/.GIT": "root_reserved", "c/.Roundtable/x": "root_reserved",
		"data": "root_reserved", "data/runs/tree": "root_reserved", "link": "root_reserved", "link/tree": "root_reserved",
		"file": "invalid_root", "nowhere": "invalid_root",
	} {
		for _, data := range []string{"data", "data-too"} {
			root, err := world.CheckRoot(filepath.Join(top, dir), filepath.Join(top, data))
			if err != nil && fault.CodeOf(err) != want || err == nil && want != "" {
				t.Errorf("%q: %q, %v, want %q", dir, root, err, want)
			}
		}
	}
	if _, err := world.CheckRoot("ok", top); fault.CodeOf(err) != "invalid_root" {
		t.Error("a relative path:", err)
	}
	if _, err := world.CheckRoot(filepath.Join(top, "ok"), filepath.Join(top, "none yet")); err != nil {
		t.Error("before there is a data folder:", err)
	}
}
