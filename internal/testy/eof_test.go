package testy_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"roundtable/internal/testy"
)

// TestEOFInACall: a turn that waits for the client when the input ends ends as
// a cancelled one: it asks and reports nothing more.
func TestEOFInACall(t *testing.T) {
	in := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}}}
{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}
{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"testy-session-1","prompt":[{"type":"text","text":"callbacks"}]}}
`
	for range 20 {
		o, err := testy.ParseArgs([]string{"--protocol=v1"})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		agent, err := testy.New(o, testy.Streams{In: strings.NewReader(in), Out: &out, Err: io.Discard, Exit: func(int, os.Signal) {}})
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Serve(context.Background()); err != nil {
			t.Fatal(err)
		}
		text := out.String()
		if !strings.Contains(text, `"id":2,"result":{"stopReason":"cancelled"}`) {
			t.Fatalf("the turn does not end as a cancelled one: %s", text)
		}
		if strings.Contains(text, "elicitation/complete") || strings.Contains(text, "end_turn") || strings.Contains(text, "Request was cancelled") {
			t.Fatalf("it went on after the end of its input: %s", text)
		}
	}
}
