package main

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"roundtable/commands"
	"roundtable/internal/auth"
	"roundtable/internal/wire"
)

// initAt runs init and returns what it made, its exit code and what it said.
func initAt(t *testing.T, args ...string) (m made, code int, say string) {
	t.Helper()
	var out, errs output
	code = run(t.Context(), append([]string{"init", "--json"}, args...), terminal{out: &out, err: &errs, env: environment(nil)})
	if code == 0 {
		if err := json.Unmarshal([]byte(out.String()), &m); err != nil {
			t.Fatal(err)
		}
	}
	return m, code, errs.String()
}

// opened runs f on the parts of a data folder.
func opened(t *testing.T, data string, f func(*app)) {
	t.Helper()
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := open(t.Context(), data, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	f(a)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
}

// adminOf fails unless the token of m is a good one of an admin of everything.
func adminOf(t *testing.T, m made, name string) {
	t.Helper()
	opened(t, m.Data, func(a *app) {
		who, err := a.handler.Authenticate(t.Context(), m.Token)
		if err != nil || who.Name != name || !who.Everywhere(auth.Admin) {
			t.Errorf("the token stands for %+v: %v", who, err)
		}
		if err := a.known(t.Context(), m.Workspace); err != nil {
			t.Error(err)
		}
	})
}

// TestInitNames: a folder of any name can be governed.
func TestInitNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"my repo", "héllo", "漢字", "-x", strings.Repeat("long", 40), "a\nb"} {
		dir := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		m, code, say := initAt(t, "--", dir)
		if code != 0 {
			t.Errorf("%q: %d %s", name, code, say)
			continue
		}
		adminOf(t, m, "admin")
	}
}

// TestInitChecksFirst: what is refused leaves nothing behind.
func TestInitChecksFirst(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	if err := os.MkdirAll(filepath.Join(top, ".git", "hooks"), 0o755); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	for _, args := range [][]string{
		{top, "--name", "a b"}, {top, "--name", ""}, {top, "--name", strings.Repeat("a", 65)}, {top, "--name", "a\u200b"},
		{filepath.Join(top, "nowhere")}, {filepath.Join(top, ".git")}, {filepath.Join(top, ".git", "hooks")},
	} {
		if _, code, say := initAt(t, append(args, "--data", data)...); code == 0 || say == "" {
			t.Errorf("%q: %d %s", args, code, say)
		}
		if _, err := os.Stat(data); err == nil {
			t.Fatalf("%q left a data folder", args)
		}
	}
}

// TestInitGoesOn: init that was cut short between its steps is run again, with
// the same or another name; one that came to its end is not.
func TestInitGoesOn(t *testing.T) {
	t.Parallel()
	workspace := func(a *app, dir string) error {
		_, err := a.handler.Do(t.Context(), system("init.workspace"), commands.AddWorkspace{Root: dir})
		return err
	}
	admin := func(a *app, _ string) error {
		_, err := a.handler.Do(t.Context(), system("init.admin"), commands.CreatePrincipal{Label: "admin", Kind: string(auth.Human),
			Roles: []wire.Role{{Workspace: auth.AllWorkspaces, Role: string(auth.Admin)}}})
		return err
	}
	for _, name := range []string{"admin", "root"} {
		for _, steps := range [][]func(*app, string) error{{}, {workspace}, {workspace, admin}} {
			dir := repository(t)
			opened(t, filepath.Join(dir, ".roundtable"), func(a *app) {
				for _, step := range steps {
					if err := step(a, dir); err != nil {
						t.Fatal(err)
					}
				}
			})
			m, code, say := initAt(t, dir, "--name", name)
			if code != 0 {
				t.Errorf("after %d steps, as %s: %d %s", len(steps), name, code, say)
				continue
			}
			adminOf(t, m, name)
			if _, code, say := initAt(t, dir, "--name", name); code == 0 || !strings.Contains(say, "token issue") {
				t.Errorf("a second time: %d %s", code, say)
			}
		}
	}
	dir := repository(t) // log.db was made, and nothing in it
	if err := os.MkdirAll(filepath.Join(dir, ".roundtable"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, ".roundtable", "log.db"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if m, code, say := initAt(t, dir); code != 0 {
		t.Errorf("on an empty log.db: %d %s", code, say)
	} else {
		adminOf(t, m, "admin")
	}
}
