// Package policy says what a workspace demands of a change.
//
// What always holds: a policy is a value with a digest; the same policy and
// facts give the same verdict. In this version there is one policy, the
// built-in default: a policy file in the tree is refused and never ignored.
package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/bmatcuk/doublestar/v4"
)

// File is the name of the policy file in the root of a tree.
const File = ".roundtable.yaml"

// A Policy is what is demanded of every change.
type Policy struct {
	Approvals      int      `json:"approvals_required"` // eligible approving votes
	Blockers       int      `json:"blockers_allowed"`   // objections that do not yet block; a veto always does
	HighPaths      []string `json:"risk_high_paths"`    // globs: a change there has risk high
	AuthorMayApply bool     `json:"author_may_apply"`
	MinIsolation   string   `json:"tests_min_isolation"` // weakest at which a passed run counts
	Apply          Apply    `json:"apply,omitzero"`
	StaticCommands []string `json:"static_commands,omitempty"` // of a validation's stage static_checks; the built-in default has none
}

// An Apply says what becomes of a change in a Git workspace. The zero value
// changes files and leaves the index and HEAD alone, as is always done in a
// plain folder.
type Apply struct {
	Mode   string `json:"mode,omitempty"`   // "commit", else the files
	Branch string `json:"branch,omitempty"` // that is committed to; empty: the one that is checked out
}

// Commits reports whether changes are committed.
func (a Apply) Commits() bool { return a.Mode == "commit" }

// Default returns the built-in policy.
func Default() Policy {
	return Policy{
		Approvals:    1,
		MinIsolation: "process",
		HighPaths: []string{
			File, "**/.gitattributes", "**/.gitmodules",
			".github/workflows/**", ".github/actions/**", ".gitlab-ci.yml", ".circleci/**", ".buildkite/**", ".ci/**",
			"azure-pipelines.yml", "Jenkinsfile", "bitbucket-pipelines.yml", ".travis.yml", ".drone.yml", ".woodpecker/**",
			".husky/**", ".githooks/**",
		},
	}
}

// Digest names the policy: lowercase hex SHA-256 of its canonical JSON.
func (p Policy) Digest() string {
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // a struct of strings and numbers
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// HighPath returns the first of paths whose change has risk high, and the glob
// that says so; "" if there is none. Globs are doublestar's.
func (p Policy) HighPath(paths []string) (path, glob string) {
	for _, path := range paths {
		for _, g := range p.HighPaths {
			if ok, err := doublestar.Match(g, path); err == nil && ok {
				return path, g
			}
		}
	}
	return "", ""
}

// isolations lists how strongly a run can be kept apart, weakest first.
var isolations = []string{"none", "process", "landlock", "namespace"}

// Isolated reports whether a run at this level is kept apart enough.
func (p Policy) Isolated(level string) bool {
	reached, wanted := -1, len(isolations)
	for i, l := range isolations {
		if l == level {
			reached = i
		}
		if l == p.MinIsolation {
			wanted = i
		}
	}
	return reached >= wanted
}
