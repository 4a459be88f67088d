package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// asMain makes this test binary the program.
const asMain = "RUN_AS_TESTY"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) != "" {
		main()
	}
	os.Exit(m.Run())
}

func program(t *testing.T, args ...string) (cmd *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asMain+"=1")
	stdout, stderr = &bytes.Buffer{}, &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	return cmd, stdout, stderr
}

func code(t *testing.T, err error) int {
	t.Helper()
	if err == nil {
		return 0
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatal(err)
	}
	return exit.ExitCode()
}

func TestCommandLine(t *testing.T) {
	for _, x := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"--help"}, 0, "usage: testy", ""},
		{[]string{"--version"}, 0, "testy ", ""},
		{[]string{"--fault=list"}, 0, "late-update ", ""},
		{[]string{"--fault", "list"}, 0, "orphan ", ""},
		{[]string{"--nonsense"}, 2, "", "usage: testy"},
		{[]string{"--fault=nonsense"}, 2, "", "usage: testy"},
		{[]string{"--scratch=here"}, 2, "", "must be absolute"},
	} {
		cmd, out, errs := program(t, x.args...)
		if got := code(t, cmd.Run()); got != x.code {
			t.Errorf("%v exits with %d", x.args, got)
		}
		if x.out == "" && out.Len() > 0 || !strings.Contains(out.String(), x.out) || !strings.Contains(errs.String(), x.err) {
			t.Errorf("%v: stdout %q, stderr %q", x.args, out, errs)
		}
	}
}

// TestPipe: the whole input at once, and the end of it, give the whole output.
func TestPipe(t *testing.T) {
	input := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}
{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/x","mcpServers":[]}}
{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"testy-session-1","prompt":[{"type":"text","text":"session_updates"}]}}
`
	var first string
	for range 3 {
		cmd, out, _ := program(t)
		cmd.Stdin = strings.NewReader(input)
		if err := cmd.Run(); err != nil {
			t.Fatal(err)
		}
		if first == "" {
			first = out.String()
		}
		if out.String() != first || strings.Count(first, "\n") != 22 || !strings.HasSuffix(first, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`+"\n") {
			t.Errorf("two runs differ, or one is cut: %s", out)
		}
	}
}

func TestExitsWithItsInput(t *testing.T) {
	cmd, out, _ := program(t)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/x","mcpServers":[]}}`,
		`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"testy-session-1","prompt":[{"type":"text","text":"wait_for_cancel"}]}}`,
	} {
		if _, err := in.Write([]byte(line + "\n")); err != nil {
			t.Fatal(err)
		}
	}
	begin := time.Now()
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if took := time.Since(begin); took > 5*time.Second { // a second on a quiet machine
		t.Errorf("it takes %s", took)
	}
	if !strings.Contains(out.String(), `"id":2,"result":{"stopReason":"cancelled"}`) {
		t.Error(out)
	}
}

// TestClientIsGone: a closed output ends the program, not a signal.
func TestClientIsGone(t *testing.T) {
	cmd, _, _ := program(t, "--fault=flood")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}` + "\n")
	r.Close()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	if got := code(t, cmd.Wait()); got != 0 {
		t.Errorf("exits with %d", got)
	}
}
