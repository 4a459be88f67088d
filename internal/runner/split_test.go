package runner_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"roundtable/internal/fault"
	"roundtable/internal/runner"
)

func TestSplit(t *testing.T) {
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"go test ./...", []string{"go", "test", "./..."}},
		{"  go\t vet  ", []string{"go", "vet"}},
		{`go test -run 'A|B' "-tags=a b"`, []string{"go", "test", "-run", "A|B", "-tags=a b"}},
		{`printf '' ""`, []string{"printf", "", ""}},
		{`a'b'"c"\ d`, []string{"abc d"}},
		{`printf "\"\\\$\` + "`" + `\n" '\n'`, []string{"printf", "\"\\$`\\n", `\n`}},
		{`printf \;\|\&\>\<\$\` + "`", []string{"printf", ";|&><$`"}},
		{"printf ';|&><$`' \";|&><$`\"", []string{"printf", ";|&><$`", ";|&><$`"}},
		{"printf 'two\nlines' \"and\r\nmore\"", []string{"printf", "two\nlines", "and\r\nmore"}},
		{`pytest *.py ~ {a,b} #x !y (z)`, []string{"pytest", "*.py", "~", "{a,b}", "#x", "!y", "(z)"}},
		{"printf \"a\\\nb\" 'a\\\nb'", []string{"printf", "ab", "a\\\nb"}},
		{"printf ä \u2028", []string{"printf", "ä", "\u2028"}},
		{strings.Repeat("x", runner.MaxCommand), []string{strings.Repeat("x", runner.MaxCommand)}},
	} {
		got, err := runner.Split(c.in)
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%.80q: %.200q, %v", c.in, got, err)
		}
	}
}

func TestSplitRefuses(t *testing.T) {
	for _, c := range []struct {
		in   string
		kind fault.Kind
		code string
	}{
		{"", fault.Invalid, "command_empty"},
		{" \t ", fault.Invalid, "command_empty"},
		{"a; b", fault.Refused, "command_shell_syntax"},
		{"a | b", fault.Refused, "command_shell_syntax"},
		{"a &", fault.Refused, "command_shell_syntax"},
		{"a>b", fault.Refused, "command_shell_syntax"},
		{"a<b", fault.Refused, "command_shell_syntax"},
		{"a `b`", fault.Refused, "command_shell_syntax"},
		{"a $HOME", fault.Refused, "command_shell_syntax"},
		{"a 'b'$c", fault.Refused, "command_shell_syntax"},
		{"a\nb", fault.Refused, "command_shell_syntax"},
		{"a\n", fault.Refused, "command_shell_syntax"},
		{"a\rb", fault.Refused, "command_shell_syntax"},
		{"a \\\nb", fault.Refused, "command_shell_syntax"},
		{"a 'b", fault.Invalid, "command_unbalanced_quotes"},
		{`a "b\"`, fault.Invalid, "command_unbalanced_quotes"},
		{`a \`, fault.Invalid, "command_unbalanced_quotes"},
		{"a \x00", fault.Invalid, "command_malformed"},
		{"a '\x00'", fault.Invalid, "command_malformed"},
		{"a \xff", fault.Invalid, "command_malformed"},
		{strings.Repeat("x", runner.MaxCommand+1), fault.TooLarge, "command_too_long"},
	} {
		got, err := runner.Split(c.in)
		if err == nil || fault.KindOf(err) != c.kind || fault.CodeOf(err) != c.code {
			t.Errorf("%.80q: %.80q, %v", c.in, got, err)
		}
	}
}

// TestSplitLikeShell: what is split at all is split as a shell splits it.
func TestSplitLikeShell(t *testing.T) {
	pieces := []string{"a", "b", " ", "\t", "'", `"`, `\`, "=", "\n", "$", ";", "ä"}
	rapid.Check(t, func(t *rapid.T) {
		var text strings.Builder
		for _, piece := range rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 14).Draw(t, "pieces") {
			text.WriteString(piece)
		}
		words, err := runner.Split("x " + text.String())
		if err != nil || strings.Contains(text.String(), "$") {
			return // a shell does more, or says no elsewhere
		}
		out, err := exec.Command("/bin/sh", "-c", `printf '%s\0' x `+text.String()).Output()
		if err != nil {
			t.Fatal(err)
		}
		if want := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); !slices.Equal(words, want) {
			t.Errorf("%q: %q, a shell says %q", text.String(), words, want)
		}
	})
}

// quote is the inverse of Split.
func quote(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}

func FuzzSplit(f *testing.F) {
	for _, s := range []string{"go test ./...", `a 'b c' "d\"e" \f`, "a;b", "'", "\x00", "a\\\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, command string) {
		words, err := runner.Split(command)
		if err != nil {
			if kind := fault.KindOf(err); kind == fault.Internal || fault.CodeOf(err) == "" {
				t.Fatalf("%v is no fault", err)
			}
			return
		}
		again, err := runner.Split(quote(words))
		if fault.CodeOf(err) != "command_too_long" && !slices.Equal(words, again) {
			t.Fatalf("%q: %q, and quoted %q (%v)", command, words, again, err)
		}
	})
}

func TestAllowed(t *testing.T) {
	for _, c := range []struct {
		argv  []string
		allow []string
		code  string
	}{
		{[]string{"go", "test"}, runner.DefaultAllow(), "internal"},
		{[]string{"printf"}, runner.DefaultAllow(), "internal"},
		{[]string{"./check"}, []string{"./check"}, "internal"},
		{[]string{"sh"}, runner.DefaultAllow(), "command_not_allowed"},
		{[]string{"/usr/bin/go"}, runner.DefaultAllow(), "command_not_allowed"},
		{[]string{"./go"}, runner.DefaultAllow(), "command_not_allowed"},
		{[]string{"bin/go"}, runner.DefaultAllow(), "command_not_allowed"},
		{[]string{"Go"}, runner.DefaultAllow(), "command_not_allowed"},
		{[]string{"go "}, runner.DefaultAllow(), "command_not_allowed"},
		{[]string{"X=1", "go"}, runner.DefaultAllow(), "command_not_allowed"},
		{[]string{"../go"}, []string{"../go"}, "command_not_allowed"},
		{[]string{"./../go"}, []string{"./../go"}, "command_not_allowed"},
		{[]string{"/bin/sh"}, []string{"/bin/sh"}, "command_not_allowed"},
		{[]string{".."}, []string{".."}, "command_not_allowed"},
		{[]string{"go"}, nil, "command_not_allowed"},
		{[]string{""}, runner.DefaultAllow(), "command_empty"},
		{nil, runner.DefaultAllow(), "command_empty"},
	} {
		if err := runner.Allowed(c.argv, c.allow); fault.CodeOf(err) != c.code && !(err == nil && c.code == "internal") {
			t.Errorf("%q: %v", c.argv, err)
		}
	}
}

func TestCheckEnv(t *testing.T) {
	allow := []string{"A", "a-b", "GOFLAGS"}
	many := map[string]string{}
	for i := range 65 {
		many[strings.Repeat("A", i+1)] = ""
	}
	for _, c := range []struct {
		env  map[string]string
		code string
	}{
		{nil, ""},
		{map[string]string{"A": "x\ny", "GOFLAGS": ""}, ""},
		{map[string]string{"B": ""}, "env_not_allowed"},
		{map[string]string{"a": ""}, "env_not_allowed"},
		{map[string]string{"": ""}, "env_not_allowed"},
		{map[string]string{"a-b": ""}, "env_invalid"},
		{map[string]string{"A": "\x00"}, "env_invalid"},
		{map[string]string{"A": strings.Repeat("x", 32<<10+1)}, "env_too_large"},
		{many, "env_too_large"},
	} {
		err := runner.CheckEnv(c.env, allow)
		if c.code == "" && err != nil || c.code != "" && fault.CodeOf(err) != c.code {
			t.Errorf("%.100v: %v", c.env, err)
		}
	}
}
