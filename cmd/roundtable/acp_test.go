package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// asTesty makes this test binary the agent.
const asTesty = "RUN_AS_TESTY"

// acpMain runs a command line of acp and returns its output and exit code.
func acpMain(t *testing.T, args ...string) (string, int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i, arg := range args {
		if rest, ok := strings.CutPrefix(arg, "--agent=testy"); ok {
			args[i] = "--agent='" + self + "'" + rest
		}
	}
	var cli struct {
		ACP acpCmd `cmd:"" name:"acp"`
	}
	parser, err := kong.New(&cli)
	if err != nil {
		t.Fatal(err)
	}
	if args[0] != "check" {
		args = append([]string{"run"}, args...)
	}
	k, err := parser.Parse(append(append([]string{"acp"}, args...), "--env="+asTesty+"=1", "--dir="+t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if strings.HasPrefix(k.Command(), "acp run") {
		err = cli.ACP.Run.run(t.Context(), &out, t.Output())
	} else {
		err = cli.ACP.Check.run(t.Context(), &out, t.Output())
	}
	if exit, ok := errors.AsType[exitError](err); ok {
		return out.String() + exit.Msg, exit.Code
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), 0
}

func TestACPRun(t *testing.T) {
	for _, x := range []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"--agent=testy", "--protocol=v1", "-p", "tools", "-p", "echo one, two"}, 0, []string{
			"* testy 0.0.0, protocol version 1\n", "> tools\n", "# testy-tool-read-1: completed\n", "    in_progress  Exercise callbacks\n", "\none, two\n* the turn ended: end_turn\n",
		}},
		{[]string{"--agent=testy", "-p", "echo \x1b[31mred"}, 0, []string{"protocol version 2", "\uFFFD[31mred"}},
		{[]string{"--agent=testy", "--protocol=v1", "--permission=deny", "-p", "callbacks"}, 0, []string{"! permission for Permission request: no", `"optionId":"reject_once"`}},
		{[]string{"--agent=testy --fault=late-update", "--protocol=v1", "-p", "x"}, 3, []string{"! turn.order (must)"}},
		{[]string{"--agent=testy --fault=exit=9", "-p", "x"}, 1, []string{"crashed: the agent ended with exit code 9"}},
		{[]string{"--agent=testy --fault=version=9", "-p", "x"}, 1, []string{"refused_version"}},
		{[]string{"--agent='", "-p", "x"}, 2, []string{"unfinished quote"}},
	} {
		out, code := acpMain(t, x.args...)
		if code != x.code {
			t.Errorf("%v exits with %d: %s", x.args, code, out)
		}
		for _, want := range x.want {
			if !strings.Contains(out, want) {
				t.Errorf("%v: %q is not in %s", x.args, want, out)
			}
		}
	}
}

func TestACPRunJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "transcript")
	out, code := acpMain(t, "--agent=testy --fault=bad-line", "--json", "--transcript="+file, "-p", "greet")
	if code != 3 {
		t.Errorf("exits with %d", code)
	}
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
	if !strings.Contains(lines[len(lines)-1], `"rule":"transport.json"`) {
		t.Error(lines[len(lines)-1])
	}
	written, err := os.ReadFile(file)
	if err != nil || strings.Count(string(written), "\n") != len(lines)-1 {
		t.Errorf("%d lines, %d of them frames: %v", len(lines), strings.Count(string(written), "\n"), err)
	}
}

func TestACPCheck(t *testing.T) {
	junit := filepath.Join(t.TempDir(), "junit.xml")
	out, code := acpMain(t, "check", "--agent=testy", "--filter=ACP-INIT", "--junit="+junit)
	if code != 0 || !strings.Contains(out, "testy 0.0.0, protocol version 1: CONFORMANT\n") {
		t.Errorf("%d: %s", code, out)
	}
	if xml, err := os.ReadFile(junit); err != nil || !strings.Contains(string(xml), `failures="0"`) {
		t.Error(string(xml), err)
	}
	out, code = acpMain(t, "check", "--agent=testy --fault=version=65535", "--filter=ACP-INIT", "--json")
	if code != 1 || !json.Valid([]byte(out)) {
		t.Errorf("%d: %s", code, out)
	}
}

func TestSplitCommand(t *testing.T) {
	for line, want := range map[string][]string{
		"a b  c": {"a", "b", "c"}, `a 'b c' "d e"f`: {"a", "b c", "d ef"}, `a\ b "c\"d"`: {"a b", `c"d`}, "a ''": {"a", ""},
		"": nil, " ": nil, "'a": nil, `a\`: nil,
	} {
		got, err := splitCommand(line)
		if !slices.Equal(got, want) || (err == nil) != (want != nil) {
			t.Errorf("%q: %q, %v", line, got, err)
		}
	}
}
