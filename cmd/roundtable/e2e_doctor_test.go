package main

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// diagnosed runs doctor and returns what it found, by check, and its exit code.
func (s *venue) diagnosed(t *testing.T, env map[string]string) (all map[string]finding, code int) {
	t.Helper()
	var out, errs output
	code = run(t.Context(), []string{"doctor", "--data", s.data, "--json"}, terminal{out: &out, err: &errs, env: environment(env)})
	var d diagnosis
	if err := json.Unmarshal([]byte(out.String()), &d); err != nil {
		t.Fatalf("%d %v: %s%s", code, err, out.String(), errs.String())
	}
	if strings.Contains(out.String(), s.admin) {
		t.Error("the token is shown")
	}
	all = map[string]finding{}
	for _, f := range slices.Concat(d.Checks, d.Workspaces[0].Checks) {
		if all[f.Check].Status != "failed" {
			all[f.Check] = f
		}
	}
	return all, code
}

// TestDoctor: an edit behind the service's back is found by doctor, with a
// server and without, and recorded once.
func TestDoctor(t *testing.T) {
	t.Parallel()
	s := initiated(t)
	s.start(t)
	coder := s.join(t, "coder", "agent", "implementer")
	s.post(t, coder, "~/claims", args{"resource_id": "file:a.txt", "claim_type": "write"}, 201)
	asked := map[string]string{"ROUNDTABLE_SERVER": s.at, "ROUNDTABLE_TOKEN": s.admin}
	if all, _ := s.diagnosed(t, asked); all["foreign_changes"].Status != "passed" {
		t.Errorf("%+v", all)
	}
	if all, _ := s.diagnosed(t, nil); all["foreign_changes"].Status != "skipped" {
		t.Errorf("%+v", all)
	}
	edit := func(text string, env map[string]string) {
		t.Helper()
		writeFile(t, filepath.Join(s.root, "a.txt"), text)
		if all, code := s.diagnosed(t, env); code != 1 || all["foreign_changes"].Status != "failed" || !strings.Contains(all["foreign_changes"].Detail, "a.txt was edited") {
			t.Errorf("%d %+v", code, all["foreign_changes"])
		}
		if all, _ := s.diagnosed(t, env); all["foreign_changes"].Status != "passed" {
			t.Errorf("found again: %+v", all["foreign_changes"])
		}
	}
	edit("by hand\n", asked)
	if a := s.get(t, "", "~/claims?stale=true"); len(list(a.body, "claims")) != 1 {
		t.Errorf("stale claims: %s", a)
	}
	if code := s.stop(); code != 0 {
		t.Fatal(code)
	}
	edit("by hand again\n", nil)
	s.start(t)
	if a := s.get(t, "", "~/repository/foreign-changes?found_at=doctor"); len(list(a.body, "foreign_changes")) != 2 {
		t.Errorf("recorded: %s", a)
	}
	if code := s.stop(); code != 0 {
		t.Error(code)
	}
}
