package main

import (
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestTwoServices: a folder has one service at a time. A second one, with a
// data folder of its own, is told so, and by whom; it may when the first has
// ended, also by a kill, and then the first may not.
func TestTwoServices(t *testing.T) {
	t.Parallel()
	first := initiated(t)
	a := spawnIn(t, ".", "--data", first.data, "--log-level", "error")
	first.at = a.at
	was := sh(t, first.root, "git", "status", "--porcelain")

	second := initiated(t) // of a repository of its own
	b := spawnIn(t, ".", "--data", second.data, "--log-level", "error")
	second.at = b.at
	add := request{method: http.MethodPost, path: "/workspaces", body: args{"name": "other", "root": first.root}}
	refused := second.refused(t, add, http.StatusServiceUnavailable, "state.locked")
	if detail := text(refused.body, "detail"); !strings.Contains(detail, strconv.Itoa(a.cmd.Process.Pid)) || !strings.Contains(detail, first.data) {
		t.Errorf("refused with %q", detail)
	}
	if now := sh(t, first.root, "git", "status", "--porcelain"); now != was {
		t.Errorf("the folder was %q, is %q", was, now)
	}

	if err := a.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = a.cmd.Wait() // killed
	second.post(t, "", "/workspaces", add.body, http.StatusCreated)

	again := spawnIn(t, ".", "--data", first.data, "--log-level", "error")
	first.at = again.at
	patch := args{"title": "x", "summary_md": "y", "patch": "diff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+n\n"}
	first.refused(t, request{method: http.MethodPost, path: "~/proposals", body: patch}, http.StatusServiceUnavailable, "state.locked")
	if code, err := b.term(); code != 0 || err != nil {
		t.Fatalf("ended with %d, %v: %s", code, err, &b.errs)
	}
	first.post(t, "", "~/proposals", patch, http.StatusCreated)
	if _, err := os.Lstat(filepath.Join(first.root, "n")); err == nil {
		t.Error("a proposal changed the folder")
	}
}
