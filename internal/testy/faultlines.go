package testy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"roundtable/internal/acp"
)

type object = map[string]any

// start sends what a turn begins with.
func (f *faulty) start(out *emitter, t *faultTurn, session string) {
	if t.started {
		return
	}
	t.started = true
	if f.has("unknown-update") {
		out.line(f.updateLine(session, object{"sessionUpdate": "testy_future", "payload": object{"answer": 42}}))
	}
	if f.has("unknown-session") {
		out.line(f.say("agent_thought_chunk", "testy-unknown", "nobody asked"))
	}
	if f.has("unannounced-tool") {
		out.line(f.updateLine(session, object{"sessionUpdate": "tool_call_update", "toolCallId": f.id(), "status": "completed"}))
	}
	if f.has("bad-utf8") {
		line := f.say("agent_thought_chunk", session, "bad byte: ?")
		out.line(bytes.Replace(line, []byte("?"), []byte{0xFF}, 1))
	}
	if f.has("unadvertised-call") {
		out.line(f.request("fs/read_text_file", object{"sessionId": session, "path": "/testy-input.txt"}))
		out.line(f.request("terminal/create", object{"sessionId": session, "command": "true"}))
		out.line(f.request("_testy/unknown", object{}))
	}
	for i := range f.faultSet["flood"] {
		out.line(f.say("agent_thought_chunk", session, fmt.Sprintf("flood %d", i)))
	}
	if n := f.faultSet["stderr-flood"]; n > 0 {
		line := []byte(strings.Repeat("stderr flood ", 79) + "\n")
		for written := 0; written < n<<20; written += len(line) {
			if _, err := f.streams.Err.Write(line); err != nil {
				break
			}
		}
	}
}

// id draws the next id of a frame that exists only because of a fault.
func (f *faulty) id() string {
	f.n++
	return fmt.Sprintf("testy-fault-%d", f.n)
}

func (f *faulty) request(method string, params object) []byte {
	return encode(acp.StringID(f.id()), method, params)
}

func (f *faulty) updateLine(session string, update object) []byte {
	return encode(acp.ID{}, "session/update", object{"sessionId": session, "update": update})
}

// say is an update with text.
func (f *faulty) say(kind, session, what string) []byte {
	return f.updateLine(session, object{
		"sessionUpdate": kind, "content": object{"type": "text", "text": what}, "messageId": f.id(),
	})
}

func encode(id acp.ID, method string, params object) []byte {
	line, err := acp.EncodeCall(id, method, params)
	if err != nil {
		return []byte("{}") // maps of strings always marshal
	}
	return line
}

// edit changes a line as an object.
func edit(line []byte, change func(object)) []byte {
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	var o object
	if d.Decode(&o) != nil {
		return line
	}
	change(o)
	out, err := acp.Marshal(o)
	if err != nil {
		return line
	}
	return out
}

func member(o object, name string) object {
	m, ok := o[name].(object)
	if !ok {
		m = object{}
	}
	return m
}

// pad makes the text of a chunk so long that the line has n bytes.
func pad(line []byte, n int) []byte {
	bare := edit(line, func(object) {})
	return edit(bare, func(o object) {
		content := member(member(member(o, "params"), "update"), "content")
		text, _ := content["text"].(string)
		content["text"] = text + strings.Repeat("x", max(0, n-len(bare)))
	})
}

// garble changes what every line may carry.
func (f *faulty) garble(line []byte) []byte {
	stop := ""
	switch {
	case f.has("unknown-stop"):
		stop = "testy_future"
	case f.has("cancel-end-turn") && bytes.Contains(line, []byte(`"stopReason":"cancelled"`)):
		stop = "end_turn"
	case f.has("cancel-error") && bytes.Contains(line, []byte(`"state":"idle","stopReason":"cancelled"`)):
		stop = "error" // v2 has no response left that could be an error
	}
	if stop == "" && !f.has("null-arrays") && !f.has("malformed-optional") {
		return line
	}
	return edit(line, func(o object) { f.walk(o, stop) })
}

func (f *faulty) walk(v any, stop string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			f.walk(e, stop)
		}
	case object:
		for name, e := range v {
			_, isArray := e.([]any)
			switch {
			case name == "stopReason" && stop != "":
				v[name] = stop
			case f.has("null-arrays") && isArray && isList(name):
				v[name] = nil
			case f.has("malformed-optional") && name == "updatedAt":
				v[name] = 5
			case f.has("malformed-optional") && name == "cost":
				v[name] = "x"
			case f.has("malformed-optional") && name == "locations":
				v[name] = object{}
			default:
				f.walk(e, stop)
			}
		}
	}
}

func isList(name string) bool {
	switch name {
	case "sessions", "configOptions", "availableModes", "entries", "content":
		return true
	}
	return false
}
