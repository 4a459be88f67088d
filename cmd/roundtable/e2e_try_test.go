package main

import (
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryCallIsProposed: when several gates fail the refusal proposes the
// calls of all of them, each once.
func TestEveryCallIsProposed(t *testing.T) {
	t.Parallel()
	s := served(t)
	coder, lead := s.join(t, "coder", "agent", "implementer"), s.join(t, "lead", "agent", "orchestrator")
	s.post(t, coder, "~/claims", args{"resource_id": "file:a.txt", "claim_type": "write"}, 201)
	p := s.post(t, coder, "~/proposals", args{"title": "Speak", "summary_md": "Text.", "patch": diffA}, 201).at("proposal", "proposal_id")
	writeFile(t, filepath.Join(s.root, "a.txt"), "one\ntwo\nthree\nfour\nfive\nsix\nseven\n")
	env := map[string]string{"ROUNDTABLE_SERVER": s.at, "ROUNDTABLE_TOKEN": lead}
	for range 2 { // the first one finds the edit
		code, _, errs := ran(t, env, "apply", p)
		if code != 1 {
			t.Fatalf("apply: %d %s", code, errs)
		}
		for _, call := range []string{"roundtable proposal attach " + p, "roundtable vote cast " + p} {
			if n := strings.Count(errs, "  try: "+call); n != 1 {
				t.Errorf("%q stands %d times in\n%s", call, n, errs)
			}
		}
	}
}
