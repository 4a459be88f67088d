package main

import (
	"net/http"
	"strings"
	"testing"
)

// validationShapes has stages run, with and without commands.
func (s *venue) validationShapes(t *testing.T, coder string) {
	diff := "--- /dev/null\n+++ b/valid.txt\n@@ -0,0 +1 @@\n+valid \n"
	p := s.post(t, coder, "~/proposals", args{"title": "v", "summary_md": "v", "patch": diff, "expected_tests": []string{"git hash-object valid.txt"}}, 201).at("proposal", "proposal_id")
	at := "~/proposals/" + p + "/validation"
	a := s.post(t, "", at, args{}, 200)
	a.wants(t, "position", "validation")
	stages := list(a.body["validation"].(map[string]any), "stages")
	if len(stages) != 4 || a.at("validation", "status") != "passed" || a.at("validation", "revision") != "1" || len(a.at("validation", "candidate_tree")) != 40 || a.at("validation", "finished_at") == "" {
		t.Errorf("by default: %s", a)
	}
	a = s.post(t, "", at, args{"stages": []string{"static_checks", "static_checks"}}, 200)
	stages = list(a.body["validation"].(map[string]any), "stages")
	if len(stages) != 1 || a.at("validation", "status") != "failed" || text(stages[0], "output") != "valid.txt:1: trailing whitespace\n" {
		t.Errorf("static checks: %s", a)
	}
	s.testsStage(t, p, at)
	for body, code := range map[string]string{`{"stages":["lint"]}`: "invalid_validation_stage", `{"stages":"tests"}`: "invalid_field", `{"stages":[1]}`: "invalid_field",
		`{"stages":null}`: "invalid_field", `{"stages":["tests"]`: "malformed_json", `{"stage":["tests"]}`: "unknown_field", `[]`: ""} {
		a := s.send(t, request{path: at, body: body})
		if a.status != 400 || code != "" && a.at("code") != code {
			t.Errorf("%s: %s", body, a)
		}
	}
	if a := s.send(t, request{path: at, token: coder, body: args{}}); a.status != 403 || a.at("code") != "people_only" {
		t.Errorf("an agent: %s", a)
	}
}

// testsStage has the tests of a proposal run, and waits for them.
func (s *venue) testsStage(t *testing.T, p, at string) {
	ask := request{path: at, key: "validate once", body: args{"stages": []string{"tests", "policy"}}}
	a := s.send(t, ask)
	if a.status != http.StatusAccepted || a.at("validation", "status") != "running" && a.at("validation", "status") != "passed" {
		t.Errorf("tests: %s", a)
	}
	one := "~/proposals/" + p + "/validations/" + a.at("validation", "validation_id")
	var b answer
	eventually(t, func() bool {
		b = s.get(t, "", one)
		return b.at("validation", "status") != "running"
	})
	b.wants(t, "position", "validation")
	stages := list(b.body["validation"].(map[string]any), "stages")
	if len(stages) != 2 || b.at("validation", "status") != "passed" || text(stages[0], "stage") != "tests" || text(stages[0], "exit_code") != "0" || !strings.Contains(text(stages[0], "output"), "$ git hash-object") {
		t.Errorf("tests: %s", b)
	}
	if again := s.send(t, ask); again.status != http.StatusAccepted || again.at("validation", "validation_id") != a.at("validation", "validation_id") || again.at("validation", "status") != "passed" {
		t.Errorf("again: %s", again)
	}
	if c := s.get(t, "", "~/proposals/"+p+"/validations?status=passed"); len(list(c.body, "validations")) != 2 {
		t.Errorf("the list: %s", c)
	}
	if c := s.send(t, request{method: "GET", path: strings.Replace(one, p, "P-other", 1)}); c.status != 404 || c.at("code") != "validation_not_found" {
		t.Errorf("of another proposal: %s", c)
	}
}
