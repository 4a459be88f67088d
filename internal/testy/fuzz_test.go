package testy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"roundtable/internal/testy"
)

// FuzzInput: whatever comes in, what goes out are lines of JSON, and after it
// the agent still answers.
func FuzzInput(f *testing.F) {
	for _, s := range []string{
		"", "\n", "{", "[]", "[[]]", `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{}]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/prompt","params":{"sessionId":"testy-session-1","prompt":[{"type":"text","text":"full"}]}}`,
		`{"jsonrpc":"2.0","id":1,"method":"session/set_config_option","params":{"sessionId":"testy-session-1","configId":"verbosity","value":{}}}`,
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"testy-session-1"}}`,
	} {
		f.Add(s, true)
		f.Add(s, false)
	}
	f.Fuzz(func(t *testing.T, input string, next bool) {
		args := []string{"--protocol=v1"}
		if next {
			args = append(args, "--draft=next")
		}
		o, err := testy.ParseArgs(args)
		if err != nil {
			t.Fatal(err)
		}
		ping := `{"jsonrpc":"2.0","id":"ping","method":"_ping"}`
		in := strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}` + "\n" + input + "\n" + ping + "\n")
		var out bytes.Buffer
		agent, err := testy.New(o, testy.Streams{In: in, Out: &out, Err: io.Discard, Exit: func(int, os.Signal) {}})
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Serve(context.Background()); err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Fatalf("%q gives %q", input, line)
			}
		}
		if !strings.Contains(out.String(), `{"jsonrpc":"2.0","id":"ping","error"`) {
			t.Fatalf("%q leaves the agent silent: %s", input, out.String())
		}
	})
}
