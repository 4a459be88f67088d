package rules_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"roundtable/internal/acp"
	"roundtable/internal/acp/rules"
	"roundtable/internal/acp/schema"
)

// judge reads a transcript: "> " is what the client sent, "< " what the agent
// did. It returns "rule lines" of each finding.
func judge(schemas map[int]*schema.Set, transcript string, asked, ended bool) []string {
	c := rules.NewWith(schemas, false, 1, 2)
	seq := 0
	for line := range strings.Lines(transcript) {
		text := strings.TrimRight(line, "\n")
		if text == "" {
			continue
		}
		seq++
		dir := acp.In
		if strings.HasPrefix(text, "> ") {
			dir = acp.Out
		}
		c.Observe(acp.Frame{Seq: seq, Dir: dir, Line: []byte(text[2:])})
	}
	c.Finish(asked, ended)
	var found []string
	for _, f := range c.Findings() {
		found = append(found, fmt.Sprint(f.Rule, " ", f.Level, " ", f.Lines))
	}
	return found
}

const (
	hello1 = `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{"terminal":true}}}
< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"1"}}}
> {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}
< {"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}
`
	hello2 = `> {"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":2,"info":{"name":"c","version":"1"}}}
< {"jsonrpc":"2.0","id":1,"result":{"protocolVersion":2,"info":{"name":"a","version":"1"}}}
> {"jsonrpc":"2.0","id":2,"method":"session/new","params":{"cwd":"/"}}
< {"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}
`
	prompt = `> {"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"s","prompt":[]}}
`
	done = `< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}
`
	cancel = `> {"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}
`
)

func update(session, body string) string {
	return fmt.Sprintf(`< {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":%s}}`, session, body) + "\n"
}

func chunk(text string) string {
	return update("s", fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","messageId":"m","content":{"type":"text","text":%q}}`, text))
}

func state(body string) string { return update("s", `{"sessionUpdate":"state_update",`+body+`}`) }

func TestRules(t *testing.T) {
	schemas, err := rules.Schemas(false)
	if err != nil {
		t.Fatal(err)
	}
	load := `> {"jsonrpc":"2.0","id":9,"method":"session/load","params":{"sessionId":"s","cwd":"/","mcpServers":[]}}` + "\n"
	resume := strings.Replace(load, "session/load", "session/resume", 1)
	loaded := `< {"jsonrpc":"2.0","id":9,"result":{}}` + "\n"
	accepted := `< {"jsonrpc":"2.0","id":3,"result":{"messageId":"u"}}` + "\n"
	for name, x := range map[string]struct {
		transcript string
		want       []string
	}{
		"a sound turn":      {hello1 + prompt + chunk("a") + done, nil},
		"garbage":           {hello1 + "< warning: x\n" + "< {}\n", []string{"transport.json must [5]", "transport.json must [6]"}},
		"an empty line":     {hello1 + "<   \n", nil},
		"not UTF-8":         {hello1 + "< {\"\xff\":1}\n", []string{"transport.utf8 must [5]"}},
		"half an answer":    {hello1 + `< {"jsonrpc":"2.0","id":2,"result":1,"error":{}}`, []string{"response.shape must [5]"}},
		"an answer twice":   {hello1 + `< {"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}`, []string{"response.known_id must [5]"}},
		"another type":      {hello1 + prompt + `< {"jsonrpc":"2.0","id":"3","result":{"stopReason":"end_turn"}}`, []string{"response.known_id must [6]"}},
		"after the end":     {hello1 + prompt + done + chunk("late"), []string{"turn.order must [6 7]"}},
		"no turn at all":    {hello1 + chunk("a greeting"), nil},
		"unknown session":   {hello1 + update("x", `{"sessionUpdate":"plan","entries":[]}`), []string{"session.known must [5]"}},
		"unknown kind":      {hello1 + prompt + update("s", `{"sessionUpdate":"testy_future"}`) + done, nil},
		"bad status":        {hello1 + prompt + update("s", `{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","status":"odd"}`) + done, []string{"toolcall.status must [6]"}},
		"not announced":     {hello1 + prompt + update("s", `{"sessionUpdate":"tool_call_update","toolCallId":"t"}`) + done, []string{"toolcall.announced must [6]"}},
		"unknown stop":      {hello1 + prompt + strings.Replace(done, "end_turn", "odd", 1), []string{"stop.reason must [6]"}},
		"cancel, other end": {hello1 + prompt + cancel + done, []string{"cancel.result must [6 7]"}},
		"cancel, error":     {hello1 + prompt + cancel + `< {"jsonrpc":"2.0","id":3,"error":{"code":-32800,"message":"x"}}`, []string{"cancel.result must [6 7]"}},
		"cancel, right":     {hello1 + prompt + cancel + chunk("a") + strings.Replace(done, "end_turn", "cancelled", 1), nil},
		"cancel, no end":    {hello1 + prompt + cancel, []string{"cancel.result must [5 6]"}},
		"cancel too late":   {hello1 + prompt + done + cancel, nil},
		"load, replay":      {hello1 + load + chunk("a") + loaded, nil},
		"load, late replay": {hello1 + load + loaded + chunk("a"), []string{"load.replay must [6 7]"}},
		"resume, replay":    {hello1 + resume + chunk("a") + chunk("b") + loaded, []string{"load.replay must [5 6]"}},
		"null for a list":   {hello1 + prompt + update("s", `{"sessionUpdate":"plan","entries":null}`) + done, []string{"null.array should [6]"}},
		"bad field":         {hello1 + prompt + update("s", `{"sessionUpdate":"usage_update","used":"x","size":1}`) + done, []string{"schema.valid must [6]"}},
		"custom fields":     {hello1 + prompt + `< {"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","mine":1,"_meta":{}},"own":2}`, []string{"root.fields should [6]", "root.fields should [6]"}},
		"not offered":       {hello1 + `< {"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}`, []string{"capability.client must [5]"}},
		"no info":           {strings.Replace(hello1, `,"agentInfo":{"name":"a","version":"1"}`, "", 1), []string{"info.present should [2]"}},
		"other version":     {strings.Replace(hello1, `"result":{"protocolVersion":1`, `"result":{"protocolVersion":9`, 1), []string{"version.supported must [2]"}},
		"a terminal that stays": {hello1 + `< {"jsonrpc":"2.0","id":7,"method":"terminal/create","params":{"sessionId":"s","command":"x"}}` + "\n" +
			`> {"jsonrpc":"2.0","id":7,"result":{"terminalId":"t"}}`, []string{"terminal.release should [6]"}},
		"early": {strings.Replace(hello1, "< {\"jsonrpc\":\"2.0\",\"id\":2", update("s", `{"sessionUpdate":"plan","entries":[]}`)+update("zz", `{"sessionUpdate":"plan","entries":[]}`)+"< {\"jsonrpc\":\"2.0\",\"id\":2", 1),
			[]string{"setup.order should [4 6]", "session.known must [5]"}},
		"v2": {hello2 + prompt + accepted + update("s", `{"sessionUpdate":"user_message","messageId":"u"}`) + state(`"state":"running"`) + chunk("a") + state(`"state":"idle","stopReason":"end_turn"`), nil},
		"v2, other id": {hello2 + prompt + accepted + update("s", `{"sessionUpdate":"user_message","messageId":"v"}`) + state(`"state":"running"`) + state(`"state":"idle","stopReason":"end_turn"`),
			[]string{"message.id must [5 7]"}},
		"v2, after idle":    {hello2 + prompt + accepted + state(`"state":"running"`) + state(`"state":"idle","stopReason":"end_turn"`) + chunk("late"), []string{"turn.order should [8 9]"}},
		"v2, cancel":        {hello2 + prompt + accepted + state(`"state":"running"`) + cancel + state(`"state":"idle","stopReason":"end_turn"`), []string{"cancel.result must [8 9]"}},
		"v2, no id":         {hello2 + prompt + accepted + update("s", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}`), []string{"schema.valid must [7]"}},
		"v2, fs":            {hello2 + `< {"jsonrpc":"2.0","id":7,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}`, []string{"capability.client must [5]"}},
		"v2, unknown state": {hello2 + prompt + accepted + state(`"state":"running"`) + state(`"state":"_napping"`) + chunk("a") + state(`"state":"idle","stopReason":"end_turn"`), nil},
	} {
		got := judge(schemas, x.transcript, true, true)
		if !slices.Equal(got, x.want) {
			t.Errorf("%s: %v, want %v", name, got, x.want)
		}
		if again := judge(schemas, x.transcript, true, true); !slices.Equal(got, again) {
			t.Errorf("%s: judged again it is %v, not %v", name, again, got)
		}
	}
	if got := judge(schemas, hello1, true, false); !slices.Equal(got, []string{"exit.eof should []"}) {
		t.Error(got)
	}
}

// TestBounds: the hundredth finding of a rule is counted, not kept.
func TestBounds(t *testing.T) {
	c, err := rules.New(false, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 5000 {
		c.Observe(acp.Frame{Seq: i, Dir: acp.In, Line: []byte(fmt.Sprintf(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"x%d","update":{"sessionUpdate":"plan","entries":[]}}}`, i))})
	}
	if n := len(c.Findings()); n != rules.MaxPerRule || c.Count("session.known") != 5000 {
		t.Errorf("%d findings, %d counted", n, c.Count("session.known"))
	}
}

func FuzzObserve(f *testing.F) {
	c, err := rules.New(false, 1, 2)
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(hello1 + prompt + chunk("x") + state(`"state":"idle"`)) {
		f.Add(line[0] == '>', []byte(strings.TrimSpace(line[2:])))
	}
	f.Fuzz(func(_ *testing.T, out bool, line []byte) {
		dir := acp.In
		if out {
			dir = acp.Out
		}
		c.Observe(acp.Frame{Seq: 1, Dir: dir, Line: line})
	})
}
