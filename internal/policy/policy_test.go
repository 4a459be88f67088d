package policy_test

import (
	"testing"

	"roundtable/internal/policy"
)

func TestHighPath(t *testing.T) {
	p := policy.Default()
	for path, high := range map[string]bool{
		".roundtable.yaml": true, ".github/workflows/ci.yml": true, ".gitattributes": true, "deep/er/.gitattributes": true, ".ci/run": true,
		"Jenkinsfile": true, ".gitmodules": true, "src/main.go": false, "docs/.github/x": false, "Jenkinsfile.md": false,
	} {
		if got, glob := p.HighPath([]string{"harmless", path}); (got == path) != high || (glob != "") != high {
			t.Errorf("%s: %q by %q", path, got, glob)
		}
	}
	if got, _ := p.HighPath(nil); got != "" {
		t.Error(got)
	}
}

// TestDefaultDigest: what the default policy was called before there was a choice of
// how to apply still names it.
func TestDefaultDigest(t *testing.T) {
	p := policy.Default()
	if got := p.Digest(); got != "c5b5b4aff389923109fba77f7d4047392dd37f193f110474fe82dcfe4b60170f" {
		t.Errorf("the default policy is now %s", got)
	}
	seen := map[string]bool{p.Digest(): true}
	for _, a := range []policy.Apply{{Mode: "commit"}, {Mode: "commit", Branch: "main"}} {
		if p.Apply = a; seen[p.Digest()] || !a.Commits() {
			t.Errorf("%v has a digest of its own no more", a)
		}
		seen[p.Digest()] = true
	}
}

func TestIsolated(t *testing.T) {
	p := policy.Default()
	for level, enough := range map[string]bool{"none": false, "process": true, "landlock": true, "namespace": true, "": false, "other": false} {
		if p.Isolated(level) != enough {
			t.Errorf("%q: %v", level, !enough)
		}
	}
	p.MinIsolation = "namespace"
	if p.Isolated("landlock") || !p.Isolated("namespace") {
		t.Error("a stronger demand is not held")
	}
	p.MinIsolation = "unheard of"
	if p.Isolated("namespace") {
		t.Error("a demand that is not understood is met")
	}
}

// TestDigest: a policy's name changes with anything it says.
func TestDigest(t *testing.T) {
	a, b := policy.Default(), policy.Default()
	b.Approvals++
	if a.Digest() == b.Digest() || a.Digest() != policy.Default().Digest() || len(a.Digest()) != 64 {
		t.Error(a.Digest(), b.Digest())
	}
}
