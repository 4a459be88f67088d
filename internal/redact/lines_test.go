package redact_test

import (
	"slices"
	"strings"
	"testing"

	"roundtable/internal/redact"
)

// TestLines: a secret over several lines is masked on each, nothing else
// changes, and there are as many lines as before.
func TestLines(t *testing.T) {
	key := []string{"-----BEGIN OPENSSH PRIVATE KEY-----", "b3BlbnNzaC1rZXk", "", "AAAAB3NzaC1yc2E", "-----END OPENSSH PRIVATE KEY-----"}
	mark := "[redacted:private-key]"
	for _, c := range []struct{ in, want []string }{
		{nil, nil},
		{[]string{"a", "", "b"}, []string{"a", "", "b"}},
		{slices.Concat([]string{"before"}, key, []string{"after"}), []string{"before", mark, mark, "", mark, mark, "after"}},
		{key[:2], []string{mark, mark}},
		{[]string{"x = AKIAABCDEFGHIJKLMNOP # y", "z"}, []string{"x = [redacted:aws-key] # y", "z"}},
		{[]string{"a -----BEGIN PRIVATE KEY-----", "b"}, []string{"a " + mark, mark}},
	} {
		in := slices.Clone(c.in)
		if got := redact.Lines(c.in); !slices.Equal(got, c.want) {
			t.Errorf("%q\nwant %q", got, c.want)
		}
		if !slices.Equal(in, c.in) {
			t.Error("the lines given were changed")
		}
		if got := redact.Text(strings.Join(c.in, "\n")); strings.Contains(got, mark) != slices.ContainsFunc(c.want, func(l string) bool { return strings.Contains(l, mark) }) {
			t.Errorf("Text and Lines do not agree: %q", got)
		}
	}
}
